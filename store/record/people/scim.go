package people

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"nize/store"
	"nize/store/commit"
	"nize/store/identity"
	"nize/store/record/access"
)

var _ identity.Directory = People{}

const (
	scimUsers  = "scim_users"
	scimGroups = "scim_groups"
	scimIndex  = "scim_index" // of both: kind 0 value → id
)

// The kinds of scimIndex. SCIM compares names case-insensitively.
func userNameKey(name string) []byte    { return commit.Key("u", strings.ToLower(name)) }
func userExternalKey(id string) []byte  { return commit.Key("ue", id) }
func groupNameKey(name string) []byte   { return commit.Key("g", strings.ToLower(name)) }
func groupExternalKey(id string) []byte { return commit.Key("ge", id) }

// claimSCIM moves an entry of the index to id. It returns ErrExists if another id has it.
func claimSCIM(t *commit.Tx, id string, old, now []byte, empty bool) error {
	if old != nil && string(t.Get(scimIndex, old)) == id {
		if err := t.Delete(scimIndex, old); err != nil {
			return err
		}
	}
	if empty {
		return nil
	}
	if has := t.Get(scimIndex, now); has != nil && string(has) != id {
		return store.ErrExists
	}
	return t.Put(scimIndex, now, []byte(id))
}

// PutSCIMUser implements [identity.Directory].
func (d People) PutSCIMUser(ctx context.Context, by store.Caller, given identity.SCIMUser, issuer string, rules identity.Rules) (s identity.SCIMUser, err error) {
	err = d.db.Write(ctx, "storing a person of the directory", func(t *commit.Tx) error {
		s = given
		if err := commit.CheckIDs("userName", s.UserName); err != nil {
			return err
		}
		var was identity.SCIMUser
		var u store.User
		if s.ID != "" {
			if was, err = commit.GetJSON[identity.SCIMUser](t, scimUsers, []byte(s.ID)); err != nil {
				return err
			}
			s.Created = was.Created
			if u, err = scimUser(t, s.ID); err != nil {
				return err
			}
		} else {
			s.ID, s.Created = store.NewID(t.Now), t.Now
			u, err = findProvisioned(t, s, issuer, rules)
			if errors.Is(err, store.ErrNotFound) {
				u, err = store.User{ID: store.NewID(t.Now), Role: store.Member, State: store.Active, Created: t.Now}, nil
			}
			if err != nil {
				return err
			}
		}
		s.Modified = t.Now
		var oldName, oldExternal []byte
		if was.ID != "" {
			oldName, oldExternal = userNameKey(was.UserName), userExternalKey(was.External)
		}
		if err := claimSCIM(t, s.ID, oldName, userNameKey(s.UserName), false); err != nil {
			return err
		}
		if err := claimSCIM(t, s.ID, oldExternal, userExternalKey(s.External), s.External == ""); err != nil {
			return err
		}
		if err := t.PutJSON(scimUsers, []byte(s.ID), s); err != nil {
			return err
		}
		return saveProvisioned(t, by, u, s, was)
	})
	return s, err
}

// scimUser returns the user of a person of the directory.
func scimUser(t *commit.Tx, id string) (store.User, error) {
	user := t.Get("identities", []byte(identity.OfSCIM(id)))
	if user == nil {
		return store.User{}, store.ErrNotFound
	}
	return commit.GetJSON[store.User](t, "users", user)
}

// findProvisioned returns the user who is a new person of the directory, or ErrNotFound.
func findProvisioned(t *commit.Tx, s identity.SCIMUser, issuer string, rules identity.Rules) (u store.User, err error) {
	if issuer != "" && s.External != "" {
		if id := t.Get("identities", []byte(identity.Of(issuer, s.External))); id != nil {
			return commit.GetJSON[store.User](t, "users", id)
		}
	}
	if !rules.LinkByEmail {
		return u, store.ErrNotFound
	}
	return userByEmail(t, s.Email, func(id string) bool { return strings.HasPrefix(id, store.SCIMIdentity) })
}

