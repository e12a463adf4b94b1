package database

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"nize/store"
)

// credentialHead is what a credential shows without being opened.
type credentialHead struct {
	Host    string    `json:"host,omitempty"`
	Updated time.Time `json:"updated"`
}

func credentialKey(k store.CredentialKey) []byte { return key(k.Scope, k.Owner, k.Service, k.Name) }

func checkCredential(k store.CredentialKey) error {
	switch k.Scope {
	case "system":
	case "team", "project", "user":
		if err := checkIDs("owner", k.Owner); err != nil {
			return err
		}
	default:
		return fmt.Errorf("%w scope %q: use system, team, project or user", store.ErrInvalid, k.Scope)
	}
	if err := checkOptional("owner", k.Owner); err != nil {
		return err
	}
	return checkIDs("service", k.Service, "credential name", k.Name)
}

func credentialName(k store.CredentialKey) string { return k.Service + "/" + k.Name }

// PutCredential implements [store.Credentials].
func (d *DB) PutCredential(ctx context.Context, by store.Caller, c store.Credential) error {
	return d.update(ctx, "storing credential "+credentialName(c.CredentialKey), func(t *tx) error {
		return t.putCredential(by, c)
	})
}

func (t *tx) putCredential(by store.Caller, c store.Credential) error {
	if err := checkCredential(c.CredentialKey); err != nil {
		return err
	}
	at := c.Updated
	if at.IsZero() {
		at = t.now
	}
	head, err := json.Marshal(credentialHead{c.Host, at})
	if err != nil {
		return err
	}
	k := credentialKey(c.CredentialKey)
	if err := t.put("credentials", k, pack(head, t.seal("credentials", string(k), []byte(c.Secret.Reveal())))); err != nil {
		return err
	}
	return t.credentialEvent(by, "put", c.CredentialKey, c.Host)
}

func (t *tx) credentialEvent(by store.Caller, what string, k store.CredentialKey, host string) error {
	t.change(store.Change{Kind: "credential", ID: credentialName(k)})
	return t.event(auditNote{by: by, kind: "credential." + what, subject: credentialName(k), data: struct {
		store.CredentialKey
		Host string `json:"host,omitempty"`
	}{k, host}})
}

func decodeCredential(k, v []byte) (c store.Credential, sealed []byte, err error) {
	parts := splitKey(k)
	p, err := unpackN(v, 2)
	if err != nil || len(parts) != 4 {
		return c, nil, errRecord
	}
	head, err := decodeJSON[credentialHead](p[0])
	c.CredentialKey = store.CredentialKey{Scope: parts[0], Owner: parts[1], Service: parts[2], Name: parts[3]}
	c.Host, c.Updated = head.Host, head.Updated
	return c, cloneBytes(p[1]), err
}

// GetCredential implements [store.Credentials].
func (d *DB) GetCredential(ctx context.Context, ck store.CredentialKey) (store.Credential, error) {
	var (
		c      store.Credential
		sealed []byte
		k      = credentialKey(ck)
	)
	err := d.view(ctx, "reading credential "+credentialName(ck), func(t *tx) (err error) {
		v := t.get("credentials", k)
		if v == nil {
			return store.ErrNotFound
		}
		c, sealed, err = decodeCredential(k, v)
		return err
	})
	if err != nil {
		return store.Credential{}, err
	}
	plain, err := d.unseal("credentials", string(k), sealed)
	if err != nil {
		return store.Credential{}, fmt.Errorf("opening credential %s: %w", credentialName(ck), err)
	}
	c.Secret = store.NewSecret(string(plain))
	return c, nil
}

// ListCredentials implements [store.Credentials].
func (d *DB) ListCredentials(ctx context.Context) (list []store.Credential, err error) {
	err = d.view(ctx, "listing credentials", func(t *tx) error {
		return t.each("credentials", nil, func(k, v []byte) error {
			c, _, err := decodeCredential(k, v)
			list = append(list, c)
			return err
		})
	})
	return list, err
}

// DeleteCredential implements [store.Credentials].
func (d *DB) DeleteCredential(ctx context.Context, by store.Caller, ck store.CredentialKey) error {
	return d.update(ctx, "removing credential "+credentialName(ck), func(t *tx) error {
		return t.deleteCredential(by, credentialKey(ck))
	})
}

func (t *tx) deleteCredential(by store.Caller, k []byte) error {
	v := t.get("credentials", k)
	if v == nil {
		return store.ErrNotFound
	}
	c, _, err := decodeCredential(k, v)
	if err != nil {
		return err
	}
	if err := t.del("credentials", k); err != nil {
		return err
	}
	return t.credentialEvent(by, "delete", c.CredentialKey, c.Host)
}
