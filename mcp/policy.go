package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"nize/store"
)

// verdict is what policy says of one call: ask, with the reason, or not.
type verdict struct {
	ask       string // "" for no
	by        string // the name of the rule that decided
	warnings  []string
	grantable bool // a standing "allow" would lift the ask
}

// question is all that the rules of asking look at, read once for a call.
type question struct {
	by      store.Caller
	entry   *entry
	mode    string   // the system's
	list    []string // approvals.list
	agent   store.Agent
	tainted bool
	request store.Approval
	grants  []store.Grant
	never   func() bool            // a request's "never" counts
	trusted bool                   // an agent that is looser than the system counts
	args    []byte                 // nil where they are not known yet
	stands  func(store.Grant) bool // its giver may still give it, and now is before its end
}

// say is what one rule of asking says. The mode auto only asks softly: what
// was decided for this case lifts that. What an admin chose to have asked, and
// taint, asks firmly; nothing lifts it.
type say int

const (
	silent say = iota
	asksSoftly
	asksFirmly
	lifts
)

// askRule is one rule about when a call needs a yes.
type askRule struct {
	name    string
	says    func(*question) say
	reason  func(*question) string // why it asks, or why it lifts that
	command func(*question) string // that changes it
}

// askRules say in order whether a call asks: the first that asks firmly decides; a
// soft ask holds unless one lifts it. A standing denial comes before all of
// them: such a tool is not usable.
var askRules = [...]askRule{
	{"taint",
		func(q *question) say { return firmIf(q.tainted && !q.entry.readOnly()) },
		func(*question) string { return "the conversation has read untrusted text" },
		func(q *question) string { return "" }},
	{"mode",
		func(q *question) say { return modeSays(q.mode, q) },
		func(q *question) string {
			if q.mode == "auto" {
				return "it may change something"
			}
			return "the mode " + q.mode + " of the system asks"
		},
		func(*question) string { return "nizectl config set approvals.mode none|all|whitelist|blacklist|auto" }},
	{"server",
		func(q *question) say { return approvalSays(q.entry.server.Approval) },
		func(q *question) string {
			if q.entry.server.Approval == store.ApproveNever {
				return "the server " + q.entry.Server + " never asks"
			}
			return "the server " + q.entry.Server + " always asks"
		},
		func(q *question) string { return "nizectl servers edit " + q.entry.Server + " --approval auto" }},
	{"agent",
		func(q *question) say {
			if q.agent.Approval == "" {
				return silent
			}
			if said := modeSays(q.agent.Approval, q); said != silent || !q.trusted {
				return said
			}
			return lifts
		},
		func(q *question) string {
			switch said := modeSays(q.agent.Approval, q); {
			case said == silent:
				return "the agent " + q.agent.ID + " does not ask"
			case said == asksSoftly:
				return "it may change something"
			}
			return "the agent " + q.agent.ID + " asks"
		},
		func(q *question) string { return "nizectl agents set " + q.agent.ID + " --approval ''" }},
	{"request",
		func(q *question) say {
			if q.request == store.ApproveNever && q.never() {
				return lifts
			}
			return firmIf(q.request == store.ApproveAlways)
		},
		func(q *question) string {
			if q.request == store.ApproveNever {
				return "the request does not ask"
			}
			return "the request asks"
		},
		func(*question) string { return "" }},
	{"grant",
		func(q *question) say {
			if slices.ContainsFunc(q.grants, q.allows) {
				return lifts
			}
			return silent
		},
		func(*question) string { return "it is always allowed" },
		func(q *question) string {
			return "nizectl approvals grants revoke " + q.grants[slices.IndexFunc(q.grants, q.allows)].ID
		}},
}

func firmIf(yes bool) say {
	if yes {
		return asksFirmly
	}
	return silent
}

func approvalSays(a store.Approval) say {
	switch a {
	case store.ApproveAlways:
		return asksFirmly
	case store.ApproveNever:
		return lifts
	}
	return silent
}

func modeSays(mode string, q *question) say {
	switch mode {
	case "none":
		return silent
	case "all":
		return asksFirmly
	case "whitelist":
		return firmIf(store.MatchAny(q.list, q.entry.id))
	case "blacklist":
		return firmIf(!store.MatchAny(q.list, q.entry.id))
	case "auto":
		if q.entry.readOnly() {
			return silent
		}
		return asksSoftly
	}
	return asksFirmly // an unknown mode fails closed
}

// allows says whether a standing answer lets this call run unasked.
func (q *question) allows(gr store.Grant) bool {
	return !gr.Deny && gr.Tool == q.entry.id && gr.Pin == q.entry.Accepted && gr.Matches(q.args) && q.stands(gr)
}

const taintWarning = "this conversation has read untrusted text, which may have asked for this call"