// saveProvisioned stores a directory's data about a user.
func saveProvisioned(t *commit.Tx, by store.Caller, u store.User, s, was identity.SCIMUser) error {
	id := identity.OfSCIM(s.ID)
	if !slices.Contains(u.Identities, id) {
		u.Identities = append(slices.Clone(u.Identities), id)
		if err := t.Put("identities", []byte(id), []byte(u.ID)); err != nil {
			return err
		}
		for _, other := range u.Identities { // from now on the directory's identity has the groups
			if strings.HasPrefix(other, identity.Prefix) {
				groups := access.ProvidedOf(t, other)
				if err := errors.Join(access.MoveProvided(t, other, access.Provided{Out: groups}), access.MoveProvided(t, id, access.Provided{In: groups})); err != nil {
					return err
				}
			}
		}
	}
	if u.Name == "" || u.Name == displayOf(was) {
		u.Name = displayOf(s)
	}
	if u.Email == "" || u.Email == was.Email {
		u.Email = s.Email
	}
	before := u.State
	u.State = store.Active
	if !s.Active {
		u.State = store.Disabled
		if u.AdminByGroup {
			u.Role, u.AdminByGroup = store.Member, false
		}
	}
	if err := saveUser(t, by, u); err != nil {
		return err
	}
	if t.Get("members", commit.Key(store.LocalTeam, u.ID)) == nil {
		if err := putMember(t, by, store.Membership{Team: store.LocalTeam, User: u.ID, Identity: id}); err != nil {
			return err
		}
	}
	if before == store.Active && u.State == store.Disabled {
		return offboard(t, by, u.ID, store.Textf("its requester was disabled"))
	}
	return nil
}

// displayOf returns the display name of a person of the directory.
func displayOf(s identity.SCIMUser) string {
	for _, name := range []string{s.Display, strings.TrimSpace(s.Given + " " + s.Family), s.UserName} {
		if name != "" {
			return store.Clip(name, identity.MaxName)
		}
	}
	return ""
}

// GetSCIMUser implements [identity.Directory].
func (d People) GetSCIMUser(ctx context.Context, id string) (s identity.SCIMUser, err error) {
	err = d.db.Read(ctx, "reading a person of the directory", func(t *commit.Tx) (err error) {
		s, err = commit.GetJSON[identity.SCIMUser](t, scimUsers, []byte(id))
		return err
	})
	return s, err
}

// listSCIM returns a page of a bucket and the total number of its entries.
func listSCIM[T any](t *commit.Tx, bucket string, index []byte, q identity.SCIMQuery) (page []T, total int, err error) {
	if q.Attribute != "" {
		id := []byte(q.Value)
		if q.Attribute != "id" {
			if id = t.Get(scimIndex, index); id == nil {
				return nil, 0, nil
			}
		}
		one, err := commit.GetJSON[T](t, bucket, id)
		if errors.Is(err, store.ErrNotFound) {
			return nil, 0, nil
		}
		return []T{one}, 1, err
	}
	keys := t.Keys(bucket, nil, 0)
	for _, k := range keys[min(q.Skip, len(keys)):min(q.Skip+q.Limit, len(keys))] {
		one, err := commit.GetJSON[T](t, bucket, k)
		if err != nil {
			return nil, 0, err
		}
		page = append(page, one)
	}
	return page, len(keys), nil
}

// ListSCIMUsers implements [identity.Directory].
func (d People) ListSCIMUsers(ctx context.Context, q identity.SCIMQuery) (page []identity.SCIMUser, total int, err error) {
	index := userNameKey(q.Value)
	if q.Attribute == "externalId" {
		index = userExternalKey(q.Value)
	}
	err = d.db.Read(ctx, "listing people of the directory", func(t *commit.Tx) (err error) {
		page, total, err = listSCIM[identity.SCIMUser](t, scimUsers, index, q)
		return err
	})
	return page, total, err
}

