package browser

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"nize/bots"
	"nize/bots/phrases"
	"nize/daemon/api"
	"nize/daemon/control"
	"nize/daemon/credentials"
	"nize/daemon/hooks"
	"nize/daemon/mux"
	"nize/daemon/settings"
	"nize/daemon/spending"
	"nize/store"
)

// Places are the operations of the page's other sections: a person's settings, access and
// usage; and for admins, nize's status. Everything here is the person's own, whatever their
// role, except for what admins may read.
type Places struct {
	Settings    *settings.Settings
	Usage       *spending.Usage
	Budgets     *spending.Budgets
	Grants      *control.Grants
	Hooks       *hooks.Hooks
	Tokens      *control.OwnTokens
	Credentials *credentials.Credentials
	// Connect signs in to servers and services; daemon/connect's Connect implements it.
	Connect interface {
		WantsLogin(ctx context.Context, by store.Caller, name string) (bool, error)
		Begin(ctx context.Context, by store.Caller, req api.LoginServerRequest) (api.LoginFlow, error)
		BeginDeclared(ctx context.Context, by store.Caller, req api.LoginDeclaredRequest) (api.LoginFlow, error)
		Forget(ctx context.Context, by store.Caller, req api.LoginRequest) (api.ForgottenLogin, error)
	}
	// SignIns lists browsers that are signed in; daemon/signin's Server implements it.
	SignIns interface {
		List(ctx context.Context, by store.Caller, req api.ListTokensRequest) (api.TokenPage, error)
	}
	// Sessions ends sessions.
	Sessions interface {
		GetToken(ctx context.Context, id string) (store.Token, error)
		RevokeSignIn(ctx context.Context, by store.Caller, id string) error
	}
	Status interface {
		Show(ctx context.Context, by store.Caller, _ api.Empty) (api.Status, error)
	}
	Doctor interface {
		Examine(ctx context.Context, by store.Caller, req api.DoctorRequest) (api.Diagnosis, error)
	}
}

var (
	listConfig  = api.Op[api.Empty, api.List[api.OwnSetting]]{Method: "GET", Path: api.ListSettings.Path, Summary: "list the settings that the caller can set for themselves"}
	putConfig   = api.Op[api.PutOwnSettingRequest, api.OwnSetting]{Method: "PUT", Path: api.PutSetting.Path, Summary: api.PutOwnSetting.Summary}
	unsetConfig = api.Op[api.OwnSettingRequest, api.OwnSetting]{Method: "DELETE", Path: api.UnsetSetting.Path, Summary: api.UnsetOwnSetting.Summary}

	listGrants  = api.Op[api.Empty, api.List[grantView]]{Method: "GET", Path: api.ListGrants.Path, Summary: api.ListGrants.Summary}
	listHooks   = api.Op[api.Empty, api.List[api.Hook]]{Method: "GET", Path: api.ListHooks.Path, Summary: "list the hooks around the caller's calls, in the order in which they run before a call"}
	addHook     = api.Op[addHookRequest, api.Hook]{Method: "POST", Path: api.AddHook.Path, Summary: "add a hook around the caller's own calls"}
	patchHook   = api.Op[patchHookRequest, api.Hook]{Method: "PATCH", Path: api.PatchHook.Path, Summary: "enable or disable one of the caller's own hooks"}
	removeHook  = api.Op[hookRequest, api.Empty]{Method: "DELETE", Path: api.RemoveHook.Path, Summary: "remove one of the caller's own hooks"}
	listTokens  = api.Op[api.Empty, api.List[api.TokenView]]{Method: "GET", Path: api.ListTokens.Path, Summary: api.ListOwnTokens.Summary}
	createToken = api.Op[api.CreateOwnTokenRequest, api.MintedToken]{Method: "POST", Path: api.CreateToken.Path, Summary: api.CreateOwnToken.Summary}
	revokeToken = api.Op[api.RevokeOwnTokenRequest, api.Revoked]{Method: "DELETE", Path: api.RevokeToken.Path, Summary: api.RevokeOwnToken.Summary}

	listCredentials  = api.Op[api.Empty, api.List[ownCredential]]{Method: "GET", Path: api.ListCredentials.Path, Summary: "list the caller's own credentials, required and given"}
	putCredential    = api.Op[putCredentialRequest, api.Empty]{Method: "PUT", Path: api.PutCredential.Path, Summary: "give one of the caller's own credentials"}
	deleteCredential = api.Op[credentialRequest, api.Empty]{Method: "DELETE", Path: api.DeleteCredential.Path, Summary: "remove one of the caller's own credentials"}
	loginCredential  = api.Op[credentialLoginRequest, api.LoginFlow]{Method: "POST", Path: "/v1/credentials/{service}/login", Summary: "connect a credential by signing in"}

	listSessions  = api.Op[sessionsRequest, api.List[session]]{Method: "GET", Path: "/v1/sessions", Summary: "list the browsers and clients that are signed in as the caller"}
	revokeSession = api.Op[api.LoginIDRequest, api.Empty]{Method: "DELETE", Path: "/v1/sessions/{id}", Summary: "sign a browser or a client out"}

	getUsage    = api.Op[usageRequest, usageReport]{Method: "GET", Path: api.GetUsage.Path, Summary: api.GetUsage.Summary}
	listBudgets = api.Op[budgetsRequest, api.List[budget]]{Method: "GET", Path: api.ListBudgets.Path, Summary: api.ListBudgets.Summary}

	getStatus = api.Op[api.Empty, status]{Method: "GET", Path: api.GetStatus.Path, Summary: api.GetStatus.Summary}
	getDoctor = api.Op[doctorRequest, api.Diagnosis]{Method: "GET", Path: api.Doctor.Path, Summary: api.Doctor.Summary}
)

