// Package credentials implements the operations on credentials, including declared ones.
//
// It resolves what is declared, which values exist, and who may give them. A person gives
// their own value, in a dialog or at the command line; a team's value may be given by
// nize's admins and by the team's admins on its platform.
//
// Declarations and their records are in declarations.go, the values of servers in sealed.go,
// people's own in own.go. Package daemon/connect signs people in, and mcp/upstream/login keeps
// what that gave.
package credentials

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"nize/bots"
	"nize/daemon/api"
	"nize/daemon/control"
	"nize/daemon/module"
	"nize/daemon/mux"
	"nize/daemon/people"
	"nize/daemon/programs"
	"nize/mcp/policy"
	"nize/mcp/upstream"
	"nize/store"
	"nize/store/credential"
)

// Options are the dependencies of Credentials. All are required.
type Options struct {
	Resolver *Resolver
	Store    interface {
		store.Credentials
		PutCredentialWithin(ctx context.Context, by store.Caller, c store.Credential, q store.Quota) error
	}
	Servers   *control.Servers
	Pool      *upstream.Pool
	Directory *people.Directory
	Projects  *programs.Projects
	Bots      *bots.Registry
	// Logins signs in to services that don't use keys.
	Logins interface {
		PutClient(ctx context.Context, by store.Caller, d credential.Declaration, secret store.Secret) error
		ForgetDeclared(ctx context.Context, by store.Caller, d credential.Declaration, h store.Holder) error
	}
	Tools interface {
		Each(do func(*policy.Tool) bool)
	}
	// CheckSecret returns an error for a value that its key's service could not use.
	CheckSecret func(store.CredentialKey, store.Secret) error
	Config      store.Config
	Now         func() time.Time
	Log         *slog.Logger
}

// Credentials implements the operations.
type Credentials struct{ Options }

// New returns a Credentials.
func New(opt Options) *Credentials { return &Credentials{opt} }

// Module returns the module.
func (c *Credentials) Module() module.Module {
	return module.Module{Name: "credentials", Buckets: Buckets, Settings: Settings, Operations: c.mount}
}

func (c *Credentials) mount(m *mux.Mux) {
	mux.Handle(m, api.DeleteCredential, c.Delete)
	mux.Handle(m, api.ListCredentials, c.List)
	mux.Handle(m, api.PutCredential, c.Put)
	mux.Handle(m, api.ListDeclarations, c.ListDeclarations)
	mux.Handle(m, api.GetDeclaration, c.GetDeclaration)
	mux.Handle(m, api.Declare, c.Declare)
	mux.Handle(m, api.RemoveDeclaration, c.RemoveDeclaration)
}

// ListDeclarations returns the declared credentials.
func (c *Credentials) ListDeclarations(ctx context.Context, by store.Caller, _ api.Empty) (none api.List[api.DeclarationView], err error) {
	all, err := c.Resolver.Declarations.list(ctx)
	if err != nil {
		return none, err
	}
	views := make([]api.DeclarationView, len(all))
	for i, d := range all {
		if views[i], err = c.view(ctx, by, d); err != nil {
			return none, err
		}
	}
	return api.Items(views), nil
}

// GetDeclaration returns one declaration.
func (c *Credentials) GetDeclaration(ctx context.Context, by store.Caller, req api.DeclarationRequest) (none api.DeclarationView, err error) {
	d, err := c.Resolver.Declarations.find(ctx, req.ID)
	if err != nil {
		return none, err
	}
	return c.view(ctx, by, d)
}

func (c *Credentials) view(ctx context.Context, by store.Caller, d credential.Declaration) (v api.DeclarationView, err error) {
	v.Declaration = d
	if v.Connected, err = c.Resolver.Has(ctx, d, by.User); err != nil || !by.IsAdmin() {
		return v, err
	}
	if v.Servers, err = c.servers(ctx, d.ID); err != nil {
		return v, err
	}
	values, err := c.values(ctx, d.ID)
	v.Given = len(values)
	c.Tools.Each(func(t *policy.Tool) bool {
		if t.Server == policy.NativeServer && t.Credential() == d.ID {
			v.Tools = append(v.Tools, t.ID())
		}
		return true
	})
	slices.Sort(v.Tools)
	return v, err
}

