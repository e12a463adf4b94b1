package login_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"nize/mcp/mcptest"
	"nize/mcp/scan"
	"nize/mcp/upstream"
	"nize/mcp/upstream/authtest"
	"nize/mcp/upstream/login"
	"nize/mcp/upstream/oauth"
	"nize/store"
	"nize/store/database"
	"nize/store/database/databasetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var admin = store.Caller{User: "u-admin", Role: store.Admin, Surface: store.OnCLI}

const redirect = "http://127.0.0.1:19560/oauth/callback"

// world is a pool and logins over a real database, and a server behind a service.
type world struct {
	*testing.T
	db     *database.DB
	auth   *authtest.Service
	logins *login.Logins
	pool   *upstream.Pool
	client *http.Client
	log    bytes.Buffer
	skew   atomic.Int64 // of the clock of logins, in nanoseconds
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, db: databasetest.Open(t)}
	behind := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{{Name: "echo"}}, Stateless: true, JSON: true})
	w.auth = authtest.New(behind.HTTP())
	t.Cleanup(w.auth.Close)
	w.client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	log := slog.New(slog.NewTextHandler(&w.log, nil))
	w.open(log)
	headers := map[string]store.Value{"Authorization": {SecretKey: store.LoginName}}
	if _, err := w.db.PutServer(t.Context(), admin, store.Server{Name: "far", Transport: store.HTTP, URL: w.auth.MCP, Headers: headers}, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if strings.Contains(w.log.String(), "access-") || strings.Contains(w.log.String(), "refresh-") {
			t.Errorf("a token is in the log: %s", w.log.String())
		}
	})
	return w
}

// open makes pool and logins, as a nized that starts.
func (w *world) open(log *slog.Logger) {
	w.logins = login.New(login.Options{Credentials: w.db, Now: func() time.Time { return time.Now().Add(time.Duration(w.skew.Load())) }, Log: log,
		HTTP: func(context.Context, store.Server) *oauth.Client { return &oauth.Client{HTTP: w.client} }})
	w.pool = upstream.New(upstream.Options{Log: log, Servers: w.db, Tools: w.db, Credentials: w.db, Members: w.db, Gate: scan.Gate{}, Logins: w.logins})
	w.Cleanup(func() {
		if err := w.pool.Close(context.Background()); err != nil {
			w.Error(err)
		}
	})
}

func (w *world) server() store.Server {
	w.Helper()
	s, err := w.db.GetServer(w.Context(), "far")
	if err != nil {
		w.Fatal(err)
	}
	return s
}

// browse is what a person's browser does: it goes to the service and is sent back.
func (w *world) browse(address string) url.Values {
	w.Helper()
	resp, err := w.client.Get(address)
	if err != nil {
		w.Fatal(err)
	}
	defer resp.Body.Close()
	back, err := resp.Location()
	if err != nil || !strings.HasPrefix(back.String(), redirect) {
		w.Fatalf("the service answered %s, to %v", resp.Status, back)
	}
	return back.Query()
}

// begin begins a login.
func (w *world) begin(h store.Holder) (*oauth.Request, error) {
	return w.logins.Begin(w.Context(), admin, w.server(), h, login.Ask{Redirect: redirect})
}

// logIn signs somebody in.
func (w *world) logIn(h store.Holder) {
	w.Helper()
	r, err := w.begin(h)
	if err != nil {
		w.Fatal(err)
	}
	if err := w.finish(h, r, w.browse(r.URL())); err != nil {
		w.Fatal(err)
	}
}

func (w *world) finish(h store.Holder, r *oauth.Request, q url.Values) error {
	g, err := w.logins.Finish(w.Context(), admin, w.server(), r, q)
	if err != nil {
		return err
	}
	return w.pool.LogIn(w.Context(), admin, "far", h, func() error { return w.logins.Keep(w.Context(), admin, w.server(), h, g) })
}

func (w *world) call(user string) error {
	t, err := w.db.GetTool(w.Context(), "far:echo")
	if err != nil {
		return err
	}
	c := &store.Call{ID: store.NewID(time.Now()), Server: "far", Tool: "echo", Args: json.RawMessage(`{}`), Pin: t.Accepted}
	_, err = w.pool.Run(w.Context(), store.Caller{User: user, Surface: store.OnMCP}, c, nil)
	return err
}

// refused fails unless an error is that text, with the code unavailable.
func (w *world) refused(err error, want string) {
	w.Helper()
	var call *store.CallError
	if !errors.As(err, &call) || call.Code != store.CodeUnavailable || call.Message.String() != want {
		w.Errorf("error %v, want %q", err, want)
	}
}

