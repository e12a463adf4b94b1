package people

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"nize/store"
	"nize/store/commit"
	"nize/store/identity"
	"nize/store/oauth"
	"nize/store/record/access"
)

var _ identity.Store = People{}

const (
	providerBucket = "identity_provider"
	secretsBucket  = "identity_secrets"
	personsBucket  = "identity_people"
	usedBucket     = "identity_used"
)

var providerKey = []byte("oidc")

// PutIdentityProvider implements [identity.Store].
func (d People) PutIdentityProvider(ctx context.Context, by store.Caller, given identity.Provider) (p identity.Provider, err error) {
	err = d.db.Write(ctx, "storing the identity provider", func(t *commit.Tx) error {
		p = given
		if err := commit.CheckIDs("issuer", p.Issuer, "client id", p.Client, "name", p.Name, "groups claim", p.GroupsClaim); err != nil {
			return err
		}
		old, err := commit.GetJSON[identity.Provider](t, providerBucket, providerKey)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		if err == nil && (old.Issuer != p.Issuer || old.Client != p.Client) {
			if err := endProvided(t, by); err != nil {
				return err
			}
		}
		p.Updated, p.Revision = t.Now, store.NewID(t.Now)
		if p.Secret.IsZero() {
			err = t.Delete(secretsBucket, providerKey)
		} else {
			err = t.KV().PutSealed(secretsBucket, providerKey, []byte(p.Secret.Reveal()))
		}
		if err != nil {
			return err
		}
		return t.PutRecord(by, commit.Record{Kind: "identity", Bucket: providerBucket, ID: "oidc"}, p)
	})
	return p, err
}

// GetIdentityProvider implements [identity.Store].
func (d People) GetIdentityProvider(ctx context.Context) (p identity.Provider, err error) {
	err = d.db.Read(ctx, "reading the identity provider", func(t *commit.Tx) (err error) {
		if p, err = commit.GetJSON[identity.Provider](t, providerBucket, providerKey); err != nil {
			return err
		}
		plain, err := t.KV().Unseal(secretsBucket, providerKey)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		p.Secret = store.NewSecret(string(plain))
		return err
	})
	return p, err
}

// DeleteIdentityProvider implements [identity.Store].
func (d People) DeleteIdentityProvider(ctx context.Context, by store.Caller) error {
	return d.db.Write(ctx, "removing the identity provider", func(t *commit.Tx) error {
		if t.Get(providerBucket, providerKey) == nil {
			return store.ErrNotFound
		}
		if err := errors.Join(endProvided(t, by), t.Delete(secretsBucket, providerKey)); err != nil {
			return err
		}
		return t.RemoveRecord(by, commit.Record{Kind: "identity", Bucket: providerBucket, ID: "oidc"})
	})
}

// endProvided deletes the provider's groups and the roles that came from them: another
// provider must grant those again.
func endProvided(t *commit.Tx, by store.Caller) error {
	for _, k := range t.Keys(secretsBucket, []byte(identity.Prefix), 0) {
		if err := t.Delete(secretsBucket, k); err != nil {
			return err
		}
	}
	for _, k := range t.Keys("provided_of", []byte(identity.Prefix), 0) {
		parts := commit.SplitKey(k)
		if err := access.MoveProvided(t, parts[0], access.Provided{Out: parts[1:]}); err != nil {
			return err
		}
	}
	return endGroupAdmins(t, by, nil)
}

// EndGroupAdmins implements [identity.Store].
func (d People) EndGroupAdmins(ctx context.Context, by store.Caller, admins []string) error {
	return d.db.Write(ctx, "reading the groups of admins again", func(t *commit.Tx) error { return endGroupAdmins(t, by, admins) })
}

// endGroupAdmins ends the role of every such admin, even of the last admin, since only the
// group made them one. Root at the control socket can still appoint another.
func endGroupAdmins(t *commit.Tx, by store.Caller, admins []string) error {
	users, err := commit.ListJSON[store.User](t, "users", nil)
	if err != nil {
		return err
	}
	for _, u := range users {
		if u.AdminByGroup && !overlap(providedOf(t, u), admins) {
			u.Role, u.AdminByGroup = store.Member, false
			if err := saveUser(t, by, u); err != nil {
				return err
			}
		}
	}
	return nil
}

