package people

import (
	"context"
	"errors"
	"strings"

	"nize/store"
	"nize/store/commit"
	"nize/store/identity"
)

// PutMember implements [store.Members].
func (d People) PutMember(ctx context.Context, by store.Caller, m store.Membership) error {
	return d.db.Write(ctx, "noting a member of "+m.Team, func(t *commit.Tx) error { return putMember(t, by, m) })
}

func putMember(t *commit.Tx, by store.Caller, m store.Membership) error {
	if err := commit.CheckIDs("team", m.Team, "user", m.User, "identity", m.Identity); err != nil {
		return err
	}
	m.User = t.DB.Alias(m.User)
	if t.Get("users", []byte(m.User)) == nil {
		return store.ErrNotFound
	}
	if t.Get("members", commit.Key(m.Team, m.User)) != nil {
		return nil
	}
	if err := saveMember(t, &m); err != nil {
		return err
	}
	t.Change(store.Change{Kind: "member", ID: m.User})
	return t.Event(commit.Note{By: by, Kind: "member.put", Subject: m.User, Data: m})
}

func saveMember(t *commit.Tx, m *store.Membership) error {
	if m.Since.IsZero() {
		m.Since = t.Now
	}
	return errors.Join(t.PutJSON("members", commit.Key(m.Team, m.User), *m), t.Put("members_user", commit.Key(m.User, m.Team), nil))
}

// DeleteMember implements [store.Members].
func (d People) DeleteMember(ctx context.Context, by store.Caller, team, user string) error {
	return d.db.Write(ctx, "taking a member out of "+team, func(t *commit.Tx) error { return deleteMember(t, by, team, t.DB.Alias(user)) })
}

func deleteMember(t *commit.Tx, by store.Caller, team, user string) error {
	m, err := commit.GetJSON[store.Membership](t, "members", commit.Key(team, user))
	if err != nil {
		return err
	}
	if err := errors.Join(t.Delete("members", commit.Key(team, user)), t.Delete("members_user", commit.Key(user, team))); err != nil {
		return err
	}
	t.Change(store.Change{Kind: "member", ID: user})
	return t.Event(commit.Note{By: by, Kind: "member.delete", Subject: user, Data: m})
}

// ListMembers implements [store.Members].
func (d People) ListMembers(ctx context.Context, team, user string) (list []store.Membership, err error) {
	err = d.db.Read(ctx, "listing members", func(t *commit.Tx) (err error) {
		list, err = members(t, team, d.db.Alias(user))
		return err
	})
	return list, err
}

func members(t *commit.Tx, team, user string) ([]store.Membership, error) {
	if user == "" {
		var prefix []byte
		if team != "" {
			prefix = commit.Key(team, "")
		}
		return commit.ListJSON[store.Membership](t, "members", prefix)
	}
	var list []store.Membership
	for _, k := range t.Keys("members_user", commit.Key(user, ""), 0) {
		name := string(k[len(user)+1:])
		if team != "" && name != team {
			continue
		}
		m, err := commit.GetJSON[store.Membership](t, "members", commit.Key(name, user))
		if err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	return list, nil
}

// teamOf returns the team that an identity implies, or "" for an identity on a chat
// platform, which determines the team itself. People in no chat are in [store.LocalTeam], so
// that a team's credentials and documents reach them.
func teamOf(id string) string {
	for _, prefix := range []string{"local:", store.NamedIdentity, store.SCIMIdentity, identity.Prefix} {
		if strings.HasPrefix(id, prefix) {
			return store.LocalTeam
		}
	}
	return ""
}