// servers returns the names of the servers that use a declared credential.
func (c *Credentials) servers(ctx context.Context, id string) (names []string, err error) {
	all, err := c.Servers.Store.ListServers(ctx)
	for _, s := range all {
		if used, _ := s.Declared(); used == id {
			names = append(names, s.Name)
		}
	}
	return names, err
}

// values returns the values that people and teams gave. It excludes projects' values, which
// are stored under labels that the projects choose, and which remain.
func (c *Credentials) values(ctx context.Context, id string) ([]store.Credential, error) {
	all, err := c.Store.ListCredentials(ctx)
	return slices.DeleteFunc(all, func(v store.Credential) bool {
		return v.Service != id || v.Scope != "user" && v.Scope != "team"
	}), err
}

// Declare declares a credential, or changes a declaration.
func (c *Credentials) Declare(ctx context.Context, by store.Caller, req api.DeclareRequest) (none api.DeclarationView, err error) {
	d := req.Declaration
	d.ID = req.ID
	if d, err = d.Normal(); err != nil {
		return none, err
	}
	if _, err := c.Servers.Store.GetServer(ctx, d.ID); err == nil { // both would refer to the same values
		return none, store.Mark(fmt.Errorf("there is a server %s, which has credentials under that name; choose another id", d.ID), store.ErrConflict)
	} else if !errors.Is(err, store.ErrNotFound) {
		return none, fmt.Errorf("reading server %s: %w", d.ID, err)
	}
	old, err := c.Resolver.Declarations.get(ctx, d.ID)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return none, err
	}
	values, err := c.values(ctx, d.ID)
	if err != nil {
		return none, err
	}
	if old.ID != "" && old.Mode != d.Mode && len(values) > 0 {
		return none, store.Mark(fmt.Errorf("%d existing value(s) of %s were given as %s and would become useless; remove them first: nizectl credentials remove %s", len(values), d.ID, old.Mode, d.ID), store.ErrConflict)
	}
	if d.OAuth != nil && (!d.OAuth.SameClient(old.OAuth) || !req.ClientSecret.IsZero()) { // a secret is sent only to the service it was given for
		if err := c.Logins.PutClient(ctx, by, d, req.ClientSecret.Secret); err != nil {
			return none, err
		}
	}
	if err := c.Resolver.Declarations.put(ctx, by, d); err != nil {
		return none, err
	}
	if old.Host != d.Host { // close the sessions that they authenticated at the old host
		for _, v := range values {
			err = errors.Join(err, c.Reconnect(ctx, d.ID, store.Holder{Scope: v.Scope, Owner: v.Owner}))
		}
	}
	if err != nil {
		return none, err
	}
	return c.view(ctx, by, d)
}

// RemoveDeclaration removes a declaration that no server uses, and its values, which would
// no longer be visible to anyone.
func (c *Credentials) RemoveDeclaration(ctx context.Context, by store.Caller, req api.DeclarationRequest) (none api.Empty, err error) {
	d, err := c.Resolver.Declarations.find(ctx, req.ID)
	if err != nil {
		return none, err
	}
	switch names, err := c.servers(ctx, d.ID); {
	case err != nil:
		return none, err
	case len(names) > 0:
		return none, store.Mark(fmt.Errorf("the server %s is called with the credential %s; change or remove it first: nizectl servers edit %s", names[0], d.ID, names[0]), store.ErrConflict)
	}
	values, err := c.values(ctx, d.ID)
	if err != nil {
		return none, err
	}
	for _, v := range values {
		if v.Name == store.LoginName && d.Mode.SignsIn() {
			if err := c.Logins.ForgetDeclared(ctx, by, d, store.Holder{Scope: v.Scope, Owner: v.Owner}); err != nil {
				c.Log.Warn("forgetting what signing in gave", "credential", d.ID, "err", err)
			}
		}
		if err := c.Store.DeleteCredential(ctx, by, v.CredentialKey); err != nil && !errors.Is(err, store.ErrNotFound) {
			return none, fmt.Errorf("credential %s of %s: %w", v.Name, v.Service, err)
		}
	}
	if d.OAuth != nil {
		if err := c.Logins.PutClient(ctx, by, d, store.Secret{}); err != nil {
			return none, err
		}
	}
	return none, c.Resolver.Declarations.delete(ctx, by, d.ID)
}