// DeleteSCIMUser implements [identity.Directory]. The user is disabled, not removed: a
// removed person would be admitted as a new user wherever they still have an account.
func (d People) DeleteSCIMUser(ctx context.Context, by store.Caller, id string) error {
	return d.db.Write(ctx, "removing a person of the directory", func(t *commit.Tx) error {
		s, err := commit.GetJSON[identity.SCIMUser](t, scimUsers, []byte(id))
		if err != nil {
			return err
		}
		if err := dropSCIM(t, s); err != nil {
			return err
		}
		u, err := scimUser(t, id)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		s.Active = false
		return saveProvisioned(t, by, u, s, s)
	})
}

// dropSCIM deletes a person of the directory.
func dropSCIM(t *commit.Tx, s identity.SCIMUser) error {
	id := identity.OfSCIM(s.ID)
	return errors.Join(
		claimSCIM(t, s.ID, userNameKey(s.UserName), nil, true), claimSCIM(t, s.ID, userExternalKey(s.External), nil, true),
		t.Delete(scimUsers, []byte(s.ID)), access.MoveProvided(t, id, access.Provided{Out: access.ProvidedOf(t, id)}),
	)
}

// ChangeSCIMGroup implements [identity.Directory].
func (d People) ChangeSCIMGroup(ctx context.Context, by store.Caller, c identity.SCIMGroupChange, rules identity.Rules) (g identity.SCIMGroup, err error) {
	err = d.db.Write(ctx, "changing a group of the directory", func(t *commit.Tx) error {
		var was identity.SCIMGroup
		if c.ID != "" {
			if was, err = commit.GetJSON[identity.SCIMGroup](t, scimGroups, []byte(c.ID)); err != nil {
				return err
			}
		}
		g = was
		if g.ID == "" {
			g.ID, g.Created = store.NewID(t.Now), t.Now
		}
		if c.Name != nil {
			g.Name = *c.Name
		}
		if c.External != nil {
			g.External = *c.External
		}
		if err := commit.CheckIDs("displayName", g.Name); err != nil {
			return err
		}
		if len(g.Name) > identity.MaxGroup {
			return fmt.Errorf("%w displayName: longer than %d bytes", store.ErrInvalid, identity.MaxGroup)
		}
		g.Modified = t.Now
		var oldName, oldExternal []byte
		if was.ID != "" {
			oldName, oldExternal = groupNameKey(was.Name), groupExternalKey(was.External)
		}
		if err := claimSCIM(t, g.ID, oldName, groupNameKey(g.Name), false); err != nil {
			return err
		}
		if err := claimSCIM(t, g.ID, oldExternal, groupExternalKey(g.External), g.External == ""); err != nil {
			return err
		}
		if err := t.PutJSON(scimGroups, []byte(g.ID), g); err != nil {
			return err
		}
		var moved access.Provided // by identity
		if was.ID != "" && was.Name != g.Name {
			if err := renameProvided(t, by, was.Name, g.Name); err != nil {
				return err
			}
		}
		has := access.InProvided(t, g.Name)
		in := map[string]bool{}
		for _, id := range c.Add {
			if t.Get(scimUsers, []byte(id)) == nil {
				return fmt.Errorf("%w member %q: no such person", store.ErrInvalid, store.Clip(id, 100))
			}
			in[identity.OfSCIM(id)] = true
		}
		for _, id := range has {
			if c.Replace && !in[id] {
				moved.Out = append(moved.Out, id)
			}
			delete(in, id)
		}
		for id := range in {
			moved.In = append(moved.In, id)
		}
		for _, id := range c.Out {
			if id = identity.OfSCIM(id); slices.Contains(has, id) {
				moved.Out = append(moved.Out, id)
			}
		}
		slices.Sort(moved.In)
		if err := moveMany(t, by, g.Name, moved, rules); err != nil {
			return err
		}
		return t.Event(commit.Note{By: by, Kind: "directory.group", Subject: g.ID, Data: struct {
			identity.SCIMGroup
			access.Provided
		}{g, moved}})
	})
	return g, err
}

