package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"nize/store"
)

// DeniedFunc handles a 401 or 403 response to a request with the headers sent. It returns
// retry if the request should be sent once more, with freshly resolved headers; again is
// true if that was already done. It must not read the body.
type DeniedFunc func(ctx context.Context, sent http.Header, resp *http.Response, again bool) (retry bool, err error)

// denied reports whether a DeniedFunc handles the response.
func denied(resp *http.Response) bool {
	return resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden
}

// RoundTripper sends everything but tools/call: it adds the registered headers, restricts
// requests to the registered host, limits bodies, and ends with the session. It also
// translates unusual responses to the SDK's handshake, because the SDK is strict and
// servers are not (handshake.go), and taps the responses to its other requests (tap.go).
type RoundTripper struct {
	Base         http.RoundTripper
	Scheme, Host string
	Header       http.Header
	Budget       *Budget // for standing streams and the events on them
	Hide         Hide
	// Fresh resolves the registered headers for each request; nil if none of them is a
	// credential.
	Fresh      func(ctx context.Context) (http.Header, error)
	Denied     DeniedFunc // handles 401 and 403 responses; may be nil
	Life       context.Context
	End        context.CancelCauseFunc
	Failure    atomic.Pointer[error] // the last error status, for the message of a failed connect
	turnedAway atomic.Bool           // Denied returned an error, which Failure keeps; the SDK's later errors are less specific
	Answers    StandingAnswers       // answers to calls that arrive on the standing stream
	Trouble    atomic.Bool           // the probe for 2026-07-28 failed for a temporary reason
	silent     atomic.Bool           // the probe was not answered in time
	moved      atomic.Pointer[url.URL]
	early      atomic.Pointer[earlyStream] // the standing stream, if the answer to initialize arrived on it
}

// Client returns the SDK's client.
func (t *RoundTripper) Client() *http.Client { return clientOf(t) }

