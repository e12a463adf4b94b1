package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/mcp/taskwire"
	"nize/mcp/upstream/process"
	"nize/mcp/view"
	"nize/store"
)

// NewTransport returns the HTTP transport for upstreams. With buffers of 16 KiB an ordinary
// call is sent in one write and received in one read. As many connections stay open as
// calls run concurrently.
func NewTransport() *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: ConnectTime, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:   ConnectTime,
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   64,
		IdleConnTimeout:       90 * time.Second,
		ExpectContinueTimeout: time.Second,
		DisableCompression:    true, // small JSON, mostly from nearby; avoids decompression bombs
		ReadBufferSize:        16 << 10,
		WriteBufferSize:       16 << 10,
	}
}

// Protocol headers of Streamable HTTP.
const (
	headerSession     = "Mcp-Session-Id"
	headerVersion     = "Mcp-Protocol-Version"
	headerMethod      = "Mcp-Method"
	headerName        = "Mcp-Name"
	headerLast        = "Last-Event-Id"
	VersionModern     = "2026-07-28"
	VersionLegacy     = "2025-11-25"
	MethodCall        = "tools/call"
	MethodList        = "tools/list"
	MethodPrompts     = "prompts/list"
	MethodPrompt      = "prompts/get"
	MethodResources   = "resources/list"
	MethodTemplates   = "resources/templates/list"
	MethodRead        = "resources/read"
	methodInitialize  = "initialize"
	methodListen      = "subscriptions/listen"
	methodDiscover    = "server/discover"
	methodCancelled   = "notifications/cancelled"
	mediaJSON         = "application/json"
	mediaStream       = "text/event-stream"
	acceptBoth        = mediaJSON + ", " + mediaStream
	maxServerRequests = 100 // requests from a server while one call runs
)

// HTTPConn sends requests over Streamable HTTP: tools/call beside the SDK's session, which
// holds the standing event stream, and the others by that session (tap.go). It is safe for
// concurrent use.
type HTTPConn struct {
	trip    *RoundTripper
	url     *url.URL // the registered URL
	modern  bool
	asking  [2]string   // content of a call's _meta, 2026-07-28: [0] if the server may not ask questions, [1] if it may
	header  http.Header // for every request; shared, never changed
	session *sdk.ClientSession
	ids     atomic.Uint64

	// trip.Life is the session's context: its end closes the SDK's streams. cut also ends
	// calls in flight, which outlive a session that merely died.
	cut  context.Context
	stop context.CancelFunc
	gone chan struct{} // closed with trip.Life

	mu     sync.Mutex
	closed bool
	asks   map[*Request]context.Context // requests in flight whose server may ask questions, with their contexts
	left   bool                         // such a request was abandoned, and its server may still ask for it
	calls  sync.WaitGroup               // in flight
	wg     sync.WaitGroup               // notifications, side answers, drains, watch
}

// HTTPOptions configures an HTTPConn.
type HTTPOptions struct {
	URL     *url.URL
	Trip    *RoundTripper // of the session
	Session *sdk.ClientSession
	Client  *sdk.Implementation // nize's client information
	Parent  context.Context     // its end aborts calls in flight
}

// NewHTTPConn returns the connection of a session that the SDK has opened, and watches that
// session.
func NewHTTPConn(opt HTTPOptions) (*HTTPConn, error) {
	version := opt.Session.InitializeResult().ProtocolVersion
	w := &HTTPConn{trip: opt.Trip, url: opt.URL, modern: version >= VersionModern, header: http.Header{}, session: opt.Session, gone: make(chan struct{})}
	w.ids.Store(newFirstID())
	w.cut, w.stop = context.WithCancel(opt.Parent)
	if w.trip.Fresh == nil {
		w.header = w.trip.Header.Clone()
	}
	w.header.Set("Content-Type", mediaJSON)
	w.header.Set("Accept", acceptBoth)
	w.header.Set(headerVersion, version)
	if id := w.session.ID(); id != "" {
		w.header.Set(headerSession, id)
	}
	if w.modern {
		for i, can := range []string{callCapabilities(false), callCapabilities(true)} {
			var err error
			if w.asking[i], err = modernMeta(opt.Client, version, can); err != nil {
				w.Terminate(true)
				return nil, err
			}
		}
	}
	w.watch()
	return w, nil
}

// watch ends the connection when the SDK's session ends.
func (w *HTTPConn) watch() {
	context.AfterFunc(w.trip.Life, func() { close(w.gone) })
	w.spawn(func() {
		err := w.session.Wait()
		w.trip.End(fmt.Errorf("the session ended: %w", errors.Join(store.NetworkError(err), io.EOF)))
	})
}

