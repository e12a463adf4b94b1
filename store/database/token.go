package database

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"time"

	"nize/store"
	"nize/store/record"
)

// usedEvery is how often the last use of a token is noted.
const usedEvery = time.Minute

// storedToken is a token with its hash, which its JSON form leaves out.
type storedToken struct {
	store.Token
	Hash []byte `json:"hash"`
}

func (s storedToken) token() store.Token {
	t := s.Token
	copy(t.Hash[:], s.Hash)
	return t
}

func (t *tx) loadToken(id []byte) (store.Token, error) {
	s, err := getJSON[storedToken](t, "tokens", id)
	return s.token(), err
}

// tokensOf returns the tokens of the user ("" is all) with that name ("" is all).
func (t *tx) tokensOf(user, name string) ([]store.Token, error) {
	var prefix []byte
	switch {
	case user != "" && name != "":
		prefix = key(user, name, "")
	case user != "":
		prefix = key(user, "")
	}
	var list []store.Token
	for _, k := range t.keys("tokens_name", prefix, 0) {
		parts := splitKey(k)
		if len(parts) != 3 {
			return nil, errRecord
		}
		if name != "" && parts[1] != name {
			continue
		}
		tok, err := t.loadToken([]byte(parts[2]))
		if err != nil {
			return nil, err
		}
		list = append(list, tok)
	}
	return list, nil
}

// saveToken stores a token; fresh ones get their index entries.
func (t *tx) saveToken(tok store.Token, fresh bool) error {
	if err := t.putJSON("tokens", []byte(tok.ID), storedToken{Token: tok, Hash: tok.Hash[:]}); err != nil {
		return err
	}
	if !fresh {
		return nil
	}
	if err := t.put("tokens_hash", tok.Hash[:], []byte(tok.ID)); err != nil {
		return err
	}
	return t.put("tokens_name", key(tok.User, tok.Name, tok.ID), nil)
}

// addToken stores a new token after a look at what it collides with.
func (t *tx) addToken(tok store.Token) error {
	if err := checkIDs("token id", tok.ID, "token name", tok.Name, "user", tok.User); err != nil {
		return err
	}
	switch {
	case tok.Hash == [32]byte{}:
		return fmt.Errorf("%w token: it has no hash", store.ErrInvalid)
	case !tok.Expires.After(t.now):
		return fmt.Errorf("%w token: it expires before it begins", store.ErrInvalid)
	case t.get("tokens", []byte(tok.ID)) != nil, t.get("tokens_hash", tok.Hash[:]) != nil:
		return fmt.Errorf("id or secret %w", store.ErrExists)
	}
	return t.saveToken(tok, true)
}

func (t *tx) tokenEvent(by store.Caller, what string, tok store.Token) error {
	t.change(store.Change{Kind: "token", ID: tok.ID})
	return t.event(auditNote{by: by, kind: "token." + what, subject: tok.ID, data: struct {
		Name     string    `json:"name"`
		User     string    `json:"user"`
		Prefix   string    `json:"prefix"`
		Audience string    `json:"audience"`
		Scopes   []string  `json:"scopes,omitempty"`
		Expires  time.Time `json:"expires"`
		Revoked  time.Time `json:"revoked,omitzero"`
	}{tok.Name, tok.User, tok.Prefix, tok.Audience, tok.Scopes, tok.Expires, tok.Revoked}})
}

// CreateToken implements [store.Tokens].
func (d *DB) CreateToken(ctx context.Context, by store.Caller, tok store.Token, overwrite bool) (store.Token, error) {
	given := tok
	err := d.update(ctx, "creating token "+tok.Name, func(t *tx) error {
		tok = given
		tok.User = d.alias(tok.User)
		if _, err := getJSON[store.User](t, "users", []byte(tok.User)); err != nil {
			return fmt.Errorf("user %q: %w", tok.User, err)
		}
		others, err := t.tokensOf(tok.User, tok.Name)
		if err != nil {
			return err
		}
		taken := slices.ContainsFunc(others, func(o store.Token) bool { return o.State(t.now) == "active" })
		if taken && !overwrite {
			return fmt.Errorf("an active token of that name %w", store.ErrExists)
		}
		if taken {
			if _, err := t.revoke(by, tok.User, tok.Name); err != nil {
				return err
			}
		}
		if tok, err = t.madeBy(by, tok); err != nil {
			return err
		}
		tok.ID = cmp.Or(tok.ID, store.NewID(t.now))
		if tok.Created.IsZero() {
			tok.Created = t.now
		}
		if err := t.addToken(tok); err != nil {
			return err
		}
		return t.tokenEvent(by, "create", tok)
	})
	if err != nil {
		return store.Token{}, err
	}
	return tok, nil
}