// places implements these operations.
type places struct{ *Browser }

func (b places) mount(m *mux.Mux) {
	mux.Handle(m, listConfig, b.listConfig)
	mux.Handle(m, putConfig, b.Settings.PutOwn)
	mux.Handle(m, unsetConfig, b.Settings.UnsetOwn)
	mux.Handle(m, listGrants, b.listGrants)
	mux.Handle(m, api.RevokeGrant, b.revokeGrant)
	mux.Handle(m, listHooks, b.listHooks)
	mux.Handle(m, addHook, b.addHook)
	mux.Handle(m, patchHook, b.patchHook)
	mux.Handle(m, removeHook, b.removeHook)
	mux.Handle(m, listTokens, b.listTokens)
	mux.Handle(m, createToken, b.Tokens.Create)
	mux.Handle(m, revokeToken, b.Tokens.Revoke)
	mux.Handle(m, listCredentials, b.listCredentials)
	mux.Handle(m, putCredential, b.putCredential)
	mux.Handle(m, deleteCredential, b.deleteCredential)
	mux.Handle(m, loginCredential, b.loginCredential)
	mux.Handle(m, listSessions, b.listSessions)
	mux.Handle(m, revokeSession, b.revokeSession)
	mux.Handle(m, getUsage, b.getUsage)
	mux.Handle(m, listBudgets, b.listBudgets)
	mux.Handle(m, getStatus, forAdmins(b.getStatus))
	mux.Handle(m, getDoctor, forAdmins(b.getDoctor))
}

// forAdmins wraps an operation so that members get ErrNotFound.
func forAdmins[Req, Res any](do func(context.Context, store.Caller, Req) (Res, error)) func(context.Context, store.Caller, Req) (Res, error) {
	return func(ctx context.Context, by store.Caller, req Req) (none Res, err error) {
		if !by.IsAdmin() {
			return none, &api.Error{Code: "not_found", Message: "there is nothing at this address"}
		}
		return do(ctx, by, req)
	}
}

// listConfig returns the settings that a person can set for themselves; system settings are
// for the command line.
func (b places) listConfig(_ context.Context, by store.Caller, _ api.Empty) (api.List[api.OwnSetting], error) {
	return api.Items(b.Settings.Own(by)), nil
}

// grantView is a standing answer; Own is true if the reader may revoke it.
type grantView struct {
	store.Grant
	Own  bool   `json:"own"`
	Void string `json:"void,omitempty"` // why an "always" has no effect now
}

func (b places) listGrants(ctx context.Context, by store.Caller, _ api.Empty) (none api.List[grantView], err error) {
	all, err := b.Grants.List(ctx, by, api.ListGrantsRequest{User: by.User})
	if err != nil {
		return none, err
	}
	list := []grantView{}
	for _, g := range all.Items {
		if g.Expires.IsZero() || b.Now().Before(g.Expires) {
			list = append(list, grantView{g.Grant, g.User == by.User, g.Void})
		}
	}
	return api.Items(list), nil
}

