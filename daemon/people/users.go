package people

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"nize/daemon/api"
	"nize/daemon/mux"
	"nize/store"
	"nize/store/identity"
	"nize/store/printable"
)

// Users implements the operations on people. A person who was only added by name has the
// identity named:NAME and authenticates with bearer tokens, until they use a chat.
type Users struct {
	Store     userStore
	Directory *Directory
	Groups    *Groups
	// UndecidablePolicies returns the servers and channels whose calls have too few
	// approvers.
	UndecidablePolicies func(ctx context.Context) ([]string, error)
	Now                 func() time.Time
}

// Mount registers the operations.
func (p *Users) Mount(m *mux.Mux) {
	mux.Handle(m, api.ListUsers, p.List)
	mux.Handle(m, api.AddUser, p.Add)
	mux.Handle(m, api.GetUser, p.Get)
	mux.Handle(m, api.PatchUser, p.Patch)
	mux.Handle(m, api.Unlink, p.Unlink)
}

type userStore interface {
	AddUser(ctx context.Context, by store.Caller, u store.User) (store.User, error)
	PutUser(ctx context.Context, by store.Caller, u store.User) error
	ListUsers(ctx context.Context) ([]store.User, error)
	Unlink(ctx context.Context, by store.Caller, user, identity string) (store.User, error)
	ListMembers(ctx context.Context, team, user string) ([]store.Membership, error)
	ListTokens(ctx context.Context, user string) ([]store.Token, error)
	CountWaiting(ctx context.Context, user string) (own, all int, err error)
	ListGrants(ctx context.Context, owners ...string) ([]store.Grant, error)
	ListCredentials(ctx context.Context) ([]store.Credential, error)
}

