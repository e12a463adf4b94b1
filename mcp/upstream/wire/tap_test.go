package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/mcp/taskwire"
	"nize/mcp/view"
)

// received is one message that a test's server got over HTTP.
type received struct {
	header http.Header
	id     string
	method string
	params json.RawMessage
}

// webServer opens an MCP server over HTTP with the SDK, as the pool does. answer writes the
// response to each message but those of the handshake.
func webServer(t testing.TB, version string, answer func(http.ResponseWriter, *http.Request, received)) *HTTPConn {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
			Params json.RawMessage
		}
		body, err := io.ReadAll(r.Body)
		switch {
		case r.Method == http.MethodDelete:
			return
		case r.Method != http.MethodPost:
			rw.WriteHeader(http.StatusMethodNotAllowed)
			return
		case err != nil || json.Unmarshal(body, &m) != nil:
			rw.WriteHeader(http.StatusBadRequest)
			return
		}
		const known = `"capabilities":{"tools":{},"prompts":{},"resources":{}}`
		switch {
		case m.Method == methodDiscover && version == VersionModern:
			resultTo(rw, string(m.ID), `{"supportedVersions":["`+VersionModern+`"],`+known+`}`)
		case m.Method == methodInitialize:
			rw.Header().Set(headerSession, "s1")
			resultTo(rw, string(m.ID), `{"protocolVersion":"`+version+`",`+known+`,"serverInfo":{"name":"case","version":"1"}}`)
		case m.Method == "notifications/initialized":
			rw.WriteHeader(http.StatusAccepted)
		default:
			answer(rw, r, received{r.Header, string(m.ID), m.Method, m.Params})
		}
	}))
	t.Cleanup(srv.Close)
	at, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	base := NewTransport()
	ctx, cancel := context.WithCancel(context.Background())
	life, end := context.WithCancelCause(ctx)
	trip := &RoundTripper{Base: base, Scheme: at.Scheme, Host: at.Host, Header: http.Header{"X-Key": {"k"}}, Budget: NewBudget(), Life: life, End: end}
	nize := &sdk.Implementation{Name: "nize", Version: "1"}
	cs, err := NewClient(nize, &sdk.ClientOptions{}).Connect(ctx, &sdk.StreamableClientTransport{Endpoint: srv.URL, HTTPClient: trip.Client()}, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	w, err := NewHTTPConn(HTTPOptions{URL: at, Trip: trip, Session: cs, Client: nize, Parent: ctx})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.Terminate(true)
		cancel()
		base.CloseIdleConnections()
	})
	return w
}

func resultTo(rw http.ResponseWriter, id, result string) {
	rw.Header().Set("Content-Type", mediaJSON)
	fmt.Fprintf(rw, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

// pipeServer opens an MCP server over pipes with the SDK, as the pool does.
func pipeServer(t testing.TB, answer func(method, id string, out io.Writer)) *PeerSession {
	t.Helper()
	p, _ := program(t, "", answer)
	cs, err := NewClient(&sdk.Implementation{Name: "nize", Version: "1"}, &sdk.ClientOptions{}).Connect(t.Context(), p, &sdk.ClientSessionOptions{ProtocolVersion: VersionLegacy})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cs.Close() }) //nolint:errcheck // the test has ended
	return &PeerSession{Peer: p, Session: cs}
}

// odd is a result that would not survive the SDK's types.
const odd = `{"tools":[{"name":5,"unknown":1.0}],"n":9007199254740993, "nextCursor":["x"],"ttlMs":"soon","contents":7,"messages":null}`

