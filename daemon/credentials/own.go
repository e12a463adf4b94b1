package credentials

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"nize/bots"
	"nize/daemon/control"
	"nize/store"
)

// OwnCredential is a personal credential that a server requires, or that a person gave to
// it.
type OwnCredential struct {
	Server, Name string
	Connected    bool
}

// wantedBy returns the personal credentials that a server requires.
func wantedBy(s store.Server) (list []OwnCredential) {
	if s.Auth != store.AuthUser && s.Auth != store.AuthUserLogin {
		return nil
	}
	for _, vals := range []map[string]store.Value{s.Headers, s.Env} {
		for _, v := range vals {
			c := OwnCredential{Server: s.Name, Name: v.SecretKey}
			if v.SecretKey != "" && !slices.Contains(list, c) {
				list = append(list, c)
			}
		}
	}
	slices.SortFunc(list, func(a, b OwnCredential) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// ownOfServers returns the credentials that servers require from the caller, and those that the
// caller gave.
func (c *Credentials) ownOfServers(ctx context.Context, by store.Caller) (list []OwnCredential, err error) {
	servers, err := c.Servers.UsableBy(ctx, by)
	if err != nil {
		return nil, err
	}
	for _, s := range servers {
		list = append(list, wantedBy(s)...)
	}
	all, err := c.Store.ListCredentials(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing credentials: %w", err)
	}
	for _, given := range all {
		if given.Scope != "user" || given.Owner != by.User {
			continue
		}
		i := slices.IndexFunc(list, func(o OwnCredential) bool { return o.Server == given.Service && o.Name == given.Name })
		if i < 0 { // the server is no longer visible to them, or no longer requires it; they may still remove their value
			list = append(list, OwnCredential{Server: given.Service, Name: given.Name})
			i = len(list) - 1
		}
		list[i].Connected = true
	}
	return list, nil
}

// wantedOwn returns the credential that a server requires from the caller: the named one,
// or the only one.
func (c *Credentials) wantedOwn(ctx context.Context, by store.Caller, server, name string) (string, error) {
	if name != "" {
		_, err := c.wanting(ctx, by, server, name)
		return name, err
	}
	servers, err := c.Servers.UsableBy(ctx, by)
	if err != nil {
		return "", err
	}
	for _, s := range servers {
		if s.Name != server {
			continue
		}
		switch wants := wantedBy(s); len(wants) {
		case 0:
		case 1:
			return wants[0].Name, nil
		default:
			var names []string
			for _, w := range wants {
				names = append(names, w.Name)
			}
			return "", store.Errorf("%w: %s wants several credentials; write credentials connect %s and one of %s", store.ErrInvalid, server, server, strings.Join(names, ", "))
		}
	}
	_, err = c.wanting(ctx, by, server, "")
	return "", err
}

// wanting returns a server that requires that credential from each person, and an error as
// for an unknown server for any other.
func (c *Credentials) wanting(ctx context.Context, by store.Caller, server, name string) (store.Server, error) {
	servers, err := c.Servers.UsableBy(ctx, by)
	if err != nil {
		return store.Server{}, err
	}
	var names []string
	for _, s := range servers {
		wants := wantedBy(s)
		if len(wants) == 0 {
			continue
		}
		names = append(names, s.Name)
		if s.Name == server && slices.ContainsFunc(wants, func(w OwnCredential) bool { return w.Name == name }) {
			return s, nil
		}
	}
	if slices.Contains(names, server) {
		return store.Server{}, store.Errorf("credential %q of %s %w", bots.Brief(store.RedactText(name), 60), server, store.ErrNotFound)
	}
	return store.Server{}, store.Unknown("server that wants a credential of yours", bots.Brief(server, 60), names)
}

// putOwnForServer seals the caller's credential for a server that requires one. It is personal,
// whatever the caller's role.
func (c *Credentials) putOwnForServer(ctx context.Context, by store.Caller, server, name string, secret store.Secret) error {
	s, err := c.wanting(ctx, by, server, name)
	if err != nil {
		return err
	}
	value := strings.TrimSpace(secret.Reveal())
	if value == "" || strings.ContainsAny(value, "\x00\r\n") {
		return store.Errorf("%w credential: it is empty, or has more than one line", store.ErrInvalid)
	}
	key := store.CredentialKey{Scope: "user", Owner: by.User, Service: server, Name: name}
	if err := c.checkSecret(key, store.NewSecret(value)); err != nil {
		return err
	}
	// The value of a server with a URL is sent to its host and nowhere else.
	sealed := store.Credential{CredentialKey: key, Host: control.HostOf(s), Secret: store.NewSecret(value), Updated: c.Now()}
	if err := c.Store.PutCredential(ctx, by, sealed); err != nil {
		return fmt.Errorf("storing credential %s: %w", name, err)
	}
	return c.Pool.Reconnect(ctx, s.Name, store.Holder{Scope: "user", Owner: by.User})
}

// removeOwnOfServer deletes the credentials that the caller gave a server: the named one, or all.
func (c *Credentials) removeOwnOfServer(ctx context.Context, by store.Caller, server, name string) (gone []string, err error) {
	all, err := c.Store.ListCredentials(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing credentials: %w", err)
	}
	for _, given := range all {
		if given.Scope != "user" || given.Owner != by.User || given.Service != server || name != "" && given.Name != name {
			continue
		}
		if err := c.Store.DeleteCredential(ctx, by, given.CredentialKey); err != nil {
			return nil, fmt.Errorf("credential %s of %s: %w", given.Name, server, err)
		}
		gone = append(gone, given.Name)
	}
	if len(gone) == 0 {
		return nil, store.Errorf("credential of yours for %q %w", bots.Brief(server, 60), store.ErrNotFound)
	}
	return gone, c.Pool.Reconnect(ctx, server, store.Holder{Scope: "user", Owner: by.User}) // close the sessions that it authenticated
}