// spawn runs f in the background. It returns false if the connection is closed.
func (w *HTTPConn) spawn(f func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	w.wg.Go(f)
	return true
}

func (w *HTTPConn) Done() <-chan struct{} { return w.gone }
func (w *HTTPConn) Cause() error          { return context.Cause(w.trip.Life) }
func (w *HTTPConn) Child() process.Child  { return nil }

// Terminate ends the session, with a DELETE if the server assigned it an id. It waits for
// the calls in flight, which have deadlines; kill aborts them.
func (w *HTTPConn) Terminate(kill bool) {
	w.mu.Lock()
	first := !w.closed
	w.closed = true
	w.mu.Unlock()
	if kill {
		w.stop()
	}
	w.calls.Wait()
	if first {
		timer := time.AfterFunc(noticeTime, func() { w.trip.End(ErrEnded) })
		w.session.Close() //nolint:errcheck // the session is over either way
		timer.Stop()
		w.trip.End(ErrEnded)
		w.stop()
	}
	w.wg.Wait()
}

// beginCall registers a call. It returns false if the connection is closed.
func (w *HTTPConn) beginCall() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	w.calls.Add(1)
	return true
}

// ErrEnded is returned by calls in flight if nize ends their session.
var ErrEnded = errors.New("the session was ended")

// Call sends one request and returns the bytes of its result.
func (w *HTTPConn) Call(ctx context.Context, r *Request) (json.RawMessage, error) {
	if !w.beginCall() {
		return nil, &Fault{Reach: Never, Drop: true, Err: ErrEnded}
	}
	defer w.calls.Done()
	if r.Method != MethodCall {
		return w.bySession(ctx, r)
	}
	id := w.ids.Add(1)
	header, err := w.headerFor(ctx, r)
	if err != nil {
		return nil, err
	}
	result, err := w.serve(ctx, header, r.Encode(id, w.metaFor(r)), id, r)
	if err != nil && ctx.Err() != nil && AsFault(err).Reach != Answered {
		w.abandon(ctx, id)
	}
	return result, err
}

// serve sends a request and returns the bytes of its result. The request has its own
// context, so that the rest of its response can be read after serve has returned the
// result.
func (w *HTTPConn) serve(ctx context.Context, header http.Header, body []byte, id uint64, r *Request) (json.RawMessage, error) {
	late, forget := w.trip.Answers.expect(id)
	defer forget()
	own, cancel := context.WithCancel(w.cut)
	if r.Ask != nil {
		defer w.admitQuestions(ctx, own, r)()
	}
	unhook := context.AfterFunc(ctx, cancel)
	resp, err := w.exchange(w.newPost(own, header, body))
	var result json.RawMessage
	if err == nil {
		result, err = w.read(own, resp, id, r, late)
	}
	if err != nil && ctx.Err() == nil && w.session.ID() != "" {
		err = w.checkSession(own, err)
	}
	unhook()
	switch f := AsFault(err); {
	case err == nil || f.Reach == Answered:
	case ctx.Err() != nil: // not a broken connection
		err = &Fault{Reach: f.Reach, Err: ctx.Err()}
	case w.cut.Err() != nil:
		err = &Fault{Reach: f.Reach, Drop: true, Err: ErrEnded}
	}
	switch {
	case resp == nil:
		cancel()
	case err == nil && resp.ContentLength < 0:
		w.drainBody(resp.Body, cancel)
	default:
		resp.Body.Close()
		cancel()
	}
	return result, err
}

// admitQuestions lets the server of a request ask questions on the standing stream until
// done is called.
func (w *HTTPConn) admitQuestions(ctx, own context.Context, r *Request) (done func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.asks == nil {
		w.asks = map[*Request]context.Context{}
	}
	w.asks[r] = own
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.asks, r)
		w.left = w.left || ctx.Err() != nil
	}
}

// Asked answers a request from the server that arrived on the standing stream. Nothing
// there says to which of our requests it belongs. It is attributed to the only open one,
// unless it may belong to an earlier request, possibly of another caller.
func (w *HTTPConn) Asked(method string, params json.RawMessage) (json.RawMessage, error) {
	w.mu.Lock()
	var of *Request
	var ctx context.Context
	if !w.left && len(w.asks) == 1 {
		for of, ctx = range w.asks {
			break
		}
	}
	w.mu.Unlock()
	if of == nil {
		return nil, &RPCError{Code: CodeMethodNotFound, Message: "nize can't tell which call this question belongs to"}
	}
	return of.Ask(ctx, method, params)
}