// madeBy ties a token to the one that makes it. That may just have been revoked,
// by the new one of its own name.
func (t *tx) madeBy(by store.Caller, tok store.Token) (store.Token, error) {
	if by.Token == "" {
		return tok, nil
	}
	maker, err := t.loadToken([]byte(by.Token))
	if err != nil {
		return tok, fmt.Errorf("the token that makes it: %w", err)
	}
	if maker.State(t.now) != "active" {
		return tok, store.Mark(fmt.Errorf("the token that makes it has ended"), store.ErrRefused)
	}
	tok.Maker = maker.ID
	if end := maker.Ends(); tok.Expires.After(end) {
		tok.Expires = end
	}
	return tok, nil
}

// RotateToken implements [store.Tokens]. The new token lives as long as the
// old one was meant to.
func (d *DB) RotateToken(ctx context.Context, by store.Caller, r store.Rotation) (store.Token, error) {
	var tok store.Token
	err := d.update(ctx, "rotating token "+r.Name, func(t *tx) error {
		if err := checkIDs("user", r.User, "token name", r.Name); err != nil {
			return err
		}
		list, err := t.tokensOf(r.User, r.Name)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(list, func(o store.Token) bool { return o.Revoked.IsZero() && o.State(t.now) == "active" })
		if i < 0 {
			return fmt.Errorf("an active token of that name: %w", store.ErrNotFound)
		}
		old := list[i]
		tok = old
		tok.ID, tok.Prefix, tok.Hash = cmp.Or(r.Next.ID, store.NewID(t.now)), r.Next.Prefix, r.Next.Hash
		tok.Created, tok.Expires, tok.LastUsed = t.now, t.now.Add(old.Expires.Sub(old.Created)), time.Time{}
		if tok.Maker != "" { // and it ends with its maker as before
			maker, err := t.loadToken([]byte(tok.Maker))
			if err != nil {
				return fmt.Errorf("the token that made it: %w", err)
			}
			if end := maker.Ends(); tok.Expires.After(end) {
				tok.Expires = end
			}
		}
		if err := t.addToken(tok); err != nil {
			return err
		}
		if err := t.adopt(old.ID, tok); err != nil {
			return err
		}
		old.Revoked = t.now.Add(max(0, r.Grace))
		if err := t.saveToken(old, false); err != nil {
			return err
		}
		t.change(store.Change{Kind: "token", ID: old.ID})
		return t.tokenEvent(by, "rotate", tok)
	})
	if err != nil {
		return store.Token{}, err
	}
	return tok, nil
}

