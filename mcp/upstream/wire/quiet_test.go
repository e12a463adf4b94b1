package wire

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/mcp/upstream/process"
)

// scriptedFrames are those of a server that answers a request by a script: after that
// time it writes text, or a message, or something to standard error.
type scriptedFrames struct {
	script []scripted
	begin  chan string // the id of a request
	done   chan struct{}
	open   string // the id of the request under way
	noted  func([]byte)
	stderr atomic.Uint64
}

type scripted struct {
	after time.Duration
	text  string // in which ID is the request's
}

func newScriptedFrames(script ...scripted) *scriptedFrames {
	return &scriptedFrames{script: script, begin: make(chan string, 1), done: make(chan struct{})}
}

func (f *scriptedFrames) onNoise(noted func([]byte)) { f.noted = noted }
func (f *scriptedFrames) activity() uint64           { return f.stderr.Load() }
func (f *scriptedFrames) Child() process.Child       { return nil }
func (f *scriptedFrames) Terminate(bool)             { close(f.done) }

func (f *scriptedFrames) write(_ context.Context, msg []byte) error {
	if e, err := openEnvelope(msg); err == nil && e.id != nil {
		f.begin <- string(e.id)
	}
	return nil
}

func (f *scriptedFrames) read() ([]byte, bool, error) {
	for {
		if f.open == "" {
			select {
			case f.open = <-f.begin:
			case <-f.done:
				return nil, false, io.EOF
			}
		}
		if len(f.script) == 0 {
			<-f.done
			return nil, false, io.EOF
		}
		next := f.script[0]
		f.script = f.script[1:]
		select {
		case <-time.After(next.after):
		case <-f.done:
			return nil, false, io.EOF
		}
		text := strings.ReplaceAll(next.text, "ID", f.open)
		switch {
		case strings.HasPrefix(text, "stderr:"):
			f.stderr.Add(uint64(len(text)))
		case strings.HasPrefix(text, `{"jsonrpc"`):
			if strings.Contains(text, "result") {
				f.open = ""
			}
			return []byte(text), false, nil
		default:
			f.noted([]byte(text))
		}
	}
}