// exchange sends a request, and returns errors as *Fault.
func (w *HTTPConn) exchange(req *http.Request) (*http.Response, error) {
	resp, err := w.trip.send(req, w.session.ID() != "")
	switch {
	case err == nil:
		return resp, nil
	case errors.As(err, new(*Fault)):
		return nil, err
	}
	return nil, netFault(err)
}

// newPost builds the request by hand, because parsing the URL and cloning the headers for
// each call would cost more than everything else. net/http knows bytes.Reader and sends it
// together with the headers; GetBody lets it repeat a request that an idle connection lost
// before a byte was sent, and only then.
func (w *HTTPConn) newPost(ctx context.Context, header http.Header, body []byte) *http.Request {
	at := w.trip.Address(w.url)
	req := &http.Request{
		Method:        http.MethodPost,
		URL:           at,
		Host:          at.Host,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        header,
		Body:          io.NopCloser(bytes.NewReader(body)),
		GetBody:       func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil },
		ContentLength: int64(len(body)),
	}
	return req.WithContext(ctx)
}

// headerFor returns the headers of one of our own requests.
func (w *HTTPConn) headerFor(ctx context.Context, r *Request) (http.Header, error) {
	h := w.header
	if w.trip.Fresh != nil {
		fresh, err := w.trip.Fresh(ctx)
		if err != nil {
			return nil, &Fault{Reach: Never, Err: err}
		}
		for k, v := range h {
			if _, ok := fresh[k]; !ok || ProtocolHeader(k) {
				fresh[k] = v
			}
		}
		h = fresh
	}
	if !w.modern {
		return h, nil
	}
	if w.trip.Fresh == nil {
		h = h.Clone()
	}
	h[headerMethod] = []string{r.Method}
	if r.Name != "" {
		h[headerName] = []string{r.Name}
	}
	for _, b := range r.Bindings {
		if value, ok := b.value(r.Args); ok {
			h.Set(b.header, value)
		}
	}
	return h, nil
}

// ProtocolHeader reports whether a registration must not set this header.
func ProtocolHeader(name string) bool {
	switch name {
	case headerSession, headerVersion, headerMethod, headerName, "Accept", "Content-Type", "Content-Length", "Host", "Transfer-Encoding", "Connection":
		return true
	}
	return false
}

// read reads the answer to the request with this id from a response, or from late if the
// response is empty.
func (w *HTTPConn) read(ctx context.Context, resp *http.Response, id uint64, r *Request, late <-chan envelope) (json.RawMessage, error) {
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, w.statusFault(resp, id)
	}
	e, events, err := answerIn(resp, id, w.trip.Hide)
	switch {
	case events != nil:
		return w.stream(ctx, events, id, r)
	case err == nil:
		return e.answer()
	case late != nil && errors.As(err, new(emptyAnswer)):
		return w.waitStanding(ctx, late)
	case errors.As(err, new(*Fault)):
		return nil, err
	}
	return nil, &Fault{Reach: Maybe, Drop: true, Err: err}
}

// answerIn finds the answer to the request with this id in a response, or returns its
// events.
func answerIn(resp *http.Response, id uint64, hide Hide) (e envelope, events io.Reader, err error) {
	media := mediaType(resp.Header.Get("Content-Type"))
	if media == mediaStream {
		return e, resp.Body, nil
	}
	body, err := readBody(resp)
	if err != nil {
		return e, nil, err
	}
	if looksLikeEvents(body) { // with the wrong media type
		return e, bytes.NewReader(body), nil
	}
	e, err = findAnswer(body, id, hide)
	switch {
	case err == nil:
	case len(bytes.TrimSpace(body)) == 0:
		err = emptyAnswer(resp.StatusCode)
	case media != mediaJSON && media != "" && errors.Is(err, errNotJSON):
		err = notMCPError(media, body, hide)
	}
	return e, nil, err
}

// emptyAnswer is a response with this status and without a body.
type emptyAnswer int

func (e emptyAnswer) Error() string {
	return fmt.Sprintf("it answered %d %s and nothing else", int(e), http.StatusText(int(e)))
}

func mediaType(contentType string) string {
	media, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(media))
}

// looksLikeEvents reports whether a body is an event stream, whatever its media type.
func looksLikeEvents(body []byte) bool {
	for _, field := range []string{"event:", "data:", "id:", "retry:"} {
		if bytes.HasPrefix(body, []byte(field)) {
			return true
		}
	}
	return false
}