// decide walks the rules; it is the one place that says whether a call asks.
func (q *question) decide() verdict {
	var v verdict
	if q.entry.Server == ownServer {
		return v
	}
	if q.tainted {
		v.warnings = append(v.warnings, taintWarning)
	}
	var soft, lift *askRule
	for i := range askRules {
		r := &askRules[i]
		switch r.says(q) {
		case asksFirmly:
			v.ask, v.by = r.reason(q), r.name
			return q.own(v)
		case asksSoftly:
			if soft == nil {
				soft = r
			}
		case lifts:
			if lift == nil {
				lift = r
			}
		}
	}
	switch {
	case soft == nil:
	case lift != nil:
		v.by = lift.name
	default:
		v.ask, v.by, v.grantable = soft.reason(q), soft.name, true
	}
	return q.own(v)
}

// own lifts what is asked of an admin's own nizectl tools call: that is its
// own approval.
func (q *question) own(v verdict) verdict {
	if q.by.Surface == store.OnCLI && q.by.IsAdmin() {
		return verdict{by: "own call", warnings: v.warnings}
	}
	return v
}

// judge decides whether a call needs a yes.
func (g *Gateway) judge(ctx context.Context, seen *view, inv *Invocation, e *entry) (verdict, error) {
	if e.Server == ownServer {
		return verdict{}, nil
	}
	q, err := g.question(ctx, inv.Scope, e)
	if err != nil {
		return verdict{}, err
	}
	q.request = inv.Approval
	asked := store.Call{By: seen.by.User, Thread: inv.Scope.Thread, Place: inv.Scope.Place}
	if inv.Call != nil {
		q.args, asked.Policy = inv.Call.Args, inv.Call.Policy
	} else {
		as, err := g.wouldRunAs(ctx, seen.by, e)
		if err != nil {
			return verdict{}, err
		}
		asked.Policy = g.policy(e, as.shared, seen.room)
	}
	g.person(ctx, q, seen, asked)
	return q.decide(), nil
}

// person adds to the question what depends on who asks; asked has their id,
// the policy and the conversation.
func (g *Gateway) person(ctx context.Context, q *question, seen *view, asked store.Call) {
	q.by, q.agent, q.grants = seen.by, seen.agent, seen.grants
	q.trusted = seen.by.IsAdmin() || len(seen.agent.Who) > 0 && seen.agent.MayUse(seen.by, seen.groups)
	q.stands = func(gr store.Grant) bool {
		return (gr.Expires.IsZero() || g.opt.Now().Before(gr.Expires)) &&
			(!q.entry.destructive() || store.GetBool(g.opt.Config, "", "approvals.grant_destructive")) && g.suffices(ctx, gr, asked)
	}
}

// question reads what does not depend on the person.
func (g *Gateway) question(ctx context.Context, scope store.Scope, e *entry) (*question, error) {
	tainted, err := g.tainted(ctx, scope.Thread)
	if err != nil {
		return nil, err
	}
	return &question{
		entry: e, tainted: tainted, never: func() bool { return store.GetBool(g.opt.Config, "", "approvals.allow_request_never") },
		stands: func(store.Grant) bool { return false },
		mode:   g.opt.Config.Get("", "approvals.mode"), list: store.GetList(g.opt.Config, "", "approvals.list"),
	}, nil
}

// grantable says whether a standing "allow" would lift what was asked of a
// stored call.
func (g *Gateway) grantable(ctx context.Context, c store.Call, e *entry) (bool, error) {
	q, err := g.question(ctx, store.Scope{Thread: c.Thread}, e)
	if err != nil {
		return false, err
	}
	a := c.Policy.Approvers()
	if a.Need > 1 || e.destructive() && !store.GetBool(g.opt.Config, "", "approvals.grant_destructive") || q.tainted {
		return false, nil
	}
	if c.Agent != "" {
		if q.agent, err = g.opt.Store.GetAgent(ctx, c.Agent); err != nil {
			return false, fmt.Errorf("reading agent %s: %w", c.Agent, err)
		}
	}
	return q.decide().grantable, nil
}

// tainted says whether the conversation holds output of a server whose output
// an admin marked as untrusted: before it came, which stays true whatever
// becomes of the server, or since; or words of somebody outside the team.
func (g *Gateway) tainted(ctx context.Context, thread string) (bool, error) {
	if thread == "" {
		return false, nil
	}
	th, err := g.opt.Store.GetThread(ctx, thread)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return false, fmt.Errorf("reading the conversation: %w", err)
	}
	if th.Tainted {
		return true, nil
	}
	marked, err := g.opt.Store.ListCalls(ctx, store.CallQuery{Thread: thread, Tainted: true, Limit: 1})
	if err != nil {
		return false, fmt.Errorf("reading what tainted the conversation: %w", err)
	}
	if len(marked) > 0 || !g.tools.anyUntrusted() {
		return len(marked) > 0, nil
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
	if s, ok := c.servers[server]; ok {
		return s.UntrustedOutput
	}
	return server != ownServer
}
