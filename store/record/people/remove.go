package people

import (
	"context"
	"errors"
	"time"

	"nize/store"
	"nize/store/commit"
	"nize/store/record"
	"nize/store/record/spending"
)

// Gone is the record of a removed user, with which their other data can be found and
// erased.
type Gone struct {
	IDs        []string  `json:"ids"` // the user's id and those joined with it
	Identities []string  `json:"identities"`
	Removed    time.Time `json:"removed"`
}

// RemoveUser implements [store.Leavers].
func (d People) RemoveUser(ctx context.Context, by store.Caller, user string) error {
	err := d.db.Write(ctx, "removing user "+user, func(t *commit.Tx) error {
		u, err := commit.GetJSON[store.User](t, "users", []byte(d.db.Alias(user)))
		if err != nil {
			return err
		}
		if u.CanAdminister() {
			if err := checkAdmins(t, u.ID); err != nil {
				return err
			}
		}
		return removeUser(t, by, u)
	})
	if err != nil {
		return err
	}
	return d.db.LoadAliases(ctx)
}

func removeUser(t *commit.Tx, by store.Caller, u store.User) error {
	steps := []func() error{
		func() error { return offboard(t, by, u.ID, store.Textf("its requester was removed")) },
		func() error { return moveSettings(t, u.ID, "") },
		func() error { return record.MoveHooks(t.KV(), by, u.ID, "") },
		func() error { return spending.MoveBudgets(t, by, u.ID, "") },
		func() error { return moveMembers(t, by, u.ID, "") },
		func() error { return reshare(t, by, "user:"+u.ID, "") },
		func() error { return t.Delete("link_tries", []byte(u.ID)) },
		func() error { return t.Delete("users", []byte(u.ID)) },
		func() error {
			return t.PutJSON("removed", []byte(u.ID), Gone{append([]string{u.ID}, u.Aliases...), u.Identities, t.Now})
		},
	}
	for _, id := range u.Identities {
		steps = append(steps, func() error { return dropPerson(t, id) })
		steps = append(steps, func() error { return t.Delete("identities", []byte(id)) }, func() error { return t.Delete("homes", []byte(id)) })
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	t.Change(store.Change{Kind: "user", ID: u.ID})
	return t.Event(commit.Note{By: by, Kind: "user.remove", Subject: u.ID, Data: u})
}

// RemovedUser implements [store.Leavers].
func (d People) RemovedUser(ctx context.Context, user string) (ids []string, ok bool, err error) {
	err = d.db.Read(ctx, "looking for a removed user", func(t *commit.Tx) error {
		g, err := commit.GetJSON[Gone](t, "removed", []byte(user))
		ids = g.IDs
		return err
	})
	if errors.Is(err, store.ErrNotFound) {
		return nil, false, nil
	}
	return ids, err == nil, err
}