// findAnswer finds the answer to the request with this id in a body, which may be a batch
// (2025-03-26).
func findAnswer(body []byte, id uint64, hide Hide) (envelope, error) {
	all := []json.RawMessage{body}
	if trimmed := bytes.TrimSpace(body); len(trimmed) > 0 && trimmed[0] == '[' {
		if mended, ok := mend(trimmed); ok {
			all = nil
			if err := json.Unmarshal(mended, &all); err != nil {
				return envelope{}, fmt.Errorf("its answer is not a JSON-RPC message: %w", err)
			}
		}
	}
	for _, msg := range all {
		e, err := openMessage(msg, hide)
		if err != nil { // perhaps after a warning of its runtime
			if answer, _ := answerAfterText(msg); answer != nil {
				e, err = openEnvelope(answer)
			}
		}
		if err != nil {
			return e, fmt.Errorf("its answer is not a JSON-RPC message: %w", err)
		}
		if e.answers(id) {
			return e, nil
		}
		if _, numbered := readID(e.id); len(all) == 1 && e.method == "" && !numbered {
			return e, fmt.Errorf("its answer is not a JSON-RPC message: %s", hide.quote(msg))
		}
	}
	return envelope{}, errors.New("its answer is to another request")
}

// notMCPError returns the error for a response with another media type.
func notMCPError(media string, body []byte, hide Hide) error {
	return fmt.Errorf("it answered with %q instead of JSON: %s; does the URL lead to an MCP server?", store.Clip(media, 60), hide.quote(body))
}

// statusError reads a response with an error status.
func statusError(resp *http.Response, hide Hide) *StatusError {
	e := &StatusError{Status: resp.StatusCode, media: mediaType(resp.Header.Get("Content-Type")), Target: redirectTarget(resp)}
	if e.Target == "" && e.Status != http.StatusOK {
		head, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) //nolint:errcheck // use the part that was read
		e.said = saidInBody(head, resp, hide)
	}
	return e
}

// peekStatus is statusError for a response whose body other code reads, too.
func peekStatus(resp *http.Response, hide Hide) *StatusError {
	head, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) //nolint:errcheck // use the part that was read
	body := resp.Body
	restore := func() {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(head), body), body}
	}
	restore()
	e := statusError(resp, hide)
	restore()
	return e
}

// saidInBody returns the text of an error response's body, for an error message. It returns
// "" if the body adds nothing to the status.
func saidInBody(head []byte, resp *http.Response, hide Hide) string {
	if e, err := openMessage(head, hide); err == nil && e.version && e.fault != nil {
		return hide.line(openError(e.fault).Error(), maxQuote)
	}
	said := hide.quote(head)
	if said == "nothing" || strings.EqualFold(said, strconv.Quote(http.StatusText(resp.StatusCode))) {
		return ""
	}
	return said
}

// statusFault converts an error status to the fault of the request with this id.
func (w *HTTPConn) statusFault(resp *http.Response, id uint64) error {
	status := resp.StatusCode
	head, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) //nolint:errcheck // use the part that was read
	resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(head))
	text := statusError(resp, w.trip.Hide).Error()
	var rpc *RPCError
	handled := false // the error is about the request itself, not its session or its form
	if e, err := openMessage(head, w.trip.Hide); err == nil && e.version && e.fault != nil {
		rpc = openError(e.fault)
		n, ok := readID(e.id)
		handled = ok && n == id && !refusesForm(rpc.Code)
	}
	switch {
	case w.modern && rpc != nil && rpc.Code == CodeInvalidParams:
		return &Fault{Reach: Answered, Err: rpc} // the newer protocol uses this status
	case handled && (status == http.StatusNotFound || status == http.StatusBadRequest):
		return &Fault{Reach: Answered, Err: rpc} // the tool may have run
	case status == http.StatusNotFound || status == http.StatusBadRequest || status == http.StatusGone:
		// The session has ended, or the server no longer speaks this protocol version. It
		// rejected the request before handling it.
		return &Fault{Reach: Never, Drop: true, Err: &StatusError{Status: status, text: text}}
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return &Fault{Reach: Never, Drop: true, Code: store.CodeUnavailable,
			Err: &credentialError{status, text + ": it rejects the credential; see the server's headers and nizectl credentials set"}}
	case status == http.StatusTooManyRequests:
		return &Fault{Reach: Never, Code: store.CodeRateLimited, Err: errors.New(text)}
	case status >= 300 && status < 400:
		return &Fault{Reach: Never, Code: store.CodeUnavailable, Err: fmt.Errorf("%s: redirects are not followed; register the new URL", text)}
	case rpc != nil:
		return &Fault{Reach: Answered, Err: rpc}
	}
	return &Fault{Reach: Maybe, Drop: status < 500, Err: &StatusError{Status: status, said: saidInBody(head, resp, w.trip.Hide)}}
}