// revokeGrant revokes the caller's own standing answer; others' are for the command line.
func (b places) revokeGrant(ctx context.Context, by store.Caller, req api.RevokeGrantRequest) (api.Empty, error) {
	return b.Grants.Revoke(ctx, asMember(by), req)
}

// addHookRequest is a personal hook, around one server's tools or around all.
type addHookRequest struct {
	Name   string          `json:"name"`
	Type   string          `json:"hook_type"`
	Server string          `json:"server,omitempty"`
	Tool   string          `json:"tool,omitempty"`
	Config json.RawMessage `json:"config,omitempty"`
}

type hookRequest struct {
	Name string `path:"name" json:"-"`
}

type patchHookRequest struct {
	hookRequest
	Enabled *bool `json:"enabled"`
}

// asMember returns the caller as a member, so that even an admin sets only personal hooks
// here; admins' hooks are for the command line.
func asMember(by store.Caller) store.Caller {
	by.Role = store.Member
	return by
}

func (b places) listHooks(ctx context.Context, by store.Caller, _ api.Empty) (none api.List[api.Hook], err error) {
	return b.Hooks.List(ctx, asMember(by), api.ListHooksRequest{All: true})
}

func (b places) addHook(ctx context.Context, by store.Caller, req addHookRequest) (api.Hook, error) {
	own := api.AddHookRequest{Name: req.Name, Type: req.Type, Tool: req.Tool, Config: req.Config, Scope: "user"}
	if req.Server != "" {
		own.Scope, own.ScopeID = "user_server", req.Server
	}
	return b.Hooks.Add(ctx, asMember(by), own)
}

func (b places) patchHook(ctx context.Context, by store.Caller, req patchHookRequest) (api.Hook, error) {
	return b.Hooks.Patch(ctx, asMember(by), api.PatchHookRequest{HookRequest: api.HookRequest{Name: req.Name}, Enabled: req.Enabled})
}

func (b places) removeHook(ctx context.Context, by store.Caller, req hookRequest) (api.Empty, error) {
	return b.Hooks.Remove(ctx, asMember(by), api.HookRequest{Name: req.Name})
}

// listTokens returns the tokens that a person created; tokens from a sign-in are among the
// sessions.
func (b places) listTokens(ctx context.Context, by store.Caller, req api.Empty) (none api.List[api.TokenView], err error) {
	all, err := b.Tokens.List(ctx, by, req)
	if err != nil {
		return none, err
	}
	return api.Items(slices.DeleteFunc(all.Items, func(t api.TokenView) bool { return t.SignedIn != nil })), nil
}

// ownCredential is one that a server or tool requires from the person, or that they gave.
type ownCredential struct {
	Service   string `json:"service"`
	Name      string `json:"name"`
	Title     string `json:"title"`
	About     string `json:"about,omitempty"`
	Connected bool   `json:"connected"`
	Login     bool   `json:"login"` // by signing in, not by a key
	Team      bool   `json:"team"`  // it belongs to the whole team
}

type credentialRequest struct {
	Service string `query:"service" json:"-"`
	Name    string `query:"name" json:"-"`
}

type putCredentialRequest struct {
	Service string     `json:"service"`
	Name    string     `json:"name"`
	Secret  api.Secret `json:"secret"`
}

type credentialLoginRequest struct {
	Service string `path:"service" json:"-"`
}

func onPage(by store.Caller) bots.Asked {
	return bots.Asked{By: by, At: store.Address{Surface: store.OnWeb}}
}

func (b places) listCredentials(ctx context.Context, by store.Caller, _ api.Empty) (none api.List[ownCredential], err error) {
	own, err := b.Credentials.ListOwn(ctx, by, store.TeamOf(by, store.Address{}))
	if err != nil {
		return none, err
	}
	declarations, err := b.Credentials.ListDeclarations(ctx, by, api.Empty{})
	if err != nil {
		return none, err
	}
	list := make([]ownCredential, len(own))
	for i, c := range own {
		list[i] = ownCredential{Service: c.Server, Name: c.Name, Title: c.Server, Connected: c.Connected, Login: c.Name == store.LoginName}
		for _, d := range declarations.Items {
			if d.ID == c.Server {
				list[i].Title, list[i].About, list[i].Team = bots.Escape(d.Name), bots.Plain(d.Instructions), d.Mode.Auth() == store.AuthTeam
			}
		}
	}
	return api.Items(list), nil
}

