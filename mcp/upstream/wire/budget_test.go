package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nize/mcp/upstream/process"
)

// endless is a stream of the same text, without end, that counts what is read.
type endless struct {
	text string
	read int
}

func (e *endless) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		n += copy(p[n:], e.text[(e.read+n)%len(e.text):])
	}
	e.read += n
	return n, nil
}

// floodFrames have another message at once, always.
type floodFrames struct {
	message string
	reads   int
}

func (f *floodFrames) read() ([]byte, bool, error)         { f.reads++; return []byte(f.message), false, nil }
func (f *floodFrames) write(context.Context, []byte) error { return nil }
func (f *floodFrames) Terminate(bool)                      {}
func (f *floodFrames) Child() process.Child                { return nil }

// mayRead is how many bytes may be read of a flood until it is cut off.
func mayRead(rate int) int { return noiseBurst + rate*int(noiseTime/time.Second+1) }

const changedNotice = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`

// Whatever a server sends without end and without being asked, so much of it is
// read, and then the session is over, for a reason that people understand.
func TestFloodIsHeldBackAndCutOff(t *testing.T) {
	for name, flood := range map[string]func(t *testing.T, b *Budget) (read int, err error){
		"notifications": func(t *testing.T, b *Budget) (int, error) { return pumpFlood(t, b, changedNotice) },
		"answers to nothing": func(t *testing.T, b *Budget) (int, error) {
			return pumpFlood(t, b, `{"jsonrpc":"2.0","id":1007,"result":{}}`)
		},
		"empty batches": func(t *testing.T, b *Budget) (int, error) { return pumpFlood(t, b, `[]`) },
		"huge notifications": func(t *testing.T, b *Budget) (int, error) {
			return pumpFlood(t, b, `{"jsonrpc":"2.0","method":"a","params":"`+strings.Repeat("x", 1<<20)+`"}`)
		},
		"blank lines": func(_ *testing.T, b *Budget) (int, error) {
			out := &endless{text: " \n"}
			f := &StdioFrames{out: stdoutReader{r: out}, budget: b}
			_, _, err := f.read()
			return out.read, err
		},
		"comments on SSE": func(_ *testing.T, b *Budget) (int, error) {
			out := &endless{text: ": still here\n\n"}
			f := &sseFrames{er: newEventReader(out), budget: b, life: context.Background()}
			f.er.skip = f.spend
			_, _, err := f.read()
			return out.read, err
		},
		"other events on SSE": func(_ *testing.T, b *Budget) (int, error) {
			out := &endless{text: "event: ad\ndata: buy\n\n"}
			f := &sseFrames{er: newEventReader(out), budget: b, life: context.Background()}
			_, _, err := f.read()
			return out.read, err
		},
		"progress before an answer": func(t *testing.T, b *Budget) (int, error) {
			out := &endless{text: "data: " + changedNotice + "\n\n"}
			_, err := (&HTTPConn{trip: &RoundTripper{Budget: b}}).stream(t.Context(), out, 1, &Request{})
			return out.read, err
		},
		"a standing stream": func(t *testing.T, b *Budget) (int, error) {
			out := &endless{text: "data: " + changedNotice + "\n\n"}
			trip, life := standing(t, b, out)
			resp, err := trip.RoundTrip(get(t))
			if err != nil {
				return 0, err
			}
			defer resp.Body.Close()
			if _, err := io.Copy(io.Discard, resp.Body); err == nil {
				t.Error("the stream ended without an error")
			}
			return out.read, context.Cause(life)
		},
		"streams that end at once": func(t *testing.T, b *Budget) (int, error) {
			trip, life := standing(t, b, strings.NewReader(""))
			for opened := 0; ; opened++ {
				resp, err := trip.RoundTrip(get(t))
				if err != nil {
					if most := mayRead(noiseRate) / openCost; opened > most {
						t.Errorf("it was opened %d times, want at most %d", opened, most)
					}
					return 0, context.Cause(life)
				}
				resp.Body.Close()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				read, err := flood(t, NewBudget())
				var noise *NoiseError
				if !errors.As(err, &noise) || noise.Pause != restTime {
					t.Fatalf("it ended with %v, want a flood and a rest of %s", err, restTime)
				}
				if want := "it floods: it sends more than 256KiB a second of unsolicited data"; !strings.Contains(err.Error(), want) {
					t.Errorf("the reason is %q, want %q", err, want)
				}
				if most := mayRead(noiseRate) + MaxMessage; read > most {
					t.Errorf("%d bytes were read, want at most %d", read, most)
				}
				if took := time.Since(begin); took < noiseTime || took > 4*noiseTime {
					t.Errorf("it was cut off after %s, want about %s", took, noiseTime)
				}
			})
		})
	}
}

func pumpFlood(t *testing.T, b *Budget, message string) (read int, err error) {
	f := &floodFrames{message: message}
	p := NewPeer(f, b, func() {}, func(warning string) { t.Error(warning) })
	p.pump()
	return f.reads * len(message), p.Cause()
}

type tripFunc func(*http.Request) (*http.Response, error)

func (f tripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// standing is the door to a server whose every answer is this stream.
func standing(t *testing.T, b *Budget, body io.Reader) (*RoundTripper, context.Context) {
	life, end := context.WithCancelCause(t.Context())
	return &RoundTripper{Scheme: "http", Host: "far", Budget: b, Life: life, End: end, Base: tripFunc(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {mediaStream}}, Body: io.NopCloser(body)}, nil
	})}, life
}

func get(t *testing.T) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://far/mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// Standard error, too, and it floods no log.
func TestFloodOnStderr(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer
		log := NewStderrLog(slog.New(slog.NewTextHandler(&logged, nil)))
		out := &endless{text: strings.Repeat("going wrong ", 80) + "\n"}
		err := log.readFrom(out, log.budget, t.Context().Done())
		if !errors.As(err, new(*NoiseError)) || !strings.Contains(err.Error(), "more than 1MiB a second to standard error") {
			t.Errorf("it ended with %v", err)
		}
		if most := mayRead(stderrRate); out.read > most {
			t.Errorf("%d bytes were read, want at most %d", out.read, most)
		}
		if got := strings.Count(logged.String(), "server wrote\""); got > 130 {
			t.Errorf("%d lines were logged", got)
		}
	})
}

// What was asked for is free, and so is what comes at an ordinary pace.
func TestBudgetOfAGoodServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget()
		f := &floodFrames{message: `{"jsonrpc":"2.0","id":1001,"result":{"text":"` + strings.Repeat("x", 1<<20) + `"}}`}
		p := NewPeer(f, b, func() {}, func(warning string) { t.Error(warning) })
		begin := time.Now()
		for range 100 {
			p.waiting[1001] = &waiter{answer: make(chan envelope, 1)}
			if err := p.dispatch([]byte(f.message), nil); err != nil {
				t.Fatal(err)
			}
		}
		for range 1000 {
			time.Sleep(10 * time.Millisecond)
			if err := p.dispatch([]byte(changedNotice), nil); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(begin); took != 10*time.Second || b.Reason() != "" {
			t.Errorf("it was held back: %s, %q", took, b.Reason())
		}
	})
}

// A server that floods again is cut off sooner, and left alone for longer; one
// that has behaved for a time is as good as new.
func TestFloodAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget()
		flood := func() (lasted, rest time.Duration) {
			begin := time.Now()
			for {
				err := b.Spend(64<<10, nil)
				if b.Reason() == "" && time.Since(begin) > time.Second && err == nil {
					t.Fatal("nothing is said of a server that is held back")
				}
				var noise *NoiseError
				if errors.As(err, &noise) {
					return time.Since(begin), noise.Pause
				}
			}
		}
		before, want := noiseTime+time.Minute, restTime
		for n := range 10 {
			lasted, rest := flood()
			if lasted > before || rest != want {
				t.Errorf("time %d: it was cut off after %s for %s, want at most %s and %s", n, lasted, rest, before, want)
			}
			time.Sleep(rest)
			before, want = lasted, min(2*rest, maxRest)
		}
		time.Sleep(maxRest + 2*forgiveTime)
		if _, rest := flood(); rest != restTime {
			t.Errorf("after a quiet time it is left alone for %s, want %s", rest, restTime)
		}
	})
}