// TestRequestsOfTheSession: the form of each request that the SDK's session sends, and the
// bytes of its result. A prompt without arguments has to be sent empty ones, since servers
// of the TypeScript SDK refuse it without; the SDK's GetPrompt leaves them out.
func TestRequestsOfTheSession(t *testing.T) {
	for name, c := range map[string]struct {
		r    Request
		want string
		of   string // the Mcp-Name of 2026-07-28
	}{
		"tools":                {Request{Method: MethodList}, `{}`, ""},
		"a page":               {Request{Method: MethodList, Cursor: "é<"}, `{"cursor":"é<"}`, ""},
		"prompts":              {Request{Method: MethodPrompts}, `{}`, ""},
		"resources":            {Request{Method: MethodResources, Cursor: "2"}, `{"cursor":"2"}`, ""},
		"templates":            {Request{Method: MethodTemplates}, `{}`, ""},
		"a prompt":             {Request{Method: MethodPrompt, Name: "p", Args: []byte(`{"b":"<1>","a":2.0}`)}, `{"name":"p","arguments":{"b":"<1>","a":2.0}}`, "p"},
		"no arguments":         {Request{Method: MethodPrompt, Name: "p"}, `{"name":"p","arguments":{}}`, "p"},
		"a resource":           {Request{Method: MethodRead, URI: "memo:\"x\""}, `{"uri":"memo:\"x\""}`, `memo:"x"`},
		"traced":               {Request{Method: MethodRead, URI: "memo:x", Traceparent: "00-1"}, `{"_meta":{"traceparent":"00-1"},"uri":"memo:x"}`, "memo:x"},
		"a task":               {Request{Method: taskwire.MethodGet, Task: "7"}, `{"taskId":"7"}`, "7"},
		"answers to a task":    {Request{Method: taskwire.MethodUpdate, Task: "7", Answers: []byte(`{"q":{}}`)}, `{"taskId":"7","inputResponses":{"q":{}}}`, "7"},
		"the result of a task": {Request{Method: taskwire.MethodResult, Task: "7"}, `{"taskId":"7"}`, "7"},
		"the end of a task":    {Request{Method: taskwire.MethodCancel, Task: "7"}, `{"taskId":"7"}`, "7"},
	} {
		var got received
		answer := func(rw http.ResponseWriter, _ *http.Request, r received) {
			got = r
			resultTo(rw, r.id, odd)
		}
		check := func(over string, raw json.RawMessage, err error, want string) {
			t.Helper()
			if string(raw) != odd || err != nil {
				t.Errorf("%s over %s: %s, %v", name, over, raw, err)
			}
			if diff := cmp.Diff(string(got.params), want); diff != "" || got.method != c.r.Method {
				t.Errorf("%s over %s: %s (-got +want):\n%s", name, over, got.method, diff)
			}
		}
		raw, err := webServer(t, VersionLegacy, answer).Call(t.Context(), &c.r)
		check("HTTP", raw, err, c.want)
		if n, ok := readID([]byte(got.id)); !ok || n < firstID { // the SDK's begin with 1 on each connection
			t.Errorf("%s over HTTP has the id %s", name, got.id)
		}
		if got.header.Get(headerSession) != "s1" || got.header.Get(headerVersion) != VersionLegacy || got.header.Get("X-Key") != "k" || got.header.Get(headerMethod) != "" {
			t.Errorf("%s over HTTP: the headers are %v", name, got.header)
		}

		can := view.Capabilities
		if c.r.Task != "" {
			can = callCapabilities(false)
		}
		meta := fmt.Sprintf(`"_meta":{"io.modelcontextprotocol/clientCapabilities":%s,"io.modelcontextprotocol/clientInfo":{"name":"nize","version":"1"},"io.modelcontextprotocol/protocolVersion":"2026-07-28"`, can)
		want := strings.Replace(c.want, "{", "{"+meta+"},", 1)
		switch {
		case c.want == "{}":
			want = "{" + meta + "}}"
		case c.r.Traceparent != "":
			want = strings.Replace(c.want, `"_meta":{`, meta+",", 1)
		}
		raw, err = webServer(t, VersionModern, answer).Call(t.Context(), &c.r)
		check("HTTP of 2026-07-28", raw, err, want)
		if got.header.Get(headerSession) != "" || got.header.Get(headerVersion) != VersionModern || got.header.Get("X-Key") != "k" || got.header.Get(headerMethod) != c.r.Method || got.header.Get(headerName) != c.of {
			t.Errorf("%s over HTTP of 2026-07-28: the headers are %v", name, got.header)
		}

		p := pipeServer(t, respond(func(id, member, value string) string {
			if value != helloResult {
				value = odd
			}
			return fmt.Sprintf("{\"jsonrpc\":\"2.0\",\"id\":%s,%q:%s}\n", id, member, value)
		}))
		if raw, err = p.Call(t.Context(), &c.r); string(raw) != odd || err != nil {
			t.Errorf("%s over pipes: %s, %v", name, raw, err)
		}
	}
}

