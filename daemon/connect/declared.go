package connect

import (
	"context"

	"nize/daemon/api"
	"nize/mcp/upstream/login"
	"nize/mcp/upstream/oauth"
	"nize/store"
)

// name returns the display name of what is connected.
func (f *flow) name() string {
	if f.service != nil {
		return f.service.Name
	}
	return f.server.Name
}

// BeginDeclared starts a login for a declared credential.
func (c *Connect) BeginDeclared(ctx context.Context, by store.Caller, req api.LoginDeclaredRequest) (none api.LoginFlow, err error) {
	d, h, err := c.opt.Declared.WhoSignsIn(ctx, by, req.ID, req.Owner)
	if err != nil {
		return none, err
	}
	forWhom := "team:" + h.Owner
	if h.Scope == "user" {
		u, err := c.opt.Users.GetUser(ctx, h.Owner)
		if err != nil {
			return none, err
		}
		forWhom = "user:" + u.Name
	}
	if err := mayPaste(by, h, forWhom, req.Paste); err != nil {
		return none, err
	}
	redirect, _, err := c.addresses()
	if err != nil {
		return none, err
	}
	return c.start(&flow{
		id: oauth.RandomText()[:22], by: by, server: login.ServerOf(d), service: &d, holder: h, forWhom: forWhom,
		request: c.opt.Logins.BeginDeclared(ctx, d, redirect), expires: c.opt.Now().Add(flowTime), state: api.LoginWaiting,
	}, req.Paste)
}

// keepDeclared stores the resulting tokens and puts them into use.
func (c *Connect) keepDeclared(ctx context.Context, f *flow, g oauth.Grant) error {
	if err := c.opt.Logins.Keep(ctx, f.by, f.server, f.holder, g); err != nil {
		return err
	}
	if err := c.opt.Declared.Reconnect(ctx, f.server.Name, f.holder); err != nil { // the login is valid even if this fails
		c.opt.Log.Warn("reopening sessions after a login", "credential", f.server.Name, "err", err)
	}
	c.tell(ctx, f)
	return nil
}
