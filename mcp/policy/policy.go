// Package policy holds the rules of asking and deciding.
//
// What is usable (access.go), what asks (policy.go) and who may approve
// (approverrules.go) are three ordered lists of named rules, which searches,
// calls and [Engine.Explain] walk alike. Who may press is looked up at each
// press (approvers.go), with live groups and channels, and what cannot be looked
// up is a no. How many different people a policy wants is counted by the store,
// in the transaction of each yes. A standing answer (grants.go) lifts what is
// asked only where its giver's yes alone would. What was true when a call was
// proposed counts again when it is approved and when it runs (revalidation.go).
package policy

import (
	"context"
	"fmt"
	"slices"

	"nize/mcp/commandline"
	"nize/store"
)

// Verdict is what policy says of one call: ask, with the reason, or not.
type Verdict struct {
	Reason    store.Text // why it asks, empty where it does not
	Warnings  []store.Text
	rule      string // the name of the rule that decided
	grant     string // the standing answer that lifted the ask, if one did
	grantable bool   // a standing "allow" would lift the ask
}

// Asks says whether the call needs a yes.
func (v Verdict) Asks() bool { return v.Reason != (store.Text{}) }

// Grant is the id of the standing answer by which the call doesn't ask, "" if none did
// that.
func (v Verdict) Grant() string { return v.grant }

// Rule is the name of the rule that decided.
func (v Verdict) Rule() string { return v.rule }

// question is all that the rules of asking read, once for a call.
type question struct {
	by      store.Caller
	tool    *Tool
	mode    string   // the system's
	list    []string // approvals.list
	agent   store.Agent
	tainted bool
	request store.Approval
	grants  []store.Grant
	never   func() bool            // a request's "never" counts
	alone   bool                   // it counts for this caller and tool
	trusted bool                   // an agent that is looser than the system counts
	args    []byte                 // nil where they are not known yet
	ask     *store.Ask             // nil if nize runs the call
	stands  func(store.Grant) bool // its giver may still give it, and now is before its end
}

// stance is what one rule of asking says. The mode auto only asks softly: what
// was decided for this case lifts that. What an admin chose to have asked, and
// taint, asks firmly; nothing lifts it.
type stance int

const (
	silent stance = iota
	asksSoftly
	asksFirmly
	lifts
)

// askRule is one rule about when a call needs a yes.
type askRule struct {
	name    string
	says    func(*question) stance
	reason  func(*question) store.Text // why it asks, or why it lifts that
	command func(*question) string     // that changes it
}

// askRules say in order whether a call asks: the first that asks firmly decides; a
// soft ask holds unless one lifts it. A standing denial comes before all of
// them: such a tool is not usable.
var askRules = [...]askRule{
	{"taint",
		func(q *question) stance { return firmlyIf(q.tainted && !q.tool.ReadOnly()) },
		func(*question) store.Text { return store.Textf("the conversation has read untrusted text") },
		func(q *question) string { return "" }},
	{"mode",
		func(q *question) stance { return modeSays(q.mode, q) },
		func(q *question) store.Text {
			if q.mode == "auto" {
				return store.Textf("it may change something")
			}
			return store.Textf("the mode %s of the system asks", q.mode)
		},
		func(*question) string { return "nizectl config set approvals.mode none|all|whitelist|blacklist|auto" }},
	{"server",
		func(q *question) stance { return approvalSays(q.tool.Record.Approval) },
		func(q *question) store.Text {
			if q.tool.Record.Approval == store.ApproveNever {
				return store.Textf("the server %s never asks", q.tool.Server)
			}
			return store.Textf("the server %s always asks", q.tool.Server)
		},
		func(q *question) string { return "nizectl servers edit " + q.tool.Server + " --approval auto" }},
	{"agent",
		func(q *question) stance {
			if q.agent.Approval == "" {
				return silent
			}
			if said := modeSays(q.agent.Approval, q); said != silent || !q.trusted {
				return said
			}
			return lifts
		},
		func(q *question) store.Text {
			switch said := modeSays(q.agent.Approval, q); {
			case said == silent:
				return store.Textf("the agent %s does not ask", q.agent.ID)
			case said == asksSoftly:
				return store.Textf("it may change something")
			}
			return store.Textf("the agent %s asks", q.agent.ID)
		},
		func(q *question) string { return "nizectl agents set " + q.agent.ID + " --approval ''" }},
	{"request",
		func(q *question) stance {
			if q.request == store.ApproveNever && (q.alone || q.never()) {
				return lifts
			}
			return firmlyIf(q.request == store.ApproveAlways)
		},
		func(q *question) store.Text {
			if q.request == store.ApproveNever {
				return store.Textf("the request does not ask")
			}
			return store.Textf("the request asks")
		},
		func(*question) string { return "" }},
	{"grant",
		func(q *question) stance {
			if slices.ContainsFunc(q.grants, q.allows) {
				return lifts
			}
			return silent
		},
		func(*question) store.Text { return store.Textf("it is always allowed") },
		func(q *question) string {
			return "nizectl approvals grants revoke " + q.grants[slices.IndexFunc(q.grants, q.allows)].ID
		}},
}

