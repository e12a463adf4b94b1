package mux

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"nize/daemon/api"
	"nize/store"
)

type thing struct {
	Name string `path:"name" json:"-"`
	Size *int   `json:"size,omitempty"`
}

// bench serves operations to somebody with a role, and has what was logged.
type bench struct {
	*Mux
	t      *testing.T
	server *httptest.Server
	role   store.Role
	full   bool // nobody may open another stream
	close  context.CancelFunc

	mu  sync.Mutex // guards what follows
	log bytes.Buffer

	listeners sync.WaitGroup // a stream each
}

func (b *bench) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.log.Write(p)
}

func (b *bench) logged() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.log.String()
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, role: store.Admin}
	var closing context.Context
	closing, b.close = context.WithCancel(t.Context())
	on := http.NewServeMux()
	b.Mux = New(on, Options{
		Caller: func(r *http.Request) (store.Caller, error) {
			if r.Header.Get("Origin") != "" {
				return store.Caller{}, fmt.Errorf("no browsers: %w", store.ErrRefused)
			}
			return store.Caller{User: "01", Role: b.role}, nil
		},
		Fail: func(w http.ResponseWriter, e *api.Error) {
			w.WriteHeader(e.Status())
			_ = json.NewEncoder(w).Encode(api.Failure{Error: e}) // the client has left
		},
		Listen: func(context.Context, store.Caller, context.CancelFunc) (func(), error) {
			if b.full {
				return nil, &api.Error{Code: "rate_limited", Message: "too many (the setting x)"}
			}
			b.listeners.Add(1)
			return b.listeners.Done, nil
		},
		Closing: closing, Log: slog.New(slog.NewTextHandler(b, nil)),
	})
	b.server = httptest.NewServer(on)
	t.Cleanup(b.server.Close)
	return b
}

// open sends a request; its answer is read by the test.
func (b *bench) open(ctx context.Context, method, path string, body io.Reader) *http.Response {
	b.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, b.server.URL+path, body)
	if err != nil {
		b.t.Fatal(err)
	}
	w, err := b.server.Client().Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { w.Body.Close() })
	return w
}

// ask sends a request and returns its status and its answer.
func (b *bench) ask(method, path, body string) string {
	b.t.Helper()
	w := b.open(b.t.Context(), method, path, strings.NewReader(body))
	text, err := io.ReadAll(w.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return fmt.Sprintf("%d %s", w.StatusCode, bytes.TrimSpace(text))
}

// want compares an answer's beginning.
func (b *bench) want(got, want string) {
	b.t.Helper()
	if !strings.HasPrefix(got, want) {
		b.t.Errorf("got %s, want %s", got, want)
	}
}

// left waits until nobody listens any more.
func (b *bench) left() {
	b.t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); b.listeners.Wait() }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		b.t.Fatal("the stream goes on")
	}
}

const internal = `500 {"error":{"code":"internal","message":"internal error`

func TestHandle(t *testing.T) {
	b := newBench(t)
	echo := func(_ context.Context, by store.Caller, req thing) (thing, error) {
		switch req.Name {
		case "panic":
			panic("on fire")
		case "unknown":
			return req, errors.New("a secret path")
		case "missing":
			return req, fmt.Errorf("thing %w", store.ErrNotFound)
		}
		return req, nil
	}
	Handle(b.Mux, api.Op[thing, thing]{Method: "POST", Path: "/things/{name}"}, echo)
	Handle(b.Mux, api.Op[thing, thing]{Method: "PATCH", Path: "/things/{name}"}, echo)
	Handle(b.Mux, api.Op[thing, thing]{Method: "DELETE", Path: "/things/{name}", Admin: true}, echo)
	b.want(b.ask("POST", "/things/a", `{"size":3}`), `200 {"size":3}`)
	b.want(b.ask("POST", "/things/a", ""), `200 {}`)
	b.want(b.ask("POST", "/things/a", `{"size":"large"}`), `400 {"error":{"code":"invalid","message":"invalid request: size cannot be string"}}`)
	b.want(b.ask("POST", "/things/a", `{"colour":1,"size":3}`), `200 {"size":3}`)
	b.want(b.ask("PATCH", "/things/a", `{"colour":1,"size":3}`), `400 {"error":{"code":"invalid","message":"invalid request: unknown field`)
	b.want(b.ask("PATCH", "/things/a", `{"size":3}`), `200 {"size":3}`)
	b.want(b.ask("POST", "/things/a", `{"size":1}`+strings.Repeat(" ", maxBody)), `400 {"error":{"code":"invalid","message":"invalid request: it is over 8 MiB"}}`)
	b.want(b.ask("POST", "/things/missing", ""), `404 {"error":{"code":"not_found"`)
	if said := b.logged(); said != "" {
		t.Errorf("what clients did wrong is logged: %s", said)
	}
	for _, name := range []string{"unknown", "panic"} {
		b.want(b.ask("POST", "/things/"+name, ""), internal)
	}
	if said := b.logged(); strings.Count(said, "\n") != 2 || !strings.Contains(said, "a secret path") || !strings.Contains(said, "panic: on fire") || !strings.Contains(said, `route="POST /things/{name}"`) {
		t.Errorf("logged: %s", said)
	}
	b.want(b.ask("DELETE", "/things/a", ""), `200 {}`)
	b.role = store.Member
	b.want(b.ask("DELETE", "/things/a", ""), `403 {"error":{"code":"refused"`)
	b.want(b.ask("POST", "/things/a", ""), `200 {}`)
	if len(b.Mounted()) != 3 || b.Mounted()[2].Method != "DELETE" || b.Mounted()[2].Request.Name() != "thing" {
		t.Errorf("mounted %+v", b.Mounted())
	}
}

