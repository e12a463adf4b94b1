package daemon

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"nize/bots"
	"nize/daemon/api"
	"nize/daemon/asks"
	"nize/daemon/chatclient"
	"nize/daemon/failure"
	"nize/daemon/programs"
	"nize/daemon/rounds"
	"nize/daemon/signin"
	"nize/daemon/standby"
	"nize/store"
)

// httpHandler returns the handler of the HTTP listener. Every route is behind the check of
// Host and Origin.
func (d *Daemon) httpHandler() http.Handler {
	mux := http.NewServeMux()
	gateway := d.whileEnabled(keepAlive(d.mcp.Handler(), d.ops.signin.Challenge))
	mux.Handle("/mcp", gateway)
	mux.Handle("/mcp/{$}", gateway) // some clients add a trailing slash and don't follow redirects
	login := d.ops.signin.Handler()
	for _, path := range []string{"/.well-known/", "/oauth/", "/login", "/login/"} {
		mux.Handle(path, login)
	}
	company := d.ops.company.Handler()
	mux.Handle("/login/oidc", company)
	mux.Handle("/login/oidc/", company)
	mux.Handle("/scim/v2/", d.ops.company.SCIM())
	for _, bot := range d.bots.All() {
		if receiver, ok := bot.(bots.Receiver); ok {
			mux.Handle("/"+string(bot.Surface())+"/", receiver.Handler())
		}
	}
	mux.Handle("/auth/", d.ownTokensHandler())
	routes := slices.Concat(
		d.programs.routes(d.streams.Count, d.bearer, d.ops.projects.Find),
		d.ops.asks.Routes(asks.Options{Caller: d.askCaller, Fail: rounds.Form.Write, Key: programs.ProjectKey, Log: d.log.With("component", "asks")}),
		d.ops.chatClient.Routes(chatclient.Options{Caller: d.bearer, Listen: d.streams.Enter, Speak: speaker, Closing: d.closing, Log: d.log}),
	)
	for i, r := range routes {
		routes[i].Handler = keepAlive(r.Handler, nil)
	}
	mountDocumented(mux, routes)
	mux.Handle("POST "+asks.HookPath, d.ops.asks.Hook(d.askCaller))
	connecting := d.ops.connect.Handler()
	for _, path := range []string{"/connect/", "/oauth/callback", "/oauth/client.json"} {
		mux.Handle(path, connecting)
	}
	mux.Handle("GET /metrics", d.metricsHandler())
	page := d.ops.browser.Handler()
	mux.Handle("/app/", keepAlive(page, nil))
	mux.Handle("/w/", page)
	toPage := func(path string, otherwise http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if d.ops.browser.Serves(r) {
				http.Redirect(w, r, path, http.StatusFound)
				return
			}
			otherwise(w, r)
		}
	}
	mux.HandleFunc("GET /{$}", toPage("/app/", frontPage))
	mux.HandleFunc("GET /usage", toPage("/app/usage", http.NotFound))
	return d.withHealth(d.holder.Handler(d.guardOrigin(mux)))
}