// providedOf returns the names of a user's groups at their provider.
func providedOf(t *commit.Tx, u store.User) (names []string) {
	for _, id := range u.Identities {
		names = append(names, access.ProvidedOf(t, id)...)
	}
	return names
}

func isSCIM(id string) bool { return strings.HasPrefix(id, store.SCIMIdentity) }

func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(name string) bool { return slices.Contains(b, name) })
}

// SignInPerson implements [identity.Store].
func (d People) SignInPerson(ctx context.Context, by store.Caller, p identity.Person, rules identity.Rules) (u store.User, err error) {
	var refused error
	err = d.db.Write(ctx, "signing in a person of the identity provider", func(t *commit.Tx) (err error) {
		refused = nil
		if err := commit.CheckIDs("issuer", p.Issuer, "subject", p.Subject, "identity", p.Identity()); err != nil {
			return err
		}
		u, err = findPerson(t, p, rules)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		known := err == nil
		if known && u.State != store.Active {
			return identity.ErrDisabled
		}
		groups := p.Groups
		if known && !p.GroupsKnown && (p.Partial || slices.ContainsFunc(u.Identities, isSCIM)) {
			groups = providedOf(t, u) // the directory's groups apply, or those of the last sign-in
		}
		if !overlap(groups, rules.Allowed) && len(rules.Allowed) > 0 {
			refused = identity.ErrNotAllowed
			if !known {
				return nil
			}
		}
		if !known {
			u = store.User{ID: store.NewID(t.Now), Role: store.Member, State: store.Active, Created: t.Now}
		}
		if u, err = notePerson(t, by, u, p, rules); err != nil || refused == nil {
			return err
		}
		_, err = access.Revoke(t, by, u.ID, "")
		return err
	})
	if err == nil {
		err = refused
	}
	if err != nil {
		return store.User{}, err
	}
	return u, nil
}

// findPerson returns the user who is the given person, or ErrNotFound.
func findPerson(t *commit.Tx, p identity.Person, rules identity.Rules) (u store.User, err error) {
	if id := t.Get("identities", []byte(p.Identity())); id != nil {
		return commit.GetJSON[store.User](t, "users", id)
	}
	if id := t.Get(scimIndex, userExternalKey(p.Subject)); id != nil {
		return scimUser(t, string(id))
	}
	if !rules.LinkByEmail {
		return u, store.ErrNotFound
	}
	// A user whom this provider already knows is another person, who had the address
	// before.
	return userByEmail(t, p.Email, func(id string) bool { return strings.HasPrefix(id, identity.Of(p.Issuer, "")) })
}

// userByEmail returns the one user with an email address and without a taken identity. It
// returns ErrNotFound if there is none, and identity.ErrAmbiguous if there are several.
func userByEmail(t *commit.Tx, address string, taken func(identity string) bool) (u store.User, err error) {
	email := identity.LinkableEmail(address)
	if email == "" {
		return u, store.ErrNotFound
	}
	users, err := commit.ListJSON[store.User](t, "users", nil)
	if err != nil {
		return u, err
	}
	users = slices.DeleteFunc(users, func(u store.User) bool {
		return identity.LinkableEmail(u.Email) != email || slices.ContainsFunc(u.Identities, taken)
	})
	switch len(users) {
	case 0:
		return u, store.ErrNotFound
	case 1:
		return users[0], nil
	}
	return u, identity.ErrAmbiguous
}

