package connect

import (
	"context"
	"errors"

	"nize/daemon/api"
	"nize/mcp/upstream/login"
	"nize/mcp/upstream/oauth"
	"nize/store"
)

// join signs a person in at a server with the company's identity provider, without a
// browser. An admin who does this with nizectl also accepts the server's authorization
// server, and the tools are listed with the account of the person. It returns [login.ErrNotAnnounced] if people
// have to sign in at the server themselves.
func (c *Connect) join(ctx context.Context, by store.Caller, server store.Server, h store.Holder, forWhom string, a login.Ask) (none api.LoginFlow, err error) {
	flow := api.LoginFlow{ID: oauth.RandomText()[:22], Server: server.Name, For: forWhom, Scopes: []string{}, Expires: c.opt.Now(), State: api.LoginDone}
	adopts := by.IsAdmin() && by.Surface == store.OnCLI
	if adopts {
		if flow.Issuer, err = c.opt.Logins.Adopt(ctx, by, server, a); err != nil {
			return none, readable(err)
		}
		if err := c.useLogins(ctx, by, server); err != nil {
			return none, err
		}
	}
	person := by.User
	if h.Scope == "user" {
		person = h.Owner
	}
	c.opt.Servers.Store.AddEvent(by, store.Event{Kind: "server.login", Subject: server.Name})
	own := store.Holder{Scope: "user", Owner: person}
	err = c.opt.Pool.LogIn(ctx, by, server.Name, own, func() error { return c.opt.Logins.Join(ctx, server, own, person) })
	var lacks *oauth.LoginError
	switch {
	case errors.As(err, &lacks) && h.Scope == "system":
		return none, &api.Error{Code: "refused", Message: flow.Issuer + " is accepted, but its tools can't be listed with your account; name a person who signs in with the company's account: nizectl servers login " + server.Name + " --user PERSON"}
	case err != nil:
		return none, readable(err)
	}
	if !adopts {
		return flow, nil
	}
	if _, err := c.opt.Logins.Show(ctx, server.Name, store.ParseHolder("")); err == nil && h.Scope == "user" {
		return flow, nil // the tools are listed already
	}
	shared := store.ParseHolder("")
	stored := false
	err = c.opt.Pool.LogIn(ctx, by, server.Name, shared, func() error {
		err := c.opt.Logins.Join(ctx, server, shared, person)
		stored = err == nil
		return err
	})
	if !stored {
		return none, readable(err)
	}
	if err != nil { // the login is valid; servers list shows other problems
		c.opt.Log.Warn("listing a server after a login", "server", server.Name, "err", err)
	}
	return flow, c.opt.Servers.Gateway.Catalog.Refresh(ctx, server.Name)
}

// readable returns an error of a sign-in service as the caller sees it.
func readable(err error) error {
	if errors.Is(err, store.ErrRefused) || errors.Is(err, store.ErrInvalid) || errors.Is(err, login.ErrNotAnnounced) {
		return err
	}
	return &api.Error{Code: "unavailable", Message: store.ErrText(err)}
}