// Reconnect closes the sessions that a holder's value authenticated.
func (c *Credentials) Reconnect(ctx context.Context, id string, h store.Holder) error {
	names, err := c.servers(ctx, id)
	for _, name := range names {
		err = errors.Join(err, c.Pool.Reconnect(ctx, name, h))
	}
	return err
}

// declared reports whether a key is that of a declared credential, and fills in its owner,
// which depends on the mode.
func (c *Credentials) declared(ctx context.Context, by store.Caller, key *store.CredentialKey) (d credential.Declaration, ok bool, err error) {
	if key.Scope == "project" || key.Name != "" && key.Name != credential.KeyName && key.Name != store.LoginName {
		return d, false, nil
	}
	d, err = c.Resolver.Declarations.get(ctx, key.Service)
	if errors.Is(err, store.ErrNotFound) {
		return d, false, nil
	}
	if err != nil {
		return d, false, err
	}
	name := credential.KeyName
	if d.Mode.SignsIn() {
		name = store.LoginName
	}
	switch {
	case key.Name != "" && key.Name != name && name == store.LoginName:
		return d, true, signsIn(d)
	case key.Name != "" && key.Name != name:
		return d, false, nil
	}
	scope := "user"
	if d.Mode.Auth() == store.AuthTeam {
		scope = "team"
	}
	if key.Name = name; cmp.Or(key.Scope, scope) != scope {
		return d, true, fmt.Errorf("%w scope %s: %s is %s, so each %s has a value of it: --scope %s", store.ErrInvalid, key.Scope, d.ID, d.Mode, scope, scope)
	}
	key.Scope = scope
	if scope == "team" {
		if key.Owner == "" {
			return d, true, fmt.Errorf("%w credential: say which team, with --owner TEAM, such as slack:T012345 or local", store.ErrInvalid)
		}
		return d, true, c.mayGive(ctx, by, d, key.Owner)
	}
	if !by.IsAdmin() && key.Owner != "" && key.Owner != by.User {
		return d, true, store.Mark(errors.New("only admins may manage other people's credentials"), store.ErrRefused)
	}
	key.Owner, err = c.Directory.Owner(ctx, by, key.Owner)
	return d, true, err
}

// mayGive returns an error unless the caller may give a team's value: nize's admins may,
// and the team's current admins on its own platform.
func (c *Credentials) mayGive(ctx context.Context, by store.Caller, d credential.Declaration, team string) error {
	if by.IsAdmin() {
		return nil
	}
	surface, id, _ := strings.Cut(team, ":")
	if on, ok := bots.On[bots.TeamDirectory](c.Bots, store.Surface(surface)); ok {
		admins, err := on.TeamAdmins(ctx, id)
		if err != nil {
			c.Log.Warn("looking up a team's admins; treating the team as without any", "team", team, "err", err)
		} else if slices.Contains(admins, by.User) {
			return nil
		}
	}
	return store.Mark(store.Errorf("%s is connected for the whole team: the team's admins do that, or an admin of nize", d.Name), store.ErrRefused)
}

