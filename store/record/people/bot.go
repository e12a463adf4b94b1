package people

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"nize/store"
	"nize/store/commit"
)

// claim is a code that makes its sender an admin.
type claim struct {
	Hash    []byte    `json:"hash"`
	Expires time.Time `json:"expires"`
}

// PutBot implements [store.Bots].
func (d People) PutBot(ctx context.Context, by store.Caller, b store.Bot) error {
	return d.db.Write(ctx, "storing the bot on "+string(b.Surface), func(t *commit.Tx) error {
		b := b
		if err := commit.CheckIDs("surface", string(b.Surface), "team", b.Team, "bot user", b.User); err != nil {
			return err
		}
		var sealed []byte
		if v := t.Get("bots", []byte(b.Surface)); v != nil {
			old, was, err := decodeBot(v)
			if err != nil {
				return err
			}
			sealed = was
			if b.Connected.IsZero() {
				b.Connected = old.Connected
			}
		}
		if len(b.Tokens) > 0 {
			plain := map[string]string{}
			for name, secret := range b.Tokens {
				plain[name] = secret.Reveal()
			}
			text, err := json.Marshal(plain)
			if err != nil {
				return err
			}
			sealed = t.Seal("bots", string(b.Surface), text)
		}
		if len(sealed) == 0 {
			return fmt.Errorf("%w bot: it has no tokens", store.ErrInvalid)
		}
		if b.Connected.IsZero() {
			b.Connected = t.Now
		}
		head, err := json.Marshal(b)
		if err != nil {
			return err
		}
		if err := t.Put("bots", []byte(b.Surface), commit.Pack(head, sealed)); err != nil {
			return err
		}
		t.Change(store.Change{Kind: "bot", ID: string(b.Surface)})
		return t.Event(commit.Note{By: by, Kind: "bot.put", Subject: string(b.Surface), Data: b})
	})
}

func decodeBot(v []byte) (b store.Bot, sealed []byte, err error) {
	parts, err := commit.UnpackN(v, 2)
	if err != nil {
		return b, nil, err
	}
	b, err = commit.DecodeJSON[store.Bot](parts[0])
	return b, commit.CloneBytes(parts[1]), err
}

// GetBot implements [store.Bots].
func (d People) GetBot(ctx context.Context, at store.Surface) (b store.Bot, err error) {
	var sealed []byte
	err = d.db.Read(ctx, "reading the bot on "+string(at), func(t *commit.Tx) (err error) {
		v := t.Get("bots", []byte(at))
		if v == nil {
			return store.ErrNotFound
		}
		b, sealed, err = decodeBot(v)
		return err
	})
	if err != nil {
		return store.Bot{}, err
	}
	plain, err := d.db.Unseal("bots", string(at), sealed)
	if err != nil {
		return store.Bot{}, fmt.Errorf("opening the tokens of the bot on %s: %w", at, err)
	}
	tokens, err := commit.DecodeJSON[map[string]string](plain)
	if err != nil {
		return store.Bot{}, fmt.Errorf("reading the tokens of the bot on %s: %w", at, err)
	}
	b.Tokens = map[string]store.Secret{}
	for name, text := range tokens {
		b.Tokens[name] = store.NewSecret(text)
	}
	return b, nil
}

// DeleteBot implements [store.Bots].
func (d People) DeleteBot(ctx context.Context, by store.Caller, at store.Surface) error {
	return d.db.Write(ctx, "removing the bot on "+string(at), func(t *commit.Tx) error {
		if t.Get("bots", []byte(at)) == nil {
			return store.ErrNotFound
		}
		if err := t.Delete("bots", []byte(at)); err != nil {
			return err
		}
		if err := t.Delete("claims", []byte(at)); err != nil {
			return err
		}
		t.Change(store.Change{Kind: "bot", ID: string(at)})
		return t.Event(commit.Note{By: by, Kind: "bot.delete", Subject: string(at)})
	})
}

// PutClaim implements [store.Bots].
func (d People) PutClaim(ctx context.Context, by store.Caller, at store.Surface, hash [32]byte, expires time.Time) error {
	return d.db.Write(ctx, "storing a claim code", func(t *commit.Tx) error {
		if err := commit.CheckIDs("surface", string(at)); err != nil {
			return err
		}
		if err := t.PutJSON("claims", []byte(at), claim{Hash: hash[:], Expires: expires}); err != nil {
			return err
		}
		return t.Event(commit.Note{By: by, Kind: "claim.put", Subject: string(at)})
	})
}

// Claim implements [store.Bots].
func (d People) Claim(ctx context.Context, at store.Surface, hash [32]byte, who store.Claimer) (u store.User, err error) {
	err = d.db.Write(ctx, "claiming the role of an admin", func(t *commit.Tx) error {
		if err := commit.CheckIDs("identity", who.Identity); err != nil {
			return err
		}
		c, err := commit.GetJSON[claim](t, "claims", []byte(at))
		if err != nil {
			return err
		}
		switch {
		case string(c.Hash) != string(hash[:]): // a code has 60 random bits, so timing reveals nothing
			return store.ErrNotFound
		case !t.Now.Before(c.Expires):
			return store.ErrExpired
		}
		if id := t.Get("identities", []byte(who.Identity)); id != nil {
			if u, err = commit.GetJSON[store.User](t, "users", id); err != nil {
				return err
			}
		} else {
			u = store.User{ID: store.NewID(t.Now), Name: who.Name, State: store.Active, Identities: []string{who.Identity}, Created: t.Now}
			if err := t.Put("identities", []byte(who.Identity), []byte(u.ID)); err != nil {
				return err
			}
		}
		if u.State != store.Active {
			return store.Mark(fmt.Errorf("this user is disabled"), store.ErrRefused)
		}
		u.Role = store.Admin
		if err := t.Delete("claims", []byte(at)); err != nil {
			return err
		}
		by := store.Caller{User: u.ID, Name: u.Name, Role: u.Role, Surface: at, Identity: who.Identity}
		if err := t.Event(commit.Note{By: by, Kind: "claim.use", Subject: u.ID}); err != nil {
			return err
		}
		return saveUser(t, by, u)
	})
	if err != nil {
		return store.User{}, err
	}
	return u, nil
}
