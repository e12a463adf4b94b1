package standby

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// works is who works, as the database says.
type works struct {
	mu  sync.Mutex
	now Owner
	err error
}

func (o *works) ask(context.Context) (Owner, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.now, o.err
}

func (o *works) set(now Owner, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.now, o.err = now, err
}

// serve is the listener of one that stands by.
func serve(t *testing.T, who *works) (*Forwarder, *httptest.Server) {
	t.Helper()
	f := New(who.ask, slog.New(slog.DiscardHandler))
	s := httptest.NewServer(f)
	ctx, end := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { f.Run(ctx) })
	t.Cleanup(func() {
		s.Close()
		end()
		running.Wait()
	})
	return f, s
}

func owner(t *testing.T, do http.HandlerFunc) *httptest.Server {
	s := httptest.NewServer(do)
	t.Cleanup(s.Close)
	return s
}

func send(t *testing.T, url, body string) (int, string, http.Header) {
	t.Helper()
	r, err := http.Post(url, "text/plain", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	got, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(got), r.Header
}

// TestWaits: what can't be sent to the one that is gone waits for the next.
func TestWaits(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	next := owner(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	who := &works{now: Owner{Epoch: 1, Origin: gone.URL}}
	_, s := serve(t, who)
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		if status, got, _ := send(t, s.URL, "hello"); status != http.StatusOK || got != "hello" {
			t.Errorf("the next one's answer is %d %q", status, got)
		}
	}()
	who.set(Owner{Epoch: 2, Origin: ""}, nil) // it starts
	who.set(Owner{Epoch: 2, Origin: next.URL}, errors.New("no database"))
	who.set(Owner{Epoch: 2, Origin: next.URL}, nil)
	<-asked
}

// TestSentOnce: what an owner has in part is not sent again, neither when it is cut
// nor when another takes over.
func TestSentOnce(t *testing.T) {
	var sent atomic.Int64
	begun, hang := make(chan struct{}, 1), make(chan struct{})
	first := owner(t, func(w http.ResponseWriter, r *http.Request) {
		sent.Add(1)
		begun <- struct{}{}
		<-hang
	})
	defer close(hang)
	second := owner(t, func(w http.ResponseWriter, r *http.Request) { sent.Add(100) })
	who := &works{now: Owner{Epoch: 1, Origin: first.URL}}
	f, s := serve(t, who)
	go func() {
		<-begun
		who.set(Owner{Epoch: 2, Origin: second.URL}, nil) // the first one hangs
	}()
	status, got, h := send(t, s.URL, "once")
	if status != http.StatusBadGateway || h.Get("Retry-After") != "1" || strings.Count(got, "\n") != 1 || sent.Load() != 1 {
		t.Errorf("it is %d %q, retry after %q, sent %d times", status, got, h.Get("Retry-After"), sent.Load())
	}
	if status, _, _ := send(t, s.URL, "next"); status != http.StatusOK || sent.Load() != 101 {
		t.Errorf("the next request is %d, sent %d", status, sent.Load())
	}
	if f.Origin() != second.URL {
		t.Errorf("it works at %q", f.Origin())
	}
}

// TestStream: each part of an answer comes as it is sent, and a stream of an owner
// that is replaced ends.
func TestStream(t *testing.T) {
	more := make(chan string)
	first := owner(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for {
			select {
			case s := <-more:
				_, _ = io.WriteString(w, s)
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				return
			}
		}
	})
	who := &works{now: Owner{Epoch: 1, Origin: first.URL}}
	_, s := serve(t, who)
	go func() { more <- "data: 1\n" }()
	r, err := http.Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	lines := bufio.NewReader(r.Body)
	if line, err := lines.ReadString('\n'); line != "data: 1\n" || err != nil {
		t.Errorf("the first is %q, %v", line, err)
	}
	go func() { more <- "data: 2\n" }()
	if line, err := lines.ReadString('\n'); line != "data: 2\n" || err != nil {
		t.Errorf("the second is %q, %v", line, err)
	}
	who.set(Owner{Epoch: 2, Origin: ""}, nil)
	if line, err := lines.ReadString('\n'); err == nil {
		t.Errorf("after the end there is %q", line)
	}
}

