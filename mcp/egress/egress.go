// Package egress is the HTTP client for addresses that a user chose, not an
// admin: what they name must not lead to the machine that nized runs on, or
// into the networks behind it.
//
// The rule has two halves. [Transport.RoundTrip] refuses what no plain address
// on the internet looks like: other schemes than http and https, a name and
// password, spellings of an IP address that only some resolvers read (decimal,
// octal, hex, short, other digits), a trailing dot, a zone. The dialer then
// checks the very address that it is about to connect to, after resolution,
// whatever name led there. No connection is kept, so that each request
// and each redirect is resolved and checked anew: a name that was harmless a
// moment ago (DNS rebinding), and an entry that an admin took back, are no way
// in. Where connections are kept for a while ([Options.Keep]), each leads to an
// address that was checked, and none outlives a change of what is allowed. Proxies of the environment are not used, because behind one the check
// would see the proxy's address alone.
//
// An admin opens hosts and networks ([Allow]) in the setting egress.allow.
//
// What an address resolved to is in no error, since a user could map a network
// with it.
package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"code.dny.dev/ssrf"

	"nize/store"
)

const (
	connectTime  = 5 * time.Second
	headerTime   = 15 * time.Second // from the end of a request until the headers of its answer are there
	maxHeader    = 64 << 10
	maxRedirects = 5

	// The bounds of a [Client] where nothing else is said.
	defaultTime  = 20 * time.Second
	defaultBytes = 5 << 20
)

// ErrTooLarge is what reading a body beyond the bound of a client ends with.
var ErrTooLarge = errors.New("the answer is too large")

// Error says that a request was refused before anything was sent. It wraps
// [store.ErrRefused], and its text may be shown to whoever chose the address.
type Error struct{ Reason string }

func (e *Error) Error() string { return "the address is refused: " + e.Reason }
func (e *Error) Unwrap() error { return store.ErrRefused }

// Options of a transport; the zero value allows public addresses alone.
type Options struct {
	// Allow is the setting egress.allow as it is now, asked for each connection.
	// A text that can't be read allows nothing.
	Allow func() string
	// MaxHeaderTime bounds the wait for the headers of an answer; 0 is 15 s.
	MaxHeaderTime time.Duration
	// Keep is how long a connection that nobody uses is kept; 0 is not at all.
	Keep time.Duration

	testOnlyResolver *net.Resolver
}

// Transport is a RoundTripper behind the guard, for what bounds bodies and
// redirects itself, such as the pool of MCP servers; all else wants a [Client].
// It is safe for concurrent use, and holds nothing that would have to be closed
// but what it keeps.
type Transport struct {
	opt   Options
	allow func() Allow

	mu   sync.Mutex // guards what follows
	base *http.Transport
	of   string // what was allowed when base began to keep connections
}

var _ http.RoundTripper = (*Transport)(nil)

// NewTransport returns a guarded transport.
func NewTransport(opt Options) *Transport {
	t := &Transport{opt: opt, allow: func() Allow { return Allow{} }}
	if opt.Allow != nil {
		t.allow = func() Allow {
			a, _ := ParseAllow(opt.Allow()) // it was checked when it was set
			return a
		}
	}
	wait := opt.MaxHeaderTime
	if wait == 0 {
		wait = headerTime
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true) // a connection of HTTP/2 is made to be kept
	t.base = &http.Transport{
		DialContext: t.dial, Protocols: protocols, DisableKeepAlives: opt.Keep == 0, IdleConnTimeout: opt.Keep,
		TLSHandshakeTimeout: connectTime, ResponseHeaderTimeout: wait, ExpectContinueTimeout: time.Second, MaxResponseHeaderBytes: maxHeader,
	}
	return t
}

// RoundTrip implements [http.RoundTripper]. A refusal is an [*Error].
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := CheckURL(req.URL); err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // as a RoundTripper must; nothing was read
		}
		return nil, err
	}
	return t.transport().RoundTrip(req)
}

// CloseIdleConnections closes those that are kept and that nobody uses.
func (t *Transport) CloseIdleConnections() { t.transport().CloseIdleConnections() }

// transport is the one for a request that begins now. Where other addresses are
// allowed than a moment ago it is a new one, whose connections are all made anew.
func (t *Transport) transport() *http.Transport {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.opt.Keep > 0 && t.opt.Allow != nil {
		if now := t.opt.Allow(); now != t.of {
			old := t.base
			t.base, t.of = old.Clone(), now
			old.CloseIdleConnections()
		}
	}
	return t.base
}

