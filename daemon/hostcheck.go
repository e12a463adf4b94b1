package daemon

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"nize/daemon/settings"
	"nize/daemon/signin"
	"nize/daemon/standby"
	"nize/store"
)

// hostCheck is the HTTP listener's access rules: the hosts that it serves, and the proxies whose
// forwarding headers it trusts. A reload replaces it; it is immutable except for what it
// records for doctor.
type hostCheck struct {
	public  *url.URL // the origin that a proxy serves; nil if there is none
	proxies []netip.Prefix
	widgets string // an origin with * in place of the label of the server whose views it serves; "" if there is none
	tls     bool
	host    string // host that nized listens on
	port    string

	forwarded atomic.Pointer[netip.Addr] // an untrusted peer that sent forwarding headers
}

// newHostCheck reads the settings, which are already validated.
func (d *Daemon) newHostCheck() *hostCheck {
	h := &hostCheck{tls: d.cert != nil, host: d.host, port: d.port}
	if v := d.layers.Get("public_url"); v != "" {
		h.public, _ = settings.ParsePublicURL(v)
	}
	h.proxies, _ = settings.ParseProxies(d.layers.Get("http.trusted_proxies"))
	h.widgets, _ = settings.ParseWidgetsOrigin(d.layers.Get("http.widgets_origin"))
	return h
}

func (h *hostCheck) trusts(ip netip.Addr) bool {
	return slices.ContainsFunc(h.proxies, func(p netip.Prefix) bool { return p.Contains(ip.Unmap()) })
}

// check decides whether to accept a request, and returns it with the client's own address
// if a trusted proxy forwards that. It rejects requests that a web page could have made a
// browser send (DNS rebinding): every Host, including the proxy's, and every Origin must
// name this listener or the public origin.
func (h *hostCheck) check(r *http.Request) (*http.Request, error) {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !h.serves(r.Host, local) {
		return nil, errors.New("this Host is not served here")
	}
	for _, origin := range r.Header.Values("Origin") {
		u, err := url.Parse(origin)
		if err != nil || !h.originAllowed(u, local) {
			return nil, errors.New("this Origin may not ask here")
		}
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !h.trusts(peer.Addr()) {
		if from := peer.Addr(); err == nil && r.Header.Get("X-Forwarded-For") != "" && h.forwarded.Load() == nil {
			h.forwarded.Store(&from)
		}
		return r, nil // ignore its forwarding headers
	}
	host := last(r.Header.Values("X-Forwarded-Host"))
	if host != "" && !h.serves(host, local) {
		return nil, errors.New("this Host is not served here")
	}
	asked := r.Host
	if host != "" {
		asked = host
	}
	if proto := last(r.Header.Values("X-Forwarded-Proto")); h.isPublic(asked) && proto != "" && proto != "https" {
		return nil, fmt.Errorf("ask %s: a token must not travel without TLS", h.public)
	}
	client := h.client(peer.Addr(), r.Header.Values("X-Forwarded-For"))
	if client == peer.Addr() {
		return r, nil
	}
	inside := new(http.Request)
	*inside = *r
	inside.RemoteAddr = netip.AddrPortFrom(client, 0).String()
	return inside, nil
}

// viewsHost returns the first label of a request's host if that host serves only the views
// of one server, and "" for any other host.
func (h *hostCheck) viewsHost(r *http.Request) string {
	scheme, rest, _ := strings.Cut(h.widgets, "://*")
	hosts := []string{strings.ToLower(r.Host)}
	if peer, err := netip.ParseAddrPort(r.RemoteAddr); err == nil && h.trusts(peer.Addr()) {
		hosts = append(hosts, last(r.Header.Values("X-Forwarded-Host")))
	}
	for _, host := range hosts {
		host = strings.TrimSuffix(host, map[string]string{"https": ":443", "http": ":80"}[scheme])
		label, ok := strings.CutSuffix(host, rest)
		if ok && rest != "" && len(label) == 32 && strings.Trim(label, "0123456789abcdef") == "" {
			return label
		}
	}
	return ""
}

// client walks X-Forwarded-For from its end, where the nearest proxy appended, to the first
// address that is not a trusted proxy. Entries before that one could be forged.
func (h *hostCheck) client(peer netip.Addr, forwarded []string) netip.Addr {
	hops := strings.Split(strings.Join(forwarded, ","), ",")
	at := peer
	for _, hop := range slices.Backward(hops) {
		if !h.trusts(at) {
			break
		}
		hop = strings.TrimSpace(hop)
		ip, err := netip.ParseAddr(hop)
		if err != nil {
			withPort, err := netip.ParseAddrPort(hop)
			if err != nil {
				break
			}
			ip = withPort.Addr()
		}
		at = ip.Unmap().WithZone("")
	}
	return at
}

// last returns the last element of a list, which the nearest proxy wrote.
func last(values []string) string {
	if len(values) == 0 {
		return ""
	}
	text := values[len(values)-1]
	return strings.ToLower(strings.TrimSpace(text[strings.LastIndexByte(text, ',')+1:]))
}

// serves reports whether a Host names this listener: the public origin, the name that a
// standby node uses for forwarded requests (below invalid, where no page can be), or, with
// the right port, a loopback name or the local address of the connection. A name that
// resolves to this address doesn't count, since anyone can register one.
func (h *hostCheck) serves(host string, local net.Addr) bool {
	if h.isPublic(host) || host == standby.Host {
		return true
	}
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name, port = strings.Trim(host, "[]"), "80"
		if h.tls {
			port = "443"
		}
	}
	if port != h.port {
		return false
	}
	if name == "localhost" || name == h.host {
		return true
	}
	ip := net.ParseIP(name)
	if ip == nil {
		return false
	}
	reached, _ := local.(*net.TCPAddr)
	return ip.IsLoopback() || reached != nil && reached.IP.Equal(ip)
}

