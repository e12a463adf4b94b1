package database

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"nize/store"
)

// EnsureUser implements [store.Users]. Most calls find the user and write nothing.
func (d *DB) EnsureUser(ctx context.Context, identity, name string, role store.Role) (store.User, error) {
	var u store.User
	team := teamOf(identity)
	find := func(t *tx) error {
		id := t.get("identities", []byte(identity))
		if id == nil {
			return store.ErrNotFound
		}
		var err error
		if u, err = getJSON[store.User](t, "users", id); err != nil {
			return err
		}
		if team != "" && t.get("members", key(team, u.ID)) == nil {
			return errNoMember
		}
		return nil
	}
	if err := checkIDs("identity", identity); err != nil {
		return u, err
	}
	if err := d.view(ctx, "finding user", find); !errors.Is(err, store.ErrNotFound) && !errors.Is(err, errNoMember) {
		return u, err
	}
	err := d.update(ctx, "adding user "+identity, func(t *tx) error {
		err := find(t)
		if errors.Is(err, errNoMember) { // known from before memberships were noted
			return t.putMember(store.System, store.Membership{Team: team, User: u.ID, Identity: identity})
		}
		if !errors.Is(err, store.ErrNotFound) { // somebody was first
			return err
		}
		if role != store.Admin && role != store.Member {
			return fmt.Errorf("%w role %q: use admin or member", store.ErrInvalid, role)
		}
		u = store.User{ID: store.NewID(t.now), Name: name, Role: role, State: store.Active, Identities: []string{identity}, Created: t.now}
		if err := t.put("identities", []byte(identity), []byte(u.ID)); err != nil {
			return err
		}
		if err := t.saveUser(store.System, u); err != nil || team == "" {
			return err
		}
		return t.saveMember(&store.Membership{Team: team, User: u.ID, Identity: identity}) // the user's event says it
	})
	if err != nil {
		return store.User{}, err
	}
	return u, nil
}

// errNoMember says that a user is not noted as a member of their team yet.
var errNoMember = errors.New("no member")

// AddUser implements [store.Users].
func (d *DB) AddUser(ctx context.Context, by store.Caller, u store.User) (store.User, error) {
	err := d.update(ctx, "adding user "+u.Name, func(t *tx) error {
		if u.Role != store.Admin && u.Role != store.Member {
			return fmt.Errorf("%w role %q: use admin or member", store.ErrInvalid, u.Role)
		}
		if len(u.Identities) == 0 {
			return fmt.Errorf("%w user %q: no identity", store.ErrInvalid, u.Name)
		}
		u.ID, u.State, u.Created = store.NewID(t.now), store.Active, t.now
		for _, identity := range u.Identities {
			if err := checkIDs("identity", identity); err != nil {
				return err
			}
			if t.get("identities", []byte(identity)) != nil {
				return store.ErrExists
			}
			if err := t.put("identities", []byte(identity), []byte(u.ID)); err != nil {
				return err
			}
		}
		return t.saveUser(by, u)
	})
	if err != nil {
		return store.User{}, err
	}
	return u, nil
}

func (t *tx) saveUser(by store.Caller, u store.User) error {
	if err := t.putJSON("users", []byte(u.ID), u); err != nil {
		return err
	}
	t.change(store.Change{Kind: "user", ID: u.ID})
	return t.event(auditNote{by: by, kind: "user.put", subject: u.ID, data: u})
}

// GetUser implements [store.Users].
func (d *DB) GetUser(ctx context.Context, id string) (u store.User, err error) {
	err = d.view(ctx, "reading user "+id, func(t *tx) (err error) {
		u, err = getJSON[store.User](t, "users", []byte(d.alias(id)))
		return err
	})
	return u, err
}

// FindUser implements [store.Contacts].
func (d *DB) FindUser(ctx context.Context, identity string) (u store.User, err error) {
	err = d.view(ctx, "finding user "+identity, func(t *tx) (err error) {
		id := t.get("identities", []byte(identity))
		if id == nil {
			return store.ErrNotFound
		}
		u, err = getJSON[store.User](t, "users", id)
		return err
	})
	return u, err
}

