package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"nize/store"
)

// view is what one caller may use, decided once per request: the agent's
// patterns and the person's standing denials are read here, not per tool.
type view struct {
	by      store.Caller
	groups  []string // that the person is in
	servers []string
	agent   store.Agent   // the zero one outside a conversation
	limited bool          // the agent has patterns
	grants  []store.Grant // the standing answers for the person's calls here
	denied  []string      // the tools among them that are denied
	off     []string      // the servers that the person switched off for themselves
	scoped  []string      // the token's tools: patterns
	room    store.Channel // the channel; the zero one outside any
	rules   []*rule       // those that can deny this caller anything
}

// view reads what narrows the caller's tools.
func (g *Gateway) view(ctx context.Context, by store.Caller, scope store.Scope) (*view, error) {
	if err := g.tools.load(ctx); err != nil {
		return nil, err
	}
	by, err := g.present(ctx, by)
	if err != nil {
		return nil, err
	}
	v := &view{by: by, servers: scope.Servers}
	for _, s := range by.Scopes {
		if p, ok := strings.CutPrefix(s, "tools:"); ok {
			v.scoped = append(v.scoped, p)
		}
	}
	if scope.Agent != "" {
		a, err := g.opt.Store.GetAgent(ctx, scope.Agent)
		if err != nil {
			return nil, fmt.Errorf("reading agent %s: %w", scope.Agent, err)
		}
		v.agent, v.limited = a, a.AllowedTools != nil
	}
	if v.room, err = g.room(ctx, scope); err != nil {
		return nil, err
	}
	owners := []string{by.User, store.EveryoneGrants}
	if v.room.Place != "" {
		owners = append(owners, store.ChannelGrants(v.room.Place))
	}
	grants, err := g.opt.Store.ListGrants(ctx, owners...)
	if err != nil {
		return nil, fmt.Errorf("reading grants: %w", err)
	}
	v.grants = grants
	for _, gr := range grants {
		if gr.Deny && (gr.Expires.IsZero() || g.opt.Now().Before(gr.Expires)) {
			v.denied = append(v.denied, gr.Tool)
		}
	}
	v.off = store.GetList(g.opt.Config, by.User, "servers.denied")
	if !by.IsAdmin() {
		if v.groups, err = g.opt.Groups.GroupsOf(ctx, by.User); err != nil {
			// Groups only ever allow: who can't be looked up is in none.
			g.opt.Log.Warn("reading groups; the caller counts as in none", "err", err)
		}
	}
	v.narrow()
	return v, nil
}

// present is the caller as they are now. A turn runs with the rights of its
// author, but it was written some time ago, and goes on while they are disabled
// or lowered; who came with this request was looked at just now.
func (g *Gateway) present(ctx context.Context, by store.Caller) (store.Caller, error) {
	switch by.Surface {
	case store.OnMCP, store.OnCLI, store.OnHTTP, store.OnSystem:
		return by, nil
	}
	u, err := g.opt.Store.GetUser(ctx, by.User)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return by, fmt.Errorf("reading user %s: %w", by.User, err)
	}
	if err != nil || u.State != store.Active {
		return by, &store.CallError{Code: store.CodeRefused, Message: "the person whom this is done for may not use nize any more"}
	}
	by.User, by.Role = u.ID, u.Role
	return by, nil
}

// narrow picks the rules that can deny this caller anything, so that a search
// asks each tool no others.
func (v *view) narrow() {
	v.rules = make([]*rule, 0, len(rules))
	for i := range rules {
		if r := &rules[i]; r.applies == nil || r.applies(v) {
			v.rules = append(v.rules, r)
		}
	}
}

// rule is one condition for a tool to be usable by somebody.
type rule struct {
	name    string
	yes, no string           // what is said where it allows, and where it denies
	hides   bool             // a member is not told of a tool that it denies
	own     bool             // it holds for nize's own tools, too
	applies func(*view) bool // nil: to every caller
	denies  func(*view, *entry) bool
	command func(*view, *entry) string // that lifts the denial
}

