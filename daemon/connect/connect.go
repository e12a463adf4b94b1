// Package connect signs people in to MCP servers, and to services of declared credentials,
// as an OAuth client.
//
//	nizectl servers login · nizectl credentials connect · /nize credentials connect
//	  └─ Begin ─▶ a flow of ten minutes ─▶ ORIGIN/connect/{flow}#SECRET
//	       the page shows what is connected, for whom, and who requested it; it
//	       continues once, with the secret, and for a person's own login only in
//	       their own browser session; it sets a cookie
//	  └─ the sign-in service ─▶ ORIGIN/oauth/callback
//	       ignored unless the cookie and the state match
//	  └─ the login is stored, and the server's sessions are reopened
//
// Flows are kept in memory, since they contain secrets that must not be stored; a flow that
// is lost in a restart must be started again. Package mcp/upstream/login keeps the
// resulting logins and implements OAuth. At each step the flow checks again that the person
// is not disabled, that an admin is still one, and that the server still exists.
package connect

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"nize/daemon/api"
	"nize/daemon/control"
	"nize/daemon/mux"
	"nize/mcp/upstream"
	"nize/mcp/upstream/login"
	"nize/mcp/upstream/oauth"
	"nize/store"
	"nize/store/credential"
)

// Options are Connect's dependencies.
type Options struct {
	Logins *login.Logins
	// Declared has the declared credentials; daemon/credentials implements it.
	Declared interface {
		WhoSignsIn(ctx context.Context, by store.Caller, id, owner string) (credential.Declaration, store.Holder, error)
		Reconnect(ctx context.Context, id string, h store.Holder) error
	}
	Servers *control.Servers
	Pool    *upstream.Pool
	Users   interface {
		GetUser(ctx context.Context, id string) (store.User, error)
	}
	// Origin returns the origin for browsers; public is true if it is the https origin that
	// everyone can reach.
	Origin func() (origin string, public bool)
	// Person returns the user who is signed in to the browser that sent a request.
	Person func(*http.Request) (store.Caller, bool)
	// Tell sends a private message to a person in a chat.
	Tell func(ctx context.Context, user string, at store.Surface, id string, since time.Time, text store.Text) (told bool, err error)
	Now  func() time.Time
	Log  *slog.Logger
}

const (
	flowTime = 10 * time.Minute
	maxFlows = 200 // concurrent
	maxTries = 5   // with a wrong secret
)

// Connect keeps the flows. It is safe for concurrent use.
type Connect struct {
	opt Options

	mu    sync.Mutex
	flows map[string]*flow
}

// Mount registers the operations.
func (c *Connect) Mount(m *mux.Mux) {
	mux.Handle(m, api.LoginDeclared, c.BeginDeclared)
	mux.Handle(m, api.LoginServer, c.Begin)
	mux.Handle(m, api.GetLogin, c.Show)
	mux.Handle(m, api.ForgetLogin, c.Forget)
	mux.Handle(m, api.GetLoginFlow, c.Follow)
	mux.Handle(m, api.FinishLogin, c.FinishPasted)
}

// flow is a login in progress. Fields that Begin doesn't set are guarded by mu.
type flow struct {
	id      string
	by      store.Caller            // who requested it
	server  store.Server            // for a declared credential, it has the credential's name
	service *credential.Declaration // nil for a server
	holder  store.Holder
	forWhom string // for display
	request *oauth.Request
	secret  [sha256.Size]byte
	expires time.Time

	tries  int
	cookie [sha256.Size]byte // of the browser that continued; zero before that
	state  api.LoginState
	taken  bool // a callback was accepted; no other one is
	why    string
}

// New returns a Connect without flows.
func New(opt Options) *Connect { return &Connect{opt: opt, flows: map[string]*flow{}} }