func (b places) putCredential(ctx context.Context, by store.Caller, req putCredentialRequest) (none api.Empty, err error) {
	prompt, err := b.Credentials.Prompt(ctx, onPage(by), req.Service, req.Name)
	if err != nil {
		return none, err
	}
	return none, b.Credentials.PutOwn(ctx, by, prompt, req.Secret.Secret)
}

func (b places) deleteCredential(ctx context.Context, by store.Caller, req credentialRequest) (none api.Empty, err error) {
	if login, err := b.Connect.WantsLogin(ctx, by, req.Service); err != nil {
		return none, err
	} else if login && req.Name == store.LoginName {
		_, err := b.Connect.Forget(ctx, by, api.LoginRequest{Name: req.Service, User: by.User})
		return none, err
	}
	_, err = b.Credentials.RemoveOwn(ctx, onPage(by), req.Service, req.Name)
	return none, err
}

// loginCredential starts a sign-in; the URL is returned to the browser that requested it.
func (b places) loginCredential(ctx context.Context, by store.Caller, req credentialLoginRequest) (none api.LoginFlow, err error) {
	if login, err := b.Connect.WantsLogin(ctx, by, req.Service); err != nil {
		return none, err
	} else if login {
		return b.Connect.Begin(ctx, by, api.LoginServerRequest{Name: req.Service, User: by.User})
	}
	owner, ok, err := b.Credentials.SignsIn(ctx, onPage(by), req.Service)
	if err != nil {
		return none, err
	}
	if !ok {
		return none, store.Errorf("declared credential %q %w", bots.Brief(req.Service, 60), store.ErrNotFound)
	}
	return b.Connect.BeginDeclared(ctx, by, api.LoginDeclaredRequest{ID: req.Service, Owner: owner})
}

// sessionHeader passes the session to an operation. It is always set here, which overwrites
// a value sent by a browser.
const sessionHeader = "Nize-Session"

type sessionsRequest struct {
	Session string `header:"Nize-Session" json:"-"`
}

// maxSessions is how many browsers are listed.
const maxSessions = 500

// session is a browser or an MCP client that is signed in.
type session struct {
	ID      string    `json:"id"`
	Kind    string    `json:"kind"` // browser or client
	Name    string    `json:"name"`
	From    string    `json:"from"` // an address; for a client, the host it was redirected to
	This    bool      `json:"this,omitempty"`
	Created time.Time `json:"created"`
	Used    time.Time `json:"last_used,omitzero"`
}

func (b places) listSessions(ctx context.Context, by store.Caller, req sessionsRequest) (none api.List[session], err error) {
	browsers, err := b.SignIns.List(ctx, by, api.ListTokensRequest{User: by.User, Limit: maxSessions})
	if err != nil {
		return none, err
	}
	tokens, err := b.Tokens.List(ctx, by, api.Empty{})
	if err != nil {
		return none, err
	}
	list := []session{}
	for _, t := range slices.Concat(browsers.Items, tokens.Items) {
		switch in := t.SignedIn; {
		case in == nil || t.State != "active":
		case t.Audience == store.ForWeb:
			list = append(list, session{t.ID, "browser", bots.Escape(in.Browser), in.Address, t.ID == req.Session, t.Created, t.LastUsed})
		default:
			list = append(list, session{t.ID, "client", bots.Escape(strings.TrimPrefix(t.Name, "oauth:")), bots.Escape(in.Redirect), false, t.Created, t.LastUsed})
		}
	}
	slices.SortStableFunc(list, func(a, b session) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), b.Created.Compare(a.Created)) })
	return api.Items(list), nil
}

func (b places) revokeSession(ctx context.Context, by store.Caller, req api.LoginIDRequest) (none api.Empty, err error) {
	t, err := b.Sessions.GetToken(ctx, req.ID)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return none, err
	}
	if err != nil || t.User != by.User || t.SignedIn == nil || t.State(b.Now()) != "active" {
		return none, store.Errorf("session %q %w", bots.Brief(req.ID, 60), store.ErrNotFound)
	}
	return none, b.Sessions.RevokeSignIn(ctx, by, req.ID)
}

// usageRequest selects what to sum: the person's own usage, or for admins everyone's.
type usageRequest struct {
	Since time.Time `query:"since" json:"-"`
	By    string    `query:"by" json:"-"`
	Zone  string    `query:"zone" json:"-"`
	All   bool      `query:"all" json:"-"`
}

