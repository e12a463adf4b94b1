package upstream

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
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/store"
)

// newTransport is what carries HTTP to upstreams. Buffers of 16 KiB let an
// ordinary call go out in one write and come back in one read; connections
// stay, as many as calls run at once.
func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: connectTime, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:   connectTime,
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   64,
		IdleConnTimeout:       90 * time.Second,
		ExpectContinueTimeout: time.Second,
		DisableCompression:    true, // small JSON, mostly from near by; and no bomb to unpack
		ReadBufferSize:        16 << 10,
		WriteBufferSize:       16 << 10,
	}
}

// protocol headers of Streamable HTTP.
const (
	headerSession     = "Mcp-Session-Id"
	headerVersion     = "Mcp-Protocol-Version"
	headerMethod      = "Mcp-Method"
	headerName        = "Mcp-Name"
	headerLast        = "Last-Event-Id"
	versionModern     = "2026-07-28"
	versionLegacy     = "2025-11-25"
	methodCall        = "tools/call"
	methodList        = "tools/list"
	methodListen      = "subscriptions/listen"
	methodDiscover    = "server/discover"
	mediaJSON         = "application/json"
	mediaStream       = "text/event-stream"
	acceptBoth        = mediaJSON + ", " + mediaStream
	maxServerRequests = 100 // requests of a server while one call runs
)

// httpConn sends our requests over Streamable HTTP beside the SDK's session,
// which holds the standing event stream. It is safe for concurrent use.
type httpConn struct {
	url    *url.URL
	base   http.RoundTripper
	modern bool
	meta   string      // the inside of _meta for every request, 2026-07-28
	header http.Header // of every request; shared, never changed
	// secret resolves the headers again for each request; nil if none of them
	// is a credential.
	secret  func(ctx context.Context) (http.Header, error)
	session *sdk.ClientSession
	ids     atomic.Uint64

	// life is the session's: its end closes the SDK's streams. cut ends calls
	// in flight too, which outlive a session that merely died.
	life context.Context
	end  context.CancelCauseFunc
	cut  context.Context
	stop context.CancelFunc
	gone chan struct{} // closed with life

	mu     sync.Mutex
	closed bool
	calls  sync.WaitGroup // in flight
	wg     sync.WaitGroup // notices, side answers, drains, the watch
}

// watch ends the wire when the SDK finds its session dead.
func (w *httpConn) watch() {
	context.AfterFunc(w.life, func() { close(w.gone) })
	w.spawn(func() {
		err := w.session.Wait()
		w.end(fmt.Errorf("the session ended: %w", errors.Join(withoutURL(err), io.EOF)))
	})
}

// spawn runs f in the background unless the wire is closed, and says so.
func (w *httpConn) spawn(f func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	w.wg.Go(f)
	return true
}

func (w *httpConn) done() <-chan struct{} { return w.gone }
func (w *httpConn) cause() error          { return context.Cause(w.life) }
func (w *httpConn) pid() int              { return 0 }

// terminate ends the session, with a DELETE where the server gave it an id: when
// the calls in flight are over, which have deadlines, or cutting them off.
func (w *httpConn) terminate(kill bool) {
	w.mu.Lock()
	first := !w.closed
	w.closed = true
	w.mu.Unlock()
	if kill {
		w.stop()
	}
	w.calls.Wait()
	if first {
		timer := time.AfterFunc(noticeTime, func() { w.end(errEnded) })
		w.session.Close() //nolint:errcheck // it is over either way
		timer.Stop()
		w.end(errEnded)
		w.stop()
	}
	w.wg.Wait()
}

// beginCall counts a call in, unless the wire is closed.
func (w *httpConn) beginCall() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	w.calls.Add(1)
	return true
}

// errEnded is what calls in flight get when their session is ended by us.
var errEnded = errors.New("the session was ended")