// addresses returns the redirect URI, and the URL of nize's client metadata document, "" if
// no service could fetch it.
func (c *Connect) addresses() (redirect, document string, err error) {
	origin, public := c.opt.Origin()
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "https" && !oauth.IsLoopback(u.Hostname()) {
		return "", "", store.Mark(fmt.Errorf("signing in needs an address to which a browser can return: set --public-url to the https address of nize"), store.ErrRefused)
	}
	if public && u.Scheme == "https" {
		document = origin + documentPath
	}
	return origin + callbackPath, document, nil
}

// holder returns the owner of the login, and a text that names it.
func (c *Connect) holder(ctx context.Context, by store.Caller, user, team string) (h store.Holder, text string, err error) {
	switch {
	case user != "" && team != "":
		return h, "", fmt.Errorf("%w login: give a user or a team, not both", store.ErrInvalid)
	case team != "" && !by.IsAdmin():
		return h, "", store.Mark(errors.New("only admins may connect a server for a team"), store.ErrRefused)
	case team != "":
		return store.Holder{Scope: "team", Owner: team}, "team:" + team, nil
	case user == "" && by.IsAdmin():
		return store.ParseHolder(""), "shared", nil
	}
	id, err := c.opt.Servers.Directory.Owner(ctx, by, user)
	if err != nil {
		return h, "", err
	}
	u, err := c.opt.Users.GetUser(ctx, id)
	if err != nil {
		return h, "", fmt.Errorf("reading user %s: %w", id, err)
	}
	return store.Holder{Scope: "user", Owner: id}, "user:" + u.Name, nil
}

// Begin starts a login.
func (c *Connect) Begin(ctx context.Context, by store.Caller, req api.LoginServerRequest) (none api.LoginFlow, err error) {
	server, err := c.opt.Servers.Find(ctx, by, req.Name)
	if err != nil {
		return none, err
	}
	if server.URL == "" { // members don't see the URL
		if server, err = c.opt.Servers.Store.GetServer(ctx, server.Name); err != nil {
			return none, err
		}
	}
	h, forWhom, err := c.holder(ctx, by, req.User, req.Team)
	if err != nil {
		return none, err
	}
	switch {
	case !by.IsAdmin() && (req.ClientID != "" || len(req.Scopes) > 0):
		return none, store.Mark(errors.New("only admins may set the client and the scopes with which nize signs in"), store.ErrRefused)
	case !by.IsAdmin() && req.PKCEUnlisted:
		return none, store.Mark(errors.New("only admins may accept a sign-in service that does not list PKCE"), store.ErrRefused)
	case !by.IsAdmin() && req.NoResource:
		return none, store.Mark(errors.New("only admins may leave out the resource that a token is for"), store.ErrRefused)
	case !by.IsAdmin() && server.Headers["Authorization"].SecretKey != store.LoginName:
		return none, store.Mark(fmt.Errorf("%s is not set up for logins: an admin runs nizectl servers login %s first", server.Name, server.Name), store.ErrRefused)
	case h.Scope == "user" && (server.Auth == store.AuthTeam || server.Auth == store.AuthTeamLogin):
		return none, store.Mark(fmt.Errorf("%s is called with the login of a team (auth %s), never with a person's own", server.Name, server.Auth), store.ErrRefused)
	}
	if err := mayPaste(by, h, forWhom, req.Paste); err != nil {
		return none, err
	}
	redirect, document, err := c.addresses()
	if err != nil {
		return none, err
	}
	if server.Enterprise && h.Scope != "team" {
		flow, err := c.join(ctx, by, server, h, forWhom, login.Ask{ClientID: req.ClientID, Secret: req.ClientSecret.Secret, Redirect: redirect, Document: document})
		if !errors.Is(err, login.ErrNotAnnounced) {
			return flow, err
		}
		if by.IsAdmin() && h.Scope == "system" {
			return none, &api.Error{Code: "refused", Message: store.ErrText(err) + "; nizectl servers edit " + server.Name + " --enterprise=false makes people sign in there themselves"}
		}
	}
	f := &flow{id: oauth.RandomText()[:22], by: by, server: server, holder: h, forWhom: forWhom, expires: c.opt.Now().Add(flowTime), state: api.LoginWaiting}
	ask := login.Ask{ClientID: req.ClientID, Secret: req.ClientSecret.Secret, Scopes: req.Scopes, Redirect: redirect, Document: document, PKCEUnlisted: req.PKCEUnlisted, NoResource: req.NoResource}
	if f.request, err = c.opt.Logins.Begin(ctx, by, server, h, ask); err != nil {
		if errors.Is(err, store.ErrRefused) || errors.Is(err, store.ErrInvalid) {
			return none, err
		}
		return none, &api.Error{Code: "unavailable", Message: store.ErrText(err)}
	}
	if by.IsAdmin() {
		if err := c.useLogins(ctx, by, server); err != nil {
			return none, err
		}
	}
	return c.start(f, req.Paste)
}