// TestQuietAfterText: text in place of an answer is skipped if an answer follows, and
// quoted long before the time of the request is over if nothing does.
func TestQuietAfterText(t *testing.T) {
	const s = time.Second
	const answer = `{"jsonrpc":"2.0","id":ID,"result":{}}`
	for name, c := range map[string]struct {
		script []scripted
		calls  int
		total  time.Duration
		want   string        // in the error; "" is an answer
		took   time.Duration // of the last call
	}{
		"a word, then nothing":        {[]scripted{{s, "hello there"}}, 1, 30 * s, `"hello there" to standard output, and then nothing for 10s`, 11 * s},
		"a failure, then nothing":     {[]scripted{{s, "Error: no such table"}}, 1, 30 * s, `"Error: no such table"`, 6 * s},
		"a stack trace":               {[]scripted{{0, "Traceback (most recent call last):"}, {0, `ValueError: unknown region "x"`}}, 1, 30 * s, "unknown region", 5 * s},
		"a page":                      {[]scripted{{0, "<html><head><title>502 Bad Gateway</title></head></html>"}}, 1, 30 * s, `a web page with the title "502 Bad Gateway"`, 5 * s},
		"usage":                       {[]scripted{{0, "usage: server [-h] PORT"}}, 1, 30 * s, "usage: server", 5 * s},
		"a listener":                  {[]scripted{{0, "Server listening on http://127.0.0.1:3000"}}, 1, 30 * s, "listening on", 5 * s},
		"a question":                  {[]scripted{{0, "Ok to proceed?"}}, 1, 30 * s, "Ok to proceed?", 5 * s},
		"half an object":              {[]scripted{{0, `{"content": [`}}, 1, 30 * s, `{"content": [`, 5 * s},
		"a short time":                {[]scripted{{0, "starting"}}, 1, 5 * s, "starting", 3 * s},
		"a very short time":           {[]scripted{{0, "Error: x"}}, 1, 2 * s, "", 2 * s}, // its own deadline comes first
		"an answer behind it":         {[]scripted{{s, "Error: cache miss"}, {4 * s, answer}}, 1, 30 * s, "", 5 * s},
		"chatter without a break":     {[]scripted{{s, "10%"}, {9 * s, "20%"}, {9 * s, "30%"}, {9 * s, answer}}, 1, 60 * s, "", 28 * s},
		"words on standard error":     {[]scripted{{s, "starting"}, {9 * s, "stderr: 10%"}, {9 * s, "stderr: 20%"}, {6 * s, answer}}, 1, 30 * s, "", 25 * s},
		"a notification":              {[]scripted{{s, "starting"}, {s, `{"jsonrpc":"2.0","method":"notifications/message"}`}, {20 * s, answer}}, 1, 30 * s, "", 22 * s},
		"a server that is known":      {[]scripted{{s, "working"}, {s, answer}, {s, "working"}, {25 * s, answer}}, 2, 30 * s, "", 26 * s},
		"one that only said hello":    {[]scripted{{0, answer}, {s, "working"}}, 2, 30 * s, "working", 11 * s},
		"text between the calls":      {[]scripted{{0, answer}, {0, answer}}, 2, 30 * s, "", 0},
		"no deadline, so no patience": {[]scripted{{s, "working"}, {1000 * s, answer}}, 1, 0, "", 1001 * s},
	} {
		test := func(t *testing.T, bySession bool) {
			synctest.Test(t, func(t *testing.T) {
				script := c.script
				if bySession {
					script = append([]scripted{{0, `{"jsonrpc":"2.0","id":ID,"result":` + helloResult + `}`}}, script...)
				}
				f := newScriptedFrames(script...)
				p := NewPeer(f, NewBudget(), func() {}, func(string) {})
				var err error
				var took time.Duration
				call := func(ctx context.Context) error {
					_, err := p.Call(ctx, &Request{Method: MethodCall, Name: "t"})
					return err
				}
				if bySession {
					cs, err := NewClient(&sdk.Implementation{Name: "nize", Version: "1"}, &sdk.ClientOptions{}).Connect(t.Context(), p, &sdk.ClientSessionOptions{ProtocolVersion: VersionLegacy})
					if err != nil {
						t.Fatal(err)
					}
					call = func(ctx context.Context) error {
						_, err := (&PeerSession{p, cs}).Call(ctx, &Request{Method: MethodList})
						return err
					}
				} else if _, err := p.Connect(t.Context()); err != nil {
					t.Fatal(err)
				}
				for range c.calls {
					ctx, cancel := t.Context(), context.CancelFunc(func() {})
					if c.total > 0 {
						ctx, cancel = context.WithTimeout(ctx, c.total)
					}
					begin := time.Now()
					err = call(ctx)
					took = time.Since(begin)
					cancel()
				}
				switch {
				case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !errors.As(err, new(*QuietError)) || AsFault(err).Reach != Maybe || AsFault(err).Drop):
					t.Errorf("error %v, want %s", err, c.want)
				case c.want == "" && err != nil && !errors.Is(err, context.DeadlineExceeded):
					t.Error(err)
				}
				if took != c.took {
					t.Errorf("it took %s, want %s", took, c.took)
				}
				synctest.Wait()
				p.Terminate(true)
			})
		}
		t.Run(name, func(t *testing.T) { test(t, false) })
		if c.calls == 1 { // only calls make a server known
			t.Run(name+", a list", func(t *testing.T) { test(t, true) })
		}
	}
}

// TestQuietOfOneOfTwo: text while two requests are open may be about either, so that
// neither is given up for it before the other one is answered; then the one that is
// left is.
func TestQuietOfOneOfTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &floodFrames{}
		p := NewPeer(f, NewBudget(), func() {}, func(string) {})
		ends := make(chan error, 2)
		call := func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := p.Call(ctx, &Request{Method: MethodCall, Name: "t"})
			ends <- err
		}
		p.ids.Store(2000)
		go call()
		synctest.Wait()
		go call()
		synctest.Wait()
		p.heardNoise([]byte("working"))
		time.Sleep(50 * time.Second) // of the bubble
		if len(ends) != 0 {
			t.Fatalf("given up: %v", <-ends)
		}
		if err := p.dispatch([]byte(`{"jsonrpc":"2.0","id":2002,"result":{}}`), nil); err != nil {
			t.Fatal(err)
		}
		if err := <-ends; err != nil {
			t.Error(err)
		}
		p.heardNoise([]byte("Error: x"))
		if err := <-ends; err == nil {
			t.Error("an answer that never came")
		}
		p.Terminate(true)
	})
}

// TestTextBeforeTheFirstRequest: what a command says before it is first asked counts
// if it never says a message.
func TestTextBeforeTheFirstRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newScriptedFrames()
		p := NewPeer(f, NewBudget(), func() {}, func(string) {})
		if _, err := p.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.heardNoise([]byte("Server running on port 3000"))
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if _, err := p.Call(ctx, &Request{Method: MethodList}); err == nil || !strings.Contains(err.Error(), "port 3000") {
			t.Errorf("error %v", err)
		}
		synctest.Wait()
		p.Terminate(true)
	})
}
