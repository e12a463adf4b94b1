package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"nize/daemon/api"
	"nize/daemon/monitor"
	"nize/store"
)

// listCredentials shows admins which credentials there are, others their own.
func (d *Daemon) listCredentials(ctx context.Context, by store.Caller, _ *http.Request) (any, error) {
	all, err := d.db.ListCredentials(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing credentials: %w", err)
	}
	if !by.IsAdmin() {
		all = slices.DeleteFunc(all, func(c store.Credential) bool { return c.Scope != "user" || c.Owner != by.User })
	}
	return items(all), nil
}

func (d *Daemon) putCredential(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	req, err := decode[api.PutCredential](r)
	if err != nil {
		return nil, err
	}
	key := req.CredentialKey
	if err := d.checkCredentialKey(ctx, by, &key); err != nil {
		return nil, err
	}
	if req.Secret.IsZero() {
		return nil, fmt.Errorf("%w credential: the value is empty", store.ErrInvalid)
	}
	if len(req.Secret.Reveal()) > 64<<10 {
		return nil, fmt.Errorf("%w credential: the value is over 64 KiB", store.ErrInvalid)
	}
	if err := monitor.CheckSecret(key, req.Secret.Secret); err != nil {
		return nil, err
	}
	c := store.Credential{CredentialKey: key, Host: req.Host, Secret: req.Secret.Secret, Updated: d.now()}
	s, err := d.db.GetServer(ctx, key.Service)
	known := err == nil
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("reading server %s: %w", key.Service, err)
	}
	if u, err := url.Parse(s.URL); known && err == nil && s.URL != "" && c.Host == "" {
		c.Host = u.Host // sent nowhere else
	}
	if err := d.db.PutCredential(ctx, by, c); err != nil {
		return nil, fmt.Errorf("storing credential %s: %w", key.Name, err)
	}
	if known && !s.Disabled {
		if err := d.pool.Reconnect(ctx, s.Name, store.Holder{Scope: key.Scope, Owner: key.Owner}); err != nil {
			d.log.Warn("connecting with a new credential", "server", s.Name, "err", err)
		}
	}
	return nil, nil
}

// checkCredentialKey completes a key. Whoever is no admin may name their own
// credentials only, of servers that are shared with them.
func (d *Daemon) checkCredentialKey(ctx context.Context, by store.Caller, key *store.CredentialKey) error {
	if !by.IsAdmin() {
		if key.Scope == "" {
			key.Scope = "user"
		}
		if key.Scope != "user" || key.Owner != "" && key.Owner != by.User {
			return fmt.Errorf("only admins may look after other people's credentials: %w; yours: nizectl credentials set %s %s --scope user", store.ErrRefused, key.Service, key.Name)
		}
		if _, err := d.ops.servers.Find(ctx, by, key.Service); err != nil {
			return err
		}
	}
	if err := store.CheckSlug(key.Service); err != nil {
		return err
	}
	if key.Name == "" || len(key.Name) > 128 || strings.ContainsAny(key.Name, "\x00\r\n") {
		return fmt.Errorf("%w credential name %q", store.ErrInvalid, key.Name)
	}
	switch key.Scope {
	case "", "system":
		key.Scope, key.Owner = "system", ""
	case "team", "project":
		if key.Owner == "" {
			return fmt.Errorf("%w credential: scope %s needs an owner", store.ErrInvalid, key.Scope)
		}
	case "user":
		owner, err := d.directory.Owner(ctx, by, key.Owner)
		if err != nil {
			return err
		}
		key.Owner = owner
	default:
		return fmt.Errorf("%w scope %q: use system, team, project or user", store.ErrInvalid, key.Scope)
	}
	return nil
}

func (d *Daemon) deleteCredential(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	q := r.URL.Query()
	key := store.CredentialKey{Scope: q.Get("scope"), Owner: q.Get("owner"), Service: q.Get("service"), Name: q.Get("name")}
	if err := d.checkCredentialKey(ctx, by, &key); err != nil {
		return nil, err
	}
	if err := d.db.DeleteCredential(ctx, by, key); err != nil {
		return nil, fmt.Errorf("credential %s of %s: %w", key.Name, key.Service, err)
	}
	if key.Scope == "user" || key.Scope == "team" { // what it opened must not stay open
		return nil, d.pool.Reconnect(ctx, key.Service, store.Holder{Scope: key.Scope, Owner: key.Owner})
	}
	return nil, nil
}