// clientOf returns a client that sends through t and follows no redirects.
func clientOf(t http.RoundTripper) *http.Client {
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// passing is a RoundTripper for requests whose answers don't arrive in their responses.
type passing struct{ *RoundTripper }

func (t passing) RoundTrip(req *http.Request) (*http.Response, error) { return t.pass(req) }

// Address returns the registered URL at, or the one with a trailing slash added or removed
// to which the server redirected it.
func (t *RoundTripper) Address(at *url.URL) *url.URL {
	if moved := t.moved.Load(); moved != nil && at.Scheme == moved.Scheme && at.Host == moved.Host && strings.TrimSuffix(at.Path, "/") == strings.TrimSuffix(moved.Path, "/") && at.RawQuery == moved.RawQuery {
		return moved
	}
	return at
}

// RoundTrip serves the SDK's requests and translates the responses to its handshake.
func (t *RoundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	sent := sentMessage(req)
	tapped, _ := req.Context().Value(tapKey{}).(*tap)
	switch {
	case tapped != nil && sent.id != nil:
		return tapped.roundTrip(req, sent)
	case tapped != nil && sent.method == methodCancelled:
		return acceptedBy(req), nil // bySession sends it
	case sent.method == methodDiscover:
		return t.discover(req, sent.id)
	case sent.method == methodInitialize:
		return t.initialize(req, sent.id)
	case sent.method != "" && sent.id == nil:
		return t.notify(req)
	case req.Method == http.MethodGet && req.Header.Get(headerLast) == "":
		return t.stand(req)
	}
	resp, err := t.pass(req)
	if err == nil && req.Method == http.MethodGet && isStream(resp) { // the standing stream, resumed
		resp.Body = newReadableStream(resp.Body, &t.Answers)
	}
	return resp, err
}

// pass sends one request of the SDK.
func (t *RoundTripper) pass(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != t.Scheme || req.URL.Host != t.Host {
		return nil, store.Mark(fmt.Errorf("%s is another host than the registered one", req.URL.Host), store.ErrRefused)
	}
	ctx, cancel := context.WithCancel(req.Context())
	unhook := context.AfterFunc(t.Life, cancel)
	if req.Method == http.MethodGet {
		if err := t.spend(openCost, ctx.Done()); err != nil {
			unhook()
			cancel()
			return nil, err
		}
	}
	req = req.Clone(ctx)
	if err := t.addHeaders(req); err != nil {
		unhook()
		cancel()
		return nil, err
	}
	resp, err := t.send(req, false)
	listen := req.Header.Get(headerMethod) == methodListen
	if listen && (err != nil || resp.StatusCode >= 500) {
		// The SDK ignores this response, and would never be notified of a change.
		t.End(errors.New("its stream of notifications could not be opened"))
	}
	if err != nil {
		unhook()
		cancel()
		err = store.NetworkError(err)
		t.fail(err)
		return nil, err
	}
	body := &boundBody{ReadCloser: resp.Body, left: MaxMessage, closed: func() { unhook(); cancel() }}
	if mediaType(resp.Header.Get("Content-Type")) == mediaStream {
		body.left = -1 // the reader limits each event
		body.spend = func(n int) error { return t.spend(n, ctx.Done()) }
	}
	if listen {
		// The SDK doesn't reopen it, and changes would go unnoticed without it, so the
		// session is opened again.
		body.ended = func() { t.End(errors.New("its stream of notifications ended")) }
	}
	resp.Body = body
	if resp.StatusCode >= 300 && req.Method == http.MethodPost {
		t.fail(peekStatus(resp, t.Hide))
	}
	return resp, nil
}

// addHeaders adds the registered headers to a request.
func (t *RoundTripper) addHeaders(req *http.Request) error {
	header := t.Header
	if t.Fresh != nil {
		fresh, err := t.Fresh(req.Context())
		if err != nil {
			return err
		}
		header = fresh
	}
	for k, v := range header {
		if _, ok := req.Header[k]; !ok && !ProtocolHeader(k) {
			req.Header[k] = v
		}
	}
	return nil
}

// send sends a request. It sends it once more if the response was a redirect to the same
// URL with a trailing slash added or removed, or a 401 that a fresh token may resolve: a
// rejected request has reached no tool. A second 401 is returned if the request is part of a
// session, which may be the reason. It returns the errors of Denied and Fresh as *Fault.
func (t *RoundTripper) send(req *http.Request, ofSession bool) (*http.Response, error) {
	if at := t.Address(req.URL); at != req.URL {
		req.URL = at
	}
	moved := false
	for again := false; ; {
		resp, err := t.Base.RoundTrip(req)
		if err != nil {
			return resp, err
		}
		if target, ok := slashRedirect(req.URL, resp); ok && !moved && (req.Body == nil || req.GetBody != nil) {
			_ = resp.Body.Close() // not used
			if req, err = sendAgain(req); err != nil {
				return nil, err
			}
			req.URL, moved = target, true
			t.moved.Store(target)
			continue
		}
		if t.Denied == nil || !denied(resp) || again && ofSession {
			return resp, nil
		}
		retry, err := t.Denied(req.Context(), req.Header, resp, again)
		if err == nil && (!retry || again || t.Fresh == nil || req.Body != nil && req.GetBody == nil) {
			return resp, nil
		}
		_ = resp.Body.Close() // not used
		if err != nil {
			t.fail(err)
			t.turnedAway.Store(true)
			return nil, &Fault{Reach: Never, Drop: resp.StatusCode == http.StatusUnauthorized, Code: store.CodeUnavailable, Err: err}
		}
		header, err := t.Fresh(req.Context())
		if err != nil {
			return nil, &Fault{Reach: Never, Err: err}
		}
		if req, err = sendAgain(req); err != nil {
			return nil, err
		}
		for k, v := range header {
			if !ProtocolHeader(k) {
				req.Header[k] = v
			}
		}
		again = true
	}
}

// sendAgain returns a copy of a request for a second attempt.
func sendAgain(req *http.Request) (*http.Request, error) {
	req = req.Clone(req.Context())
	if req.GetBody == nil {
		return req, nil
	}
	var err error
	req.Body, err = req.GetBody()
	return req, err
}

// fail stores the error of a failed request.
func (t *RoundTripper) fail(err error) {
	if !t.turnedAway.Load() {
		t.Failure.Store(&err)
	}
}

// spend spends from the budget, and ends the session if the server floods.
func (t *RoundTripper) spend(n int, done <-chan struct{}) error {
	err := t.Budget.Spend(n, done)
	if errors.As(err, new(*NoiseError)) {
		t.End(err)
	}
	return err
}

var newline = []byte("\n")

// boundBody returns an error from Read if a body is too large.
type boundBody struct {
	io.ReadCloser
	left   int64             // -1 means unlimited
	spend  func(n int) error // spends the bytes read; nil if the body is limited
	closed func()            // called once or more
	ended  func()            // called on the first error or at the end; may be nil
}

func (b *boundBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, errTooLarge
	}
	if b.left > 0 && int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.ReadCloser.Read(p)
	if b.left > 0 {
		b.left -= int64(n)
	}
	if b.spend != nil && n > 0 {
		if err := b.spend(n + lineCost*bytes.Count(p[:n], newline)); err != nil {
			return 0, err
		}
	}
	if err != nil && b.ended != nil {
		b.ended()
	}
	return n, err
}

func (b *boundBody) Close() error {
	err := b.ReadCloser.Close()
	b.closed()
	return err
}