// call sends one request and returns the bytes of its result. The request has
// a context of its own, so that the rest of its answer can be read after the
// caller has left with the result.
func (w *httpConn) call(ctx context.Context, r *request) (json.RawMessage, error) {
	if !w.beginCall() {
		return nil, &fault{reach: never, drop: true, err: errEnded}
	}
	defer w.calls.Done()
	id := w.ids.Add(1)
	header, err := w.headerFor(ctx, r)
	if err != nil {
		return nil, err
	}
	own, cancel := context.WithCancel(w.cut)
	unhook := context.AfterFunc(ctx, cancel)
	resp, err := w.base.RoundTrip(w.newPost(own, header, r.encode(id, w.meta)))
	var result json.RawMessage
	if err != nil {
		err = netFault(err)
	} else {
		result, err = w.read(own, resp, id, r)
	}
	unhook()
	switch f := asFault(err); {
	case err == nil || f.reach == answered:
	case ctx.Err() != nil: // not a broken wire
		err = &fault{reach: f.reach, err: ctx.Err()}
		w.abandon(ctx, id)
	case w.cut.Err() != nil:
		err = &fault{reach: f.reach, drop: true, err: errEnded}
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

// newPost builds the request by hand: parsing the URL and cloning the headers for
// each call would cost more than the rest of it. bytes.Reader is a body that
// net/http knows, and sends together with the headers; GetBody lets it repeat
// what an idle connection lost before a byte went out, and only that.
func (w *httpConn) newPost(ctx context.Context, header http.Header, body []byte) *http.Request {
	req := &http.Request{
		Method:        http.MethodPost,
		URL:           w.url,
		Host:          w.url.Host,
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

// headerFor returns the headers of one request.
func (w *httpConn) headerFor(ctx context.Context, r *request) (http.Header, error) {
	h := w.header
	if w.secret != nil {
		fresh, err := w.secret(ctx)
		if err != nil {
			return nil, &fault{reach: never, err: err}
		}
		for k, v := range h {
			if _, ok := fresh[k]; !ok || protocolHeader(k) {
				fresh[k] = v
			}
		}
		h = fresh
	}
	if !w.modern {
		return h, nil
	}
	if w.secret == nil {
		h = h.Clone()
	}
	h[headerMethod] = []string{r.method}
	if r.name != "" {
		h[headerName] = []string{r.name}
	}
	for _, b := range r.bindings {
		if value, ok := b.value(r.args); ok {
			h.Set(b.header, value)
		}
	}
	return h, nil
}

// protocolHeader says which headers a registration cannot set.
func protocolHeader(name string) bool {
	switch name {
	case headerSession, headerVersion, headerMethod, headerName, "Accept", "Content-Type", "Content-Length", "Host", "Transfer-Encoding", "Connection":
		return true
	}
	return false
}

// read takes the answer to request id out of a response.
func (w *httpConn) read(ctx context.Context, resp *http.Response, id uint64, r *request) (json.RawMessage, error) {
	if resp.StatusCode != http.StatusOK {
		return nil, w.statusFault(resp)
	}
	switch media := mediaType(resp.Header.Get("Content-Type")); media {
	case mediaJSON:
		return readJSON(resp, id)
	case mediaStream:
		return w.stream(ctx, resp, id, r)
	default:
		return nil, &fault{reach: maybe, drop: true, err: notMCPError(media)}
	}
}

func mediaType(contentType string) string {
	media, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(media))
}

// notMCPError is the error for an answer of another media type.
func notMCPError(media string) error {
	return fmt.Errorf("it answered with %q instead of JSON; does the URL lead to an MCP server?", store.Clip(media, 60))
}

// statusFault says what a status other than 200 means.
func (w *httpConn) statusFault(resp *http.Response) error {
	status := resp.StatusCode
	text := fmt.Sprintf("it answered %d %s", status, http.StatusText(status))
	head, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) //nolint:errcheck // what came is all there is to tell
	var rpc *rpcError
	if e, err := openEnvelope(head); err == nil && e.fault != nil {
		rpc = openError(e.fault)
		text += ": " + rpc.Message
	}
	switch {
	case status == http.StatusNotFound || status == http.StatusBadRequest:
		// The session is gone, or this wire is no longer spoken: the request
		// was turned away at the door.
		return &fault{reach: never, drop: true, err: errors.New(text)}
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return &fault{reach: never, drop: true, code: store.CodeUnavailable,
			err: &credentialError{text + ": it wants another credential; see the server's headers and nizectl credentials set"}}
	case status == http.StatusTooManyRequests:
		return &fault{reach: never, code: store.CodeRateLimited, err: errors.New(text)}
	case status >= 300 && status < 400:
		return &fault{reach: never, code: store.CodeUnavailable, err: fmt.Errorf("%s: redirects are not followed; register the new URL", text)}
	case rpc != nil:
		return &fault{reach: answered, err: rpc}
	}
	return &fault{reach: maybe, drop: status < 500, err: errors.New(text)}
}

// bodies are the buffers for answers of unknown length.
var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// readJSON reads a body that is one message. One whose length is known is read
// into the memory that the result then lives in.
func readJSON(resp *http.Response, id uint64) (json.RawMessage, error) {
	if resp.ContentLength > maxMessage {
		return nil, &fault{reach: answered, drop: true, err: errTooLarge}
	}
	var msg []byte
	if resp.ContentLength >= 0 {
		msg = make([]byte, resp.ContentLength)
		if _, err := io.ReadFull(resp.Body, msg); err != nil {
			return nil, &fault{reach: maybe, drop: true, err: fmt.Errorf("reading the answer: %w", err)}
		}
	} else {
		buf := bodies.Get().(*bytes.Buffer)
		defer func() {
			if buf.Cap() <= 64<<10 {
				buf.Reset()
				bodies.Put(buf)
			}
		}()
		n, err := buf.ReadFrom(io.LimitReader(resp.Body, maxMessage+1))
		if n > maxMessage {
			return nil, &fault{reach: answered, drop: true, err: errTooLarge}
		}
		if err != nil {
			return nil, &fault{reach: maybe, drop: true, err: fmt.Errorf("reading the answer: %w", err)}
		}
		msg = bytes.Clone(buf.Bytes())
	}
	e, err := openEnvelope(msg)
	if err != nil {
		return nil, &fault{reach: maybe, drop: true, err: fmt.Errorf("its answer is not a JSON-RPC message: %w", err)}
	}
	if n, ok := ourID(e.id); e.id != nil && (!ok || n != id) || e.method != "" {
		return nil, &fault{reach: maybe, drop: true, err: errors.New("its answer is to another request")}
	}
	return e.answer()
}

// drainBody gives the connection back to the pool: a server ends its stream right
// after the answer, and a body that was not read to its end costs the
// connection. It does not keep the caller waiting.
func (w *httpConn) drainBody(body io.ReadCloser, cancel context.CancelFunc) {
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

// abandon tells the server that nobody waits any more. On the 2026-07-28 wire
// the end of the request says so itself.
func (w *httpConn) abandon(ctx context.Context, id uint64) {
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
func (w *httpConn) send(msg []byte) {
	w.spawn(func() {
		ctx, cancel := context.WithTimeout(w.life, noticeTime)
		defer cancel()
		header, err := w.headerFor(ctx, &request{})
		if err != nil {
			return
		}
		resp, err := w.base.RoundTrip(w.newPost(ctx, header, msg))
		if err != nil {
			return // the caller has left, or the stream will tell
		}
		resp.Body.Close()
	})
}