// mayPaste returns an error if someone else's login would be finished with a pasted URL.
func mayPaste(by store.Caller, h store.Holder, forWhom string, paste bool) error {
	if paste && h.Scope == "user" && h.Owner != by.User {
		return store.Mark(fmt.Errorf("%w login: only the person can finish the login of %s", store.ErrInvalid, forWhom), store.ErrRefused)
	}
	return nil
}

// start stores a flow that has its authorization request, and returns its link; if the
// answer will be pasted, the link is the sign-in service's own.
func (c *Connect) start(f *flow, paste bool) (none api.LoginFlow, err error) {
	secret := oauth.RandomText()
	f.secret = sha256.Sum256([]byte(secret))
	if err := c.add(f); err != nil {
		return none, err
	}
	c.opt.Servers.Store.AddEvent(f.by, store.Event{Kind: "server.login", Subject: f.server.Name})
	view := c.view(f)
	origin, _ := c.opt.Origin()
	if view.URL = origin + pagePath + f.id + "#" + secret; paste {
		view.URL = f.request.URL()
	}
	return view, nil
}

// WantsLogin reports whether a server that the caller may see is called with logins.
func (c *Connect) WantsLogin(ctx context.Context, by store.Caller, name string) (bool, error) {
	if err := c.opt.Servers.Check(ctx, by, name); err != nil {
		return false, nil // other commands report the error
	}
	server, err := c.opt.Servers.Store.GetServer(ctx, name)
	return err == nil && server.Headers["Authorization"].SecretKey == store.LoginName, err
}

// useLogins makes a server be called with logins from now on.
func (c *Connect) useLogins(ctx context.Context, by store.Caller, server store.Server) error {
	if server.Headers["Authorization"].SecretKey == store.LoginName {
		return nil
	}
	server.Headers = control.WithLogin(server.Headers)
	// Ignore that it can't be listed yet; its state shows that.
	_, err := c.opt.Servers.Replace(ctx, by, server, server.Revision)
	return err
}

// add stores a flow, and drops expired ones.
func (c *Connect) add(f *flow) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, old := range c.flows {
		if !c.opt.Now().Before(old.expires) {
			delete(c.flows, id)
		}
	}
	if len(c.flows) >= maxFlows {
		return store.Mark(fmt.Errorf("%d logins are already in progress; they expire within ten minutes", maxFlows), store.ErrRefused)
	}
	c.flows[f.id] = f
	return nil
}

// find returns a flow that has not expired.
func (c *Connect) find(id string) (*flow, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f, ok := c.flows[id]
	return f, ok && c.opt.Now().Before(f.expires)
}

// view returns a flow without its secrets.
func (c *Connect) view(f *flow) api.LoginFlow {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := api.LoginFlow{ID: f.id, Server: f.server.Name, For: f.forWhom, Issuer: f.request.Service.Issuer, Scopes: append([]string{}, f.request.Scopes...), Expires: f.expires, State: f.state, Error: f.why}
	if f.state == api.LoginWaiting && !c.opt.Now().Before(f.expires) {
		v.State, v.Error = api.LoginFailed, "no sign-in within ten minutes"
	}
	return v
}

