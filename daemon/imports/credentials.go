package imports

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"time"

	"nize/store"
)

// sealCredentials seals a file's secrets as the server's credentials. It keeps existing
// ones, which were set by hand.
func (m *Importer) sealCredentials(ctx context.Context, by store.Caller, s store.Server, secrets map[string]store.Secret) (made, kept []string, err error) {
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		_, err := m.Servers.Store.GetCredential(ctx, credentialKey(s.Name, name))
		if err == nil {
			kept = append(kept, name)
			continue
		}
		if !errors.Is(err, store.ErrNotFound) {
			return made, kept, fmt.Errorf("reading credential %s: %w", name, err)
		}
		if err := m.sealCredential(ctx, by, s, name, secrets[name]); err != nil {
			return made, kept, err
		}
		made = append(made, name)
	}
	return made, kept, nil
}

// sealCredential stores one credential of a server, bound to its host if it has one.
func (m *Importer) sealCredential(ctx context.Context, by store.Caller, s store.Server, name string, secret store.Secret) error {
	c := store.Credential{CredentialKey: credentialKey(s.Name, name), Secret: secret, Updated: m.Now()}
	if u, err := url.Parse(s.URL); err == nil {
		c.Host = u.Host
	}
	if err := m.Servers.Store.PutCredential(ctx, by, c); err != nil {
		return fmt.Errorf("sealing credential %s of %s: %w", name, s.Name, err)
	}
	return nil
}

// removeCredentials removes credentials that this daemon has just created.
func (m *Importer) removeCredentials(ctx context.Context, by store.Caller, server string, names []string) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for _, name := range names {
		if err := m.Servers.Store.DeleteCredential(ctx, by, credentialKey(server, name)); err != nil && !errors.Is(err, store.ErrNotFound) {
			m.Log.Error("a credential is left over", "server", server, "credential", name, "err", err)
		}
	}
}

func credentialKey(server, name string) store.CredentialKey {
	return store.CredentialKey{Scope: "system", Service: server, Name: name}
}