// Put seals a value.
func (c *Credentials) Put(ctx context.Context, by store.Caller, req api.PutCredentialRequest) (none api.Empty, err error) {
	d, ok, err := c.declared(ctx, by, &req.CredentialKey)
	if err != nil {
		return none, err
	}
	if !ok {
		return c.putForServer(ctx, by, req)
	}
	if d.Mode.SignsIn() {
		return none, signsIn(d)
	}
	if req.Host != "" {
		return none, fmt.Errorf("%w host: its declaration sets where %s may be sent: nizectl credentials declare %s --host HOST", store.ErrInvalid, d.ID, d.ID)
	}
	return none, c.seal(ctx, by, d, req.CredentialKey, req.Secret.Secret)
}

func (c *Credentials) seal(ctx context.Context, by store.Caller, d credential.Declaration, key store.CredentialKey, secret store.Secret) error {
	value := strings.TrimSpace(secret.Reveal())
	if value == "" || len(value) > 64<<10 || strings.ContainsAny(value, "\x00\r\n") {
		return store.Errorf("%w credential: it is empty, or has more than one line", store.ErrInvalid)
	}
	sealed := store.Credential{CredentialKey: key, Host: d.Host, Secret: store.NewSecret(value), Updated: c.Now()}
	if err := c.Store.PutCredential(ctx, by, sealed); err != nil {
		return fmt.Errorf("storing the credential %s: %w", d.ID, err)
	}
	return c.Reconnect(ctx, d.ID, store.Holder{Scope: key.Scope, Owner: key.Owner})
}

// Delete removes a sealed value.
func (c *Credentials) Delete(ctx context.Context, by store.Caller, req api.DeleteCredentialRequest) (none api.Empty, err error) {
	key := store.CredentialKey(req)
	d, ok, err := c.declared(ctx, by, &key)
	if err != nil {
		return none, err
	}
	if !ok {
		return c.deleteForServer(ctx, by, req)
	}
	h := store.Holder{Scope: key.Scope, Owner: key.Owner}
	if d.Mode.SignsIn() {
		return none, errors.Join(c.Logins.ForgetDeclared(ctx, by, d, h), c.Reconnect(ctx, d.ID, h))
	}
	if err := c.Store.DeleteCredential(ctx, by, key); err != nil {
		return none, fmt.Errorf("credential %s: %w", d.ID, err)
	}
	return none, c.Reconnect(ctx, d.ID, h)
}

// ListOwn returns the credentials that are required from the caller, and those that they
// gave. It includes a team's if the caller may give them and uses nize in that team.
func (c *Credentials) ListOwn(ctx context.Context, by store.Caller, team string) (list []OwnCredential, err error) {
	if list, err = c.ownOfServers(ctx, by); err != nil {
		return nil, err
	}
	all, err := c.Resolver.Declarations.list(ctx)
	if err != nil {
		return nil, err
	}
	for _, d := range all {
		own := OwnCredential{Server: d.ID, Name: credential.KeyName}
		if d.Mode.SignsIn() {
			own.Name = store.LoginName
		}
		if d.Mode.Auth() == store.AuthTeam && (team == "" || c.mayGive(ctx, by, d, team) != nil) {
			continue
		}
		if own.Connected, err = c.Resolver.Has(ctx, d, by.User); err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(list, func(o OwnCredential) bool { return o.Server == own.Server && o.Name == own.Name }); i >= 0 {
			list[i] = own
		} else {
			list = append(list, own)
		}
	}
	return list, nil
}