// NamePattern matches names of people and tokens.
var NamePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,62}$`)

func (p *Users) view(ctx context.Context, u store.User) (api.UserView, error) {
	v := api.UserView{User: u, Tokens: []string{}, Teams: []string{}, Groups: []string{}}
	teams, err := p.Store.ListMembers(ctx, "", u.ID)
	if err != nil {
		return v, fmt.Errorf("listing teams of %s: %w", u.Name, err)
	}
	for _, m := range teams {
		v.Teams = append(v.Teams, m.Team)
	}
	groups, err := p.groupsOf(ctx, u)
	if err != nil {
		return v, err
	}
	v.Groups = append(v.Groups, groups...)
	tokens, err := p.Store.ListTokens(ctx, u.ID)
	if err != nil {
		return v, fmt.Errorf("listing tokens of %s: %w", u.Name, err)
	}
	for _, t := range tokens {
		if t.State(p.Now()) == "active" {
			v.Tokens = append(v.Tokens, t.Name)
		}
	}
	if v.Waiting, _, err = p.Store.CountWaiting(ctx, u.ID); err != nil {
		return v, fmt.Errorf("counting calls of %s: %w", u.Name, err)
	}
	grants, err := p.Store.ListGrants(ctx, u.ID)
	if err != nil {
		return v, fmt.Errorf("listing standing answers of %s: %w", u.Name, err)
	}
	v.Grants = len(grants)
	credentials, err := p.Store.ListCredentials(ctx)
	if err != nil {
		return v, fmt.Errorf("listing credentials: %w", err)
	}
	for _, c := range credentials {
		if c.Scope == "user" && c.Owner == u.ID {
			v.Credentials++
		}
	}
	return v, nil
}

func (p *Users) groupsOf(ctx context.Context, u store.User) ([]string, error) {
	groups, err := p.Directory.Memberships.GroupsOf(ctx, u.ID)
	if err != nil {
		return nil, fmt.Errorf("listing groups of %s: %w", u.Name, err)
	}
	return groups, nil
}

// List returns all users.
func (p *Users) List(ctx context.Context, _ store.Caller, _ api.Empty) (api.List[store.User], error) {
	users, err := p.Store.ListUsers(ctx)
	if err != nil {
		return api.List[store.User]{}, fmt.Errorf("listing users: %w", err)
	}
	return api.Items(users), nil
}

// Get returns a person and what acts in their name.
func (p *Users) Get(ctx context.Context, _ store.Caller, req api.GetUserRequest) (api.UserView, error) {
	u, err := p.Directory.Find(ctx, req.ID)
	if err != nil {
		return api.UserView{}, err
	}
	return p.view(ctx, u)
}

// Add creates a user with a name.
func (p *Users) Add(ctx context.Context, by store.Caller, req api.AddUserRequest) (none api.UserView, err error) {
	if !NamePattern.MatchString(req.Name) {
		return none, fmt.Errorf("%w user name %q: use 1 to 63 letters, digits, dots, dashes, underscores or @", store.ErrInvalid, req.Name)
	}
	users, err := p.Store.ListUsers(ctx)
	if err != nil {
		return none, fmt.Errorf("listing users: %w", err)
	}
	taken := slices.ContainsFunc(users, func(u store.User) bool { return u.Name == req.Name || u.ID == req.Name })
	u := store.User{Name: req.Name, Role: cmp.Or(req.Role, store.Member), Identities: []string{store.NamedIdentity + req.Name}}
	if !taken {
		u, err = p.Store.AddUser(ctx, by, u)
	}
	if taken || errors.Is(err, store.ErrExists) {
		return none, fmt.Errorf("user %q %w: see nizectl users show %s", req.Name, store.ErrExists, req.Name)
	}
	if err != nil {
		return none, fmt.Errorf("storing user %s: %w", req.Name, err)
	}
	return p.view(ctx, u)
}

// Patch changes a role, a state, a name or an email address. Disabling a person also removes what acts in their name,
// in the same transaction of the store; the MCP server learns of it from the feed and ends
// their streams.
func (p *Users) Patch(ctx context.Context, by store.Caller, req api.PatchUserRequest) (none api.UserView, err error) {
	u, err := p.Directory.Find(ctx, req.ID)
	if err != nil {
		return none, err
	}
	was := u
	api.Change(&u, req)
	if err := p.checkContact(ctx, u, was); err != nil {
		return none, err
	}
	var groups, lacked []string
	if u.Role != was.Role || u.State != was.State || u.Name != was.Name || u.Email != was.Email {
		if groups, err = p.groupsOf(ctx, u); err != nil {
			return none, err
		}
		if lacked, err = p.undecidable(ctx); err != nil {
			return none, err
		}
		if err := p.Store.PutUser(ctx, by, u); err != nil {
			return none, fmt.Errorf("user %s: %w", u.Name, err)
		}
	}
	v, err := p.view(ctx, u)
	if err != nil {
		return none, err
	}
	now, err := p.undecidable(ctx)
	if err != nil {
		return none, err
	}
	for _, name := range now { // that had enough approvers before
		if !slices.Contains(lacked, name) {
			v.Lacking = append(v.Lacking, cmp.Or(name, "approvals.approvers"))
		}
	}
	v.Emptied, err = p.Groups.emptied(ctx, groups)
	return v, err
}

// checkContact validates a changed name and email address. A name must identify one
// person, since requests may name people by it.
func (p *Users) checkContact(ctx context.Context, u, was store.User) error {
	if u.Name != was.Name {
		if u.Name == "" || len(u.Name) > identity.MaxName || strings.TrimSpace(u.Name) != u.Name || printable.Escape(u.Name) != u.Name {
			return fmt.Errorf("%w display name %q: use 1 to %d bytes of printable characters", store.ErrInvalid, u.Name, identity.MaxName)
		}
		other, err := p.Directory.Find(ctx, u.Name)
		if err == nil && other.ID != u.ID || errors.Is(err, store.ErrInvalid) {
			return fmt.Errorf("user %q %w: choose a name that nobody else has", u.Name, store.ErrExists)
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	if u.Email != was.Email && u.Email != "" && identity.LinkableEmail(u.Email) != strings.ToLower(u.Email) {
		return fmt.Errorf("%w email address %q: use NAME@HOST in ASCII", store.ErrInvalid, u.Email)
	}
	return nil
}

func (p *Users) undecidable(ctx context.Context) ([]string, error) {
	names, err := p.UndecidablePolicies(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading who approves: %w", err)
	}
	return names, nil
}

// Unlink removes an identity from a person.
func (p *Users) Unlink(ctx context.Context, by store.Caller, req api.UnlinkRequest) (none api.UserView, err error) {
	u, err := p.Directory.Find(ctx, req.ID)
	if err != nil {
		return none, err
	}
	if len(u.Identities) > 0 && !hasIdentity(u, req.Identity) {
		return none, store.Unknown("identity", req.Identity, u.Identities)
	}
	if u, err = p.Store.Unlink(ctx, by, u.ID, req.Identity); err != nil {
		return none, err
	}
	return p.view(ctx, u)
}

func hasIdentity(u store.User, identity string) bool { return slices.Contains(u.Identities, identity) }
