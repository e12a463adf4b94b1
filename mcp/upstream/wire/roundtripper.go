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

// DeniedFunc says what follows from an answer 401 or 403 to a request that was
// sent with these headers: retry is that it is sent once more, with the headers
// of then, where again was false. It does not read the body.
type DeniedFunc func(ctx context.Context, sent http.Header, resp *http.Response, again bool) (retry bool, err error)

// denied says whether an answer is one to ask about.
func denied(resp *http.Response) bool {
	return resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden
}

// RoundTripper is the door through which everything but our own calls goes out: it
// adds the registered headers, keeps to the registered host, bounds bodies,
// and ends with the session. Between the SDK, which is strict, and servers, which
// are not, it also reads the answers to the SDK's handshake (handshake.go).
type RoundTripper struct {
	Base         http.RoundTripper
	Scheme, Host string
	Header       http.Header
	Budget       *Budget // for standing streams and what comes over them
	Hide         Hide
	Secret       bool
	Fresh        func(ctx context.Context) (http.Header, error)
	Denied       DeniedFunc // asked about answers 401 and 403; nil is nobody
	Life         context.Context
	End          context.CancelCauseFunc
	Failure      atomic.Pointer[error] // the last status that was no success, for the words of a failed connect
	turnedAway   atomic.Bool           // Denied gave an error, which Failure keeps: what the SDK tries after that says less
	Answers      StandingAnswers       // to calls, which come over the standing stream
	Trouble      atomic.Bool           // the probe for 2026-07-28 failed for a reason that passes
	silent       atomic.Bool           // the probe was not answered in time
	moved        atomic.Pointer[url.URL]
	early        atomic.Pointer[earlyStream] // the standing stream, if the answer to initialize came over it
}

// Client returns the SDK's client.
func (t *RoundTripper) Client() *http.Client { return clientOf(t) }

// clientOf returns a client that sends through t and follows no redirects.
func clientOf(t http.RoundTripper) *http.Client {
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// passing is a RoundTripper for requests whose answers do not come in their
// responses.
type passing struct{ *RoundTripper }

func (t passing) RoundTrip(req *http.Request) (*http.Response, error) { return t.pass(req) }

// Address is the registered address at, or the one with a slash more or less that
// the server redirected it to.
func (t *RoundTripper) Address(at *url.URL) *url.URL {
	if moved := t.moved.Load(); moved != nil && at.Scheme == moved.Scheme && at.Host == moved.Host && strings.TrimSuffix(at.Path, "/") == strings.TrimSuffix(moved.Path, "/") && at.RawQuery == moved.RawQuery {
		return moved
	}
	return at
}

// RoundTrip serves the SDK, whose handshake it helps along.
func (t *RoundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	switch sent := sentMessage(req); {
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
	if err == nil && req.Method == http.MethodGet && isStream(resp) { // the standing one, resumed
		resp.Body = newReadableStream(resp.Body, &t.Answers)
	}
	return resp, err
}

// pass sends one request of the SDK.
func (t *RoundTripper) pass(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != t.Scheme || req.URL.Host != t.Host {
		return nil, store.Mark(fmt.Errorf("%s is another host than the registered one", req.URL.Host), store.ErrRefused)
	}
	header := t.Header
	if t.Fresh != nil {
		fresh, err := t.Fresh(req.Context())
		if err != nil {
			return nil, err
		}
		header = fresh
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
	for k, v := range header {
		if _, ok := req.Header[k]; !ok && !ProtocolHeader(k) {
			req.Header[k] = v
		}
	}
	resp, err := t.send(req)
	listen := req.Header.Get(headerMethod) == methodListen
	if listen && (err != nil || resp.StatusCode >= 500) {
		// The SDK does not look at it, and would never learn of a change.
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
		body.left = -1 // each event is bounded by its reader
		body.spend = func(n int) error { return t.spend(n, ctx.Done()) }
	}
	if listen {
		// The SDK does not open it again, and without it no change is noticed:
		// the session is made again.
		body.ended = func() { t.End(errors.New("its stream of notifications ended")) }
	}
	resp.Body = body
	if resp.StatusCode >= 300 && req.Method == http.MethodPost {
		t.fail(peekStatus(resp, t.Hide))
	}
	return resp, nil
}

// send sends a request, and once more if its answer was a redirect to the same
// address with a slash more or less, or a 401 that a fresh token may turn.
func (t *RoundTripper) send(req *http.Request) (*http.Response, error) {
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
			_ = resp.Body.Close() // nobody reads it
			if req, err = sendAgain(req); err != nil {
				return nil, err
			}
			req.URL, moved = target, true
			t.moved.Store(target)
			continue
		}
		if t.Denied == nil || !denied(resp) {
			return resp, nil
		}
		retry, err := t.Denied(req.Context(), req.Header, resp, again)
		if err == nil && (!retry || again || t.Fresh == nil || req.Body != nil && req.GetBody == nil) {
			return resp, nil
		}
		_ = resp.Body.Close() // nobody reads it
		if err != nil {
			t.fail(err)
			t.turnedAway.Store(true)
			return nil, err
		}
		header, err := t.Fresh(req.Context())
		if err != nil {
			return nil, err
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

// sendAgain returns a copy of a request to be sent once more.
func sendAgain(req *http.Request) (*http.Request, error) {
	req = req.Clone(req.Context())
	if req.GetBody == nil {
		return req, nil
	}
	var err error
	req.Body, err = req.GetBody()
	return req, err
}

// fail keeps why a request failed.
func (t *RoundTripper) fail(err error) {
	if !t.turnedAway.Load() {
		t.Failure.Store(&err)
	}
}

// spend ends the session with a server that floods.
func (t *RoundTripper) spend(n int, done <-chan struct{}) error {
	err := t.Budget.Spend(n, done)
	if errors.As(err, new(*NoiseError)) {
		t.End(err)
	}
	return err
}

var newline = []byte("\n")

// boundBody ends a body that is too large.
type boundBody struct {
	io.ReadCloser
	left   int64             // -1: no bound
	spend  func(n int) error // pays for what was read; nil if it is bounded
	closed func()            // once or more
	ended  func()            // on the first error or end; may be nil
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
