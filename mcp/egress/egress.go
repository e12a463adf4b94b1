// Package egress is the HTTP client for addresses that a user chose, not an admin.
//
// Such addresses must not lead to the machine that nized runs on, or into the networks
// behind it.
//
// There are two checks. [Transport.RoundTrip] refuses URLs that don't look like a plain
// address on the internet: schemes other than http and https, a user name and password,
// spellings of an IP address that only some resolvers accept (decimal, octal, hex, short,
// other digits), a trailing dot, a zone. The dialer then checks the actual address that it
// is about to connect to, after resolution, whatever name led there. No connection is kept
// alive, so that each request and each redirect is resolved and checked again: neither a
// name that was harmless a moment ago (DNS rebinding) nor an entry that an admin has
// removed gives access. If connections are kept alive ([Options.Keep]), each leads to a
// checked address, and none outlives a change of the allowed addresses. Proxies from the
// environment are not used, because with a proxy the check would only see the proxy's
// address.
//
// An admin opens hosts and networks ([Allow]) in the setting egress.allow.
//
// Errors never contain the address that a name resolved to, because a user could map a
// network with it.
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
	headerTime   = 15 * time.Second // from the end of a request until the headers of its response arrive
	maxHeader    = 64 << 10
	maxRedirects = 5

	// The default limits of a [Client].
	defaultTime  = 20 * time.Second
	defaultBytes = 5 << 20
)

// ErrTooLarge is returned when reading a body beyond a client's limit.
var ErrTooLarge = errors.New("the answer is too large")

// Error means that a request was refused before anything was sent. It wraps
// [store.ErrRefused], and its text may be shown to the user who chose the address.
type Error struct{ Reason string }

func (e *Error) Error() string { return "the address is refused: " + e.Reason }
func (e *Error) Unwrap() error { return store.ErrRefused }

// Options configures a transport; the zero value only allows public addresses.
type Options struct {
	// Allow returns the current setting egress.allow; it is called for each connection. An
	// unparsable value allows nothing.
	Allow func() string
	// MaxHeaderTime is the timeout for the headers of a response; 0 means 15 s.
	MaxHeaderTime time.Duration
	// Keep is how long an idle connection is kept alive; 0 disables that.
	Keep time.Duration

	testOnlyResolver *net.Resolver
}

// Transport is a guarded RoundTripper, for callers that limit bodies and redirects
// themselves, such as the pool of MCP servers; others should use a [Client]. It is safe for
// concurrent use. It holds no resources to be closed, except idle connections.
type Transport struct {
	opt   Options
	allow func() Allow

	mu   sync.Mutex // guards the fields below
	base *http.Transport
	of   string // value of Allow when base was created
}

var _ http.RoundTripper = (*Transport)(nil)

// NewTransport returns a guarded transport.
func NewTransport(opt Options) *Transport {
	t := &Transport{opt: opt, allow: func() Allow { return Allow{} }}
	if opt.Allow != nil {
		t.allow = func() Allow {
			a, _ := ParseAllow(opt.Allow()) // validated when it was set
			return a
		}
	}
	wait := opt.MaxHeaderTime
	if wait == 0 {
		wait = headerTime
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true) // HTTP/2 connections are made to be kept alive
	t.base = &http.Transport{
		DialContext: t.dial, Protocols: protocols, DisableKeepAlives: opt.Keep == 0, IdleConnTimeout: opt.Keep,
		TLSHandshakeTimeout: connectTime, ResponseHeaderTimeout: wait, ExpectContinueTimeout: time.Second, MaxResponseHeaderBytes: maxHeader,
	}
	return t
}

// RoundTrip implements [http.RoundTripper]. It returns refusals as [*Error].
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := CheckURL(req.URL); err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // required of a RoundTripper; nothing was read
		}
		return nil, err
	}
	return t.transport().RoundTrip(req)
}

// CloseIdleConnections closes the idle connections.
func (t *Transport) CloseIdleConnections() { t.transport().CloseIdleConnections() }

// transport returns the transport for a request that starts now. If the allowed addresses
// have changed, it is a new one without open connections.
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

// dial connects to the addresses that a host resolves to, each checked after resolution and
// before anything is sent.
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
		return nil, refused // without the address that the dialer adds; the same below
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

// guardian contains IANA's tables of non-public addresses.
var guardian = ssrf.New(ssrf.WithAnyPort(), ssrf.WithDeniedV4Prefixes(
	netip.MustParsePrefix("168.63.129.16/32"), // Azure's agent on each virtual machine
))

var errNotPublic = &Error{"it is not a public one; an admin can allow a host or network in egress.allow"}

// check returns an error if nized may not connect to a resolved address.
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

// CheckURL returns an error if no request may be sent to a URL, as far as can be determined
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

// checkHost returns an error for a host that is neither an IP address in its usual form nor
// an ASCII name.
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
	// Some resolvers parse every host that ends in a number as an IP address.
	if strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") && strings.Trim(last[2:], "0123456789abcdef") == "" {
		return &Error{"write the IP address in its usual form"}
	}
	return nil
}

// Limits configures a client; 0 means the default.
type Limits struct {
	Time  time.Duration // total, including redirects and the whole body; 20 s
	Bytes int64         // of the body, after decompression; 5 MiB
}

// Client returns a client for responses that are read whole. It follows at most five
// redirects, never from https to http, and sends a request's headers, which may be secret,
// only to their original host.
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

// bounded limits bodies.
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
		_ = resp.Body.Close() // not used
		return nil, fmt.Errorf("%w: %d bytes, of at most %d", ErrTooLarge, resp.ContentLength, b.max)
	}
	resp.Body = &body{ReadCloser: resp.Body, left: b.max}
	return resp, nil
}

// body reads up to its limit, and distinguishes a longer body from one that ends there.
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