func TestHandleStream(t *testing.T) {
	b := newBench(t)
	ended := make(chan error, 4) // one for each stream that waits
	HandleStream(b.Mux, api.Stream[thing, any]{Method: "GET", Path: "/things/{name}"}, func(ctx context.Context, _ store.Caller, req thing, send func(any) error) error {
		if req.Name == "early" {
			return fmt.Errorf("thing %w", store.ErrNotFound)
		}
		if err := send(api.Encoded("{\"n\": 1}\n{\"n\": 2}\n")); err != nil {
			return err
		}
		if err := send(map[string]int{"n": 3}); err != nil {
			return err
		}
		switch req.Name {
		case "late":
			return fmt.Errorf("thing %w", store.ErrConflict)
		case "unknown":
			return errors.New("a secret path")
		case "panic":
			panic("on fire")
		case "encoding":
			return send(func() {})
		case "waits":
			<-ctx.Done()
			err := send(map[string]int{"n": 4})
			ended <- err
			return err
		}
		return nil
	})
	const sent = "200 {\"n\": 1}\n{\"n\": 2}\n{\"n\":3}"
	b.want(b.ask("GET", "/things/early", ""), `404 {"error":{"code":"not_found"`)
	if got := b.ask("GET", "/things/all", ""); got != sent {
		t.Errorf("got %s", got)
	}
	b.want(b.ask("GET", "/things/late", ""), sent+"\n"+`{"error":{"code":"conflict"`)
	if said := b.logged(); said != "" {
		t.Errorf("logged: %s", said)
	}
	for _, name := range []string{"unknown", "panic", "encoding"} {
		b.want(b.ask("GET", "/things/"+name, ""), sent+"\n"+`{"error":{"code":"internal"`)
	}
	if said := b.logged(); strings.Count(said, "\n") != 3 {
		t.Errorf("logged: %s", said)
	}
	b.left()

	// A client that leaves ends its stream, and so does a drain: without a word.
	ctx, leave := context.WithCancel(t.Context())
	line := make([]byte, len(sent)-len("200 ")+1) // all that is sent before it waits
	if _, err := io.ReadFull(b.open(ctx, "GET", "/things/waits", nil).Body, line); err != nil {
		t.Fatal(err)
	}
	leave()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("sending to one who left: %v", err)
	}
	b.left()
	w := b.open(t.Context(), "GET", "/things/waits", nil)
	if _, err := io.ReadFull(w.Body, line); err != nil {
		t.Fatal(err)
	}
	b.close()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("sending in a drain: %v", err)
	}
	if rest, err := io.ReadAll(w.Body); err != nil || bytes.Contains(rest, []byte("error")) {
		t.Errorf("after the drain began: %s, %v", rest, err)
	}
	b.left()
	if said := b.logged(); strings.Count(said, "\n") != 3 {
		t.Errorf("logged: %s", said)
	}
}

func TestFiles(t *testing.T) {
	b := newBench(t)
	HandleDownload(b.Mux, api.Download[thing]{Method: "GET", Path: "/files/{name}"}, func(_ context.Context, _ store.Caller, req thing) (api.File, error) {
		if req.Name == "missing" {
			return api.File{}, fmt.Errorf("file %w", store.ErrNotFound)
		}
		return api.File{ReadCloser: io.NopCloser(strings.NewReader("content")), Size: 7, Key: "k", SHA256: "s"}, nil
	})
	HandleUpload(b.Mux, api.Upload[thing, thing]{Method: "POST", Path: "/files/{name}"}, func(_ context.Context, _ store.Caller, req thing, f api.File) (thing, error) {
		text, err := io.ReadAll(f)
		n := len(text)
		if int64(n) != f.Size {
			err = errors.New("a wrong size")
		}
		req.Size = &n
		return req, err
	})
	b.want(b.ask("GET", "/files/missing", ""), `404 {"error":{"code":"not_found"`)
	w := b.open(t.Context(), "GET", "/files/a", nil)
	text, err := io.ReadAll(w.Body)
	if err != nil || string(text) != "content" || w.ContentLength != 7 || w.Header.Get(api.BackupKeyHeader) != "k" || w.Header.Get(api.BackupSumHeader) != "s" {
		t.Errorf("got %s, %+v, %v", text, w.Header, err)
	}
	b.want(b.ask("POST", "/files/a", strings.Repeat("x", maxBody+1)), fmt.Sprintf(`200 {"size":%d}`, maxBody+1))
	w = b.open(t.Context(), "POST", "/files/a", io.MultiReader(strings.NewReader("of no known size")))
	if text, err := io.ReadAll(w.Body); err != nil || w.StatusCode != 400 || !bytes.Contains(text, []byte("how long the file is")) {
		t.Errorf("got %d %s, %v", w.StatusCode, text, err)
	}
}
