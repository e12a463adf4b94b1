// Package standby forwards requests from a standby node to the active node.
//
// It looks up the active node and its address at each beat, and whenever the node can't be
// dialled. Until a connection exists nothing of a request was sent, so the request waits
// for the next owner. A request that was sent in part is never sent again, and connections
// to an owner that was replaced are closed. An owner at https gets nothing until its
// certificate is verified, with the system's roots.
package standby

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"nize/daemon/api"
	"nize/daemon/failure"
)

const (
	// Host is the Host of forwarded requests that were addressed to the standby's own
	// address.
	Host = "active.invalid"
	// Header marks forwarded requests, so that they aren't forwarded again.
	Header = "Nize-Forwarded"

	beat     = time.Second            // interval of looking up the owner
	answer   = 2 * time.Second        // timeout of one lookup
	patience = 8 * time.Second        // timeout until an owner can be dialled
	pause    = 100 * time.Millisecond // delay between two attempts
	oneDial  = 2 * time.Second
)

// Owner is the active node: its epoch, and the origin at which it can be reached, which is
// "" until it is ready. Unfit is the reason why the standby node could not take over from
// it, or "".
type Owner struct {
	Epoch  int64
	Origin string
	Unfit  string
}

// Forwarder forwards requests to the active node.
type Forwarder struct {
	owner func(context.Context) (Owner, error)
	log   *slog.Logger
	proxy httputil.ReverseProxy
	wire  *http.Transport
	left  atomic.Bool

	mu    sync.Mutex
	known Owner
	wrong error // why requests can't be forwarded to known; nil once it was reached
	asked time.Time
	conns map[*conn]bool // to the known owner
}

// conn is a connection to an owner.
type conn struct {
	net.Conn
	f *Forwarder
}

func (c *conn) Close() error {
	c.f.mu.Lock()
	delete(c.f.conns, c)
	c.f.mu.Unlock()
	return c.Conn.Close()
}

var (
	errDial = errors.New("dialling the active node")
	// ErrUntrusted is returned if the owner's certificate is not trusted, so that nothing
	// is sent to it.
	ErrUntrusted = errors.New("the active node's certificate is not trusted here: set --advertise of that node to a name in the certificate, and put its CA into a directory in SSL_CERT_DIR here")

	errSilent    = errors.New("the active node has not published its address (--advertise)")
	errNew       = errors.New("the active node was not reached yet")
	errUnreached = errors.New("the active node can't be reached at its address (--advertise)")
)

// New returns a Forwarder, which calls owner to look up the active node.
func New(owner func(context.Context) (Owner, error), log *slog.Logger) *Forwarder {
	f := &Forwarder{owner: owner, log: log, conns: map[*conn]bool{}, wrong: errNew}
	f.wire = &http.Transport{
		DialContext: f.dial, DisableCompression: true, MaxIdleConnsPerHost: 64,
		IdleConnTimeout: 30 * time.Second, // less than the owner's
	}
	f.proxy = httputil.ReverseProxy{
		Rewrite: rewrite, Transport: retrying{f.wire}, FlushInterval: -1,
		ErrorHandler: f.fail, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	return f
}

// retrying resends a read-only request if its connection was closed without a response: the
// active node may have closed it while draining (RFC 9110, 9.2.2).
type retrying struct{ http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (t retrying) RoundTrip(r *http.Request) (*http.Response, error) {
	reads := (r.Method == http.MethodGet || r.Method == http.MethodHead) && (r.Body == nil || r.Body == http.NoBody)
	for until := time.Now().Add(oneDial); ; { // a busy machine may take a while to drain
		resp, err := t.RoundTripper.RoundTrip(r)
		if err == nil || !reads || time.Now().After(until) || !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
			return resp, err
		}
		select {
		case <-time.After(pause):
		case <-r.Context().Done():
			return nil, err
		}
	}
}

// Run looks up the owner periodically until ctx ends.
func (f *Forwarder) Run(ctx context.Context) {
	defer f.wire.CloseIdleConnections()
	for ctx.Err() == nil {
		if to := f.look(ctx); to.Origin != "" && f.Wrong() != nil {
			if c, err := f.connect(ctx, "tcp", to); err == nil {
				_ = c.Close() // the dial was only a check
			}
		}
		select {
		case <-time.After(beat):
		case <-ctx.Done():
		}
	}
}

// Origin returns the active node's last known origin, or "".
func (f *Forwarder) Origin() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.known.Origin
}

// Wrong returns why requests can't be forwarded right now, or why this node could not take
// over; nil if all is well.
func (f *Forwarder) Wrong() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known.Unfit != "" {
		return errors.New("this nized could not take over: " + f.known.Unfit)
	}
	return f.wrong
}

