package people

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"nize/store"
	"nize/store/commit"
	"nize/store/record/access"
	"nize/store/record/calls"
)

// People stores users, teams, identities and bots.
type People struct {
	db      *commit.DB
	decoded *commit.Decoded[store.User] // of the last list
}

// Over returns the people stored in db.
func Over(db *commit.DB) People { return People{db, &commit.Decoded[store.User]{}} }

// EnsureUser implements [store.Users]. Most calls find the user and write nothing.
func (d People) EnsureUser(ctx context.Context, identity, name string, role store.Role) (store.User, error) {
	var u store.User
	team := teamOf(identity)
	find := func(t *commit.Tx) error {
		id := t.Get("identities", []byte(identity))
		if id == nil {
			return store.ErrNotFound
		}
		var err error
		if u, err = commit.GetJSON[store.User](t, "users", id); err != nil {
			return err
		}
		if team != "" && t.Get("members", commit.Key(team, u.ID)) == nil {
			return errNoMember
		}
		return nil
	}
	if err := commit.CheckIDs("identity", identity); err != nil {
		return u, err
	}
	if err := d.db.Read(ctx, "finding user", find); !errors.Is(err, store.ErrNotFound) && !errors.Is(err, errNoMember) {
		return u, err
	}
	err := d.db.Write(ctx, "adding user "+identity, func(t *commit.Tx) error {
		err := find(t)
		if errors.Is(err, errNoMember) { // created before memberships were stored
			return putMember(t, store.System, store.Membership{Team: team, User: u.ID, Identity: identity})
		}
		if !errors.Is(err, store.ErrNotFound) { // another writer was first
			return err
		}
		if role != store.Admin && role != store.Member {
			return fmt.Errorf("%w role %q: use admin or member", store.ErrInvalid, role)
		}
		u = store.User{ID: store.NewID(t.Now), Name: name, Role: role, State: store.Active, Identities: []string{identity}, Created: t.Now}
		if err := t.Put("identities", []byte(identity), []byte(u.ID)); err != nil {
			return err
		}
		if err := saveUser(t, store.System, u); err != nil || team == "" {
			return err
		}
		return saveMember(t, &store.Membership{Team: team, User: u.ID, Identity: identity}) // the user's event includes it
	})
	if err != nil {
		return store.User{}, err
	}
	return u, nil
}

// errNoMember is returned if a user is not yet stored as a member of their team.
var errNoMember = errors.New("no member")

// AddUser implements [store.Users].
func (d People) AddUser(ctx context.Context, by store.Caller, u store.User) (store.User, error) {
	err := d.db.Write(ctx, "adding user "+u.Name, func(t *commit.Tx) error {
		if u.Role != store.Admin && u.Role != store.Member {
			return fmt.Errorf("%w role %q: use admin or member", store.ErrInvalid, u.Role)
		}
		if len(u.Identities) == 0 {
			return fmt.Errorf("%w user %q: no identity", store.ErrInvalid, u.Name)
		}
		u.ID, u.State, u.Created = store.NewID(t.Now), store.Active, t.Now
		for _, identity := range u.Identities {
			if err := commit.CheckIDs("identity", identity); err != nil {
				return err
			}
			if t.Get("identities", []byte(identity)) != nil {
				return store.ErrExists
			}
			if err := t.Put("identities", []byte(identity), []byte(u.ID)); err != nil {
				return err
			}
		}
		if err := saveUser(t, by, u); err != nil {
			return err
		}
		for _, identity := range u.Identities {
			if team := teamOf(identity); team != "" {
				return putMember(t, by, store.Membership{Team: team, User: u.ID, Identity: identity})
			}
		}
		return nil
	})
	if err != nil {
		return store.User{}, err
	}
	return u, nil
}

func saveUser(t *commit.Tx, by store.Caller, u store.User) error {
	if err := t.PutJSON("users", []byte(u.ID), u); err != nil {
		return err
	}
	t.Change(store.Change{Kind: "user", ID: u.ID})
	return t.Event(commit.Note{By: by, Kind: "user.put", Subject: u.ID, Data: u})
}

// GetUser implements [store.Users].
func (d People) GetUser(ctx context.Context, id string) (u store.User, err error) {
	err = d.db.Read(ctx, "reading user "+id, func(t *commit.Tx) (err error) {
		u, err = commit.GetJSON[store.User](t, "users", []byte(d.db.Alias(id)))
		return err
	})
	return u, err
}

// FindUser implements [store.Contacts].
func (d People) FindUser(ctx context.Context, identity string) (u store.User, err error) {
	err = d.db.Read(ctx, "finding user "+identity, func(t *commit.Tx) (err error) {
		id := t.Get("identities", []byte(identity))
		if id == nil {
			return store.ErrNotFound
		}
		u, err = commit.GetJSON[store.User](t, "users", id)
		return err
	})
	return u, err
}

// RecordPrivacyNotice implements [store.Contacts].
func (d People) RecordPrivacyNotice(ctx context.Context, by store.Caller, user string) error {
	return d.db.Write(ctx, "noting what user "+user+" was told", func(t *commit.Tx) error {
		u, err := commit.GetJSON[store.User](t, "users", []byte(d.db.Alias(user)))
		if err != nil || !u.PrivacyNotice.IsZero() {
			return err
		}
		u.PrivacyNotice = t.Now
		if err := t.PutJSON("users", []byte(u.ID), u); err != nil {
			return err
		}
		t.Change(store.Change{Kind: "user", ID: u.ID})
		return t.Event(commit.Note{By: by, Kind: "user.told", Subject: u.ID})
	})
}