// dial connects to what a host resolves to, each address checked when it is
// known and nothing was sent yet.
func (t *Transport) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, &Error{"it has no host and port"}
	}
	allow := t.allow()
	d := net.Dialer{Timeout: connectTime, Resolver: t.opt.testOnlyResolver}
	if !allow.Host(host) {
		d.ControlContext = func(_ context.Context, network, address string, _ syscall.RawConn) error {
			return check(allow, network, address)
		}
	}
	conn, err := d.DialContext(ctx, network, address)
	if refused := (*Error)(nil); errors.As(err, &refused) {
		return nil, refused // without the address, which the dialer adds; so below
	}
	if dns := (*net.DNSError)(nil); errors.As(err, &dns) {
		public := &net.DNSError{Err: "the name could not be looked up", Name: host, IsTimeout: dns.IsTimeout, IsTemporary: dns.IsTemporary, IsNotFound: dns.IsNotFound}
		if dns.IsNotFound {
			public.Err = "no such host"
		}
		return nil, public
	}
	if op := (*net.OpError)(nil); errors.As(err, &op) {
		return nil, fmt.Errorf("connecting to %s: %w", host, op.Err)
	}
	return conn, err
}

// guardian has IANA's tables of what is no public address.
var guardian = ssrf.New(ssrf.WithAnyPort(), ssrf.WithDeniedV4Prefixes(
	netip.MustParsePrefix("168.63.129.16/32"), // Azure's agent of each machine answers there
))

var errNotPublic = &Error{"it is not a public one; an admin can allow a host or network in egress.allow"}

// check says whether nized may connect to an address that was resolved.
func check(allow Allow, network, address string) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return errNotPublic
	}
	to = netip.AddrPortFrom(to.Addr().Unmap().WithZone(""), to.Port())
	if allow.Addr(to.Addr()) {
		return nil
	}
	if guardian.Safe(network, to.String(), nil) != nil {
		return errNotPublic
	}
	if port := to.Port(); port != 80 && port != 443 {
		return &Error{"its port is not 80 or 443; an admin can allow the host in egress.allow"}
	}
	return nil
}

// CheckURL says why no request is sent to an address, as far as can be told
// without resolving its host.
func CheckURL(u *url.URL) error {
	if u.Scheme != "http" && u.Scheme != "https" {
		return &Error{"want http or https"}
	}
	if u.User != nil {
		return &Error{"it holds a name or password"}
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return &Error{"its port is not a number from 1 to 65535"}
		}
	}
	return checkHost(u.Hostname())
}

// checkHost refuses what is neither an IP address in its usual form nor the
// ASCII form of a name.
func checkHost(host string) error {
	if ip, err := netip.ParseAddr(host); err == nil {
		if ip.Zone() != "" {
			return &Error{"it has a zone"}
		}
		return nil
	}
	if host == "" {
		return &Error{"it has no host"}
	}
	for _, c := range []byte(host) {
		if c >= 0x80 {
			return &Error{"write its host in ASCII: xn--…"}
		}
		if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.", rune(c)) {
			return &Error{"its host has characters that no name has"}
		}
	}
	labels := strings.Split(host, ".")
	last := strings.ToLower(labels[len(labels)-1])
	if last == "" {
		return &Error{"its host ends in a dot"}
	}
	// Whatever ends in a number is read as an IP address by some resolver.
	if strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") && strings.Trim(last[2:], "0123456789abcdef") == "" {
		return &Error{"write the IP address in its usual form"}
	}
	return nil
}

// Limits of a client; 0 of each is the default.
type Limits struct {
	Time  time.Duration // all of it, redirects and the body's last byte included; 20 s
	Bytes int64         // of the body, after decompression; 5 MiB
}

// Client returns a client for requests that are fetched whole. It follows at
// most five redirects, never from https to http, and sends the headers of
// a request, which may be secret, to the host that they were meant for alone.
func (t *Transport) Client(l Limits) *http.Client {
	if l.Time == 0 {
		l.Time = defaultTime
	}
	if l.Bytes == 0 {
		l.Bytes = defaultBytes
	}
	return &http.Client{Transport: bounded{t, l.Bytes}, Timeout: l.Time, CheckRedirect: checkRedirect}
}

func checkRedirect(req *http.Request, via []*http.Request) error {
	first := via[0]
	switch {
	case len(via) > maxRedirects:
		return &Error{fmt.Sprintf("it redirects more than %d times", maxRedirects)}
	case via[len(via)-1].URL.Scheme == "https" && req.URL.Scheme != "https":
		return &Error{"it redirects from https to another scheme"}
	}
	if req.URL.Scheme != first.URL.Scheme || !strings.EqualFold(req.URL.Host, first.URL.Host) {
		for name := range req.Header {
			switch name {
			case "Accept", "Accept-Language", "Content-Type", "User-Agent":
			default:
				req.Header.Del(name)
			}
		}
	}
	return nil
}

// bounded cuts bodies.
type bounded struct {
	base *Transport
	max  int64
}

func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if resp.ContentLength > b.max {
		_ = resp.Body.Close() // it is not read
		return nil, fmt.Errorf("%w: %d bytes, of at most %d", ErrTooLarge, resp.ContentLength, b.max)
	}
	resp.Body = &body{ReadCloser: resp.Body, left: b.max}
	return resp, nil
}

// body reads up to its bound, and tells a longer one from one that ends there.
type body struct {
	io.ReadCloser
	left int64
}

func (b *body) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, ErrTooLarge
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	if b.left < 0 {
		return n - 1, ErrTooLarge
	}
	return n, err
}
