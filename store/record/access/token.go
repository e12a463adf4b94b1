package access

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"nize/store"
	"nize/store/commit"
	"nize/store/oauth"
	"nize/store/record"
)

// usedEvery is how often the last use of a token is recorded.
const usedEvery = time.Minute

// storedToken is a token with its hash, which the JSON form of a token omits.
type storedToken struct {
	store.Token
	Hash []byte `json:"hash"`
}

func (s storedToken) token() store.Token {
	t := s.Token
	copy(t.Hash[:], s.Hash)
	return t
}

func loadToken(t *commit.Tx, id []byte) (store.Token, error) {
	s, err := commit.GetJSON[storedToken](t, "tokens", id)
	return s.token(), err
}

// TokensOf returns the tokens of the user ("" is all) with that name ("" is all).
func TokensOf(t *commit.Tx, user, name string) ([]store.Token, error) {
	var prefix []byte
	switch {
	case user != "" && name != "":
		prefix = commit.Key(user, name, "")
	case user != "":
		prefix = commit.Key(user, "")
	}
	var list []store.Token
	for _, k := range t.Keys("tokens_name", prefix, 0) {
		parts := commit.SplitKey(k)
		if len(parts) != 3 {
			return nil, commit.ErrDamaged
		}
		if name != "" && parts[1] != name {
			continue
		}
		tok, err := loadToken(t, []byte(parts[2]))
		if err != nil {
			return nil, err
		}
		list = append(list, tok)
	}
	return list, nil
}

// SaveToken stores a token; a fresh one also gets its index entries.
func SaveToken(t *commit.Tx, tok store.Token, fresh bool) error {
	if err := t.PutJSON("tokens", []byte(tok.ID), storedToken{Token: tok, Hash: tok.Hash[:]}); err != nil {
		return err
	}
	if !fresh {
		return nil
	}
	if err := t.Put("tokens_hash", tok.Hash[:], []byte(tok.ID)); err != nil {
		return err
	}
	return t.Put("tokens_name", commit.Key(tok.User, tok.Name, tok.ID), nil)
}

// addToken stores a new token after checking for collisions.
func addToken(t *commit.Tx, tok store.Token) error {
	if err := commit.CheckIDs("token id", tok.ID, "token name", tok.Name, "user", tok.User); err != nil {
		return err
	}
	switch {
	case tok.Hash == [32]byte{}:
		return fmt.Errorf("%w token: it has no hash", store.ErrInvalid)
	case !tok.Expires.After(t.Now):
		return fmt.Errorf("%w token: it expires before it begins", store.ErrInvalid)
	case t.Get("tokens", []byte(tok.ID)) != nil, t.Get("tokens_hash", tok.Hash[:]) != nil:
		return fmt.Errorf("id or secret %w", store.ErrExists)
	}
	return SaveToken(t, tok, true)
}