func (w *world) state() upstream.State { return w.pool.Status()[0].State }

func (w *world) until(what string, ok func() bool) {
	w.Helper()
	late, tick := time.After(time.Minute), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-late:
			w.Fatalf("%s: not within a minute", what)
		case <-tick.C:
		}
	}
}

const notConnected = "far is not connected for you: /nize credentials connect far"

var shared = store.ParseHolder("")

func TestLogin(t *testing.T) {
	w := newWorld(t)
	if _, err := w.pool.Sync(t.Context(), admin, "far"); !errors.As(err, new(*oauth.LoginError)) {
		t.Fatalf("before: %v", err)
	}
	if got := w.state(); got != upstream.LoginNeeded {
		t.Errorf("state %s", got)
	}
	w.logIn(shared)
	if err := w.call("ann"); err != nil {
		t.Fatal(err)
	}
	c, err := w.db.GetCredential(t.Context(), shared.Key("far", store.LoginName))
	if err != nil || "http://"+c.Host != w.auth.URL {
		t.Errorf("the credential is for host %q, error %v", c.Host, err)
	}

	// One refresh where many calls need it, and the call goes on.
	w.auth.EndAccess()
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if err := w.call("ann"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := w.auth.Count("POST /token"); got != 2 {
		t.Errorf("%d requests for tokens, want the login and one refresh", got)
	}

	// A minute before its end it is refreshed without a 401; two processes' worth
	// of calls at once ask once.
	denied := w.auth.Count("POST /mcp")
	w.skew.Store(int64(59*time.Minute + time.Second))
	for range 8 {
		wg.Go(func() {
			if err := w.call("ann"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := w.auth.Count("POST /token"); got != 3 {
		t.Errorf("%d requests for tokens, want one more", got)
	}
	if got := w.auth.Count("POST /mcp") - denied; got != 8 {
		t.Errorf("%d requests for 8 calls", got)
	}

	// A clock that was set back, or far ahead, ends nothing.
	for _, skew := range []time.Duration{-100 * time.Hour, 1000 * time.Hour, 0} {
		w.skew.Store(int64(skew))
		if err := w.call("ann"); err != nil {
			t.Errorf("clock %v: %v", skew, err)
		}
	}
	w.skew.Store(0)

	// A grant that ended is a login that is lost, and nothing is asked with it again.
	w.auth.EndAll()
	w.refused(w.call("ann"), notConnected)
	asked := w.auth.Count("POST /token")
	for range 3 {
		w.refused(w.call("ann"), notConnected)
	}
	if got := w.auth.Count("POST /token"); got != asked {
		t.Errorf("%d requests with a token that is dead", got-asked)
	}
	w.until("the state", func() bool { return w.state() == upstream.LoginNeeded })
	if st := w.pool.Status()[0]; !slices.Equal(st.LoginLost, []string{""}) {
		t.Errorf("login lost: %q", st.LoginLost)
	}
	if _, down := w.pool.DownSince("far"); down {
		t.Error("it is told of as down")
	}
	registered := w.auth.Clients()
	w.logIn(shared)
	if err := w.call("ann"); err != nil {
		t.Error(err)
	}
	if got := w.auth.Clients(); got != registered {
		t.Error("nize registered again")
	}
}

// TestLoginNeededLater: a server that was registered without a login begins to turn
// calls away. If its well-known documents name who signs people in, that is what is
// said, however little its 401 says; otherwise it is a matter of credentials.
func TestLoginNeededLater(t *testing.T) {
	text := func(s string) *string { return &s }
	nowhere := func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasPrefix(r.URL.Path, "/.well-known/") || r.Method == http.MethodGet {
			http.NotFound(w, r)
			return true
		}
		return false
	}
	status := func(status int) func(w http.ResponseWriter, r *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/mcp" && r.Header.Get("Authorization") == "" {
				w.WriteHeader(status)
			}
			return r.URL.Path == "/mcp" && r.Header.Get("Authorization") == ""
		}
	}
	for name, c := range map[string]struct {
		change func(*authtest.Faults)
		login  bool
	}{
		"to the letter":     {func(f *authtest.Faults) {}, true},
		"no challenge":      {func(f *authtest.Faults) { f.Challenge = text("") }, true},
		"Bearer alone":      {func(f *authtest.Faults) { f.Challenge = text("Bearer") }, true},
		"junk":              {func(f *authtest.Faults) { f.Challenge = text(`"?,=`) }, true},
		"Basic":             {func(f *authtest.Faults) { f.Challenge = text(`Basic realm="x"`) }, true},
		"no body either":    {func(f *authtest.Faults) { f.Serve = status(401) }, true},
		"403":               {func(f *authtest.Faults) { f.Serve = status(403) }, true},
		"nobody signs in":   {func(f *authtest.Faults) { f.Challenge, f.Serve = text(""), nowhere }, false},
		"nobody, and Basic": {func(f *authtest.Faults) { f.Challenge, f.Serve = text(`Basic realm="x"`), nowhere }, false},
		"404":               {func(f *authtest.Faults) { f.Serve = status(404) }, false},
		"another one's issuer": {func(f *authtest.Faults) {
			f.Challenge = text("")
			f.Edit = func(name string, doc map[string]any) {
				if name == "server" {
					doc["issuer"] = "http://127.0.0.2:1"
				}
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.auth.Set(func(f *authtest.Faults) { f.Open = true })
			s := w.server()
			s.Headers = nil
			if _, err := w.db.PutServer(t.Context(), admin, s, s.Revision); err != nil {
				t.Fatal(err)
			}
			if _, err := w.pool.Sync(t.Context(), admin, "far"); err != nil {
				t.Fatal(err)
			}
			if err := w.call("ann"); err != nil {
				t.Fatal(err)
			}
			w.auth.Set(func(f *authtest.Faults) { f.Open = false; c.change(f) })
			before := w.auth.Count("GET /.well-known/oauth-authorization-server")
			for range 3 {
				err := w.call("ann")
				if c.login {
					w.refused(err, notConnected)
				} else if err == nil || strings.Contains(err.Error(), notConnected) {
					t.Errorf("error %v", err)
				}
			}
			if got := w.auth.Count("GET /.well-known/oauth-authorization-server") - before; got > 2 {
				t.Errorf("the well-known place was asked %d times", got)
			}
			if t.Failed() {
				return
			}
			if c.login {
				w.until("the state", func() bool { return w.state() == upstream.LoginNeeded })
			} else if got := w.state(); got == upstream.LoginNeeded {
				t.Errorf("state %s", got)
			}
		})
	}
}

// A fresh token that is refused, too, ends the login; a server that refuses
// everything does not have nize refresh for ever.
// A refresh that is refused before anything was sent ends the session, too.
func TestRefusedBeforeUse(t *testing.T) {
	w := newWorld(t)
	w.logIn(shared)
	if err := w.call("ann"); err != nil {
		t.Fatal(err)
	}
	w.auth.EndAll()
	w.skew.Store(int64(2 * time.Hour))
	w.refused(w.call("ann"), notConnected)
	w.until("the state", func() bool { return w.state() == upstream.LoginNeeded })
	w.logIn(shared)
	if err := w.call("ann"); err != nil {
		t.Errorf("after the next login: %v", err)
	}
}

func TestRefusesFreshTokens(t *testing.T) {
	w := newWorld(t)
	w.logIn(shared)
	w.auth.Set(func(f *authtest.Faults) { f.Deny = true })
	for range 3 {
		w.refused(w.call("ann"), notConnected)
	}
	if got := w.auth.Count("POST /token"); got != 2 {
		t.Errorf("%d requests for tokens, want the login and one refresh", got)
	}
	if g, err := w.logins.Show(t.Context(), "far", shared); err != nil || g.Lost == "" {
		t.Errorf("the login is %+v, error %v", g.Lost, err)
	}
}

// What a service that is down can't do is no lost login.
func TestServiceDown(t *testing.T) {
	w := newWorld(t)
	w.logIn(shared)
	w.auth.EndAccess()
	w.auth.Set(func(f *authtest.Faults) {
		f.Serve = func(rw http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/token" {
				return false
			}
			rw.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
	})
	if err := w.call("ann"); err == nil || strings.Contains(err.Error(), "not connected") {
		t.Errorf("error %v", err)
	}
	w.auth.Set(func(f *authtest.Faults) { f.Serve = nil })
	w.until("the call works again", func() bool { return w.call("ann") == nil })
}

// A rotated token is on disk before it is used: whoever is killed between the
// service's answer and its next request finds the newest token that it used.
func TestStoredBeforeUse(t *testing.T) {
	w := newWorld(t)
	w.logIn(shared)
	stored := func() string {
		g, err := w.logins.Show(t.Context(), "far", shared)
		if err != nil {
			t.Error(err)
		}
		return g.Access.Reveal()
	}
	before, wrong := stored(), atomic.Int32{}
	w.auth.Set(func(f *authtest.Faults) {
		f.Serve = func(_ http.ResponseWriter, r *http.Request) bool {
			if bearer, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); r.URL.Path == "/mcp" && bearer != before && bearer != stored() {
				wrong.Add(1)
			}
			return false
		}
	})
	w.auth.EndAccess()
	if err := w.call("ann"); err != nil {
		t.Fatal(err)
	}
	if stored() == before || wrong.Load() > 0 {
		t.Errorf("%d requests had a token that was not stored", wrong.Load())
	}
	// A call that is given up does not lose what the refresh gives.
	now := stored()
	ctx, cancel := context.WithCancel(t.Context())
	w.auth.Set(func(f *authtest.Faults) { f.Serve, f.Refreshed = nil, cancel })
	w.auth.EndAccess()
	c := &store.Call{ID: "c", Server: "far", Tool: "echo", Args: json.RawMessage(`{}`)}
	if tool, err := w.db.GetTool(t.Context(), "far:echo"); err == nil {
		c.Pin = tool.Accepted
	}
	if _, err := w.pool.Run(ctx, store.Caller{User: "ann"}, c, nil); err == nil {
		t.Error("the call that was given up has a result")
	}
	w.until("the refresh is kept", func() bool { return stored() != now })
	if w.auth.Families() != 1 {
		t.Error("the family ended")
	}
}

// Scopes that a server asks for later are named, kept, and asked for together.
func TestStepUp(t *testing.T) {
	w := newWorld(t)
	w.auth.Set(func(f *authtest.Faults) { f.Scopes = []string{"read"} })
	w.logIn(shared)
	w.auth.Set(func(f *authtest.Faults) { f.Scopes = []string{"write"} })
	w.refused(w.call("ann"), "far requires more scopes for this (write): /nize credentials connect far")
	if got := w.auth.Count("POST /token"); got != 1 {
		t.Errorf("%d requests for tokens, want none for rights that no refresh gives", got)
	}
	r, err := w.begin(shared)
	if err != nil || !slices.Equal(r.Scopes, []string{"write", "read"}) {
		t.Fatalf("scopes %q, error %v", r.Scopes, err)
	}
	if err := w.finish(shared, r, w.browse(r.URL())); err != nil {
		t.Fatal(err)
	}
	if err := w.call("ann"); err != nil {
		t.Error(err)
	}
}

// Each person's calls carry their own token, and nobody gets another's.
func TestOwnLogins(t *testing.T) {
	w := newWorld(t)
	s := w.server()
	s.Auth = store.AuthUserLogin
	if _, err := w.db.PutServer(t.Context(), admin, s, s.Revision); err != nil {
		t.Fatal(err)
	}
	w.logIn(shared) // for the list
	w.refused(w.call("ann"), notConnected)
	w.logIn(store.Holder{Scope: "user", Owner: "ann"})
	if err := w.call("ann"); err != nil {
		t.Fatal(err)
	}
	w.refused(w.call("bob"), notConnected)
	// Forgotten, it is revoked at the service, and nobody else's.
	if revoked, err := w.logins.Forget(t.Context(), admin, w.server(), store.Holder{Scope: "user", Owner: "ann"}); !revoked || err != nil {
		t.Errorf("revoked %v, error %v", revoked, err)
	}
	if got := w.auth.Families(); got != 1 {
		t.Errorf("%d grants live, want the shared one", got)
	}
	w.refused(w.call("ann"), notConnected)
}

// Another issuer than before: neither client nor scopes nor tokens go there.
func TestOtherIssuer(t *testing.T) {
	w := newWorld(t)
	w.auth.Set(func(f *authtest.Faults) { f.Scopes = []string{"read"} })
	w.logIn(shared)
	other := authtest.New(w.auth.MCP)
	t.Cleanup(other.Close)
	w.auth.Set(func(f *authtest.Faults) {
		f.Scopes = []string{"write"}
		f.Edit = func(name string, doc map[string]any) {
			if name == "resource" {
				doc["authorization_servers"] = []string{other.URL}
			}
		}
	})
	r, err := w.begin(shared)
	if err != nil {
		t.Fatal(err)
	}
	if r.Service.Issuer != other.URL || !slices.Equal(r.Scopes, []string{"write"}) {
		t.Errorf("issuer %s, scopes %q", r.Service.Issuer, r.Scopes)
	}
	if other.Clients() != 1 {
		t.Errorf("%d clients at the other issuer, want one of its own", other.Clients())
	}
}

// A login is sent to its server's host alone.
func TestOtherHost(t *testing.T) {
	w := newWorld(t)
	w.logIn(shared)
	seen := atomic.Bool{}
	thief := authtest.New(w.auth.MCP)
	t.Cleanup(thief.Close)
	thief.Set(func(f *authtest.Faults) {
		f.Serve = func(_ http.ResponseWriter, r *http.Request) bool {
			seen.Store(seen.Load() || r.Header.Get("Authorization") != "")
			return false
		}
	})
	s := w.server()
	s.URL = thief.MCP
	if _, err := w.db.PutServer(t.Context(), admin, s, s.Revision); err != nil {
		t.Fatal(err)
	}
	if _, err := w.pool.Sync(t.Context(), admin, "far"); err == nil || !strings.Contains(err.Error(), "log in again: nizectl servers login far") || seen.Load() {
		t.Errorf("error %v, a token arrived: %v", err, seen.Load())
	}
}

// An admin's word that a service without PKCE in its document may be used counts for
// that service, at every later login, and for no other.
func TestPKCEUnlisted(t *testing.T) {
	w := newWorld(t)
	unlisted := func(name string, doc map[string]any) { delete(doc, "code_challenge_methods_supported") }
	w.auth.Set(func(f *authtest.Faults) { f.Edit = unlisted })
	if _, err := w.begin(shared); err == nil || !strings.Contains(err.Error(), "--pkce-unlisted") {
		t.Fatalf("without a word: %v", err)
	}
	r, err := w.logins.Begin(t.Context(), admin, w.server(), shared, login.Ask{Redirect: redirect, PKCEUnlisted: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.finish(shared, r, w.browse(r.URL())); err != nil { // the service checks the verifier
		t.Fatal(err)
	}
	if _, err := w.begin(store.Holder{Scope: "user", Owner: "ann"}); err != nil {
		t.Errorf("the next login: %v", err)
	}
	other := authtest.New(w.auth.MCP)
	t.Cleanup(other.Close)
	other.Set(func(f *authtest.Faults) { f.Edit = unlisted })
	w.auth.Set(func(f *authtest.Faults) {
		f.Edit = func(name string, doc map[string]any) {
			if name == "resource" {
				doc["authorization_servers"] = []string{other.URL}
			}
		}
	})
	if _, err := w.begin(shared); err == nil || !strings.Contains(err.Error(), "--pkce-unlisted") || other.Clients() != 0 {
		t.Errorf("another service: %v, %d clients", err, other.Clients())
	}
}

// TestNoResource: a service that refuses to be told whom a token is for is used by an
// admin's word, which stays for that service and for no other. Its token goes to the
// server's host alone, as any.
func TestNoResource(t *testing.T) {
	w := newWorld(t)
	w.auth.Set(func(f *authtest.Faults) { f.Plain = true })
	r, err := w.begin(shared)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.finish(shared, r, w.browse(r.URL())); err == nil || !strings.Contains(err.Error(), "--no-resource") {
		t.Fatalf("without a word: %v", err)
	}
	r, err = w.logins.Begin(t.Context(), admin, w.server(), shared, login.Ask{Redirect: redirect, NoResource: true})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(r.URL(), "resource=") {
		t.Errorf("the browser's address: %s", r.URL())
	}
	if err := w.finish(shared, r, w.browse(r.URL())); err != nil {
		t.Fatal(err)
	}
	w.auth.EndAccess()
	if err := w.call("ann"); err != nil { // a refresh names none, either
		t.Errorf("after a refresh: %v", err)
	}
	ann := store.Holder{Scope: "user", Owner: "ann"}
	if r, err = w.begin(ann); err != nil || strings.Contains(r.URL(), "resource=") {
		t.Errorf("the next login: %v, %+v", err, r)
	}
	other := authtest.New(w.auth.MCP)
	t.Cleanup(other.Close)
	w.auth.Set(func(f *authtest.Faults) {
		f.Edit = func(name string, doc map[string]any) {
			if name == "resource" {
				doc["authorization_servers"] = []string{other.URL}
			}
		}
	})
	if r, err = w.begin(shared); err != nil || !strings.Contains(r.URL(), "resource=") {
		t.Errorf("another service: %v", err)
	}
}