// usageReport is a report with the titles of the reader's own conversations.
type usageReport struct {
	store.UsageReport
	Titles map[string]string `json:"titles,omitempty"`
}

func (b places) getUsage(ctx context.Context, by store.Caller, req usageRequest) (none usageReport, err error) {
	q := api.GetUsageRequest{Since: req.Since, By: req.By, Zone: store.TimeZone(b.Config, by.User, req.Zone), User: by.User}
	if req.All && by.IsAdmin() {
		q.User = ""
	}
	report, err := b.Usage.Get(ctx, by, q)
	if err != nil {
		return none, err
	}
	out := usageReport{UsageReport: report}
	if report.By != "conversation" {
		return out, nil
	}
	own, err := b.Conversations.List(ctx, by, api.Empty{})
	if err != nil {
		return none, fmt.Errorf("naming conversations: %w", err)
	}
	out.Titles = map[string]string{}
	for _, th := range own.Items {
		if th.User == by.User {
			out.Titles[th.ID] = th.Title
		}
	}
	return out, nil
}

type budgetsRequest struct {
	reading
	All bool `query:"all" json:"-"`
}

// budget is a budget as text.
type budget struct {
	Title  store.Text `json:"title"`
	Used   store.Text `json:"used"`
	Left   store.Text `json:"left"`
	Limit  store.Text `json:"limit"`
	Part   int64      `json:"part"` // percent
	State  string     `json:"state,omitempty"`
	Each   bool       `json:"each,omitempty"` // each person has it separately, so that there is no single usage figure
	Resets time.Time  `json:"resets"`
}

func (b places) listBudgets(ctx context.Context, by store.Caller, req budgetsRequest) (none api.List[budget], err error) {
	q := api.ListBudgetsRequest{User: by.User}
	if req.All && by.IsAdmin() {
		q.User = ""
	}
	all, err := b.Budgets.List(ctx, by, q)
	if err != nil {
		return none, err
	}
	list := []budget{}
	for _, v := range all.Items {
		if v.Limit == 0 {
			continue // unlimited
		}
		one := budget{
			Title: v.BudgetState.Name(by.IsAdmin()), Used: v.Amount(v.Used), Left: v.Amount(max(0, v.Limit-v.Used-v.Reserved)), Limit: v.LimitText(),
			Part: min(100, v.Used*100/v.Limit), State: v.State, Each: v.PerUser, Resets: v.Resets,
		}
		if name, of := strings.CutPrefix(v.Name, "user:"); of && q.User == "" { // the list includes other people's
			one.Title = store.Textf("The %s budget of %s (%s)", v.Period.Word(), name, v.LimitText())
			if v.PerUser {
				one.Title = store.Textf("The %s budget of each person (%s)", v.Period.Word(), v.LimitText())
			}
		}
		list = append(list, one)
	}
	return api.Items(list), nil
}

// status is nize's status for admins; paths of its files are for the command line.
type status struct {
	Version string         `json:"version"`
	Uptime  float64        `json:"uptime_seconds"`
	Servers []api.Health   `json:"servers"`
	Bots    []api.BotState `json:"bots"`
	Tools   int            `json:"tools"`
	Waiting int            `json:"waiting"`
	Running int            `json:"running"`
}

func (b places) getStatus(ctx context.Context, by store.Caller, req api.Empty) (none status, err error) {
	s, err := b.Status.Show(ctx, by, req)
	if err != nil {
		return none, err
	}
	out := status{s.Version, s.Uptime, s.Servers, s.Bots, s.Tools, s.Pending, s.Running}
	for i := range out.Servers {
		out.Servers[i].LastError = bots.Plain(out.Servers[i].LastError)
	}
	return out, nil
}

// doctorRequest describes the reader of the findings.
type doctorRequest struct{ reading }

func (b places) getDoctor(ctx context.Context, by store.Caller, req doctorRequest) (none api.Diagnosis, err error) {
	d, err := b.Doctor.Examine(ctx, by, api.DoctorRequest{Client: api.Version})
	if err != nil {
		return none, err
	}
	words := phrases.For(b.reader(by, req.Locale, req.Zone).Locale)
	for i := range d.Findings {
		f := &d.Findings[i]
		f.Subject, f.Text, f.Cure = bots.Plain(f.Subject), store.Plain(bots.Plain(words.Text(f.Text))), bots.Plain(f.Cure)
	}
	return d, nil
}