// TokenEvent appends an event about a token, without its hash.
func TokenEvent(t *commit.Tx, by store.Caller, what string, tok store.Token) error {
	t.Change(store.Change{Kind: "token", ID: tok.ID})
	return t.Event(commit.Note{By: by, Kind: "token." + what, Subject: tok.ID, Data: struct {
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
func (d Access) CreateToken(ctx context.Context, by store.Caller, tok store.Token, overwrite bool) (store.Token, error) {
	return d.CreateTokenWithin(ctx, by, tok, overwrite, store.Quota{})
}

// keepWithin returns an error if a token exceeds the quota, and deletes the oldest ended
// tokens of a user beyond the number that may be active. That bounds the stored tokens no
// matter how often a user creates and revokes one. Deleting an ended token is safe: the
// tokens that it created have ended, too, and its events stay in the trail.
func keepWithin(t *commit.Tx, user string, q store.Quota) error {
	if q == (store.Quota{}) {
		return nil
	}
	list, err := TokensOf(t, user, "")
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(o store.Token) bool { return oauth.KindOf(o.Name) != oauth.Made })
	slices.SortFunc(list, func(a, b store.Token) int { return a.Created.Compare(b.Created) })
	active := 0
	for _, o := range list {
		if o.State(t.Now) == "active" {
			active++
		}
	}
	if int64(active) >= q.Each {
		return store.Mark(store.Errorf("%d tokens are active, and one person may have %d (the setting %s); revoke some first", active, int(q.Each), q.Limit), store.ErrRefused)
	}
	for ended := int64(len(list) - active); ended > q.Each; list = list[1:] {
		if list[0].State(t.Now) == "active" {
			continue
		}
		if err := DeleteToken(t, list[0]); err != nil {
			return err
		}
		ended--
	}
	all := int64(0)
	for _, k := range t.Keys("tokens_name", nil, 0) {
		if parts := commit.SplitKey(k); len(parts) == 3 && oauth.KindOf(parts[1]) == oauth.Made {
			all++
		}
	}
	if all >= q.All {
		return store.Mark(store.Errorf("%d tokens are kept for everybody together, the most allowed (the setting %s); an admin can raise it", int(all), q.LimitAll), store.ErrRefused)
	}
	return nil
}

// DeleteToken deletes the record of a token.
func DeleteToken(t *commit.Tx, tok store.Token) error {
	return errors.Join(t.Delete("tokens_name", commit.Key(tok.User, tok.Name, tok.ID)), t.Delete("tokens_hash", tok.Hash[:]), t.Delete("tokens", []byte(tok.ID)))
}

// CreateTokenWithin implements [store.Tokens].
func (d Access) CreateTokenWithin(ctx context.Context, by store.Caller, tok store.Token, overwrite bool, q store.Quota) (store.Token, error) {
	given := tok
	err := d.db.Write(ctx, "creating token "+tok.Name, func(t *commit.Tx) error {
		tok = given
		tok.User = d.db.Alias(tok.User)
		if _, err := commit.GetJSON[store.User](t, "users", []byte(tok.User)); err != nil {
			return fmt.Errorf("user %q: %w", tok.User, err)
		}
		others, err := TokensOf(t, tok.User, tok.Name)
		if err != nil {
			return err
		}
		taken := slices.ContainsFunc(others, func(o store.Token) bool { return o.State(t.Now) == "active" })
		if taken && !overwrite {
			return fmt.Errorf("an active token of that name %w", store.ErrExists)
		}
		if taken {
			if _, err := Revoke(t, by, tok.User, tok.Name); err != nil {
				return err
			}
		}
		if tok, err = madeBy(t, by, tok); err != nil {
			return err
		}
		if err := keepWithin(t, tok.User, q); err != nil {
			return err
		}
		tok.ID = cmp.Or(tok.ID, store.NewID(t.Now))
		if tok.Created.IsZero() {
			tok.Created = t.Now
		}
		if err := addToken(t, tok); err != nil {
			return err
		}
		return TokenEvent(t, by, "create", tok)
	})
	if err != nil {
		return store.Token{}, err
	}
	return tok, nil
}

// madeBy links a token to the one that created it. That one may just have been revoked by
// the new token of the same name.
func madeBy(t *commit.Tx, by store.Caller, tok store.Token) (store.Token, error) {
	if by.Token == "" {
		return tok, nil
	}
	maker, err := loadToken(t, []byte(by.Token))
	if err != nil {
		return tok, fmt.Errorf("the token that makes it: %w", err)
	}
	if maker.State(t.Now) != "active" {
		return tok, store.Mark(fmt.Errorf("the token that makes it has ended"), store.ErrRefused)
	}
	tok.Maker = maker.ID
	if end := maker.Ends(); tok.Expires.After(end) {
		tok.Expires = end
	}
	return tok, nil
}

// RotateToken implements [store.Tokens]. The new token has the lifetime that the old one
// was created with.
func (d Access) RotateToken(ctx context.Context, by store.Caller, r store.Rotation) (store.Token, error) {
	var tok store.Token
	err := d.db.Write(ctx, "rotating token "+r.Name, func(t *commit.Tx) error {
		if err := commit.CheckIDs("user", r.User, "token name", r.Name); err != nil {
			return err
		}
		list, err := TokensOf(t, r.User, r.Name)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(list, func(o store.Token) bool { return o.Revoked.IsZero() && o.State(t.Now) == "active" })
		if i < 0 {
			return fmt.Errorf("an active token of that name: %w", store.ErrNotFound)
		}
		old := list[i]
		tok = old
		tok.ID, tok.Prefix, tok.Hash = cmp.Or(r.Next.ID, store.NewID(t.Now)), r.Next.Prefix, r.Next.Hash
		tok.Created, tok.Expires, tok.LastUsed = t.Now, t.Now.Add(old.Expires.Sub(old.Created)), time.Time{}
		if tok.Maker != "" { // it still ends with its maker
			maker, err := loadToken(t, []byte(tok.Maker))
			if err != nil {
				return fmt.Errorf("the token that made it: %w", err)
			}
			if end := maker.Ends(); tok.Expires.After(end) {
				tok.Expires = end
			}
		}
		if err := adopt(t, old.ID, tok); err != nil {
			return err
		}
		old.Revoked = t.Now.Add(max(0, r.Grace))
		if err := SaveToken(t, old, false); err != nil {
			return err
		}
		if err := keepWithin(t, tok.User, r.Quota); err != nil {
			return err
		}
		if err := addToken(t, tok); err != nil {
			return err
		}
		t.Change(store.Change{Kind: "token", ID: old.ID})
		return TokenEvent(t, by, "rotate", tok)
	})
	if err != nil {
		return store.Token{}, err
	}
	return tok, nil
}

// RevokeTokens implements [store.Tokens].
func (d Access) RevokeTokens(ctx context.Context, by store.Caller, user, name string) (n int, err error) {
	err = d.db.Write(ctx, "revoking tokens", func(t *commit.Tx) error {
		if err := commit.CheckOptional("user", user, "token name", name); err != nil {
			return err
		}
		n, err = Revoke(t, by, user, name)
		return err
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// Revoke ends the active tokens, including those in their grace time, and the tokens that
// they created, whoever they are for.
func Revoke(t *commit.Tx, by store.Caller, user, name string) (n int, err error) {
	list, err := TokensOf(t, user, name)
	if err != nil {
		return 0, err
	}
	for _, tok := range list {
		n, err = revokeOne(t, by, tok.ID, n)
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// revokeOne revokes a token and the tokens that it created, and returns n plus their
// number.
func revokeOne(t *commit.Tx, by store.Caller, id string, n int) (int, error) {
	tok, err := loadToken(t, []byte(id))
	if err != nil || tok.State(t.Now) != "active" { // it may have been revoked together with its maker
		return n, err
	}
	tok.Revoked = t.Now
	if err := SaveToken(t, tok, false); err != nil {
		return n, err
	}
	if err := TokenEvent(t, by, "revoke", tok); err != nil {
		return n, err
	}
	n++
	if tok.SignedIn != nil && tok.Audience == store.ForMCP { // a family, which creates no tokens
		return n, nil
	}
	made, err := madeOf(t, tok.ID)
	for _, m := range made {
		if err == nil {
			n, err = revokeOne(t, by, m.ID, n)
		}
	}
	return n, err
}

// madeOf returns the active tokens that a token created.
func madeOf(t *commit.Tx, maker string) ([]store.Token, error) {
	list, err := TokensOf(t, "", "")
	return slices.DeleteFunc(list, func(tok store.Token) bool { return tok.Maker != maker || tok.State(t.Now) != "active" }), err
}

// adopt makes the tokens that a token created those of its replacement.
func adopt(t *commit.Tx, old string, by store.Token) error {
	list, err := madeOf(t, old)
	for _, tok := range list {
		tok.Maker = by.ID
		err = errors.Join(err, SaveToken(t, tok, false))
	}
	return err
}

// ListTokens implements [store.Tokens]; user "" is every user. Oldest first.
func (d Access) ListTokens(ctx context.Context, user string) (list []store.Token, err error) {
	err = d.db.Read(ctx, "listing tokens", func(t *commit.Tx) (err error) {
		list, err = TokensOf(t, user, "")
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

func checkToken(t *commit.Tx, hash [32]byte) (s checkedToken, err error) {
	id, until := t.Get("tokens_hash", hash[:]), time.Time{}
	if id == nil { // it may belong to a family
		family, ends, err := record.Access(t.KV(), hash)
		if err != nil {
			return s, err
		}
		id, until = []byte(family), ends
	}
	tok, err := loadToken(t, id)
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
	u, err := commit.GetJSON[store.User](t, "users", []byte(tok.User))
	if errors.Is(err, store.ErrNotFound) {
		err = store.Mark(fmt.Errorf("its user is gone"), store.ErrRefused)
	}
	return checkedToken{tok, u}, err
}

// Authenticate implements [store.Tokens]. It reads in one transaction and
// never waits for a write.
func (d Access) Authenticate(ctx context.Context, hash [32]byte) (store.Token, store.User, error) {
	s, err := commit.Recall(ctx, d.db, "checking token", hash, func(t *commit.Tx) (checkedToken, error) { return checkToken(t, hash) }, "tokens_hash", "oauth_access", "tokens", "users")
	tok, u := s.token, s.user
	if err != nil {
		return tok, u, err
	}
	now := d.db.Now()
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

// noted holds the uses of tokens that were recorded recently.
type noted struct {
	sync.Mutex
	at map[string]time.Time // by the token's id
}

// noteUse stores the time of the last use with the next transaction of any writer, at most
// once a minute for each token.
func (d Access) noteUse(tok store.Token, now time.Time) {
	if now.Sub(tok.LastUsed) < usedEvery {
		return
	}
	d.noted.Lock()
	recent := now.Sub(d.noted.at[tok.ID]) < usedEvery
	if !recent {
		for id, at := range d.noted.at { // older uses are stored in the token itself
			if now.Sub(at) >= usedEvery {
				delete(d.noted.at, id)
			}
		}
		d.noted.at[tok.ID] = now
	}
	d.noted.Unlock()
	if recent || d.db.Healthy() != nil { // a full queue must not delay a caller
		return
	}
	d.db.WriteLater(commit.Later{Size: 256}, func(t *commit.Tx) error {
		cur, err := loadToken(t, []byte(tok.ID))
		if err != nil || !cur.LastUsed.Before(now) {
			return nil // it was deleted, or used since: nothing to record
		}
		cur.LastUsed = now
		return SaveToken(t, cur, false)
	})
}