// withHealth serves health checks without the Host check, since load balancers send any
// Host. Their responses contain nothing private, as on a standby node.
func (d *Daemon) withHealth(next http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { plain(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		switch {
		case !d.ready.Load():
			failure.Text.Write(w, &api.Error{Code: "not_ready", Message: "starting or stopping"})
		case d.db.Term().Err() != nil:
			failure.Text.Write(w, &api.Error{Code: "no_database", Message: store.ErrNoDatabase.Error(), Retry: 1})
		default:
			plain(w, "ready")
		}
	})
	mux.Handle("/", next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if o := d.hosts.Load(); o != nil && o.viewsHost(r) != "" { // this host serves only frames
			next.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// newHolder returns a Holder, which holds requests while another node may own the database.
func (d *Daemon) newHolder() *standby.Holder {
	return &standby.Holder{Term: d.db.Term, Refuse: func(w http.ResponseWriter, r *http.Request, begun bool) {
		why := store.ErrNoDatabase.Error()
		if begun {
			why = "the database can't be reached, and it is unknown whether this request took effect: check before you send it again"
		}
		form := failure.Text
		switch {
		case r.Host == api.Host:
			form = failure.Control
		case isDocumented(r.URL.Path):
			form = rounds.Form
		case strings.HasPrefix(r.URL.Path, "/app/"), strings.HasPrefix(r.URL.Path, "/auth/"):
			form = failure.HTTP
		}
		form.Write(w, &api.Error{Code: "no_database", Message: why, Retry: 1})
	}}
}

// whileEnabled serves the MCP endpoint if mcp.enabled is true.
func (d *Daemon) whileEnabled(endpoint http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !store.GetBool(d.config, "", "mcp.enabled") {
			failure.Text.Write(w, &api.Error{Code: "not_found", Message: "the MCP endpoint is turned off here (mcp.enabled)"})
			return
		}
		endpoint.ServeHTTP(w, r)
	})
}

// standbyHandler returns the handler of a standby node. It serves health and metrics itself
// and forwards everything else.
func standbyHandler(o *hostCheck, forward *standby.Forwarder) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { plain(w, "standing by") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := forward.Wrong(); err != nil {
			failure.Text.Write(w, &api.Error{Code: "not_ready", Message: err.Error()})
			return
		}
		plain(w, "standing by")
	})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		plain(w, "# HELP nize_standing_by 1 if another node is active on the database.\n# TYPE nize_standing_by gauge\nnize_standing_by 1")
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		out, err := o.checkForwarding(r)
		if err != nil {
			failure.Text.Write(w, &api.Error{Code: "refused", Message: err.Error()})
			return
		}
		// Cookies and sign-in redirects are bound to an origin, and this node's own origin
		// no longer works once it becomes active or stops.
		if out.Host == standby.Host && !wasForwarded(out) && signsIn(r.URL.Path) {
			failure.Text.Write(w, &api.Error{Code: "refused", Message: "this nized is a standby, and its own address is not for signing in: " + o.elsewhere()})
			return
		}
		forward.ServeHTTP(w, out)
	})
	return mux
}

func signsIn(path string) bool {
	return path == "/login" || slices.ContainsFunc([]string{"/app/", "/login/", "/oauth/authorize", "/w/"}, func(at string) bool { return strings.HasPrefix(path, at) })
}

// elsewhere returns a hint where to sign in while this node is a standby.
func (o *hostCheck) elsewhere() string {
	if o.public != nil {
		return "use " + o.public.String()
	}
	return "use the active node, or set the same public_url on all nodes"
}

// metricsHandler serves the metrics to this machine, and to clients with a token for the
// API.
func (d *Daemon) metricsHandler() http.Handler {
	answer := d.metrics.Handler()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !fromThisMachine(r) {
			if _, err := d.bearer(r); err != nil {
				failure.HTTP.Write(w, &api.Error{Code: "invalid_token", Message: err.Error()})
				return
			}
		}
		answer.ServeHTTP(w, r)
	})
}

// forwarding are the headers that mark a request as forwarded by a proxy.
var forwarding = []string{"Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip"}

func wasForwarded(r *http.Request) bool {
	return slices.ContainsFunc(forwarding, func(name string) bool { return len(r.Header.Values(name)) > 0 })
}

