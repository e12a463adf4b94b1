package access

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"nize/store"
	"nize/store/commit"
	"nize/store/kv"
)

// credentialHead is the unsealed part of a credential.
type credentialHead struct {
	Host    string    `json:"host,omitempty"`
	Updated time.Time `json:"updated"`
}

// CredentialKey returns the key of a credential in its bucket.
func CredentialKey(k store.CredentialKey) []byte {
	return commit.Key(k.Scope, k.Owner, k.Service, k.Name)
}

func checkCredential(k store.CredentialKey) error {
	switch k.Scope {
	case "system":
	case "team", "project", "user":
		if err := commit.CheckIDs("owner", k.Owner); err != nil {
			return err
		}
	default:
		return fmt.Errorf("%w scope %q: use system, team, project or user", store.ErrInvalid, k.Scope)
	}
	if err := commit.CheckOptional("owner", k.Owner); err != nil {
		return err
	}
	return commit.CheckIDs("service", k.Service, "credential name", k.Name)
}

// CredentialName returns the name of a credential for messages.
func CredentialName(k store.CredentialKey) string { return k.Service + "/" + k.Name }

// PutCredential implements [store.Credentials].
func (d Access) PutCredential(ctx context.Context, by store.Caller, c store.Credential) error {
	return d.db.Write(ctx, "storing credential "+CredentialName(c.CredentialKey), func(t *commit.Tx) error {
		return PutCredential(t, by, c)
	})
}

// PutCredentialWithin is PutCredential for a credential whose name a person chose. It
// returns ErrRefused if c belongs to a person and exceeds the quota.
func (d Access) PutCredentialWithin(ctx context.Context, by store.Caller, c store.Credential, q store.Quota) error {
	return d.db.Write(ctx, "storing credential "+CredentialName(c.CredentialKey), func(t *commit.Tx) error {
		if c.Scope == "user" && t.Get("credentials", CredentialKey(c.CredentialKey)) == nil {
			if err := checkCredentialCount(t, c.Owner, q); err != nil {
				return err
			}
		}
		return PutCredential(t, by, c)
	})
}

// checkCredentialCount returns an error if a person already has as many credentials as
// allowed.
func checkCredentialCount(t *commit.Tx, user string, q store.Quota) error {
	if mine := len(t.Keys("credentials", commit.Key("user", user, ""), 0)); int64(mine) >= q.Each {
		return store.Mark(store.Errorf("%d credentials are kept, and one person may have %d (the setting %s); remove some first", mine, int(q.Each), q.Limit), store.ErrRefused)
	}
	all := int64(0)
	for range t.Scan("credentials", kv.Range{Prefix: commit.Key("user", "")}) {
		all++
	}
	if all >= q.All {
		return store.Mark(store.Errorf("%d credentials are kept for all people together, the most allowed (the setting %s); an admin can raise it", int(all), q.LimitAll), store.ErrRefused)
	}
	return nil
}

// PutCredential seals and stores a credential and appends an event.
func PutCredential(t *commit.Tx, by store.Caller, c store.Credential) error {
	if err := checkCredential(c.CredentialKey); err != nil {
		return err
	}
	at := c.Updated
	if at.IsZero() {
		at = t.Now
	}
	head, err := json.Marshal(credentialHead{c.Host, at})
	if err != nil {
		return err
	}
	k := CredentialKey(c.CredentialKey)
	if err := t.Put("credentials", k, commit.Pack(head, t.Seal("credentials", string(k), []byte(c.Secret.Reveal())))); err != nil {
		return err
	}
	return credentialEvent(t, by, "put", c.CredentialKey, c.Host)
}

func credentialEvent(t *commit.Tx, by store.Caller, what string, k store.CredentialKey, host string) error {
	t.Change(store.Change{Kind: "credential", ID: CredentialName(k)})
	return t.Event(commit.Note{By: by, Kind: "credential." + what, Subject: CredentialName(k), Data: struct {
		store.CredentialKey
		Host string `json:"host,omitempty"`
	}{k, host}})
}

// DecodeCredential decodes a credential; its secret stays sealed.
func DecodeCredential(k, v []byte) (c store.Credential, sealed []byte, err error) {
	parts := commit.SplitKey(k)
	p, err := commit.UnpackN(v, 2)
	if err != nil || len(parts) != 4 {
		return c, nil, commit.ErrDamaged
	}
	head, err := commit.DecodeJSON[credentialHead](p[0])
	c.CredentialKey = store.CredentialKey{Scope: parts[0], Owner: parts[1], Service: parts[2], Name: parts[3]}
	c.Host, c.Updated = head.Host, head.Updated
	return c, commit.CloneBytes(p[1]), err
}

// GetCredential implements [store.Credentials].
func (d Access) GetCredential(ctx context.Context, ck store.CredentialKey) (store.Credential, error) {
	var (
		c      store.Credential
		sealed []byte
		k      = CredentialKey(ck)
	)
	err := d.db.Read(ctx, "reading credential "+CredentialName(ck), func(t *commit.Tx) (err error) {
		v := t.Get("credentials", k)
		if v == nil {
			return store.ErrNotFound
		}
		c, sealed, err = DecodeCredential(k, v)
		return err
	})
	if err != nil {
		return store.Credential{}, err
	}
	plain, err := d.db.Unseal("credentials", string(k), sealed)
	if err != nil {
		return store.Credential{}, fmt.Errorf("opening credential %s: %w", CredentialName(ck), err)
	}
	c.Secret = store.NewSecret(string(plain))
	return c, nil
}

// ListCredentials implements [store.Credentials].
func (d Access) ListCredentials(ctx context.Context) (list []store.Credential, err error) {
	err = d.db.Read(ctx, "listing credentials", func(t *commit.Tx) error {
		return t.Each("credentials", nil, func(k, v []byte) error {
			c, _, err := DecodeCredential(k, v)
			list = append(list, c)
			return err
		})
	})
	return list, err
}

// DeleteCredential implements [store.Credentials].
func (d Access) DeleteCredential(ctx context.Context, by store.Caller, ck store.CredentialKey) error {
	return d.db.Write(ctx, "removing credential "+CredentialName(ck), func(t *commit.Tx) error {
		return DeleteCredential(t, by, CredentialKey(ck))
	})
}

// DeleteCredential deletes the credential at k and appends an event.
func DeleteCredential(t *commit.Tx, by store.Caller, k []byte) error {
	v := t.Get("credentials", k)
	if v == nil {
		return store.ErrNotFound
	}
	c, _, err := DecodeCredential(k, v)
	if err != nil {
		return err
	}
	if err := t.Delete("credentials", k); err != nil {
		return err
	}
	return credentialEvent(t, by, "delete", c.CredentialKey, c.Host)
}
