package database

import (
	"context"
	"errors"
	"strings"

	"nize/store"
)

// PutMember implements [store.Members].
func (d *DB) PutMember(ctx context.Context, by store.Caller, m store.Membership) error {
	return d.update(ctx, "noting a member of "+m.Team, func(t *tx) error { return t.putMember(by, m) })
}

func (t *tx) putMember(by store.Caller, m store.Membership) error {
	if err := checkIDs("team", m.Team, "user", m.User, "identity", m.Identity); err != nil {
		return err
	}
	m.User = t.db.alias(m.User)
	if t.get("users", []byte(m.User)) == nil {
		return store.ErrNotFound
	}
	if t.get("members", key(m.Team, m.User)) != nil {
		return nil
	}
	if err := t.saveMember(&m); err != nil {
		return err
	}
	t.change(store.Change{Kind: "member", ID: m.User})
	return t.event(auditNote{by: by, kind: "member.put", subject: m.User, data: m})
}

func (t *tx) saveMember(m *store.Membership) error {
	if m.Since.IsZero() {
		m.Since = t.now
	}
	return errors.Join(t.putJSON("members", key(m.Team, m.User), *m), t.put("members_user", key(m.User, m.Team), nil))
}

// DeleteMember implements [store.Members].
func (d *DB) DeleteMember(ctx context.Context, by store.Caller, team, user string) error {
	return d.update(ctx, "taking a member out of "+team, func(t *tx) error { return t.deleteMember(by, team, t.db.alias(user)) })
}

func (t *tx) deleteMember(by store.Caller, team, user string) error {
	m, err := getJSON[store.Membership](t, "members", key(team, user))
	if err != nil {
		return err
	}
	if err := errors.Join(t.del("members", key(team, user)), t.del("members_user", key(user, team))); err != nil {
		return err
	}
	t.change(store.Change{Kind: "member", ID: user})
	return t.event(auditNote{by: by, kind: "member.delete", subject: user, data: m})
}

// ListMembers implements [store.Members].
func (d *DB) ListMembers(ctx context.Context, team, user string) (list []store.Membership, err error) {
	err = d.view(ctx, "listing members", func(t *tx) (err error) {
		list, err = t.members(team, d.alias(user))
		return err
	})
	return list, err
}

func (t *tx) members(team, user string) ([]store.Membership, error) {
	if user == "" {
		var prefix []byte
		if team != "" {
			prefix = key(team, "")
		}
		return listJSON[store.Membership](t, "members", prefix)
	}
	var list []store.Membership
	for _, k := range t.keys("members_user", key(user, ""), 0) {
		name := string(k[len(user)+1:])
		if team != "" && name != team {
			continue
		}
		m, err := getJSON[store.Membership](t, "members", key(name, user))
		if err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	return list, nil
}

// teamOf is the team that an identity is in by being one, or "".
func teamOf(identity string) string {
	if strings.HasPrefix(identity, "local:") {
		return store.LocalTeam
	}
	return ""
}