// notePerson stores a provider's data about a user.
func notePerson(t *commit.Tx, by store.Caller, u store.User, p identity.Person, rules identity.Rules) (store.User, error) {
	id := p.Identity()
	was, err := commit.GetJSON[identity.Record](t, personsBucket, []byte(id))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return u, err
	}
	if p.Partial && !was.SignedIn.IsZero() {
		p.Name, p.Email = was.Name, was.Email
	}
	old, err := json.Marshal(u)
	if err != nil {
		return u, err
	}
	if !slices.Contains(u.Identities, id) {
		if len(u.Identities) > 0 {
			if err := t.Event(commit.Note{By: by, Kind: "user.link", Subject: u.ID, Data: struct {
				Identity string `json:"identity"`
			}{id}}); err != nil {
				return u, err
			}
		}
		u.Identities = append(slices.Clone(u.Identities), id)
		if err := t.Put("identities", []byte(id), []byte(u.ID)); err != nil {
			return u, err
		}
	}
	// A name or address that an admin entered is kept.
	if u.Name == "" || u.Name == was.Name {
		u.Name = p.Name
	}
	if u.Email == "" || u.Email == was.Email {
		u.Email = p.Email
	}
	groups := p.Groups
	if !p.GroupsKnown {
		groups = nil
	}
	// A person has one set of groups, which the directory and sign-ins both change.
	at := id
	if i := slices.IndexFunc(u.Identities, isSCIM); i >= 0 {
		at = u.Identities[i]
	}
	var moved access.Provided
	if p.GroupsKnown || at == id && !p.Partial {
		if moved, err = access.SetProvided(t, at, groups); err != nil {
			return u, err
		}
	}
	setRole(t, &u, rules)
	now, err := json.Marshal(u)
	if err != nil {
		return u, err
	}
	if string(old) != string(now) {
		if err := saveUser(t, by, u); err != nil {
			return u, err
		}
	}
	if t.Get("members", commit.Key(store.LocalTeam, u.ID)) == nil {
		if err := putMember(t, by, store.Membership{Team: store.LocalTeam, User: u.ID, Identity: id}); err != nil {
			return u, err
		}
	}
	if len(moved.In)+len(moved.Out) > 0 {
		if err := t.Event(commit.Note{By: by, Kind: "user.groups", Subject: u.ID, Data: moved}); err != nil {
			return u, err
		}
	}
	if p.Partial && !was.SignedIn.IsZero() && !p.GroupsKnown {
		return u, nil
	}
	if !p.Partial || !p.Refresh.IsZero() || !p.IDToken.IsZero() {
		if err := putTokens(t, id, p.Refresh, p.IDToken); err != nil {
			return u, err
		}
	}
	slices.Sort(groups)
	return u, t.PutJSON(personsBucket, []byte(id), identity.Record{Name: p.Name, Email: p.Email, Groups: groups, SignedIn: t.Now})
}

// GetPerson implements [identity.Store].
func (d People) GetPerson(ctx context.Context, id string) (r identity.Record, err error) {
	err = d.db.Read(ctx, "reading what the identity provider said", func(t *commit.Tx) (err error) {
		r, err = commit.GetJSON[identity.Record](t, personsBucket, []byte(id))
		return err
	})
	return r, err
}

// dropPerson deletes the provider's data about an identity.
func dropPerson(t *commit.Tx, id string) error {
	if person, ok := strings.CutPrefix(id, store.SCIMIdentity); ok {
		s, err := commit.GetJSON[identity.SCIMUser](t, scimUsers, []byte(person))
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		return dropSCIM(t, s)
	}
	if !strings.HasPrefix(id, identity.Prefix) {
		return nil
	}
	return errors.Join(access.MoveProvided(t, id, access.Provided{Out: access.ProvidedOf(t, id)}), t.Delete(personsBucket, []byte(id)), putTokens(t, id, store.Secret{}, store.Secret{}))
}

// UseOnce implements [identity.Store]. It also deletes a few expired entries.
func (d People) UseOnce(ctx context.Context, what oauth.Hash, until time.Time) error {
	return d.db.Write(ctx, "noting what may be used once", func(t *commit.Tx) error {
		key := slices.Concat([]byte("h"), what[:])
		if t.Get(usedBucket, key) != nil {
			return fmt.Errorf("it was used before: %w", store.ErrDecided)
		}
		for _, k := range t.Keys(usedBucket, []byte("t"), 20) {
			if !commit.TimeOf(k[1:9]).Before(t.Now) {
				break
			}
			if err := errors.Join(t.Delete(usedBucket, k), t.Delete(usedBucket, slices.Concat([]byte("h"), k[9:]))); err != nil {
				return err
			}
		}
		at := commit.TimeKey(until)
		return errors.Join(t.Put(usedBucket, key, at), t.Put(usedBucket, slices.Concat([]byte("t"), at, what[:]), []byte{1}))
	})
}