// TestBadAnswersLeaveTheSession: the SDK ends a session for a response that it can't read.
// The session has to go on, since calls of other people are in flight.
func TestBadAnswersLeaveTheSession(t *testing.T) {
	for name, c := range map[string]struct {
		status            int
		media, body, want string // %s is the id
		reach             Reach
	}{
		"an error":                 {200, mediaJSON, `{"jsonrpc":"2.0","id":%s,"error":{"code":-5,"message":"no","data":{"why":1}}}`, `no (code -5): {"why":1}`, Answered},
		"a fault with an error":    {500, mediaJSON, `{"jsonrpc":"2.0","id":%s,"error":{"code":-5,"message":"no"}}`, `no (code -5)`, Answered},
		"a fault":                  {500, "text/plain", `it broke`, `500 Internal Server Error: "it broke"`, Maybe},
		"not found":                {404, "text/plain", `nothing`, `404 Not Found`, Never},
		"a page":                   {200, "text/html", `<html><title>Log in</title></html>`, `a web page with the title "Log in"`, Maybe},
		"no JSON":                  {200, mediaJSON, `{"jsonrpc":"2.0","id":%s,"result":`, `not JSON`, Maybe},
		"nothing":                  {200, mediaJSON, ``, `200 OK and nothing else`, Maybe},
		"a stream without answer":  {200, mediaStream, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n", `ended before the answer`, Maybe},
		"a stream that is no JSON": {200, mediaStream, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\n\n", `not JSON`, Maybe},
	} {
		for _, version := range []string{VersionLegacy, VersionModern} {
			bad := true
			w := webServer(t, version, func(rw http.ResponseWriter, _ *http.Request, r received) {
				if !bad || r.method == "ping" {
					resultTo(rw, r.id, `{"tools":[]}`)
					return
				}
				rw.Header().Set("Content-Type", c.media)
				rw.WriteHeader(c.status)
				io.WriteString(rw, strings.ReplaceAll(c.body, "%s", r.id)) //nolint:errcheck // a test's server
			})
			_, err := w.Call(t.Context(), &Request{Method: MethodList})
			if err == nil || !strings.Contains(err.Error(), c.want) || AsFault(err).Reach != c.reach {
				t.Errorf("%s of %s: %v (reach %d), want %q (reach %d)", name, version, err, AsFault(err).Reach, c.want, c.reach)
			}
			bad = false
			if raw, err := w.Call(t.Context(), &Request{Method: MethodList}); string(raw) != `{"tools":[]}` || err != nil {
				t.Errorf("%s of %s: afterwards %s, %v", name, version, raw, err)
			}
		}
	}
}

// TestAnswersInEventsOfTheSession: progress, questions and the answer in a stream reach the
// request, and not the SDK.
func TestAnswersInEventsOfTheSession(t *testing.T) {
	w := webServer(t, VersionLegacy, func(rw http.ResponseWriter, _ *http.Request, r received) {
		if r.method == "" {
			rw.WriteHeader(http.StatusAccepted)
			return
		}
		var p struct {
			Meta struct {
				Token json.RawMessage `json:"progressToken"`
			} `json:"_meta"`
		}
		if err := json.Unmarshal(r.params, &p); err != nil {
			t.Error(err)
		}
		rw.Header().Set("Content-Type", mediaStream)
		fmt.Fprintf(rw, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":%s,\"progress\":1.50}}\n\n", p.Meta.Token)
		fmt.Fprintf(rw, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":77,\"progress\":9}}\n\n")
		fmt.Fprintf(rw, "data: {\"jsonrpc\":\"2.0\",\"id\":%q,\"result\":{\"n\":1.0}}\n\n", r.id) // a number as text
	})
	var progress []string
	raw, err := w.Call(t.Context(), &Request{Method: MethodRead, URI: "memo:x", Progress: func(raw json.RawMessage) { progress = append(progress, string(raw)) }})
	if string(raw) != `{"n":1.0}` || err != nil {
		t.Errorf("%s, %v", raw, err)
	}
	if len(progress) != 1 || !strings.Contains(progress[0], `"progress":1.50`) {
		t.Errorf("the progress is %q", progress)
	}
}

// TestPagesAreNotKept: a server can't fill the memory with cursors and URIs of its own. The
// SDK's ListTools and ReadResource keep an entry for each.
func TestPagesAreNotKept(t *testing.T) {
	const pages, size = 16, 1 << 20
	w := webServer(t, VersionModern, func(rw http.ResponseWriter, _ *http.Request, r received) {
		resultTo(rw, r.id, `{"tools":[],"resources":[],"contents":[],"ttlMs":3600000}`)
	})
	used := func() int {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	before := used()
	for i := range pages {
		long := fmt.Sprint(i) + strings.Repeat("x", size)
		for _, r := range []*Request{{Method: MethodList, Cursor: long}, {Method: MethodResources, Cursor: long}} {
			if _, err := w.Call(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.Call(t.Context(), &Request{Method: MethodRead, URI: fmt.Sprint("memo:", i)}); err != nil {
			t.Fatal(err)
		}
	}
	if more := used() - before; more > pages*size/2 {
		t.Errorf("%d MiB more are in use after %d pages", more>>20, 2*pages)
	}
	runtime.KeepAlive(w)
}

// TestRequestOfTheSessionIsCancelled: a server gets one cancellation of a request, with its
// id. Since 2026-07-28 the end of the HTTP request is the cancellation.
func TestRequestOfTheSessionIsCancelled(t *testing.T) {
	for _, version := range []string{VersionLegacy, VersionModern} {
		asked := make(chan string, 1)
		ended, cancelled := make(chan struct{}), make(chan string, 8)
		w := webServer(t, version, func(rw http.ResponseWriter, r *http.Request, m received) {
			switch m.method {
			case MethodList:
				asked <- m.id
				<-r.Context().Done()
				close(ended)
			case methodCancelled:
				cancelled <- string(m.params)
				rw.WriteHeader(http.StatusForbidden) // which ends nothing
			default:
				resultTo(rw, m.id, `{}`)
			}
		})
		ctx, cancel := context.WithCancel(t.Context())
		id := ""
		go func() {
			id = <-asked
			cancel()
		}()
		_, err := w.Call(ctx, &Request{Method: MethodList})
		if !errors.Is(err, context.Canceled) || AsFault(err).Reach != Maybe || AsFault(err).Drop {
			t.Errorf("%s: %v", version, err)
		}
		<-ended
		if version == VersionLegacy {
			if got := <-cancelled; !strings.Contains(got, `"requestId":`+id) {
				t.Errorf("%s is cancelled by %s", id, got)
			}
		}
		for range 20 {
			if _, err := w.Call(t.Context(), &Request{Method: MethodPrompts}); err != nil {
				t.Fatalf("%s: afterwards: %v", version, err)
			}
		}
		if len(cancelled) != 0 {
			t.Errorf("%s: it was cancelled by %s", version, <-cancelled)
		}
	}

	var mu sync.Mutex
	var wrote bytes.Buffer
	asked := make(chan struct{})
	f := &scriptFrames{in: make(chan string, 8), out: func(msg string) {
		mu.Lock()
		defer mu.Unlock()
		wrote.WriteString(msg + "\n")
		if strings.Contains(msg, `"`+MethodList+`"`) {
			close(asked)
		}
	}}
	p := NewPeer(f, NewBudget(), func() {}, func(string) {})
	f.ended = p.Done()
	cs, err := NewClient(&sdk.Implementation{Name: "nize", Version: "1"}, &sdk.ClientOptions{}).Connect(t.Context(), p, &sdk.ClientSessionOptions{ProtocolVersion: VersionLegacy})
	if err != nil {
		t.Fatal(err)
	}
	s := &PeerSession{Peer: p, Session: cs}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	_, err = s.Call(ctx, &Request{Method: MethodList})
	if !errors.Is(err, context.Canceled) || AsFault(err).Reach != Maybe {
		t.Error(err)
	}
	s.Terminate(false) // waits for the notification
	got := wrote.String()
	id := p.ids.Load()
	if strings.Count(got, methodCancelled) != 1 || !strings.Contains(got, fmt.Sprintf(`"requestId":%d`, id)) {
		t.Errorf("%d was cancelled in\n%s", id, got)
	}
}

// TestAnswerDuringAWrite: a request that is cancelled while it is written may be answered
// already. Then neither its caller nor the reader waits for another.
func TestAnswerDuringAWrite(t *testing.T) {
	f := &slowFrames{scriptFrames: scriptFrames{in: make(chan string), out: func(string) {}}}
	p := NewPeer(f, NewBudget(), func() {}, func(string) {})
	f.ended = p.Done()
	cs, err := NewClient(&sdk.Implementation{Name: "nize", Version: "1"}, &sdk.ClientOptions{}).Connect(t.Context(), p, &sdk.ClientSessionOptions{ProtocolVersion: VersionLegacy})
	if err != nil {
		t.Fatal(err)
	}
	s := &PeerSession{Peer: p, Session: cs}
	defer s.Terminate(true)
	for range 30 { // the caller takes the answer or the end of its context, by chance
		ctx, cancel := context.WithCancel(t.Context())
		f.progress, f.cancel = make(chan struct{}), cancel
		_, err := s.Call(ctx, &Request{Method: MethodList, Progress: func(json.RawMessage) {
			f.progress <- struct{}{}
			<-ctx.Done()
		}})
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		p.mu.Lock()
		if len(p.waiting) != 0 || p.late != 0 {
			t.Fatalf("%d requests are open, and %d answers expected", len(p.waiting), p.late)
		}
		p.mu.Unlock()
	}
}

// slowFrames are those of a server that has answered a list before its write ends.
type slowFrames struct {
	scriptFrames
	progress chan struct{}
	cancel   context.CancelFunc
}

func (f *slowFrames) write(ctx context.Context, msg []byte) error {
	e, err := openEnvelope(msg)
	if err != nil {
		return err
	}
	switch e.method {
	case methodInitialize:
		go func() { f.in <- fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, e.id, helloResult) }()
	case MethodList:
		f.in <- fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}`, e.id)
		<-f.progress // the caller looks at nothing else
		f.in <- fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, e.id)
		f.in <- `{"jsonrpc":"2.0","method":"notifications/message"}` // is read when the answer was handled
		f.cancel()
		return &Fault{Reach: Maybe, Err: ctx.Err()}
	}
	return nil
}

// scriptFrames answers initialize.
type scriptFrames struct {
	floodFrames
	in    chan string
	out   func(msg string)
	ended <-chan struct{}
}

func (f *scriptFrames) read() ([]byte, bool, error) {
	select {
	case m := <-f.in:
		return []byte(m), false, nil
	case <-f.ended:
		return nil, false, io.EOF
	}
}

func (f *scriptFrames) write(_ context.Context, msg []byte) error {
	e, err := openEnvelope(msg)
	if err == nil && e.method == methodInitialize {
		f.in <- fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, e.id, helloResult)
	}
	f.out(string(msg))
	return err
}

// BenchmarkToolsCall compares a tools/call beside the SDK's session with one by the session.
func BenchmarkToolsCall(b *testing.B) {
	const result = `{"content":[{"type":"text","text":"0123456789012345678901234567890123456789012345678901234567890123456789"}]}`
	r := &Request{Method: MethodCall, Name: "echo", Args: json.RawMessage(`{"text":"0123456789"}`)}
	params := &sdk.CallToolParams{Name: r.Name, Arguments: r.Args}
	measure := func(name string, call func() (json.RawMessage, error)) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			begin := processorTime()
			for b.Loop() {
				if raw, err := call(); string(raw) != result || err != nil {
					b.Fatalf("%s, %v", raw, err)
				}
			}
			b.ReportMetric(float64(processorTime()-begin)/float64(b.N), "cpu-ns/op")
		})
	}
	w := webServer(b, VersionLegacy, func(rw http.ResponseWriter, _ *http.Request, m received) { resultTo(rw, m.id, result) })
	measure("http/beside", func() (json.RawMessage, error) { return w.Call(b.Context(), r) })
	measure("http/session", func() (json.RawMessage, error) {
		t := &tap{conn: w, request: r}
		_, err := w.session.CallTool(context.WithValue(b.Context(), tapKey{}, t), params)
		return t.result, err
	})
	p := pipeServer(b, respond(func(id, member, value string) string {
		if value != helloResult {
			value = result
		}
		return `{"jsonrpc":"2.0","id":` + id + `,"` + member + `":` + value + "}\n"
	}))
	measure("pipes/beside", func() (json.RawMessage, error) { return p.Call(b.Context(), r) })
	measure("pipes/session", func() (json.RawMessage, error) {
		waiter, end := p.newWaiter(b.Context(), r)
		defer end()
		if _, err := p.Session.CallTool(context.WithValue(b.Context(), tapKey{}, waiter), params); err != nil {
			return nil, err
		}
		return (<-waiter.answer).answer()
	})
}

// processorTime returns the processor time that the process has used.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
