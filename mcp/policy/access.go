package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"nize/store"
	"nize/store/credential"
	"nize/store/printable"
)

// View is the set of tools that one caller may use. It is computed once per request: the
// agent's patterns and the person's standing denials are read when it is created, not per
// tool.
type View struct {
	by       store.Caller
	scope    store.Scope
	groups   []string                    // groups of the person
	agent    store.Agent                 // the zero value outside a conversation
	limited  bool                        // the agent has patterns
	grants   []store.Grant               // the standing answers that apply to the person's calls here
	denied   []string                    // tools that standing answers deny
	off      []string                    // servers that the person switched off for themselves
	scoped   []string                    // patterns of the token's tools
	named    []string                    // all patterns that may name a native tool
	channel  store.Channel               // the zero value outside a channel
	declared map[string]credential.State // the declared credentials
	rules    []*rule                     // the rules that can deny this caller anything
}

// View returns the caller's view in a scope.
func (p *Engine) View(ctx context.Context, by store.Caller, scope store.Scope) (*View, error) {
	if err := p.tools.Load(ctx); err != nil {
		return nil, err
	}
	by, err := p.present(ctx, by)
	if err != nil {
		return nil, err
	}
	v := &View{by: by, scope: scope}
	for _, s := range by.Scopes {
		if pattern, ok := strings.CutPrefix(s, "tools:"); ok {
			v.scoped = append(v.scoped, pattern)
		} else if mode, ok := strings.CutPrefix(s, "expose:"); ok {
			v.named = append(v.named, store.ExposePatterns(mode)...)
		}
	}
	if scope.Agent != "" {
		a, err := p.store.GetAgent(ctx, scope.Agent)
		if err != nil {
			return nil, fmt.Errorf("reading agent %s: %w", scope.Agent, err)
		}
		v.agent, v.limited = a, a.AllowedTools != nil
	}
	v.named = slices.Concat(v.named, v.scoped, v.agent.AllowedTools, scope.Tools)
	if v.channel, err = p.channelOf(ctx, scope); err != nil {
		return nil, err
	}
	owners := []string{by.User, store.EveryoneGrants}
	if v.channel.Place != "" {
		owners = append(owners, store.ChannelGrants(v.channel.Place))
	}
	for _, conversation := range []string{scope.Thread, scope.Session} {
		if conversation != "" {
			owners = append(owners, store.ConversationGrants(conversation))
		}
	}
	grants, err := p.store.ListGrants(ctx, owners...)
	if err != nil {
		return nil, fmt.Errorf("reading grants: %w", err)
	}
	v.grants = grants
	for _, gr := range grants {
		if gr.Deny && (gr.Expires.IsZero() || p.now().Before(gr.Expires)) {
			v.denied = append(v.denied, gr.Tool)
		}
	}
	own, err := store.ReadConfig(ctx, p.config, by.User)
	if err != nil {
		return nil, fmt.Errorf("reading which servers %s switched off: %w", by.User, err)
	}
	v.off = store.GetList(own, by.User, "servers.denied")
	if p.credentials != nil {
		if v.declared, err = p.credentials.Offered(ctx, by.User); err != nil {
			return nil, fmt.Errorf("reading declared credentials: %w", err)
		}
	}
	if !by.IsAdmin() {
		if v.groups, err = p.groups.GroupsOf(ctx, by.User); err != nil {
			// Groups only ever allow, so a caller whose groups can't be read is in none.
			p.log.Warn("reading groups; treating the caller as in none", "err", err)
		}
	}
	v.selectRules()
	return v, nil
}