// errNoFlow is returned for a flow that doesn't exist, or that belongs to someone else.
var errNoFlow = fmt.Errorf("login %w: it has ended; begin again", store.ErrNotFound)

// Follow returns the progress of one of the caller's flows.
func (c *Connect) Follow(_ context.Context, by store.Caller, req api.LoginFlowRequest) (api.LoginFlow, error) {
	c.mu.Lock()
	f, ok := c.flows[req.Flow]
	c.mu.Unlock()
	if !ok || f.by.User != by.User || f.server.Name != req.Name {
		return api.LoginFlow{}, errNoFlow
	}
	return c.view(f), nil
}

// FinishPasted completes a login with the URL at which a browser ended that can't reach
// nize. The caller at the control socket is trusted in place of the cookie.
func (c *Connect) FinishPasted(ctx context.Context, by store.Caller, req api.FinishLoginRequest) (none api.LoginFlow, err error) {
	f, ok := c.find(req.Flow)
	if !ok || f.by.User != by.User || f.server.Name != req.Name {
		return none, errNoFlow
	}
	u, err := url.Parse(req.Address.Reveal())
	if err != nil || u.Query().Get("state") != f.request.State {
		return none, fmt.Errorf("%w address: it is not the one at which this login ended; that has the form %s?code=…&state=…", store.ErrInvalid, callbackPath)
	}
	if f.holder.Scope == "user" && f.holder.Owner != by.User {
		return none, errNoFlow
	}
	if !c.take(f) {
		return none, errNoFlow
	}
	if err := c.finish(ctx, f, u.Query()); err != nil {
		return none, &api.Error{Code: "unavailable", Message: store.ErrText(err)}
	}
	return c.view(f), nil
}

// take claims a flow for finishing; it returns false if it was already claimed.
func (c *Connect) take(f *flow) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.taken {
		return false
	}
	f.taken = true
	return true
}

// stillAllowed checks again who requested the login, for whom, and the server.
func (c *Connect) stillAllowed(ctx context.Context, f *flow) error {
	ask, err := c.opt.Users.GetUser(ctx, f.by.User)
	if err != nil || ask.State != store.Active || f.by.IsAdmin() && ask.Role != store.Admin {
		return store.Mark(store.Errorf("the person who requested this may no longer do it"), store.ErrRefused)
	}
	if f.holder.Scope == "user" {
		if u, err := c.opt.Users.GetUser(ctx, f.holder.Owner); err != nil || u.State != store.Active {
			return store.Mark(store.Errorf("the person for whom this was requested was disabled"), store.ErrRefused)
		}
	}
	if f.service != nil {
		d, h, err := c.opt.Declared.WhoSignsIn(ctx, f.by, f.service.ID, f.holder.Owner)
		if err != nil || h != f.holder || !d.OAuth.SameClient(f.service.OAuth) {
			return store.Mark(store.Errorf("the credential's declaration was changed or removed meanwhile; start again"), store.ErrRefused)
		}
		return nil
	}
	now, err := c.opt.Servers.Store.GetServer(ctx, f.server.Name)
	if err != nil || now.URL != f.server.URL || now.Disabled {
		return store.Mark(store.Errorf("the server was changed or removed meanwhile; start again"), store.ErrRefused)
	}
	return nil
}

