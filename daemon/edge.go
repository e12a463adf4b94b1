package daemon

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"time"

	"nize/daemon/asks"
	"nize/daemon/connections"
	"nize/daemon/monitor"
	"nize/daemon/peer"
	"nize/store"
	"nize/store/project"
)

// edge tracks the connections of both listeners.
type edge struct {
	public, control *connections.Set
}

// newEdge reads the settings, which are already validated.
func (d *Daemon) newEdge() edge {
	log := d.log.With("component", "connections")
	public := connections.New(d.limits(), connections.Options{Client: d.clientOf, Owner: d.proxyOf, Log: log})
	control := connections.New(connections.Limits{}, connections.Options{Owner: ownerOf, Short: public.Relieve, Log: log})
	e := edge{public, control}
	e.setLimits(d.limits())
	return e
}

// limits returns the limits of the HTTP listener: those that are set, and for the rest
// values derived from the number of files that the process may open.
func (d *Daemon) limits() connections.Limits {
	get := func(key string) int {
		n, _ := strconv.Atoi(d.layers.Get(key)) // already validated
		return n
	}
	body, _ := store.ParseSpan(d.layers.Get("http.body_timeout"))
	return connections.Limits{
		All: get("http.max_connections"), Unknown: get("http.max_unauthenticated"), Address: get("http.max_per_address"), Person: get("http.max_per_person"), BodyTime: body,
	}.Sized(monitor.MaxFiles())
}

// standbyLimits returns the limits of a standby node. It can't authenticate users, which
// the active node does, so all its clients count as unknown.
func standbyLimits(l connections.Limits) connections.Limits {
	l.Unknown = l.All * 3 / 4
	l.Address = max(l.Address, l.All/4)
	return l
}

// setLimits changes the limits of the HTTP listener. The control socket has limits of its
// own, of which one person may use at most half.
func (e edge) setLimits(l connections.Limits) {
	e.public.SetLimits(l)
	all := min(max(l.All/8, 64), 512)
	e.control.SetLimits(connections.Limits{All: all, Unknown: 8, Address: 8, Person: all / 2, BodyTime: l.BodyTime})
}

// clientOf returns the address to which a request is counted: the one that a trusted proxy
// forwards, else the peer's. The access rules check the rest of the request.
func (d *Daemon) clientOf(r *http.Request) netip.Addr {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	if o := d.hosts.Load(); o != nil && o.trusts(from.Addr()) {
		return o.client(from.Addr(), r.Header.Values("X-Forwarded-For"))
	}
	return from.Addr()
}

// proxyOf recognizes connections of trusted proxies, which carry requests of many clients.
func (d *Daemon) proxyOf(c net.Conn) (key string, bounded, known bool) {
	from, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if o := d.hosts.Load(); err != nil || o == nil || !o.trusts(from.Addr()) {
		return "", true, false
	}
	return "proxy " + from.Addr().String(), false, true
}

// ownerOf identifies the user at the other end of the control socket.
func ownerOf(c net.Conn) (key string, bounded, known bool) {
	uid, _, err := peer.IDs(c)
	if err != nil {
		return "", true, false
	}
	return "uid " + strconv.Itoa(int(uid)), uid != 0 && uid != uint32(os.Getuid()), true
}

// publicServer returns the server of the HTTP listener.
func (d *Daemon) publicServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler: asks.FailClosed(d.edge.public.Handler(h)), ConnContext: connections.ConnContext, ReadHeaderTimeout: headerTime, MaxHeaderBytes: 32 << 10, IdleTimeout: 2 * time.Minute,
		HTTP2:    &http.HTTP2Config{MaxReceiveBufferPerConnection: 256 << 10, MaxReceiveBufferPerStream: 256 << 10}, // unauthenticated clients use this memory, too
		ErrorLog: slog.NewLogLogger(d.log.Handler(), slog.LevelDebug),
	}
}

// controlServer returns the server of the control socket.
func (d *Daemon) controlServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler: d.edge.control.Handler(h), ReadHeaderTimeout: headerTime, MaxHeaderBytes: 32 << 10, ErrorLog: slog.NewLogLogger(d.log.Handler(), slog.LevelDebug),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return withPeer(connections.ConnContext(ctx, c), c)
		},
	}
}

// servePublic serves the HTTP listener, with TLS if there is a certificate.
func (d *Daemon) servePublic(s *http.Server, ln net.Listener) error {
	ln = d.edge.public.Listener(ln)
	if d.cert == nil {
		return s.Serve(ln)
	}
	s.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: d.cert.get}
	return s.ServeTLS(ln, "", "")
}

// serveControl serves the control socket.
func (d *Daemon) serveControl(s *http.Server, ln net.Listener) error {
	return s.Serve(d.edge.control.Listener(ln))
}

// signedIn reports authenticated requests to the listener, so that they count towards the
// person instead of the unauthenticated limit.
type signedIn struct{ store.Tokens }

// Authenticate implements [store.Tokens].
func (s signedIn) Authenticate(ctx context.Context, hash [32]byte) (store.Token, store.User, error) {
	t, u, err := s.Tokens.Authenticate(ctx, hash)
	if err == nil {
		connections.SignedIn(ctx, u.ID)
	}
	return t, u, err
}

// signedInProject is signedIn for project keys.
func signedInProject(use func(context.Context, [32]byte) (project.Key, project.Project, error)) func(context.Context, [32]byte) (project.Key, project.Project, error) {
	return func(ctx context.Context, hash [32]byte) (project.Key, project.Project, error) {
		k, of, err := use(ctx, hash)
		if err == nil {
			connections.SignedIn(ctx, "project "+of.ID)
		}
		return k, of, err
	}
}
