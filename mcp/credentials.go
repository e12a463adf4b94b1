package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"nize/store"
)

// runsAs is as whom a call runs.
type runsAs struct {
	words  string
	own    bool // a credential of the requester's is among them
	shared bool // a credential of others is among them
}

// credentials says as whom a call runs, and whether others share that: a
// server that runs on a shared credential is for admins to approve, unless its
// caller brings credentials of their own. A CallError says that the
// server's auth wants a credential which nobody has set.
func (g *Gateway) credentials(ctx context.Context, by store.Caller, e *entry) (runsAs, error) {
	names := e.secrets()
	if len(names) == 0 {
		return runsAs{words: "no credential"}, nil
	}
	memberships, err := g.opt.Store.ListMembers(ctx, "", by.User)
	if err != nil {
		return runsAs{}, fmt.Errorf("reading teams: %w", err)
	}
	var teams []string
	for _, m := range memberships {
		teams = append(teams, m.Team)
	}
	list := strings.Join(names, ", ")
	for _, h := range e.server.Auth.Holders(by.User, teams) {
		if h.Scope == "system" {
			break
		}
		has, err := g.holds(ctx, h, e.Server, names)
		switch {
		case err != nil:
			return runsAs{}, err
		case h.Scope == "user" && (has == len(names) || has > 0 && e.server.Auth == store.AuthUser):
			return runsAs{words: "the requester's own credential " + list, own: true}, nil
		case h.Scope == "user" && has > 0:
			return runsAs{words: "the requester's own and shared credentials " + list, own: true, shared: true}, nil
		case has > 0:
			return runsAs{words: "the credential " + list + " of the team " + h.Owner, shared: true}, nil
		}
	}
	if e.server.Auth != store.AuthAny {
		return runsAs{}, store.NotConnected(e.Server, names[0], e.server.Auth)
	}
	return runsAs{words: "the shared credential " + list, shared: true}, nil
}

// wouldRunAs is credentials for what is described and not called: a credential
// that lacks is told in words.
func (g *Gateway) wouldRunAs(ctx context.Context, by store.Caller, e *entry) (runsAs, error) {
	as, err := g.credentials(ctx, by, e)
	var lacks *store.CallError
	if errors.As(err, &lacks) {
		return runsAs{words: "nobody: " + lacks.Message}, nil
	}
	return as, err
}

// private says whether what a tool returns is for who asked alone: it is got
// with a credential of their own, or its server is marked so.
func (e *entry) private(as runsAs) bool { return as.own || e.server.Private }

// Private says whether what a tool returns to the caller would be for them
// alone.
func (g *Gateway) Private(ctx context.Context, by store.Caller, id string) (bool, error) {
	v, err := g.view(ctx, by, store.Scope{})
	if err != nil {
		return false, err
	}
	e, err := g.findIn(v, id)
	if err != nil {
		return false, err
	}
	as, err := g.wouldRunAs(ctx, by, e)
	return err == nil && e.private(as), err
}

// private is true of a server that is gone, too: fail closed.
func (c *catalog) private(server string) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if s, ok := c.servers[server]; ok {
		return s.Private
	}
	return server != ownServer
}

// withheld is what is said in the open of a private call that the tool itself
// says has failed.
const withheld = "the tool reported an error"

// sealed takes out of an outcome what others must not read. Its result, which
// holds the words of the tool, stays.
func sealed(o store.Outcome) store.Outcome {
	o.Private = true
	if o.State == store.Failed && o.Result != nil && (o.Result.Error == nil || o.Result.Error.Code == store.CodeTool) {
		o.Reason = withheld
	}
	return o
}
