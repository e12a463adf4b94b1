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
			m.Identity, m.Subject, m.Read = id, subject, r.SignedIn
			if m.Refresh, err = readToken(t, id); err != nil {
				return err
			}
			if m.IDToken, err = readToken(t, id+idTokenSuffix); err != nil {
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
		return putTokens(t, id, refresh, store.Secret{})
	})
}

// idTokenSuffix follows the identity in the key of an ID token. A refresh token has the
// identity itself as its key. Neither an issuer nor a subject ends like this.
const idTokenSuffix = "\x00id_token"

// putTokens stores the provider's tokens for an identity: the refresh token, or without one
// the ID token. Zero secrets delete what is stored.
func putTokens(t *commit.Tx, id string, refresh, idToken store.Secret) error {
	if !refresh.IsZero() {
		idToken = store.Secret{}
	}
	return errors.Join(putToken(t, id, refresh), putToken(t, id+idTokenSuffix, idToken))
}

func putToken(t *commit.Tx, key string, token store.Secret) error {
	if token.IsZero() {
		return t.Delete(secretsBucket, []byte(key))
	}
	return t.KV().PutSealed(secretsBucket, []byte(key), []byte(token.Reveal()))
}

// readToken returns a stored token, or the zero secret.
func readToken(t *commit.Tx, key string) (store.Secret, error) {
	plain, err := t.KV().Unseal(secretsBucket, []byte(key))
	if errors.Is(err, store.ErrNotFound) {
		return store.Secret{}, nil
	}
	return store.NewSecret(string(plain)), err
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
		if err := putTokens(t, id, store.Secret{}, store.Secret{}); err != nil {
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