// RevokeTokens implements [store.Tokens].
func (d *DB) RevokeTokens(ctx context.Context, by store.Caller, user, name string) (n int, err error) {
	err = d.update(ctx, "revoking tokens", func(t *tx) error {
		if err := checkOptional("user", user, "token name", name); err != nil {
			return err
		}
		n, err = t.revoke(by, user, name)
		return err
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// revoke ends the active tokens, those in their grace time included, and what
// they made, whoever it is for.
func (t *tx) revoke(by store.Caller, user, name string) (n int, err error) {
	list, err := t.tokensOf(user, name)
	if err != nil {
		return 0, err
	}
	for _, tok := range list {
		n, err = t.revokeOne(by, tok.ID, n)
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// revokeOne revokes a token and what it made, and counts on from n.
func (t *tx) revokeOne(by store.Caller, id string, n int) (int, error) {
	tok, err := t.loadToken([]byte(id))
	if err != nil || tok.State(t.now) != "active" { // its maker may have taken it along
		return n, err
	}
	tok.Revoked = t.now
	if err := t.saveToken(tok, false); err != nil {
		return n, err
	}
	if err := t.tokenEvent(by, "revoke", tok); err != nil {
		return n, err
	}
	n++
	if tok.SignedIn != nil && tok.Audience == store.ForMCP { // a family, which makes none
		return n, nil
	}
	made, err := t.madeOf(tok.ID)
	for _, m := range made {
		if err == nil {
			n, err = t.revokeOne(by, m.ID, n)
		}
	}
	return n, err
}

// madeOf returns the active tokens that a token made.
func (t *tx) madeOf(maker string) ([]store.Token, error) {
	list, err := t.tokensOf("", "")
	return slices.DeleteFunc(list, func(tok store.Token) bool { return tok.Maker != maker || tok.State(t.now) != "active" }), err
}

// adopt makes what a token made that of the token which replaces it.
func (t *tx) adopt(old string, by store.Token) error {
	list, err := t.madeOf(old)
	for _, tok := range list {
		tok.Maker = by.ID
		err = errors.Join(err, t.saveToken(tok, false))
	}
	return err
}

// ListTokens implements [store.Tokens]; user "" is every user. Oldest first.
func (d *DB) ListTokens(ctx context.Context, user string) (list []store.Token, err error) {
	err = d.view(ctx, "listing tokens", func(t *tx) (err error) {
		list, err = t.tokensOf(user, "")
		return err
	})
	slices.SortFunc(list, func(a, b store.Token) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	})
	return list, err
}

// checkedToken is a token and its user.
type checkedToken struct {
	token store.Token
	user  store.User
}

func (t *tx) checkToken(hash [32]byte) (s checkedToken, err error) {
	id, until := t.get("tokens_hash", hash[:]), time.Time{}
	if id == nil { // it may be one of a family's
		family, ends, err := record.Access(kvTx{t}, hash)
		if err != nil {
			return s, err
		}
		id, until = []byte(family), ends
	}
	tok, err := t.loadToken(id)
	if err != nil {
		return s, err
	}
	if !until.IsZero() {
		tok.Hash = hash
		if until.Before(tok.Expires) {
			tok.Expires = until
		}
	}
	if subtle.ConstantTimeCompare(tok.Hash[:], hash[:]) != 1 {
		return s, store.ErrNotFound
	}
	u, err := getJSON[store.User](t, "users", []byte(tok.User))
	if errors.Is(err, store.ErrNotFound) {
		err = store.Mark(fmt.Errorf("its user is gone"), store.ErrRefused)
	}
	return checkedToken{tok, u}, err
}

// Authenticate implements [store.Tokens]. It reads in one transaction and
// never waits for a write.
func (d *DB) Authenticate(ctx context.Context, hash [32]byte) (store.Token, store.User, error) {
	s, err := recall(ctx, d, "checking token", hash, func(t *tx) (checkedToken, error) { return t.checkToken(hash) }, "tokens_hash", "oauth_access", "tokens", "users")
	tok, u := s.token, s.user
	if err != nil {
		return tok, u, err
	}
	now := d.clock.now()
	switch state := tok.State(now); {
	case state == "revoked":
		return tok, u, store.Mark(fmt.Errorf("checking token: it was revoked"), store.ErrRefused)
	case state == "expired":
		return tok, u, fmt.Errorf("checking token: %w", store.ErrExpired)
	case u.State != store.Active:
		return tok, u, store.Mark(fmt.Errorf("checking token: its user is disabled"), store.ErrRefused)
	}
	d.noteUse(tok, now)
	return tok, u, nil
}

// noteUse stores the time of the last use with the next transaction that
// anybody makes, at most once a minute for each token.
func (d *DB) noteUse(tok store.Token, now time.Time) {
	if now.Sub(tok.LastUsed) < usedEvery {
		return
	}
	d.used.Lock()
	recent := now.Sub(d.used.at[tok.ID]) < usedEvery
	if !recent {
		for id, at := range d.used.at { // what is older stands in the token itself
			if now.Sub(at) >= usedEvery {
				delete(d.used.at, id)
			}
		}
		d.used.at[tok.ID] = now
	}
	d.used.Unlock()
	if recent || d.Healthy() != nil { // a full queue must not hold up a caller
		return
	}
	d.writeLater(lazyOp{size: 256}, func(t *tx) error {
		cur, err := t.loadToken([]byte(tok.ID))
		if err != nil || !cur.LastUsed.Before(now) {
			return nil // it is gone, or was used since: nothing to note
		}
		cur.LastUsed = now
		return t.saveToken(cur, false)
	})
}