// moveMany adds identities to one group and removes others, and updates their roles and
// sign-ins accordingly.
func moveMany(t *commit.Tx, by store.Caller, name string, moved access.Provided, rules identity.Rules) error {
	for i, list := range [][]string{moved.In, moved.Out} {
		for _, id := range list {
			p := access.Provided{In: []string{name}}
			if i == 1 {
				p = access.Provided{Out: []string{name}}
			}
			if err := access.MoveProvided(t, id, p); err != nil {
				return err
			}
			user := t.Get("identities", []byte(id))
			if user == nil {
				continue
			}
			u, err := commit.GetJSON[store.User](t, "users", user)
			if err != nil {
				return err
			}
			if setRole(t, &u, rules) {
				if err := saveUser(t, by, u); err != nil {
					return err
				}
			}
			if i == 1 && len(rules.Allowed) > 0 && !overlap(providedOf(t, u), rules.Allowed) {
				if _, err := access.Revoke(t, by, u.ID, ""); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// setRole sets or resets the role that groups grant, and reports whether it changed.
func setRole(t *commit.Tx, u *store.User, rules identity.Rules) bool {
	switch admin := overlap(providedOf(t, *u), rules.Admins); {
	case admin && u.Role != store.Admin && u.State == store.Active:
		u.Role, u.AdminByGroup = store.Admin, true
	case !admin && u.AdminByGroup:
		u.Role, u.AdminByGroup = store.Member, false
	default:
		return false
	}
	return true
}

// renameProvided renames a group of the provider, also as the source of groups here.
func renameProvided(t *commit.Tx, by store.Caller, old, name string) error {
	for _, id := range access.InProvided(t, old) {
		if err := access.MoveProvided(t, id, access.Provided{In: []string{name}, Out: []string{old}}); err != nil {
			return err
		}
	}
	return access.RenameSource(t, by, old, name)
}

// GetSCIMGroup implements [identity.Directory].
func (d People) GetSCIMGroup(ctx context.Context, id string) (g identity.SCIMGroup, members []identity.SCIMUser, err error) {
	err = d.db.Read(ctx, "reading a group of the directory", func(t *commit.Tx) error {
		members = nil
		if g, err = commit.GetJSON[identity.SCIMGroup](t, scimGroups, []byte(id)); err != nil {
			return err
		}
		for _, one := range access.InProvided(t, g.Name) {
			person, ok := strings.CutPrefix(one, store.SCIMIdentity)
			if !ok {
				continue
			}
			s, err := commit.GetJSON[identity.SCIMUser](t, scimUsers, []byte(person))
			if err != nil {
				return err
			}
			members = append(members, s)
		}
		return nil
	})
	return g, members, err
}

// ListSCIMGroups implements [identity.Directory].
func (d People) ListSCIMGroups(ctx context.Context, q identity.SCIMQuery) (page []identity.SCIMGroup, total int, err error) {
	index := groupNameKey(q.Value)
	if q.Attribute == "externalId" {
		index = groupExternalKey(q.Value)
	}
	err = d.db.Read(ctx, "listing groups of the directory", func(t *commit.Tx) (err error) {
		page, total, err = listSCIM[identity.SCIMGroup](t, scimGroups, index, q)
		return err
	})
	return page, total, err
}

// DeleteSCIMGroup implements [identity.Directory].
func (d People) DeleteSCIMGroup(ctx context.Context, by store.Caller, id string, rules identity.Rules) error {
	return d.db.Write(ctx, "removing a group of the directory", func(t *commit.Tx) error {
		g, err := commit.GetJSON[identity.SCIMGroup](t, scimGroups, []byte(id))
		if err != nil {
			return err
		}
		if err := moveMany(t, by, g.Name, access.Provided{Out: access.InProvided(t, g.Name)}, rules); err != nil {
			return err
		}
		if err := errors.Join(claimSCIM(t, id, groupNameKey(g.Name), nil, true), claimSCIM(t, id, groupExternalKey(g.External), nil, true), t.Delete(scimGroups, []byte(id))); err != nil {
			return err
		}
		return t.Event(commit.Note{By: by, Kind: "directory.group_removed", Subject: id, Data: g})
	})
}