func firmlyIf(yes bool) stance {
	if yes {
		return asksFirmly
	}
	return silent
}

func approvalSays(a store.Approval) stance {
	switch a {
	case store.ApproveAlways:
		return asksFirmly
	case store.ApproveNever:
		return lifts
	}
	return silent
}

func modeSays(mode string, q *question) stance {
	switch mode {
	case "none":
		return silent
	case "all":
		return asksFirmly
	case "whitelist":
		return firmlyIf(store.MatchAny(q.list, q.tool.id))
	case "blacklist":
		return firmlyIf(!store.MatchAny(q.list, q.tool.id))
	case "auto":
		if q.tool.ReadOnly() {
			return silent
		}
		return asksSoftly
	}
	return asksFirmly // an unknown mode fails closed
}

// allows says whether a standing answer lets this call run unasked.
func (q *question) allows(gr store.Grant) bool {
	return !gr.Deny && gr.Tool == q.tool.id && gr.Pin == q.tool.Accepted && commandline.Allows(gr, q.args, q.ask) && q.stands(gr)
}

// TaintWarning stands on the card of a call in a conversation that is tainted.
var TaintWarning = store.Textf("this conversation has read untrusted text, which may have asked for this call")

// decide walks the rules; it is the one place that says whether a call asks.
func (q *question) decide() Verdict {
	var v Verdict
	if q.tool.Server == BuiltinServer {
		return v
	}
	if q.tainted {
		v.Warnings = append(v.Warnings, TaintWarning)
	}
	var soft, lift *askRule
	for i := range askRules {
		r := &askRules[i]
		switch r.says(q) {
		case asksFirmly:
			v.Reason, v.rule = r.reason(q), r.name
			return q.liftOwnCall(v)
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
		if v.rule = lift.name; v.rule == "grant" {
			v.grant = q.grants[slices.IndexFunc(q.grants, q.allows)].ID
		}
	default:
		v.Reason, v.rule, v.grantable = soft.reason(q), soft.name, true
	}
	return q.liftOwnCall(v)
}

// liftOwnCall lifts what is asked of an admin's own nizectl tools call: that is its
// own approval.
func (q *question) liftOwnCall(v Verdict) Verdict {
	if q.by.Surface == store.OnCLI && q.by.IsAdmin() && !q.tool.Asked() { // a hook asks for a program, not for its person
		return Verdict{rule: "own call", Warnings: v.Warnings}
	}
	return v
}

// Proposal is what a call brings to the rules of asking besides its tool and
// its caller.
type Proposal struct {
	Approval store.Approval // what the request wants
	// Unattended says that an admin lets its caller run this tool with "never".
	Unattended bool
	Call       *store.Call // nil where there is none yet
}

// Judge decides whether a call needs a yes.
func (p *Engine) Judge(ctx context.Context, v *View, t *Tool, what Proposal) (Verdict, error) {
	if t.Server == BuiltinServer {
		return Verdict{}, nil
	}
	q, err := p.newQuestion(ctx, v.scope.Thread, t)
	if err != nil {
		return Verdict{}, err
	}
	q.request, q.alone = what.Approval, what.Unattended
	asked := store.Call{By: v.by.User, Thread: v.scope.Thread, Place: v.scope.Place}
	if what.Call != nil {
		q.args, q.ask, asked.Policy = what.Call.Args, what.Call.Ask, what.Call.Policy
	} else {
		as, err := p.wouldRunAs(ctx, v.by, t)
		if err != nil {
			return Verdict{}, err
		}
		asked.Policy = p.ApproverPolicy(v, t, as)
	}
	p.addCaller(ctx, q, v, asked)
	return q.decide(), nil
}

// NeedsApproval says whether a call by this caller would need a yes, and why.
func (p *Engine) NeedsApproval(ctx context.Context, by store.Caller, id string) (asks bool, why string) {
	v, err := p.View(ctx, by, store.Scope{Tools: []string{id}})
	if err != nil {
		return true, "policy could not be read"
	}
	t, err := p.Find(v, id)
	if err != nil {
		return true, "it cannot be used"
	}
	verdict, err := p.Judge(ctx, v, t, Proposal{})
	if err != nil {
		return true, "policy could not be read"
	}
	return verdict.Asks(), verdict.Reason.String()
}

// addCaller adds to the question what depends on who asks; asked has their id,
// the policy and the conversation.
func (p *Engine) addCaller(ctx context.Context, q *question, v *View, asked store.Call) {
	q.by, q.agent, q.grants = v.by, v.agent, v.grants
	q.trusted = !v.scope.View && (v.by.IsAdmin() || len(v.agent.Who) > 0 && v.agent.MayUse(v.by, v.groups)) // a view asks with what a server wrote: no agent answers for that
	q.stands = func(gr store.Grant) bool {
		return (gr.Expires.IsZero() || p.now().Before(gr.Expires)) &&
			(!q.tool.destructive() || store.GetBool(p.config, "", "approvals.grant_destructive")) && p.suffices(ctx, gr, asked)
	}
}

// newQuestion reads what does not depend on the person.
func (p *Engine) newQuestion(ctx context.Context, thread string, t *Tool) (*question, error) {
	tainted, err := p.Tainted(ctx, thread)
	if err != nil {
		return nil, err
	}
	return &question{
		tool: t, tainted: tainted, never: func() bool { return store.GetBool(p.config, "", "approvals.allow_request_never") },
		stands: func(store.Grant) bool { return false },
		mode:   p.config.Get("", "approvals.mode"), list: store.GetList(p.config, "", "approvals.list"),
	}, nil
}

// Lifting is what would make calls like a stored one stop asking.
type Lifting struct {
	Always bool       // a standing "allow"
	How    store.Text // in words
}

// Lifting says what would lift what was asked of a stored call.
func (p *Engine) Lifting(ctx context.Context, c store.Call, t *Tool) (l Lifting, err error) {
	q, err := p.newQuestion(ctx, c.Thread, t)
	if err != nil {
		return l, err
	}
	if c.Agent != "" {
		if q.agent, err = p.store.GetAgent(ctx, c.Agent); err != nil {
			return l, fmt.Errorf("reading agent %s: %w", c.Agent, err)
		}
	}
	v, need := q.decide(), c.Policy.Approvers().Need
	switch {
	case q.tainted:
		l.How = store.Textf("a new conversation")
	case need > 1:
		l.How = store.Textf("nothing: %d people decide each time", need)
	case v.grantable:
		standing := !t.destructive() || store.GetBool(p.config, "", "approvals.grant_destructive")
		claims, believe := t.Annotations.ReadOnly, "nizectl servers edit "+t.Server+" --trust-annotations"
		switch l.Always = standing; {
		case claims == nil || !*claims:
			l.How = store.Textf("nothing: what may destroy something is asked for each time (approvals.grant_destructive)")
			if standing {
				l.How = store.Textf("a standing yes (always)")
			}
		case standing:
			l.How = store.Textf("a standing yes (always), or an admin who believes the server's claims (%s)", believe)
		default:
			l.How = store.Textf("an admin who believes the server's claims (%s)", believe)
		}
	case !v.Asks(): // the request alone did
		l.How = store.Textf("a request that does not ask for it")
	default:
		i := slices.IndexFunc(askRules[:], func(r askRule) bool { return r.name == v.rule })
		l.How = store.Textf("an admin (%s)", askRules[i].command(q))
	}
	return l, nil
}