// TestPassedOn: one that was passed on is not passed on again, and says from whom it
// came.
func TestPassedOn(t *testing.T) {
	heard := make(chan http.Header, 1)
	who := &works{now: Owner{Epoch: 1, Origin: owner(t, func(_ http.ResponseWriter, r *http.Request) { heard <- r.Header }).URL}}
	_, s := serve(t, who)
	r, err := http.NewRequest("GET", s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Forwarded-For", "10.1.1.1")
	r.Header.Set("X-Forwarded-Proto", "https")
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	a.Body.Close()
	if h := <-heard; strings.Join(h.Values("X-Forwarded-For"), ", ") != "10.1.1.1, 127.0.0.1" || h.Get("X-Forwarded-Proto") != "https" || h.Get(Header) == "" {
		t.Errorf("it hears %v", h)
	}
	who.set(Owner{Epoch: 2, Origin: s.URL}, nil) // itself
	_, other := serve(t, who)
	if status, got, h := send(t, other.URL, "loop"); status != http.StatusServiceUnavailable || h.Get("Retry-After") != "1" || !strings.Contains(got, "is a standby") {
		t.Errorf("a loop is %d %q", status, got)
	}
}

// TestUntrusted: to one whose certificate does not hold nothing is sent, at once; nor is
// such a one ready, until another one works.
func TestUntrusted(t *testing.T) {
	var heard atomic.Int64
	bad := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { heard.Add(1) }))
	bad.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	bad.StartTLS()
	defer bad.Close()
	who := &works{now: Owner{Epoch: 1, Origin: bad.URL}}
	f, s := serve(t, who)
	for range 2 {
		if status, got, h := send(t, s.URL, "secret"); status != http.StatusServiceUnavailable || h.Get("Retry-After") != "1" || !strings.Contains(got, "does not trust") || strings.Contains(got, bad.URL) {
			t.Errorf("it is %d %q", status, got)
		}
	}
	if err := f.Wrong(); !errors.Is(err, ErrUntrusted) || heard.Load() != 0 {
		t.Errorf("wrong is %v, heard %d", err, heard.Load())
	}
	good := owner(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	who.set(Owner{Epoch: 2, Origin: good.URL}, nil)
	for status := 0; status != http.StatusOK; { // who works was asked a moment ago
		var got string
		if status, got, _ = send(t, s.URL, "secret"); status == http.StatusOK && got != "secret" {
			t.Errorf("the next one's answer is %q", got)
		}
	}
	if f.Wrong() != nil {
		t.Error(f.Wrong())
	}
}

// TestGoodbye: what is under way when one that stands by is stopped gets its answer.
func TestGoodbye(t *testing.T) {
	begun, goOn := make(chan struct{}), make(chan struct{})
	works := &works{now: Owner{Epoch: 1, Origin: owner(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(begun)
			<-goOn
		}
	}).URL}}
	f := New(works.ask, slog.New(slog.DiscardHandler))
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	ctx, stop := context.WithCancel(t.Context())
	leave, done := f.Answer(ctx, Served{ln, &http.Server{Handler: f}, (*http.Server).Serve})
	idle, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	answer := bufio.NewReader(idle)
	if _, err = io.WriteString(idle, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err == nil {
		_, err = http.ReadResponse(answer, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	var asked sync.WaitGroup
	asked.Go(func() {
		if status, _, _ := send(t, "http://"+ln.Addr().String()+"/slow", ""); status != http.StatusOK {
			t.Errorf("it is %d", status)
		}
	})
	<-begun
	leave()
	stop()
	_, _ = io.Copy(io.Discard, answer) // what is idle is cut, so the end has begun
	close(goOn)
	asked.Wait()
	done.Wait()
}

// TestReadsAgain: a request that only reads is sent again if its connection ended
// without an answer, and one that may change something is not.
func TestReadsAgain(t *testing.T) {
	for method, want := range map[string]struct{ status, sent int }{
		http.MethodGet: {http.StatusOK, 2}, http.MethodHead: {http.StatusOK, 2}, http.MethodPost: {http.StatusBadGateway, 1}, http.MethodDelete: {http.StatusBadGateway, 1},
	} {
		var sent atomic.Int64
		o := owner(t, func(w http.ResponseWriter, r *http.Request) {
			if sent.Add(1) == 1 {
				panic(http.ErrAbortHandler)
			}
		})
		_, s := serve(t, &works{now: Owner{Epoch: 1, Origin: o.URL}})
		r, err := http.NewRequestWithContext(t.Context(), method, s.URL+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := s.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want.status || int(sent.Load()) != want.sent {
			t.Errorf("%s: %d, sent %d times", method, resp.StatusCode, sent.Load())
		}
	}
}