// present returns the caller's current rights. A turn runs with the rights of its author,
// who may have been disabled or demoted since they wrote it; a caller that came with this
// request was just read.
func (p *Engine) present(ctx context.Context, by store.Caller) (store.Caller, error) {
	switch by.Surface {
	case store.OnMCP, store.OnCLI, store.OnSystem:
		return by, nil
	case store.OnHTTP:
		if strings.HasPrefix(by.User, "project:") {
			return by, nil
		}
	}
	u, err := p.store.GetUser(ctx, by.User)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return by, fmt.Errorf("reading user %s: %w", by.User, err)
	}
	if err != nil || u.State != store.Active {
		return by, &store.CallError{Code: store.CodeRefused, Message: store.Textf("the user that this is done for may no longer use nize")}
	}
	by.User, by.Role = u.ID, u.Role
	return by, nil
}

// selectRules selects the rules that can deny this caller anything, so that a search
// evaluates no other rules per tool.
func (v *View) selectRules() {
	v.rules = make([]*rule, 0, len(rules))
	for i := range rules {
		if r := &rules[i]; r.applies == nil || r.applies(v) {
			v.rules = append(v.rules, r)
		}
	}
}

// rule is one condition for a caller to be able to use a tool.
type rule struct {
	name    string
	yes     string           // reason if it allows
	no      store.Text       // reason if it denies
	hides   bool             // a tool that it denies is hidden from members
	builtin bool             // it also applies to nize's own tools
	applies func(*View) bool // nil means every caller
	denies  func(*View, *Tool) bool
	command func(*View, *Tool) string // command that removes the denial
}