// RecordPrivacyNotice implements [store.Contacts].
func (d *DB) RecordPrivacyNotice(ctx context.Context, by store.Caller, user string) error {
	return d.update(ctx, "noting what user "+user+" was told", func(t *tx) error {
		u, err := getJSON[store.User](t, "users", []byte(d.alias(user)))
		if err != nil || !u.PrivacyNotice.IsZero() {
			return err
		}
		u.PrivacyNotice = t.now
		if err := t.putJSON("users", []byte(u.ID), u); err != nil {
			return err
		}
		t.change(store.Change{Kind: "user", ID: u.ID})
		return t.event(auditNote{by: by, kind: "user.told", subject: u.ID})
	})
}

// ListUsers implements [store.Users], by id, which is by age.
func (d *DB) ListUsers(ctx context.Context) (list []store.User, err error) {
	err = d.view(ctx, "listing users", func(t *tx) (err error) {
		list, err = listJSON[store.User](t, "users", nil)
		return err
	})
	return list, err
}

// PutUser implements [store.Users]. Identities and age stay as they are. The
// last active admin cannot stop being one: ErrRefused. To disable a user also
// takes away, in the same transaction, what acts in their name: tokens,
// waiting calls, grants, personal credentials.
func (d *DB) PutUser(ctx context.Context, by store.Caller, u store.User) error {
	return d.update(ctx, "storing user "+u.ID, func(t *tx) error {
		old, err := getJSON[store.User](t, "users", []byte(u.ID))
		if err != nil {
			return err
		}
		if (u.Role != store.Admin && u.Role != store.Member) || (u.State != store.Active && u.State != store.Disabled) {
			return fmt.Errorf("%w role %q or state %q", store.ErrInvalid, u.Role, u.State)
		}
		u.Identities, u.Aliases, u.Created, u.PrivacyNotice = old.Identities, old.Aliases, old.Created, old.PrivacyNotice
		if old.CanAdminister() && !u.CanAdminister() {
			if err := t.checkAdmins(u.ID); err != nil {
				return err
			}
		}
		if err := t.saveUser(by, u); err != nil {
			return err
		}
		if old.State == store.Active && u.State == store.Disabled {
			return t.offboard(by, u.ID, store.Textf("its requester was disabled"))
		}
		return nil
	})
}

// checkAdmins refuses if nobody but the users named is an active admin.
func (t *tx) checkAdmins(but ...string) error {
	users, err := listJSON[store.User](t, "users", nil)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(users, func(u store.User) bool { return u.CanAdminister() && !slices.Contains(but, u.ID) }) {
		return store.Mark(store.Errorf("this is the last active admin; make another one first"), store.ErrRefused)
	}
	return nil
}

// offboard takes away what acts in a user's name.
func (t *tx) offboard(by store.Caller, user string, why store.Text) error {
	if _, err := t.revoke(by, user, ""); err != nil {
		return err
	}
	if err := t.dropGrants(by, user); err != nil {
		return err
	}
	for _, k := range t.keys("credentials", key("user", user, ""), 0) {
		if err := t.deleteCredential(by, k); err != nil {
			return err
		}
	}
	if err := t.dropLinks(user); err != nil {
		return err
	}
	if err := t.moveGroups(by, user, ""); err != nil {
		return err
	}
	return t.cancelCalls(by, user, why)
}

// dropGrants revokes the standing answers that a user gave, for whomever they
// hold. What they denied to a channel or to everybody stays: nothing is allowed
// again because somebody left.
func (t *tx) dropGrants(by store.Caller, user string) error {
	all, err := listJSON[store.Grant](t, "grants_user", nil)
	if err != nil {
		return err
	}
	for _, g := range all {
		if g.User != user || g.Deny && g.Owner() != user {
			continue
		}
		if err := t.deleteGrant(by, g.Owner(), g.ID); err != nil {
			return err
		}
	}
	return nil
}

// cancelCalls ends the calls of a user that wait for a yes.
func (t *tx) cancelCalls(by store.Caller, user string, why store.Text) error {
	for _, tail := range t.walkCalls("w", [][]string{t.db.entriesOf(user)}, maxWaiting) {
		old, err := t.loadCall(string(tail[8:]))
		if err != nil {
			return err
		}
		s := old
		s.head.State, s.head.Reason, s.head.Finished = store.Cancelled, why, t.now
		if err := t.saveCall(&old, s); err != nil {
			return err
		}
		if err := t.callEvent(by, "call.cancel", s.head, callData{Digest: s.head.Digest, Reason: s.head.Reason}); err != nil {
			return err
		}
	}
	return nil
}

// maxWaiting is more calls than can wait for one person (approvals.max_pending).
const maxWaiting = 1 << 20