// fromThisMachine reports whether a request came over loopback and not through a proxy on
// this machine, which would make all clients look local. A proxy is recognized by a Host
// other than loopback's, or by forwarding headers.
func fromThisMachine(r *http.Request) bool {
	if wasForwarded(r) {
		return false
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !peer.Addr().Unmap().IsLoopback() {
		return false
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// frontPage serves a person who opens the address in a browser.
func frontPage(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	_, _ = io.WriteString(w, front) // the client has disconnected
}

const front = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>nize</title>
<style>:root { color-scheme: light dark } body { font: 1rem/1.5 system-ui, sans-serif; max-width: 38rem; margin: 3rem auto; padding: 0 1rem }</style>
<h1>nize</h1>
<p>This is a nize daemon: an assistant that lets a team use its tools from a chat. It is running.</p>
<p>MCP clients connect to <code>/mcp</code> at this address, with a token: <code>nizectl tokens create NAME</code> makes one, <code>nizectl connect</code> sets a client up.</p>
<p>Programs and chat clients use the API <a href="/docs">documented here</a>.</p>
<p>People talk to it with <code>nizectl chat</code>, or where the team chats. <code>nizectl status</code> shows its status.</p>
</html>
`

func plain(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte(text + "\n")) // the client has disconnected
}

// guardOrigin applies the access rules, and rejects a token in a URL.
func (d *Daemon) guardOrigin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		form := failure.Text
		if isDocumented(r.URL.Path) {
			form = rounds.Form
		}
		hosts := d.hosts.Load()
		if host := hosts.viewsHost(r); host != "" {
			d.ops.browser.ServeFrame(w, r, host) // this host serves nothing else
			return
		}
		r, err := hosts.check(signin.WithoutOrigin(r))
		if err != nil {
			form.Write(w, &api.Error{Code: "refused", Message: err.Error()})
			return
		}
		if q := r.URL.Query(); q.Has("access_token") || q.Has("token") {
			form.Write(w, &api.Error{Code: "token_in_url", Message: "a token in a URL is not taken; send it as Authorization: Bearer"})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// silence is how long an event stream may be idle before a comment is sent, so that proxies
// in between keep it open.
const silence = 15 * time.Second

// keepAlive sends comments on idle event streams. refuse, which may be nil, adds headers to
// error responses.
func keepAlive(next http.Handler, refuse func(h http.Header, r *http.Request, status int)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		k := &keeper{ResponseWriter: w, request: r, refuse: refuse}
		defer k.stop()
		next.ServeHTTP(k, r)
	})
}

// keeper is a ResponseWriter that detects event streams.
type keeper struct {
	http.ResponseWriter
	request *http.Request
	refuse  func(http.Header, *http.Request, int)

	mu      sync.Mutex // guards all writes once the timer runs
	timer   *time.Timer
	stopped bool
	whole   bool // the last write ended an event
}

func (k *keeper) Unwrap() http.ResponseWriter { return k.ResponseWriter }

func (k *keeper) Flush() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if f, ok := k.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

func (k *keeper) WriteHeader(status int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if status >= http.StatusBadRequest && k.refuse != nil {
		k.refuse(k.Header(), k.request, status)
	}
	k.ResponseWriter.WriteHeader(status)
	k.watchLocked()
}

func (k *keeper) Write(b []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	n, err := k.ResponseWriter.Write(b)
	k.whole = bytes.HasSuffix(b, []byte("\n\n"))
	if k.timer == nil {
		k.watchLocked()
	} else {
		k.timer.Reset(silence)
	}
	return n, err
}

// watchLocked starts the timer for an event stream; k.mu is held.
func (k *keeper) watchLocked() {
	if k.timer != nil || k.stopped || !strings.HasPrefix(k.Header().Get("Content-Type"), "text/event-stream") {
		return
	}
	k.whole = true
	k.timer = time.AfterFunc(silence, k.comment)
}

func (k *keeper) comment() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stopped {
		return
	}
	if k.whole {
		if _, err := k.ResponseWriter.Write([]byte(": still here\n\n")); err != nil {
			return // the client has disconnected; its handler will notice
		}
		if f, ok := k.ResponseWriter.(http.Flusher); ok {
			f.Flush()
		}
	}
	k.timer.Reset(silence)
}

func (k *keeper) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stopped = true
	if k.timer != nil {
		k.timer.Stop()
	}
}
