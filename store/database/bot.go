package database

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"nize/store"
)

// claim is a code that makes somebody an admin.
type claim struct {
	Hash    []byte    `json:"hash"`
	Expires time.Time `json:"expires"`
}

// PutBot implements [store.Bots].
func (d *DB) PutBot(ctx context.Context, by store.Caller, b store.Bot) error {
	return d.update(ctx, "storing the bot on "+string(b.Surface), func(t *tx) error {
		b := b
		if err := checkIDs("surface", string(b.Surface), "team", b.Team, "bot user", b.User); err != nil {
			return err
		}
		var sealed []byte
		if v := t.get("bots", []byte(b.Surface)); v != nil {
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
			sealed = t.seal("bots", string(b.Surface), text)
		}
		if len(sealed) == 0 {
			return fmt.Errorf("%w bot: it has no tokens", store.ErrInvalid)
		}
		if b.Connected.IsZero() {
			b.Connected = t.now
		}
		head, err := json.Marshal(b)
		if err != nil {
			return err
		}
		if err := t.put("bots", []byte(b.Surface), pack(head, sealed)); err != nil {
			return err
		}
		t.change(store.Change{Kind: "bot", ID: string(b.Surface)})
		return t.event(auditNote{by: by, kind: "bot.put", subject: string(b.Surface), data: b})
	})
}

func decodeBot(v []byte) (b store.Bot, sealed []byte, err error) {
	parts, err := unpackN(v, 2)
	if err != nil {
		return b, nil, err
	}
	b, err = decodeJSON[store.Bot](parts[0])
	return b, cloneBytes(parts[1]), err
}

// GetBot implements [store.Bots].
func (d *DB) GetBot(ctx context.Context, at store.Surface) (b store.Bot, err error) {
	var sealed []byte
	err = d.view(ctx, "reading the bot on "+string(at), func(t *tx) (err error) {
		v := t.get("bots", []byte(at))
		if v == nil {
			return store.ErrNotFound
		}
		b, sealed, err = decodeBot(v)
		return err
	})
	if err != nil {
		return store.Bot{}, err
	}
	plain, err := d.unseal("bots", string(at), sealed)
	if err != nil {
		return store.Bot{}, fmt.Errorf("opening the tokens of the bot on %s: %w", at, err)
	}
	tokens, err := decodeJSON[map[string]string](plain)
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
func (d *DB) DeleteBot(ctx context.Context, by store.Caller, at store.Surface) error {
	return d.update(ctx, "removing the bot on "+string(at), func(t *tx) error {
		if t.get("bots", []byte(at)) == nil {
			return store.ErrNotFound
		}
		if err := t.del("bots", []byte(at)); err != nil {
			return err
		}
		if err := t.del("claims", []byte(at)); err != nil {
			return err
		}
		t.change(store.Change{Kind: "bot", ID: string(at)})
		return t.event(auditNote{by: by, kind: "bot.delete", subject: string(at)})
	})
}

// PutClaim implements [store.Bots].
func (d *DB) PutClaim(ctx context.Context, by store.Caller, at store.Surface, hash [32]byte, expires time.Time) error {
	return d.update(ctx, "storing a claim code", func(t *tx) error {
		if err := checkIDs("surface", string(at)); err != nil {
			return err
		}
		if err := t.putJSON("claims", []byte(at), claim{Hash: hash[:], Expires: expires}); err != nil {
			return err
		}
		return t.event(auditNote{by: by, kind: "claim.put", subject: string(at)})
	})
}

// Claim implements [store.Bots].
func (d *DB) Claim(ctx context.Context, at store.Surface, hash [32]byte, who store.Claimer) (u store.User, err error) {
	err = d.update(ctx, "claiming the role of an admin", func(t *tx) error {
		if err := checkIDs("identity", who.Identity); err != nil {
			return err
		}
		c, err := getJSON[claim](t, "claims", []byte(at))
		if err != nil {
			return err
		}
		switch {
		case string(c.Hash) != string(hash[:]): // of 60 random bits, so its timing tells nothing
			return store.ErrNotFound
		case !t.now.Before(c.Expires):
			return store.ErrExpired
		}
		if id := t.get("identities", []byte(who.Identity)); id != nil {
			if u, err = getJSON[store.User](t, "users", id); err != nil {
				return err
			}
		} else {
			u = store.User{ID: store.NewID(t.now), Name: who.Name, State: store.Active, Identities: []string{who.Identity}, Created: t.now}
			if err := t.put("identities", []byte(who.Identity), []byte(u.ID)); err != nil {
				return err
			}
		}
		if u.State != store.Active {
			return store.Mark(fmt.Errorf("this user is disabled"), store.ErrRefused)
		}
		u.Role = store.Admin
		if err := t.del("claims", []byte(at)); err != nil {
			return err
		}
		by := store.Caller{User: u.ID, Name: u.Name, Role: u.Role, Surface: at, Identity: who.Identity}
		if err := t.event(auditNote{by: by, kind: "claim.use", subject: u.ID}); err != nil {
			return err
		}
		return t.saveUser(by, u)
	})
	if err != nil {
		return store.User{}, err
	}
	return u, nil
}