// rules lists all rules in the order of evaluation. Searches, calls and [Engine.Explain]
// all use this list.
var rules = [...]rule{
	{"server", "its server is enabled", store.Textf("its server is disabled"), true, true, nil,
		func(_ *View, t *Tool) bool { return t.Record.Disabled },
		func(_ *View, t *Tool) string { return "nizectl servers enable " + t.Server }},
	{"schema", "its schemas are safe to use", store.Textf("its schema is refused as dangerous; it can only be fixed at its server"), true, true, nil,
		func(_ *View, t *Tool) bool { return t.State == store.ToolRefused },
		func(*View, *Tool) string { return "" }},
	{"definition", "its definition is accepted", store.Textf("its definition is not accepted"), true, true, nil,
		func(_ *View, t *Tool) bool { return t.State != store.ToolAccepted || t.Pin != t.Accepted },
		func(_ *View, t *Tool) string {
			return "nizectl servers trust " + t.Server + " " + printable.ShellWord(t.Name)
		}},
	{"asker", "it is asked about", store.Textf("only the program that asks about it can run it"), true, false, nil,
		func(v *View, t *Tool) bool { return t.Asked() && !v.scope.Ask },
		func(*View, *Tool) string { return "" }},
	{"view", "models and clients may call it", store.Textf("only views of its server may call it"), true, false, nil,
		func(v *View, t *Tool) bool {
			return t.view != nil && (t.view.NotApp && v.scope.View || t.view.NotModel && !v.scope.View)
		},
		func(*View, *Tool) string { return "" }},
	{"sharing", "its server is shared with the person", store.Textf("its server is not shared with the person"), true, false, func(v *View) bool { return !v.by.IsAdmin() },
		func(v *View, t *Tool) bool { return !t.Record.SharedWith(v.by, v.groups) },
		func(v *View, t *Tool) string {
			return "nizectl servers share " + t.Server + flagsOf("--with", t.Record.Visibility, "user:"+v.by.User)
		}},
	{"native", "a list names it", store.Textf("a native tool must be named in the list of the agent, the token or the request"), true, false, nil,
		func(v *View, t *Tool) bool { return t.Server == NativeServer && !v.namesNative(t.id) },
		func(v *View, t *Tool) string {
			everything := []string{"*"} // the patterns of a token without a list
			if v.by.Token != "" {
				have := v.by.Scopes
				if len(v.scoped) == 0 {
					have = append(slices.Clone(have), "tools:*")
				}
				return "nizectl tokens create NAME --overwrite" + flagsOf("--scope", have, "tools:"+t.id)
			}
			if v.limited {
				everything = v.agent.AllowedTools
			}
			return "nizectl agents set " + cmp.Or(v.agent.ID, "AGENT") + flagsOf("--allow", everything, t.id)
		}},
	{"denial", "nobody denied it for good", store.Textf("a standing answer denies it"), false, false, func(v *View) bool { return len(v.denied) > 0 },
		func(v *View, t *Tool) bool { return slices.Contains(v.denied, t.id) },
		func(v *View, t *Tool) string {
			i := slices.IndexFunc(v.grants, func(gr store.Grant) bool { return gr.Deny && gr.Tool == t.id })
			return "nizectl approvals grants revoke " + v.grants[i].ID
		}},
	{"choice", "the person did not switch its server off", store.Textf("the person switched its server off for themselves"), false, false, func(v *View) bool { return len(v.off) > 0 },
		func(v *View, t *Tool) bool { return slices.Contains(v.off, t.Server) },
		func(v *View, t *Tool) string {
			rest := slices.DeleteFunc(slices.Clone(v.off), func(s string) bool { return s == t.Server })
			if len(rest) == 0 {
				return "nizectl config unset servers.denied --user " + v.by.User
			}
			return "nizectl config set servers.denied " + strings.Join(rest, ",") + " --user " + v.by.User
		}},
	{"connection", "no credential lacks that it is called with", store.Textf("the person has no credential for it"), false, false, nil,
		func(v *View, t *Tool) bool { return t.credential != "" && !v.declared[t.credential].Offered },
		func(v *View, t *Tool) string {
			switch d, ok := v.declared[t.credential]; {
			case !ok:
				return "nizectl credentials declare " + t.credential
			case d.Mode.Auth() == store.AuthTeam:
				return "nizectl credentials set " + d.ID + " --owner TEAM"
			}
			return "nizectl credentials set " + t.credential + " --owner " + v.by.User
		}},
	{"channel", "no channel keeps it out", store.Textf("the channel does not allow its server"), false, false, func(v *View) bool { return v.channel.Servers != nil },
		func(v *View, t *Tool) bool { return !v.channel.AllowsServer(t.Server) },
		func(v *View, t *Tool) string {
			return "nizectl bots channels set " + v.channel.Place + " --servers " + strings.Join(append(v.channel.Servers[:len(v.channel.Servers):len(v.channel.Servers)], t.Server), ",")
		}},
	{"conversation", "no conversation keeps it out", store.Textf("the conversation does not allow its server"), false, false, func(v *View) bool { return len(v.scope.Servers) > 0 },
		func(v *View, t *Tool) bool { return !slices.Contains(v.scope.Servers, t.Server) },
		func(_ *View, t *Tool) string { return "nizectl chat --server " + t.Server }},
	{"agent", "no agent keeps it out", store.Textf("the agent does not allow it"), false, false, func(v *View) bool { return v.limited },
		func(v *View, t *Tool) bool { return !store.MatchAny(v.agent.AllowedTools, t.id) },
		func(v *View, t *Tool) string {
			return "nizectl agents set " + v.agent.ID + flagsOf("--allow", v.agent.AllowedTools, t.id)
		}},
	{"token", "no token keeps it out", store.Textf("the token does not allow it"), false, false, func(v *View) bool { return len(v.scoped) > 0 },
		func(v *View, t *Tool) bool { return !store.MatchAny(v.scoped, t.id) },
		func(v *View, t *Tool) string {
			return "nizectl tokens create NAME --overwrite" + flagsOf("--scope", v.by.Scopes, "tools:"+t.id)
		}},
}

// namesNative reports whether a list names a native tool. A caller at the command line
// names the tool by calling it.
func (v *View) namesNative(id string) bool {
	return v.by.Surface == store.OnCLI && v.scope.Agent == "" || store.MatchAny(v.named, id)
}

