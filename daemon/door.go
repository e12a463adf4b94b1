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

// door is whom the HTTP listener believes and lets in: the hosts it answers to,
// and the proxies whose word on the client counts. It is made anew by
// a reload and never changed, but for what it notes for doctor.
type door struct {
	public  *url.URL // the origin that a proxy serves; nil without one
	proxies []netip.Prefix
	widgets string // an origin with * for the server whose views it has; "" without one
	tls     bool
	host    string // that nized listens on
	port    string

	forwarded atomic.Pointer[netip.Addr] // who last spoke of others and was not heard
}

// newDoor reads the settings; they were checked.
func (d *Daemon) newDoor() *door {
	o := &door{tls: d.cert != nil, host: d.host, port: d.port}
	if v := d.layers.Get("public_url"); v != "" {
		o.public, _ = settings.ParsePublicURL(v)
	}
	o.proxies, _ = settings.ParseProxies(d.layers.Get("http.trusted_proxies"))
	o.widgets, _ = settings.ParseWidgetsOrigin(d.layers.Get("http.widgets_origin"))
	return o
}

func (o *door) trusts(ip netip.Addr) bool {
	return slices.ContainsFunc(o.proxies, func(p netip.Prefix) bool { return p.Contains(ip.Unmap()) })
}

// enter decides whether a request may come in, and returns it with the
// client's own address where a trusted proxy tells it. What a web page could
// have made a browser send is refused (DNS rebinding): every Host, the
// proxy's too, and Origin must name this listener or the public origin.
func (o *door) enter(r *http.Request) (*http.Request, error) {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !o.serves(r.Host, local) {
		return nil, errors.New("this Host is not served here")
	}
	for _, origin := range r.Header.Values("Origin") {
		u, err := url.Parse(origin)
		if err != nil || !o.originAllowed(u, local) {
			return nil, errors.New("this Origin may not ask here")
		}
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !o.trusts(peer.Addr()) {
		if from := peer.Addr(); err == nil && r.Header.Get("X-Forwarded-For") != "" && o.forwarded.Load() == nil {
			o.forwarded.Store(&from)
		}
		return r, nil // whatever it says of others is not heard
	}
	host := last(r.Header.Values("X-Forwarded-Host"))
	if host != "" && !o.serves(host, local) {
		return nil, errors.New("this Host is not served here")
	}
	asked := r.Host
	if host != "" {
		asked = host
	}
	if proto := last(r.Header.Values("X-Forwarded-Proto")); o.isPublic(asked) && proto != "" && proto != "https" {
		return nil, fmt.Errorf("ask %s: a token must not travel without TLS", o.public)
	}
	client := o.client(peer.Addr(), r.Header.Values("X-Forwarded-For"))
	if client == peer.Addr() {
		return r, nil
	}
	inside := new(http.Request)
	*inside = *r
	inside.RemoteAddr = netip.AddrPortFrom(client, 0).String()
	return inside, nil
}

// viewsHost is the first label of the host that a request asks, where that has the
// views of one server and nothing else; "" where it is another host.
func (o *door) viewsHost(r *http.Request) string {
	scheme, rest, _ := strings.Cut(o.widgets, "://*")
	hosts := []string{strings.ToLower(r.Host)}
	if peer, err := netip.ParseAddrPort(r.RemoteAddr); err == nil && o.trusts(peer.Addr()) {
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

// client walks X-Forwarded-For from its end, where the nearest proxy wrote, to
// the first address that is no proxy of ours: what stands before it anybody
// could have sent.
func (o *door) client(peer netip.Addr, forwarded []string) netip.Addr {
	hops := strings.Split(strings.Join(forwarded, ","), ",")
	at := peer
	for _, hop := range slices.Backward(hops) {
		if !o.trusts(at) {
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

// last is the word of the nearest proxy: the end of a list.
func last(values []string) string {
	if len(values) == 0 {
		return ""
	}
	text := values[len(values)-1]
	return strings.ToLower(strings.TrimSpace(text[strings.LastIndexByte(text, ',')+1:]))
}

// serves says whether a Host names this listener: the public origin, what one that
// stands by passed on (a name below invalid, where no page can be), or a
// loopback name, or the address that was reached, with the port. Names that
// resolve to it don't count: anybody can make one.
func (o *door) serves(host string, local net.Addr) bool {
	if o.isPublic(host) || host == standby.Host {
		return true
	}
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name, port = strings.Trim(host, "[]"), "80"
		if o.tls {
			port = "443"
		}
	}
	if port != o.port {
		return false
	}
	if name == "localhost" || name == o.host {
		return true
	}
	ip := net.ParseIP(name)
	if ip == nil {
		return false
	}
	reached, _ := local.(*net.TCPAddr)
	return ip.IsLoopback() || reached != nil && reached.IP.Equal(ip)
}

// pass is a request as the door of the nized that works lets it in, if this one does.
func (o *door) pass(r *http.Request) (*http.Request, error) {
	out := r.Clone(r.Context())
	if peer, err := netip.ParseAddrPort(r.RemoteAddr); err != nil || !o.trusts(peer.Addr()) {
		for _, name := range forwarding {
			out.Header.Del(name) // whatever it says of others is not heard
		}
	}
	if o.viewsHost(r) != "" {
		return out, nil
	}
	if _, err := o.enter(signin.WithoutOrigin(r)); err != nil {
		return nil, err
	}
	if !o.isPublic(r.Host) {
		out.Host = standby.Host
		if from, err := url.Parse(r.Header.Get("Origin")); err == nil && o.owns(r, from) {
			out.Header.Set("Origin", "http://"+standby.Host)
		}
	}
	return out, nil
}

func (o *door) isPublic(host string) bool {
	return o.public != nil && strings.EqualFold(strings.TrimSuffix(host, ":443"), strings.TrimSuffix(o.public.Host, ":443"))
}

// origin is the address under which the client of a request knows nize: the
// public one where it came by that name or through a proxy, else the one that it
// asked. It is "" in clear text beyond this machine, where nobody may sign in.
func (o *door) origin(r *http.Request) string {
	switch {
	case o.public != nil && (o.isPublic(r.Host) || wasForwarded(r)):
		return o.public.String()
	case r.Host == standby.Host: // the address of the one that stands by, which nobody knows here
		return ""
	case o.tls:
		return "https://" + strings.ToLower(r.Host)
	case fromThisMachine(r):
		return "http://" + strings.ToLower(r.Host)
	}
	return ""
}

// owns says whether an address is of one of the origins under which this nized
// is known.
func (o *door) owns(r *http.Request, u *url.URL) bool {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return o.originAllowed(u, local)
}

func (o *door) originAllowed(u *url.URL, local net.Addr) bool {
	switch u.Scheme {
	case "https":
		return o.isPublic(u.Host) || o.serves(u.Host, local)
	case "http":
		return !o.isPublic(u.Host) && o.serves(u.Host, local)
	}
	return false
}

// checkListen refuses to listen where others could reach it in clear text.
func checkListen(addr *net.TCPAddr, tls, insecure bool) error {
	if addr.IP.IsLoopback() || tls || insecure {
		return nil
	}
	return store.Mark(fmt.Errorf("listening on %s, since it is no loopback address and tokens would travel in clear text; set tls.cert and tls.key, or put a TLS proxy in front of %s and set --public-url (--insecure-listen does it all the same)", addr, settings.DefaultListen), store.ErrRefused)
}