// checkForwarding returns a request in the form that the active node accepts, if this node accepts it.
func (h *hostCheck) checkForwarding(r *http.Request) (*http.Request, error) {
	out := r.Clone(r.Context())
	if peer, err := netip.ParseAddrPort(r.RemoteAddr); err != nil || !h.trusts(peer.Addr()) {
		for _, name := range forwarding {
			out.Header.Del(name) // ignore its forwarding headers
		}
	}
	if h.viewsHost(r) != "" {
		return out, nil
	}
	if _, err := h.check(signin.WithoutOrigin(r)); err != nil {
		return nil, err
	}
	if !h.isPublic(r.Host) {
		out.Host = standby.Host
		if from, err := url.Parse(r.Header.Get("Origin")); err == nil && h.owns(r, from) {
			out.Header.Set("Origin", "http://"+standby.Host)
		}
	}
	return out, nil
}

func (h *hostCheck) isPublic(host string) bool {
	return h.public != nil && strings.EqualFold(strings.TrimSuffix(host, ":443"), strings.TrimSuffix(h.public.Host, ":443"))
}

// origin returns the origin under which the client of a request reaches nize: the public
// one if the request used that name or a proxy, else the one in the request. It returns ""
// for plain HTTP from another machine, over which sign-in is not allowed.
func (h *hostCheck) origin(r *http.Request) string {
	switch {
	case h.public != nil && (h.isPublic(r.Host) || wasForwarded(r)):
		return h.public.String()
	case r.Host == standby.Host: // the standby's own address, which is unknown here
		return ""
	case h.tls:
		return "https://" + strings.ToLower(r.Host)
	case fromThisMachine(r):
		return "http://" + strings.ToLower(r.Host)
	}
	return ""
}

// owns reports whether a URL belongs to one of this node's origins.
func (h *hostCheck) owns(r *http.Request, u *url.URL) bool {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return h.originAllowed(u, local)
}

func (h *hostCheck) originAllowed(u *url.URL, local net.Addr) bool {
	switch u.Scheme {
	case "https":
		return h.isPublic(u.Host) || h.serves(u.Host, local)
	case "http":
		return !h.isPublic(u.Host) && h.serves(u.Host, local)
	}
	return false
}

// checkListen returns an error if other machines could reach the address in clear text.
func checkListen(addr *net.TCPAddr, tls, insecure bool) error {
	if addr.IP.IsLoopback() || tls || insecure {
		return nil
	}
	return store.Mark(fmt.Errorf("listening on %s, since it is no loopback address and tokens would travel in clear text; set tls.cert and tls.key, or put a TLS proxy in front of %s and set --public-url (--insecure-listen does it all the same)", addr, settings.DefaultListen), store.ErrRefused)
}