// flagsOf repeats a flag for each value of a list and for one more. Such a flag replaces
// the whole list, so a command with only the new value would remove the others.
func flagsOf(flag string, have []string, more string) string {
	var b strings.Builder
	for _, v := range append(have[:len(have):len(have)], more) {
		b.WriteString(" " + flag + " " + printable.ShellWord(v))
	}
	return b.String()
}

// reason returns why the rule denies a tool; for a refused schema it returns the schema's
// error.
func (r *rule) reason(t *Tool) store.Text {
	if r.name == "schema" && len(t.Findings) > 0 {
		return store.Textf("%s (%s)", r.no, t.Findings[0])
	}
	return r.no
}

func (r *rule) deniesTo(v *View, t *Tool) bool {
	return (r.applies == nil || r.applies(v)) && r.denies(v, t)
}

// denyingRule returns the first rule that denies the caller the tool, or nil.
func (v *View) denyingRule(t *Tool) *rule {
	builtin := t.Server == BuiltinServer // nize's own tools only show a caller their own data
	for _, r := range v.rules {
		if (r.builtin || !builtin) && r.denies(v, t) {
			return r
		}
	}
	return nil
}

// Usable reports whether the caller may use the tool.
func (v *View) Usable(t *Tool) bool { return v.denyingRule(t) == nil }

// Denial returns why the caller may not use the tool, or the zero Text if they may.
func (v *View) Denial(t *Tool) store.Text {
	if r := v.denyingRule(t); r != nil {
		return r.no
	}
	return store.Text{}
}

// Find returns the tool if the caller may use it. A caller who may know that the tool
// exists gets the reason for the denial; for all others the tool is unknown, and only names
// that they may use are suggested.
func (p *Engine) Find(v *View, id string) (*Tool, error) {
	t, ok := p.tools.Get(id)
	if !ok {
		return nil, p.unknown(v, id)
	}
	r := v.denyingRule(t)
	switch {
	case r == nil:
		return t, nil
	case !v.knows(t), r.name == "view": // no command removes this denial
		return nil, p.unknown(v, id)
	}
	if r.name == "connection" {
		if d, ok := v.declared[t.credential]; ok {
			return nil, d.Missing()
		}
		return nil, credential.NotDeclared(t.credential)
	}
	no := r.reason(t)
	why := store.Textf("%s can't be used: %s", t.id, no)
	if command := r.command(v, t); command != "" && v.mayLift(r, t) {
		why = store.Textf("%s can't be used: %s; to change that: %s", t.id, no, command)
	}
	return nil, &store.CallError{Code: store.CodeRefused, Message: why}
}

// knows reports whether the caller may know that a tool which they may not use exists.
// Admins may know of any tool, other users of tools that no rule hides from them. A token
// may know only of its own tools.
func (v *View) knows(t *Tool) bool {
	return !slices.ContainsFunc(rules[:], func(r rule) bool {
		return (r.hides && !v.by.IsAdmin() || r.name == "token") && r.deniesTo(v, t)
	})
}

// mayLift reports whether the caller has the right to remove the rule's denial of a tool.
func (v *View) mayLift(r *rule, t *Tool) bool {
	switch {
	case v.by.IsAdmin(), r.name == "choice":
		return true
	case r.name == "denial":
		i := slices.IndexFunc(v.grants, func(gr store.Grant) bool { return gr.Deny && gr.Tool == t.id })
		return i >= 0 && v.grants[i].User == v.by.User
	}
	return false
}

// unknown returns the error for a tool that the caller may not use or that doesn't exist.
func (p *Engine) unknown(v *View, id string) error {
	var names []string
	p.tools.Each(func(t *Tool) bool {
		if t.Server != BuiltinServer && v.Usable(t) {
			names = append(names, t.id)
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
	message := store.Textf("%s; search with discover_tools", store.Textf("tool %q not found", id))
	if near != "" {
		message = store.Textf("tool %q not found; did you mean %s?", id, near)
	}
	return &store.CallError{Code: store.CodeNotFound, Message: message}
}