// Prompt returns the prompt for a person who connects something: a declared credential, or
// what a server requires from them.
func (c *Credentials) Prompt(ctx context.Context, a bots.Asked, service, name string) (p bots.Prompt, err error) {
	key := store.CredentialKey{Service: service, Name: name, Owner: a.By.User}
	d, err := c.Resolver.Declarations.get(ctx, service)
	switch {
	case errors.Is(err, store.ErrNotFound) || name != "" && name != credential.KeyName:
		name, err = c.wantedOwn(ctx, a.By, service, name)
		return bots.Prompt{Service: service, Name: name}, err
	case err != nil:
		return p, err
	case d.Mode.SignsIn():
		return p, signsIn(d)
	case d.Mode.Auth() == store.AuthTeam:
		key.Owner = store.TeamOf(a.By, a.At)
		p.Team = key.Owner
	}
	if _, _, err := c.declared(ctx, a.By, &key); err != nil {
		return p, err
	}
	p.Service, p.Name, p.About = service, key.Name, d.Instructions
	return p, nil
}

// PutOwn seals the value that a person entered at a prompt: their own, whatever their role,
// or that of the prompt's team.
func (c *Credentials) PutOwn(ctx context.Context, by store.Caller, p bots.Prompt, secret store.Secret) error {
	key := store.CredentialKey{Service: p.Service, Name: p.Name, Owner: cmp.Or(p.Team, by.User)}
	d, ok, err := c.declared(ctx, by, &key)
	switch {
	case err != nil:
		return err
	case !ok:
		return c.putOwnForServer(ctx, by, p.Service, p.Name, secret)
	case (key.Scope == "team") != (p.Team != "") || d.Mode.SignsIn(): // the declaration has changed since the prompt
		return store.Errorf("declared credential %q %w", d.ID, store.ErrNotFound)
	}
	return c.seal(ctx, by, d, key, secret)
}

// RemoveOwn deletes the caller's value, or their team's.
func (c *Credentials) RemoveOwn(ctx context.Context, a bots.Asked, service, name string) (gone []string, err error) {
	key := store.CredentialKey{Service: service, Name: name, Owner: a.By.User}
	d, err := c.Resolver.Declarations.get(ctx, service)
	if err == nil && d.Mode.Auth() == store.AuthTeam {
		key.Owner = store.TeamOf(a.By, a.At)
	}
	_, ok, err := c.declared(ctx, a.By, &key)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return c.removeOwnOfServer(ctx, a.By, service, name)
	}
	_, err = c.Delete(ctx, a.By, api.DeleteCredentialRequest(key))
	return []string{key.Name}, err
}

// signsIn returns the error for giving a key to a credential that uses sign-in.
func signsIn(d credential.Declaration) error {
	return store.Mark(fmt.Errorf("%s is connected by signing in, not with a key: /nize credentials connect %s", d.Name, d.ID), store.ErrRefused)
}

// WhoSignsIn returns a declared credential that uses sign-in, and the owner of the login.
// The caller must be allowed to start it for owner, a person or a team depending on the
// mode; "" is the caller.
func (c *Credentials) WhoSignsIn(ctx context.Context, by store.Caller, id, owner string) (d credential.Declaration, h store.Holder, err error) {
	if d, err = c.Resolver.Declarations.find(ctx, id); err != nil {
		return d, h, err
	}
	if !d.Mode.SignsIn() {
		return d, h, store.Mark(fmt.Errorf("%s is a key: nizectl credentials set %s, or /nize credentials connect %s", d.Name, d.ID, d.ID), store.ErrRefused)
	}
	key := store.CredentialKey{Service: id, Name: store.LoginName, Owner: owner}
	_, _, err = c.declared(ctx, by, &key)
	return d, store.Holder{Scope: key.Scope, Owner: key.Owner}, err
}

// SignsIn reports whether there is a declared credential of that id that uses sign-in, and
// returns the owner of a login requested in that place.
func (c *Credentials) SignsIn(ctx context.Context, a bots.Asked, id string) (owner string, ok bool, err error) {
	d, err := c.Resolver.Declarations.get(ctx, id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return "", false, nil
	case d.Mode.Auth() == store.AuthTeam:
		owner = store.TeamOf(a.By, a.At)
	default:
		owner = a.By.User
	}
	return owner, err == nil && d.Mode.SignsIn(), err
}