// refusesForm reports whether a JSON-RPC error is about the form of a request or its
// protocol version, which servers check before they run anything.
func refusesForm(code int64) bool {
	switch code {
	case codeParse, codeInvalidRequest, CodeMethodNotFound, codeHeaders, codeVersion:
		return true
	}
	return false
}

// bodies holds the buffers for responses of unknown length.
var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// readBody reads a complete body. If its length is known, it is read directly into the
// memory that the result will use.
func readBody(resp *http.Response) ([]byte, error) {
	if resp.ContentLength > MaxMessage {
		return nil, &Fault{Reach: Answered, Drop: true, Err: errTooLarge}
	}
	if resp.ContentLength >= 0 {
		msg := make([]byte, resp.ContentLength)
		if _, err := io.ReadFull(resp.Body, msg); err != nil {
			return nil, &Fault{Reach: Maybe, Drop: true, Err: fmt.Errorf("reading the answer: %w", err)}
		}
		return msg, nil
	}
	buf := bodies.Get().(*bytes.Buffer)
	defer func() {
		if buf.Cap() <= 64<<10 {
			buf.Reset()
			bodies.Put(buf)
		}
	}()
	n, err := buf.ReadFrom(io.LimitReader(resp.Body, MaxMessage+1))
	if n > MaxMessage {
		return nil, &Fault{Reach: Answered, Drop: true, Err: errTooLarge}
	}
	if err != nil {
		return nil, &Fault{Reach: Maybe, Drop: true, Err: fmt.Errorf("reading the answer: %w", err)}
	}
	return bytes.Clone(buf.Bytes()), nil
}

// drainBody returns the connection to the pool. A server ends its stream right after the
// answer, and a body that was not read to its end would cost the connection. It doesn't
// delay the caller.
func (w *HTTPConn) drainBody(body io.ReadCloser, cancel context.CancelFunc) {
	rest := func() {
		stop := time.AfterFunc(time.Second, cancel)
		var b [512]byte
		for range 8 {
			if _, err := body.Read(b[:]); err != nil {
				break
			}
		}
		stop.Stop()
		body.Close()
		cancel()
	}
	if !w.spawn(rest) {
		body.Close()
		cancel()
	}
}

// abandon notifies the server that the request is cancelled. In 2026-07-28 the end of the
// HTTP request does that.
func (w *HTTPConn) abandon(ctx context.Context, id uint64) {
	if w.modern {
		return
	}
	reason := "cancelled"
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		reason = "timed out"
	}
	w.send(cancelled(id, reason))
}

// send posts a notification or a side answer, best effort, without waiting.
func (w *HTTPConn) send(msg []byte) {
	w.spawn(func() {
		ctx, cancel := context.WithTimeout(w.trip.Life, noticeTime)
		defer cancel()
		header, err := w.headerFor(ctx, &Request{})
		if err != nil {
			return
		}
		resp, err := w.trip.Base.RoundTrip(w.newPost(ctx, header, msg))
		if err != nil {
			return // the caller has left, or the stream reports the error
		}
		resp.Body.Close()
	})
}

// metaFor returns the content of the _meta of a call.
func (w *HTTPConn) metaFor(r *Request) string {
	if r.Ask != nil {
		return w.asking[1]
	}
	return w.asking[0]
}

// callCapabilities returns nize's capabilities during a call: displaying views, fetching
// the result later, and, if a user is available, asking them.
func callCapabilities(asks bool) string {
	var can map[string]json.RawMessage
	var extensions map[string]json.RawMessage
	if json.Unmarshal([]byte(view.Capabilities), &can) != nil || json.Unmarshal(can["extensions"], &extensions) != nil {
		panic("wire: what nize can do is no JSON")
	}
	extensions[taskwire.Extension] = json.RawMessage("{}")
	if asks {
		can["elicitation"] = json.RawMessage(`{"form":{},"url":{}}`)
	}
	var err error
	if can["extensions"], err = json.Marshal(extensions); err != nil {
		panic("wire: what nize can do is no JSON")
	}
	b, err := json.Marshal(can)
	if err != nil {
		panic("wire: what nize can do is no JSON")
	}
	return string(b)
}

// modernMeta returns the content of the _meta of each request since 2026-07-28.
func modernMeta(impl *sdk.Implementation, version, capabilities string) (string, error) {
	info, err := json.Marshal(impl)
	if err != nil {
		return "", fmt.Errorf("encoding our own name: %w", err)
	}
	return fmt.Sprintf(`%q:%q,%q:%s,%q:%s`, sdk.MetaKeyProtocolVersion, version, sdk.MetaKeyClientInfo, info, sdk.MetaKeyClientCapabilities, capabilities), nil
}