// rules are all of them, in the order in which they are asked. A search, a
// call and [Gateway.Why] walk this one list.
var rules = [...]rule{
	{"server", "its server is enabled", "its server is disabled", true, true, nil,
		func(_ *view, e *entry) bool { return e.server.Disabled },
		func(_ *view, e *entry) string { return "nizectl servers enable " + e.Server }},
	{"definition", "its definition is accepted", "its definition is not accepted", true, true, nil,
		func(_ *view, e *entry) bool { return e.State != store.ToolAccepted || e.Pin != e.Accepted },
		func(_ *view, e *entry) string {
			return "nizectl servers trust " + e.Server + " " + store.ShellWord(e.Name)
		}},
	{"sharing", "its server is shared with the person", "its server is not shared with the person", true, false, func(v *view) bool { return !v.by.IsAdmin() },
		func(v *view, e *entry) bool { return !e.server.SharedWith(v.by, v.groups) },
		func(v *view, e *entry) string {
			return "nizectl servers share " + e.Server + flagsOf("--with", e.server.Visibility, "user:"+v.by.User)
		}},
	{"denial", "nobody denied it for good", "it is denied for good", false, false, func(v *view) bool { return len(v.denied) > 0 },
		func(v *view, e *entry) bool { return slices.Contains(v.denied, e.id) },
		func(v *view, e *entry) string {
			i := slices.IndexFunc(v.grants, func(gr store.Grant) bool { return gr.Deny && gr.Tool == e.id })
			return "nizectl approvals grants revoke " + v.grants[i].ID
		}},
	{"choice", "the person did not switch its server off", "the person switched its server off for themselves", false, false, func(v *view) bool { return len(v.off) > 0 },
		func(v *view, e *entry) bool { return slices.Contains(v.off, e.Server) },
		func(v *view, e *entry) string {
			rest := slices.DeleteFunc(slices.Clone(v.off), func(s string) bool { return s == e.Server })
			if len(rest) == 0 {
				return "nizectl config unset servers.denied --user " + v.by.User
			}
			return "nizectl config set servers.denied " + strings.Join(rest, ",") + " --user " + v.by.User
		}},
	{"channel", "no channel keeps it out", "the channel does not allow its server", false, false, func(v *view) bool { return v.room.Servers != nil },
		func(v *view, e *entry) bool { return !v.room.AllowsServer(e.Server) },
		func(v *view, e *entry) string {
			return "nizectl bots channels set " + v.room.Place + " --servers " + strings.Join(append(v.room.Servers[:len(v.room.Servers):len(v.room.Servers)], e.Server), ",")
		}},
	{"conversation", "no conversation keeps it out", "the conversation does not allow its server", false, false, func(v *view) bool { return len(v.servers) > 0 },
		func(v *view, e *entry) bool { return !slices.Contains(v.servers, e.Server) },
		func(_ *view, e *entry) string { return "nizectl chat --server " + e.Server }},
	{"agent", "no agent keeps it out", "the agent does not allow it", false, false, func(v *view) bool { return v.limited },
		func(v *view, e *entry) bool { return !store.MatchAny(v.agent.AllowedTools, e.id) },
		func(v *view, e *entry) string {
			return "nizectl agents set " + v.agent.ID + flagsOf("--allow", v.agent.AllowedTools, e.id)
		}},
	{"token", "no token keeps it out", "the token does not allow it", false, false, func(v *view) bool { return len(v.scoped) > 0 },
		func(v *view, e *entry) bool { return !store.MatchAny(v.scoped, e.id) },
		func(v *view, e *entry) string {
			return "nizectl tokens create NAME --overwrite" + flagsOf("--scope", v.by.Scopes, "tools:"+e.id)
		}},
}

// flagsOf repeats a flag for what a list has and for one more: such a flag sets
// the whole list, so a command with the new one alone would take the others out.
func flagsOf(flag string, have []string, more string) string {
	var b strings.Builder
	for _, v := range append(have[:len(have):len(have)], more) {
		b.WriteString(" " + flag + " " + store.ShellWord(v))
	}
	return b.String()
}

func (r *rule) deniesTo(v *view, e *entry) bool {
	return (r.applies == nil || r.applies(v)) && r.denies(v, e)
}

// usable returns the rule that denies the caller the tool, or nil.
func (v *view) usable(e *entry) *rule {
	own := e.Server == ownServer // nize's own tools show a caller only what is theirs
	for _, r := range v.rules {
		if (r.own || !own) && r.denies(v, e) {
			return r
		}
	}
	return nil
}

// findIn returns the tool if the caller may use it. An unknown and a forbidden
// tool give the same error; only names that the caller may use are suggested.
func (g *Gateway) findIn(v *view, id string) (*entry, error) {
	if e, ok := g.tools.get(id); ok && v.usable(e) == nil {
		return e, nil
	}
	return nil, g.unknown(v, id)
}

// unknown is the error for a tool that the caller may not use or that is not
// there.
func (g *Gateway) unknown(v *view, id string) error {
	var names []string
	g.tools.each(func(e *entry) bool {
		if e.Server != ownServer && v.usable(e) == nil {
			names = append(names, e.id)
		}
		return true
	})
	slices.Sort(names)
	near := store.Nearest(id, names)
	if _, name, ok := store.SplitToolID(id); near == "" && (ok || !strings.Contains(id, ".")) {
		if !ok {
			name = id
		}
		for _, n := range names {
			if strings.HasSuffix(n, ":"+name) {
				near = n
				break
			}
		}
	}
	message := fmt.Sprintf("tool %q not found", id)
	if near != "" {
		message += "; did you mean " + near + "?"
	} else {
		message += "; search with discover_tools"
	}
	return &store.CallError{Code: store.CodeNotFound, Message: message}
}
