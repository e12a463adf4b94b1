package people

import (
	"context"
	"errors"
	"slices"
	"strings"

	"nize/store"
	"nize/store/commit"
	"nize/store/identity"
	"nize/store/record/access"
)

// MembershipOf implements [identity.Store].
func (d People) MembershipOf(ctx context.Context, user string) (m identity.Membership, err error) {
	err = d.db.Read(ctx, "reading how current a person's groups are", func(t *commit.Tx) error {
		m = identity.Membership{}
		u, err := commit.GetJSON[store.User](t, "users", []byte(t.DB.Alias(user)))
		if err != nil {
			return err
		}
		m.Directory = slices.ContainsFunc(u.Identities, isSCIM)
		for _, id := range u.Identities {
			r, err := commit.GetJSON[identity.Record](t, personsBucket, []byte(id))
			if !strings.HasPrefix(id, identity.Prefix) || errors.Is(err, store.ErrNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			if r.SignedIn.Before(m.Read) {
				continue
			}
			_, subject, _ := strings.Cut(id, "#")
			m.Identity, m.Subject, m.Read, m.Refresh = id, subject, r.SignedIn, store.Secret{}
			plain, err := t.KV().Unseal(secretsBucket, []byte(id))
			switch {
			case err == nil:
				m.Refresh = store.NewSecret(string(plain))
			case !errors.Is(err, store.ErrNotFound):
				return err
			}
		}
		return nil
	})
	return m, err
}

// KeepRefresh implements [identity.Store].
func (d People) KeepRefresh(ctx context.Context, id string, refresh store.Secret) error {
	return d.db.Write(ctx, "storing a refresh token", func(t *commit.Tx) error {
		if t.Get(personsBucket, []byte(id)) == nil {
			return store.ErrNotFound
		}
		return putRefresh(t, id, refresh)
	})
}

// putRefresh stores the provider's refresh token for an identity; the zero secret deletes it.
func putRefresh(t *commit.Tx, id string, refresh store.Secret) error {
	if refresh.IsZero() {
		return t.Delete(secretsBucket, []byte(id))
	}
	return t.KV().PutSealed(secretsBucket, []byte(id), []byte(refresh.Reveal()))
}

// EndMembership implements [identity.Store].
func (d People) EndMembership(ctx context.Context, by store.Caller, id string, rules identity.Rules) error {
	return d.db.Write(ctx, "ending a membership", func(t *commit.Tx) error {
		user := t.Get("identities", []byte(id))
		if user == nil {
			return store.ErrNotFound
		}
		u, err := commit.GetJSON[store.User](t, "users", user)
		if err != nil {
			return err
		}
		moved, err := access.SetProvided(t, id, nil)
		if err != nil {
			return err
		}
		if err := putRefresh(t, id, store.Secret{}); err != nil {
			return err
		}
		if setRole(t, &u, rules) {
			if err := saveUser(t, by, u); err != nil {
				return err
			}
		}
		if len(moved.Out) == 0 {
			return nil
		}
		return t.Event(commit.Note{By: by, Kind: "user.groups", Subject: u.ID, Data: moved})
	})
}
