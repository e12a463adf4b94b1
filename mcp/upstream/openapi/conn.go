package openapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"nize/mcp/upstream/process"
	"nize/mcp/upstream/wire"
	"nize/store"
)

// ConnOptions configures a Conn.
type ConnOptions struct {
	Base *url.URL
	// First is the document at the time of the dial; Load reads it again.
	First *Document
	Load  func(ctx context.Context) (*Document, error)
	// Header resolves the registered headers for each request.
	Header func(ctx context.Context) (http.Header, error)
	// Transport sends the requests; it checks the addresses of redirects.
	Transport http.RoundTripper
	Denied    wire.DeniedFunc // handles 401 responses; may be nil
	Hint      string          // advice for a person after a 401 response
	Agent     string          // the User-Agent
}

// Conn lists the operations of a document as tools, and calls them. It is safe for
// concurrent use.
type Conn struct {
	opt    ConnOptions
	client *http.Client
	first  atomic.Pointer[Document]

	cut  context.Context // its end aborts calls in flight
	stop context.CancelFunc
	gone chan struct{}

	mu     sync.Mutex
	closed bool
	calls  sync.WaitGroup
}

var _ wire.Conn = (*Conn)(nil)

// NewConn returns a connection, whose calls end with parent.
func NewConn(parent context.Context, opt ConnOptions) *Conn {
	c := &Conn{opt: opt, gone: make(chan struct{}), client: &http.Client{Transport: opt.Transport, CheckRedirect: checkRedirect}}
	c.first.Store(opt.First)
	c.cut, c.stop = context.WithCancel(parent)
	return c
}

func (c *Conn) Done() <-chan struct{} { return c.gone }
func (c *Conn) Cause() error          { return wire.ErrEnded }
func (c *Conn) Child() process.Child  { return nil }

// Terminate ends the connection after the calls in flight; kill aborts them.
func (c *Conn) Terminate(kill bool) {
	c.mu.Lock()
	first := !c.closed
	c.closed = true
	c.mu.Unlock()
	if kill {
		c.stop()
	}
	c.calls.Wait()
	if first {
		c.stop()
		close(c.gone)
		if t, ok := c.opt.Transport.(interface{ CloseIdleConnections() }); ok {
			t.CloseIdleConnections()
		}
	}
}

func (c *Conn) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.calls.Add(1)
	}
	return !c.closed
}

// Call lists the tools, or calls one.
func (c *Conn) Call(ctx context.Context, r *wire.Request) (json.RawMessage, error) {
	if !c.begin() {
		return nil, &wire.Fault{Reach: wire.Never, Drop: true, Err: wire.ErrEnded}
	}
	defer c.calls.Done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.cut, func() { cancel(wire.ErrEnded) })()
	switch r.Method {
	case wire.MethodList:
		return c.list(ctx)
	case wire.MethodCall:
		return c.call(ctx, r)
	}
	return nil, &wire.Fault{Reach: wire.Answered, Err: &wire.RPCError{Code: wire.CodeMethodNotFound, Message: "it is not known"}}
}

// list returns all tools as one page. The first list uses the document of the dial; each
// later one reads the document again.
func (c *Conn) list(ctx context.Context) (json.RawMessage, error) {
	doc := c.first.Swap(nil)
	if doc == nil {
		var err error
		if doc, err = c.opt.Load(ctx); err != nil {
			return nil, &wire.Fault{Reach: wire.Never, Err: err}
		}
	}
	return marshal(struct {
		Tools []Tool `json:"tools"`
	}{doc.Tools}), nil
}

// call sends the request that the accepted definition describes, and converts the response
// to a result.
func (c *Conn) call(ctx context.Context, r *wire.Request) (json.RawMessage, error) {
	route, ok := RouteOf(r.Definition)
	if !ok {
		return nil, &wire.Fault{Reach: wire.Never, Err: fmt.Errorf("the definition of %s has no request", r.Name)}
	}
	for again := false; ; again = true {
		header, err := c.opt.Header(ctx)
		if err != nil {
			return nil, &wire.Fault{Reach: wire.Never, Err: err}
		}
		req, err := route.Request(ctx, c.opt.Base, header, r.Args)
		if err != nil {
			return nil, &wire.Fault{Reach: wire.Never, Err: err}
		}
		if req.Header.Get("User-Agent") == "" {
			req.Header.Set("User-Agent", c.opt.Agent)
		}
		if r.Traceparent != "" {
			req.Header.Set("Traceparent", r.Traceparent)
		}
		resp, err := c.send(ctx, req)
		if err != nil {
			return nil, err
		}
		if resp.StatusCode == http.StatusUnauthorized && c.opt.Denied != nil {
			retry, err := c.opt.Denied(ctx, header, resp, again)
			if err != nil || retry && !again {
				_ = resp.Body.Close() // not used
				if err != nil {
					return nil, &wire.Fault{Reach: wire.Never, Drop: true, Code: store.CodeUnavailable, Err: err}
				}
				continue
			}
		}
		raw, err := c.answer(ctx, route, resp)
		_ = resp.Body.Close() // already read
		return raw, err
	}
}

