package credentials

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"nize/daemon/api"
	"nize/daemon/control"
	"nize/mcp/upstream/login"
	"nize/store"
)

// Sealed values that servers are called with.

// List returns all credentials to an admin, and to others their own, without values.
func (c *Credentials) List(ctx context.Context, by store.Caller, _ api.Empty) (none api.List[store.Credential], err error) {
	all, err := c.Store.ListCredentials(ctx)
	if err != nil {
		return none, fmt.Errorf("listing credentials: %w", err)
	}
	if !by.IsAdmin() {
		all = slices.DeleteFunc(all, func(cred store.Credential) bool { return cred.Scope != "user" || cred.Owner != by.User })
	}
	return api.Items(all), nil
}

// putForServer seals a value that a server names.
func (c *Credentials) putForServer(ctx context.Context, by store.Caller, req api.PutCredentialRequest) (none api.Empty, err error) {
	key := req.CredentialKey
	if err := c.completeKey(ctx, by, &key); err != nil {
		return none, err
	}
	if req.Secret.IsZero() {
		return none, fmt.Errorf("%w credential: the value is empty", store.ErrInvalid)
	}
	if len(req.Secret.Reveal()) > 64<<10 {
		return none, fmt.Errorf("%w credential: the value is over 64 KiB", store.ErrInvalid)
	}
	if err := c.checkSecret(key, req.Secret.Secret); err != nil {
		return none, err
	}
	var server store.Server
	if err = store.ErrNotFound; key.Scope != "project" { // their servers are not registered
		server, err = c.Servers.Store.GetServer(ctx, key.Service)
	}
	known := err == nil
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return none, fmt.Errorf("reading server %s: %w", key.Service, err)
	}
	// If the server has a URL, the value is bound to its host and sent nowhere else.
	cred := store.Credential{CredentialKey: key, Host: cmp.Or(req.Host, control.HostOf(server)), Secret: req.Secret.Secret, Updated: c.Now()}
	if err := c.Store.PutCredentialWithin(ctx, by, cred, store.QuotaOf(c.Config, "limits.user.credentials", "limits.credentials")); err != nil {
		return none, fmt.Errorf("storing credential %s: %w", key.Name, err)
	}
	if known && !server.Disabled {
		if err := c.Pool.Reconnect(ctx, server.Name, store.Holder{Scope: key.Scope, Owner: key.Owner}); err != nil {
			c.Log.Warn("connecting with a new credential", "server", server.Name, "err", err)
		}
	}
	return none, nil
}

// completeKey fills in a key's defaults. Members may name only their own credentials, for
// servers that are shared with them.
func (c *Credentials) completeKey(ctx context.Context, by store.Caller, key *store.CredentialKey) error {
	if !by.IsAdmin() {
		if key.Scope == "" {
			key.Scope = "user"
		}
		if key.Scope != "user" || key.Owner != "" && key.Owner != by.User {
			return store.Mark(fmt.Errorf("only admins may manage other people's credentials; yours: nizectl credentials set %s %s --scope user", key.Service, key.Name), store.ErrRefused)
		}
		if _, err := c.Servers.Find(ctx, by, key.Service); err != nil {
			return err
		}
	}
	if key.Scope == "project" { // the service is the label that the project's programs give to the server
		if key.Service == "" || len(key.Service) > 200 || strings.ContainsFunc(key.Service, unicode.IsControl) {
			return fmt.Errorf("%w server label %q: use 1 to 200 bytes without line breaks", store.ErrInvalid, key.Service)
		}
	} else if err := store.CheckSlug(key.Service); err != nil {
		return err
	}
	if key.Name == "" || len(key.Name) > 128 || strings.ContainsAny(key.Name, "\x00\r\n") {
		return fmt.Errorf("%w credential name %q", store.ErrInvalid, key.Name)
	}
	switch key.Scope {
	case "", "system":
		key.Scope, key.Owner = "system", ""
	case "project":
		of, err := c.Projects.Find(ctx, by, key.Owner)
		if err != nil {
			return err
		}
		key.Owner = of.ID
	case "team":
		if key.Owner == "" {
			return fmt.Errorf("%w credential: scope %s needs an owner", store.ErrInvalid, key.Scope)
		}
	case "user":
		owner, err := c.Directory.Owner(ctx, by, key.Owner)
		if err != nil {
			return err
		}
		key.Owner = owner
	default:
		return fmt.Errorf("%w scope %q: use system, team, project or user", store.ErrInvalid, key.Scope)
	}
	return nil
}

// deleteForServer removes a sealed value that a server names.
func (c *Credentials) deleteForServer(ctx context.Context, by store.Caller, req api.DeleteCredentialRequest) (none api.Empty, err error) {
	key := store.CredentialKey{Scope: req.Scope, Owner: req.Owner, Service: req.Service, Name: req.Name}
	if err := c.completeKey(ctx, by, &key); err != nil {
		return none, err
	}
	if err := c.Store.DeleteCredential(ctx, by, key); err != nil {
		return none, fmt.Errorf("credential %s of %s: %w", key.Name, key.Service, err)
	}
	if key.Scope == "user" || key.Scope == "team" { // close the sessions that it authenticated
		return none, c.Pool.Reconnect(ctx, key.Service, store.Holder{Scope: key.Scope, Owner: key.Owner})
	}
	return none, nil
}

func (c *Credentials) checkSecret(key store.CredentialKey, secret store.Secret) error {
	if err := c.CheckSecret(key, secret); err != nil {
		return err
	}
	return login.CheckSecret(key, secret)
}