// finish exchanges an answer for a login. It is called once per flow.
func (c *Connect) finish(ctx context.Context, f *flow, answer url.Values) (err error) {
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if f.state = api.LoginDone; err != nil {
			f.state, f.why = api.LoginFailed, store.Line(store.ErrText(err))
		}
	}()
	if err := c.stillAllowed(ctx, f); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx) // a code can be redeemed only once, so its tokens must be stored even if the browser disconnects
	g, err := c.opt.Logins.Finish(ctx, f.by, f.server, f.request, answer)
	if err != nil {
		return err
	}
	if err := c.stillAllowed(ctx, f); err != nil {
		return err
	}
	if f.service != nil {
		return c.keepDeclared(ctx, f, g)
	}
	stored := false
	err = c.opt.Pool.LogIn(ctx, f.by, f.server.Name, f.holder, func() error {
		err := c.opt.Logins.Keep(ctx, f.by, f.server, f.holder, g)
		stored = err == nil
		return err
	})
	if stored {
		if err != nil { // the login is valid; servers list shows other problems
			c.opt.Log.Warn("listing a server after a login", "server", f.server.Name, "err", err)
		}
		c.tell(ctx, f)
		return c.opt.Servers.Gateway.Catalog.Refresh(ctx, f.server.Name)
	}
	return err
}

// tellTime is how long a browser's request waits for a chat.
const tellTime = 5 * time.Second

// tell reports the success in the chat where the login was requested, since the browser may
// be closed by then.
func (c *Connect) tell(ctx context.Context, f *flow) {
	if f.by.Surface == store.OnCLI {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, tellTime)
	defer cancel()
	if _, err := c.opt.Tell(ctx, f.by.User, f.by.Surface, "login/"+f.id, time.Time{}, store.Textf("%s is connected", f.name())); err != nil {
		c.opt.Log.Warn("reporting that a server is connected", "server", f.server.Name, "err", err)
	}
}

// Show returns a login.
func (c *Connect) Show(ctx context.Context, by store.Caller, req api.LoginRequest) (none api.Login, err error) {
	server, h, forWhom, err := c.named(ctx, by, req)
	if err != nil {
		return none, err
	}
	v := api.Login{Server: server.Name, For: forWhom, State: "not connected"}
	g, err := c.opt.Logins.Show(ctx, server.Name, h)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return v, nil
	case err != nil:
		return none, err
	}
	v.State, v.Reason, v.Issuer, v.Client, v.Scopes, v.Wanted = "connected", g.Lost, g.Service.Issuer, g.Client.ID, g.Scopes, g.Wanted
	v.Since, v.Expires, v.Renews = g.Since, g.Expires, !g.Refresh.IsZero()
	if g.Lost != "" {
		v.State = string(upstream.LoginNeeded)
	}
	return v, nil
}

func (c *Connect) named(ctx context.Context, by store.Caller, req api.LoginRequest) (server store.Server, h store.Holder, forWhom string, err error) {
	if server, err = c.opt.Servers.Find(ctx, by, req.Name); err == nil {
		h, forWhom, err = c.holder(ctx, by, req.User, req.Team)
	}
	return server, h, forWhom, err
}

// Forget deletes a login and closes the sessions that it authenticated.
func (c *Connect) Forget(ctx context.Context, by store.Caller, req api.LoginRequest) (none api.ForgottenLogin, err error) {
	server, h, forWhom, err := c.named(ctx, by, req)
	if err != nil {
		return none, err
	}
	revoked, err := c.opt.Logins.Forget(ctx, by, server, h)
	if errors.Is(err, store.ErrNotFound) {
		return none, fmt.Errorf("login at %s (%s) %w", server.Name, forWhom, store.ErrNotFound)
	}
	v := api.ForgottenLogin{Revoked: revoked && err == nil}
	if err != nil {
		if _, still := c.opt.Logins.Show(ctx, server.Name, h); !errors.Is(still, store.ErrNotFound) {
			return none, err
		}
		v.Warning = store.ErrText(err)
	}
	if err := c.opt.Pool.Reconnect(ctx, server.Name, h); err != nil && h.Label() != "" {
		return v, err // the shared session can't be reopened without a login; its state shows that
	}
	return v, nil
}

// equal compares in constant time.
func equal(sum [sha256.Size]byte, text string) bool {
	got := sha256.Sum256([]byte(text))
	return subtle.ConstantTimeCompare(sum[:], got[:]) == 1
}
