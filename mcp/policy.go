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
	servers []string
	allowed []string      // the agent's patterns
	limited bool          // the agent has patterns
	grants  []store.Grant // the person's standing answers
	scoped  []string      // the token's tools: patterns
}

// view reads what narrows the caller's tools.
func (g *Gateway) view(ctx context.Context, by store.Caller, scope store.Scope) (*view, error) {
	if err := g.tools.load(ctx); err != nil {
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
		v.allowed, v.limited = a.AllowedTools, a.AllowedTools != nil
	}
	grants, err := g.opt.Store.ListGrants(ctx, by.User)
	if err != nil {
		return nil, fmt.Errorf("reading grants: %w", err)
	}
	v.grants = grants
	return v, nil
}

// usable is SPEC 1's rule: the server is enabled, the definition accepted, the
// tool visible to the user, not denied by the user, and allowed by agent,
// token and conversation. It returns the rule that says no, or "".
func (v *view) usable(e *entry) string {
	id := e.ID()
	switch {
	case e.server.Disabled:
		return "its server is disabled"
	case e.State != store.ToolAccepted || e.Pin != e.Accepted:
		return "its definition is not accepted"
	case e.Server != ownServer && !visible(v.by, e.server):
		return "its server is not shared with you"
	case e.Server == ownServer:
		return "" // nize's own tools show a caller only what is theirs
	case slices.ContainsFunc(v.grants, func(gr store.Grant) bool { return gr.Deny && gr.Tool == id }):
		return "you denied it"
	case len(v.servers) > 0 && !slices.Contains(v.servers, e.Server):
		return "the conversation does not allow its server"
	case v.limited && !store.MatchAny(v.allowed, id):
		return "the agent does not allow it"
	case len(v.scoped) > 0 && !store.MatchAny(v.scoped, id):
		return "the token does not allow it"
	}
	return ""
}

// visible says whether a server is shared with the caller: admins see all,
// others what was shared with them (SPEC 22).
func visible(by store.Caller, s store.Server) bool {
	return by.IsAdmin() || slices.Contains(s.Visibility, "all") || slices.Contains(s.Visibility, "user:"+by.User)
}

// find returns the tool if the caller may use it. An unknown and a forbidden
// tool give the same error; only names that the caller may use are suggested.
func (g *Gateway) find(ctx context.Context, by store.Caller, scope store.Scope, id string) (*entry, error) {
	v, err := g.view(ctx, by, scope)
	if err != nil {
		return nil, err
	}
	return g.findIn(v, id)
}