// ListUsers implements [store.Users]; ids sort by age.
func (d People) ListUsers(ctx context.Context) (list []store.User, err error) {
	list, err = commit.Recall(ctx, d.db, "listing users", allUsers{}, func(t *commit.Tx) ([]store.User, error) {
		return d.decoded.List(t, "users")
	}, "users")
	list = slices.Clone(list)
	for i := range list { // so that callers can append without changing the cached lists
		list[i].Identities, list[i].Aliases = slices.Clip(list[i].Identities), slices.Clip(list[i].Aliases)
	}
	return list, err
}

// allUsers is the cache key of the list of users.
type allUsers struct{}

// PutUser implements [store.Users]. It ignores changes of identities and creation time. It
// returns ErrRefused if the last active admin would stop being one. Disabling a user also
// removes, in the same transaction, everything that acts in their name: tokens, waiting
// calls, grants, personal credentials.
func (d People) PutUser(ctx context.Context, by store.Caller, u store.User) error {
	return d.db.Write(ctx, "storing user "+u.ID, func(t *commit.Tx) error {
		old, err := commit.GetJSON[store.User](t, "users", []byte(u.ID))
		if err != nil {
			return err
		}
		if (u.Role != store.Admin && u.Role != store.Member) || (u.State != store.Active && u.State != store.Disabled) {
			return fmt.Errorf("%w role %q or state %q", store.ErrInvalid, u.Role, u.State)
		}
		u.Identities, u.Aliases, u.Created, u.PrivacyNotice = old.Identities, old.Aliases, old.Created, old.PrivacyNotice
		u.AdminByGroup = old.AdminByGroup && u.Role == store.Admin && u.State == store.Active
		if old.AdminByGroup && !u.AdminByGroup {
			u.Role = store.Member // a group granted it and grants it again at the next sign-in
		}
		if old.CanAdminister() && !u.CanAdminister() {
			if err := checkAdmins(t, u.ID); err != nil {
				return err
			}
		}
		if err := saveUser(t, by, u); err != nil {
			return err
		}
		if old.State == store.Active && u.State == store.Disabled {
			return offboard(t, by, u.ID, store.Textf("its requester was disabled"))
		}
		return nil
	})
}

// checkAdmins returns an error if no one except the given users is an active admin.
func checkAdmins(t *commit.Tx, but ...string) error {
	users, err := commit.ListJSON[store.User](t, "users", nil)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(users, func(u store.User) bool { return u.CanAdminister() && !slices.Contains(but, u.ID) }) {
		return store.Mark(store.Errorf("this is the last active admin; make another one first"), store.ErrRefused)
	}
	return nil
}

// offboard removes everything that acts in a user's name.
func offboard(t *commit.Tx, by store.Caller, user string, why store.Text) error {
	if _, err := access.Revoke(t, by, user, ""); err != nil {
		return err
	}
	if err := dropGrants(t, by, user); err != nil {
		return err
	}
	for _, k := range t.Keys("credentials", commit.Key("user", user, ""), 0) {
		if err := access.DeleteCredential(t, by, k); err != nil {
			return err
		}
	}
	if err := DropLinks(t, user); err != nil {
		return err
	}
	if err := moveGroups(t, by, user, ""); err != nil {
		return err
	}
	u, err := commit.GetJSON[store.User](t, "users", []byte(user))
	if err != nil {
		return err
	}
	for _, id := range u.Identities { // the provider has to name their groups again
		if isSCIM(id) {
			continue // the directory still stores them
		}
		if err := dropPerson(t, id); err != nil {
			return err
		}
	}
	return cancelCalls(t, by, user, why)
}

// dropGrants revokes the standing answers that a user gave, in any scope. Denials for a
// channel or for everyone stay, so that nothing becomes allowed because a user left.
func dropGrants(t *commit.Tx, by store.Caller, user string) error {
	all, err := commit.ListJSON[store.Grant](t, "grants_user", nil)
	if err != nil {
		return err
	}
	for _, g := range all {
		if g.User != user || g.Deny && g.Owner() != user {
			continue
		}
		if err := access.DeleteGrant(t, by, g.Owner(), g.ID); err != nil {
			return err
		}
	}
	return nil
}

// cancelCalls cancels the calls of a user that wait for approval.
func cancelCalls(t *commit.Tx, by store.Caller, user string, why store.Text) error {
	for _, tail := range calls.WalkCalls(t, "w", [][]string{t.DB.EntriesOf(user)}, maxWaiting) {
		old, err := calls.LoadCall(t, string(tail[8:]))
		if err != nil {
			return err
		}
		s := old
		s.Head.State, s.Head.Reason, s.Head.Finished = store.Cancelled, why, t.Now
		if err := calls.SaveCall(t, &old, s); err != nil {
			return err
		}
		if err := calls.CallEvent(t, by, "call.cancel", s.Head, calls.CallData{Digest: s.Head.Digest, Reason: s.Head.Reason}); err != nil {
			return err
		}
	}
	return nil
}

// maxWaiting is more than the number of calls that can wait for one person
// (approvals.max_pending).
const maxWaiting = 1 << 20