// send sends a request. Its error says whether the request may have been sent.
func (c *Conn) send(ctx context.Context, req *http.Request) (*http.Response, error) {
	var left atomic.Bool
	trace := &httptrace.ClientTrace{WroteHeaderField: func(string, []string) { left.Store(true) }}
	resp, err := c.client.Do(req.WithContext(httptrace.WithClientTrace(ctx, trace)))
	if err == nil {
		return resp, nil
	}
	f := &wire.Fault{Reach: wire.Maybe, Err: store.NetworkError(err)}
	if !left.Load() {
		f.Reach = wire.Never
	}
	switch {
	case context.Cause(ctx) == wire.ErrEnded:
		f.Err = wire.ErrEnded
	case ctx.Err() != nil:
		f.Err = ctx.Err()
	case errors.Is(err, store.ErrRefused) && f.Reach == wire.Never:
		f.Code = store.CodeRefused
	}
	return nil, f
}

// answer converts a response to a result, or to the corresponding fault.
func (c *Conn) answer(ctx context.Context, route Route, resp *http.Response) (json.RawMessage, error) {
	changing := route.Method != http.MethodGet && route.Method != http.MethodHead
	status := strings.TrimSpace(fmt.Sprintf("%d %s", resp.StatusCode, http.StatusText(resp.StatusCode)))
	switch code := resp.StatusCode; {
	case code == http.StatusTooManyRequests:
		text := "it answered " + status + said(resp)
		if after := RetryAfter(resp, time.Now()); after > 0 {
			text += "; it may be tried again in " + store.SpanText(after)
		}
		return nil, &wire.Fault{Reach: wire.Never, Code: store.CodeRateLimited, Err: errors.New(text)}
	case code == http.StatusUnauthorized:
		return nil, &wire.Fault{Reach: wire.Never, Code: store.CodeUnavailable, Err: fmt.Errorf("it answered %s%s; %s", status, said(resp), c.opt.Hint)}
	case changing && (code == http.StatusBadGateway || code == http.StatusGatewayTimeout):
		return nil, &wire.Fault{Reach: wire.Maybe, Err: fmt.Errorf("it answered %s%s", status, said(resp))}
	case code >= 300 && code < 400 && code != http.StatusSeeOther && code != http.StatusNotModified:
		to := "nowhere"
		if u, err := resp.Location(); err == nil {
			u.RawQuery, u.Fragment, u.User = "", "", nil
			to = store.Clip(u.String(), 200)
		}
		return marshal(result{Content: []content{textItem(fmt.Sprintf("%s %s answered %s to %s, which is not followed", route.Method, route.Path, status, to))}, IsError: true}), nil
	}
	raw, err := read(route, resp)
	var f *wire.Fault
	switch {
	case err == nil:
		return raw, nil
	case errors.As(err, &f):
		return nil, f
	case context.Cause(ctx) == wire.ErrEnded:
		err = wire.ErrEnded
	case ctx.Err() != nil:
		err = ctx.Err()
	default:
		err = fmt.Errorf("reading its answer: %w", store.NetworkError(err))
	}
	return nil, &wire.Fault{Reach: wire.Maybe, Err: err}
}

// said returns the text of an error response, prefixed with a colon.
func said(resp *http.Response) string {
	head, _ := io.ReadAll(io.LimitReader(resp.Body, maxSaid)) //nolint:errcheck // use the part that was read
	text := oneLine(strings.ToValidUTF8(string(head), "\uFFFD"), 500)
	if text == "" || strings.HasPrefix(text, "<") {
		return ""
	}
	return ": " + text
}

// maxRedirects is how many redirects of a read-only request are followed.
const maxRedirects = 5

// checkRedirect follows redirects of read-only requests, never from https to http. It sends
// to another host only the headers that select the form of the response: credentials and
// arguments are for the registered host.
func checkRedirect(req *http.Request, via []*http.Request) error {
	first := via[0]
	if len(via) > maxRedirects || first.Method != http.MethodGet && first.Method != http.MethodHead || via[len(via)-1].URL.Scheme == "https" && req.URL.Scheme != "https" {
		return http.ErrUseLastResponse
	}
	if !sameOrigin(req.URL, first.URL) {
		for name := range req.Header {
			switch name {
			case "Accept", "User-Agent":
			default:
				req.Header.Del(name)
			}
		}
	}
	return nil
}