// look looks up the owner, unless that was done a moment ago. If the lookup fails, it
// returns the last known owner.
func (f *Forwarder) look(ctx context.Context) Owner {
	f.mu.Lock()
	before, fresh := f.known, time.Since(f.asked) < pause
	if !fresh {
		f.asked = time.Now()
	}
	f.mu.Unlock()
	if fresh {
		return before
	}
	ctx, end := context.WithTimeout(ctx, answer)
	defer end()
	now, err := f.owner(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.log.Debug("looking up the active node", "err", err)
		return f.known
	}
	if now.Epoch != f.known.Epoch {
		for c := range f.conns {
			_ = c.Conn.Close() // requests waiting on it fail
		}
		clear(f.conns)
	}
	switch {
	case now.Origin == "":
		f.wrong = errSilent
	case now.Epoch != f.known.Epoch, now.Origin != f.known.Origin:
		f.wrong = errNew
	}
	if now.Unfit != "" && now.Unfit != f.known.Unfit {
		f.log.Error("this nized could not take over", "err", now.Unfit)
	}
	f.known = now
	return now
}

// ServeHTTP forwards a request. Its Host must be one that the owner accepts.
func (f *Forwarder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get(Header) != "" {
		refuse(w, "not_ready", "this nized is a standby, and does not forward a request that was already forwarded")
		return
	}
	if f.left.Load() { // the next request is for the new server of this listener
		w.Header().Set("Connection", "close")
	}
	f.proxy.ServeHTTP(w, r)
}

// rewrite keeps the forwarding headers of earlier proxies; the caller has removed untrusted
// ones.
func rewrite(p *httputil.ProxyRequest) {
	p.Out.URL.Scheme, p.Out.URL.Host = "http", Host // dial resolves it to the owner
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if values := p.In.Header.Values(name); len(values) > 0 {
			p.Out.Header[name] = values
		}
	}
	if host, _, err := net.SplitHostPort(p.In.RemoteAddr); err == nil {
		p.Out.Header.Add("X-Forwarded-For", host)
	}
	if p.In.TLS != nil && p.In.Header.Get("X-Forwarded-Proto") == "" {
		p.Out.Header.Set("X-Forwarded-Proto", "https")
	}
	p.Out.Header.Set(Header, "1")
}

// dial connects to the active node, and waits a while for one.
func (f *Forwarder) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	ctx, end := context.WithTimeout(ctx, patience)
	defer end()
	f.mu.Lock()
	to := f.known
	f.mu.Unlock()
	for {
		err := errSilent
		if to.Origin != "" {
			var c net.Conn
			if c, err = f.connect(ctx, network, to); err == nil || errors.Is(err, ErrUntrusted) && f.look(ctx) == to {
				return c, err
			}
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", errDial, err)
		case <-time.After(pause):
		}
		to = f.look(ctx)
	}
}

// connect connects to an owner. The connection is closed when that owner is replaced.
func (f *Forwarder) connect(ctx context.Context, network string, owner Owner) (net.Conn, error) {
	to, err := reach(ctx, network, owner.Origin)
	f.mu.Lock()
	defer f.mu.Unlock()
	same := f.known == owner
	switch {
	case err != nil && same:
		return nil, f.notedLocked(err)
	case err != nil:
		return nil, err
	case !same:
		return nil, errors.Join(errors.New("another node has taken over"), to.Close())
	}
	f.wrong = nil
	c := &conn{to, f}
	f.conns[c] = true
	return c, nil
}

// notedLocked records why the known owner was not reached. If it was reached before, it may
// only be busy or stopping, so that isn't recorded. f.mu is held.
func (f *Forwarder) notedLocked(err error) error {
	wrong := errUnreached
	if bad := new(tls.CertificateVerificationError); errors.As(err, &bad) {
		wrong = ErrUntrusted
		err = fmt.Errorf("%w (%w)", wrong, err)
	}
	if wrong != f.wrong && (f.wrong != nil || wrong == ErrUntrusted) {
		f.log.Error("requests can't be forwarded", "to", f.known.Origin, "err", err)
		f.wrong = wrong
	}
	return err
}

func reach(ctx context.Context, network, origin string) (net.Conn, error) {
	u, err := url.Parse(origin)
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithTimeout(ctx, oneDial)
	defer end()
	port := u.Port()
	if port == "" {
		port = u.Scheme // the dialer accepts a service name as port
	}
	addr := net.JoinHostPort(u.Hostname(), port)
	d := &net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: beat, Interval: beat, Count: 3}}
	if u.Scheme == "https" {
		return (&tls.Dialer{NetDialer: d, Config: &tls.Config{MinVersion: tls.VersionTLS12}}).DialContext(ctx, network, addr)
	}
	return d.DialContext(ctx, network, addr)
}

// fail responds to a request that could not be forwarded, or that may have been sent in
// part.
func (f *Forwarder) fail(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case r.Context().Err() != nil: // the client has disconnected
	case errors.Is(err, ErrUntrusted):
		refuse(w, "not_ready", "this nized is a standby, and does not trust the active node's certificate")
	case errors.Is(err, errDial):
		refuse(w, "not_ready", "no node is active on the database right now")
	default:
		f.log.Warn("a forwarded request got no response", "path", r.URL.Path, "err", err)
		refuse(w, "unavailable", "the active node has gone, and may have processed the request")
	}
}

func refuse(w http.ResponseWriter, code, text string) {
	failure.Text.Write(w, &api.Error{Code: code, Message: text, Retry: 1})
}