func (g *Gateway) findIn(v *view, id string) (*entry, error) {
	if e, ok := g.tools.get(id); ok && v.usable(e) == "" {
		return e, nil
	}
	var names []string
	g.tools.each(func(e *entry) bool {
		if e.Server != ownServer && v.usable(e) == "" {
			names = append(names, e.ID())
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
	return nil, &store.CallError{Code: store.CodeNotFound, Message: message}
}

// verdict is what policy says of one call: ask, with the reason, or not.
type verdict struct {
	ask       string
	warnings  []string
	grantable bool // a standing "allow" would lift the ask
}

// judge decides whether a call needs a yes (SPEC 11); what its person denied
// for good was not found in the first place. The strictest wins: a
// conversation that read untrusted text, the system's and
// the agent's mode, the server, the request; a standing "allow" lifts only
// what the mode auto asks, never what an admin chose to have asked.
func (g *Gateway) judge(ctx context.Context, seen *view, inv *Invocation, e *entry) (verdict, error) {
	if e.Server == ownServer {
		return verdict{}, nil
	}
	by, now := seen.by, g.opt.Now()
	allowed := func(gr store.Grant) bool {
		return !gr.Deny && gr.Tool == e.ID() && gr.Pin == e.Accepted && (gr.Expires.IsZero() || now.Before(gr.Expires))
	}
	v, err := g.asks(ctx, inv.Scope, inv.Approval, e)
	if err != nil {
		return verdict{}, err
	}
	if by.Surface == store.OnCLI && by.IsAdmin() {
		return verdict{}, nil // an admin's own nizectl tools call is its own approval
	}
	if v.grantable && slices.ContainsFunc(seen.grants, allowed) {
		return verdict{}, nil
	}
	return v, nil
}

// asks is the part of judge that does not depend on the person.
func (g *Gateway) asks(ctx context.Context, scope store.Scope, request store.Approval, e *entry) (verdict, error) {
	agentMode := ""
	if scope.Agent != "" {
		a, err := g.opt.Store.GetAgent(ctx, scope.Agent)
		if err != nil {
			return verdict{}, fmt.Errorf("reading agent %s: %w", scope.Agent, err)
		}
		agentMode = a.Approval
	}
	tainted, err := g.tainted(ctx, scope.Thread)
	if err != nil {
		return verdict{}, err
	}
	list := store.GetList(g.opt.Config, "", "approvals.list")
	system := modeAsks(g.opt.Config.Get("", "approvals.mode"), list, e)
	agent := ask{}
	if agentMode != "" {
		agent = modeAsks(agentMode, list, e)
	}
	var v verdict
	if tainted {
		v.warnings = append(v.warnings, "this conversation has read untrusted text, which may have asked for this call")
	}
	switch {
	case tainted && !e.readOnly():
		v.ask = "the conversation has read untrusted text"
	case system.firm:
		v.ask = "the mode " + g.opt.Config.Get("", "approvals.mode") + " of the system asks"
	case e.server.Approval == store.ApproveAlways:
		v.ask = "the server " + e.Server + " always asks"
	case agent.firm:
		v.ask = "the agent " + scope.Agent + " asks"
	case request == store.ApproveAlways:
		v.ask = "the request asks"
	case (system.soft || agent.soft) && e.server.Approval != store.ApproveNever:
		v.ask, v.grantable = "it may change something", true
	}
	return v, nil
}

// ask is what one mode says: firmly, or softly, which a server's "never" and a
// standing "allow" lift.
type ask struct{ firm, soft bool }

func modeAsks(mode string, list []string, e *entry) ask {
	switch mode {
	case "none":
		return ask{}
	case "all":
		return ask{firm: true}
	case "whitelist":
		return ask{firm: store.MatchAny(list, e.ID())}
	case "blacklist":
		return ask{firm: !store.MatchAny(list, e.ID())}
	case "auto":
		return ask{soft: !e.readOnly()}
	}
	return ask{firm: true} // an unknown mode fails closed
}

// tainted says whether the conversation holds output of a server whose output
// an admin marked as untrusted.
func (g *Gateway) tainted(ctx context.Context, thread string) (bool, error) {
	if thread == "" || !g.tools.anyUntrusted() {
		return false, nil
	}
	calls, err := g.opt.Store.ListCalls(ctx, store.CallQuery{Thread: thread, States: []store.State{store.Done, store.Failed}, Limit: 1000})
	if err != nil {
		return false, fmt.Errorf("reading the conversation's calls: %w", err)
	}
	for _, c := range calls {
		if g.tools.untrusted(c.Server) {
			return true, nil
		}
	}
	return false, nil
}

func (c *catalog) anyUntrusted() bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, s := range c.servers {
		if s.UntrustedOutput {
			return true
		}
	}
	return false
}

// untrusted is true of a server that is gone, too: fail closed.
func (c *catalog) untrusted(server string) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	s, ok := c.servers[server]
	return s.UntrustedOutput || !ok && server != ownServer
}

// credentials says as whom a call runs and who may therefore press: a server
// that runs on a shared credential is for admins to approve, unless its caller
// brings credentials of their own (SPEC 11).
func (g *Gateway) credentials(ctx context.Context, by store.Caller, e *entry) (runsAs string, p store.Policy, err error) {
	names := e.secrets()
	if len(names) == 0 {
		return "no credential", store.ByRequester, nil
	}
	for _, n := range names {
		_, err := g.opt.Store.GetCredential(ctx, store.CredentialKey{Scope: "user", Owner: by.User, Service: e.Server, Name: n})
		if errors.Is(err, store.ErrNotFound) {
			return "the shared credential " + strings.Join(names, ", "), store.ByAdmins, nil
		}
		if err != nil {
			return "", "", fmt.Errorf("reading credential %s of %s: %w", n, e.Server, err)
		}
	}
	return "the requester's own credential " + strings.Join(names, ", "), store.ByRequester, nil
}

// may says whether the caller may say this of the call: yes is for whom the
// policy names, no also for the requester and for admins.
func may(by store.Caller, c store.Call, verb store.Verb) bool {
	named := by.User == c.By
	if c.Policy == store.ByAdmins {
		named = by.IsAdmin()
	}
	switch verb {
	case store.Approve, store.Edit:
		return named
	case store.Deny, store.Cancel:
		return named || by.User == c.By || by.IsAdmin()
	}
	return false
}

// sees says whether the caller may look at the call at all.
func sees(by store.Caller, c store.Call) bool {
	return by.User == c.By || by.IsAdmin()
}
