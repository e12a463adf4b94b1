// Package policy decides which tools a caller may use, which calls need approval, and who
// may approve.
//
// Access (access.go), the need for approval (policy.go) and the approvers
// (approverrules.go) are three ordered lists of named rules, which searches, calls and
// [Engine.Explain] all use. Rights to approve are checked at each decision (approvers.go),
// with current groups and channels; if a lookup fails, the answer is no. If a policy
// requires several people, the store counts them in the transaction of each approval. A
// standing answer (grants.go) removes the need for approval only if its author's approval
// alone would be enough. The conditions under which a call was proposed are checked again
// when it is approved and when it runs (revalidation.go).
package policy

import (
	"context"
	"fmt"
	"slices"

	"nize/mcp/commandline"
	"nize/store"
)

// Verdict is whether a call needs approval, and why.
type Verdict struct {
	Reason    store.Text // why it needs approval; zero if it doesn't
	Warnings  []store.Text
	rule      string // the name of the rule that decided
	grant     string // id of the standing answer that removed the need for approval, if any
	grantable bool   // a standing approval would remove the need for approval
}

// Asks reports whether the call needs approval.
func (v Verdict) Asks() bool { return v.Reason != (store.Text{}) }

// Grant returns the id of the standing answer because of which the call needs no approval,
// or "".
func (v Verdict) Grant() string { return v.grant }

// Rule returns the name of the rule that decided.
func (v Verdict) Rule() string { return v.rule }

// question holds the input of the approval rules. It is read once per call.
type question struct {
	by      store.Caller
	tool    *Tool
	mode    string   // the system's mode
	list    []string // the setting approvals.list
	agent   store.Agent
	tainted bool
	request store.Approval
	grants  []store.Grant
	never   func() bool            // reports whether a request's "never" counts
	alone   bool                   // "never" counts for this caller and tool
	trusted bool                   // an agent that is less strict than the system counts
	args    []byte                 // nil if not known yet
	ask     *store.Ask             // nil if nize runs the call
	stands  func(store.Grant) bool // reports whether its author may still give it and it has not expired
}

// stance is the result of one approval rule. Only the mode auto asks softly: a decision for
// this case lifts that. An admin's explicit choice, and taint, ask firmly; nothing lifts
// that.
type stance int

const (
	silent stance = iota
	asksSoftly
	asksFirmly
	lifts
)

// askRule is one rule about whether a call needs approval.
type askRule struct {
	name    string
	says    func(*question) stance
	reason  func(*question) store.Text // why it asks, or why it lifts a soft ask
	command func(*question) string     // command that changes it
}

// askRules lists the approval rules in order: the first that asks firmly decides; a soft
// ask applies unless a rule lifts it. Standing denials are checked before: such a tool is
// not usable.
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

// allows reports whether a standing answer lets this call run without approval.
func (q *question) allows(gr store.Grant) bool {
	return !gr.Deny && gr.Tool == q.tool.id && gr.Pin == q.tool.Accepted && commandline.Allows(gr, q.args, q.ask) && q.stands(gr)
}

// TaintWarning is shown on the card of a call in a tainted conversation.
var TaintWarning = store.Textf("this conversation has read untrusted text, which may have asked for this call")

// decide evaluates the rules. It is the only place that decides whether a call needs
// approval.
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

// liftOwnCall removes the need for approval of an admin's own nizectl tools call, which is
// its own approval.
func (q *question) liftOwnCall(v Verdict) Verdict {
	if q.by.Surface == store.OnCLI && q.by.IsAdmin() && !q.tool.Asked() { // an ask comes from a program's hook, not from its user
		return Verdict{rule: "own call", Warnings: v.Warnings}
	}
	return v
}

// Proposal is a call's input for the approval rules besides its tool and its caller.
type Proposal struct {
	Approval store.Approval // the approval that the request asks for
	// Unattended means that an admin lets its caller run this tool with "never".
	Unattended bool
	Call       *store.Call // nil if there is none yet
}

// Judge decides whether a call needs approval.
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

// NeedsApproval reports whether a call by this caller would need approval, and why.
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

// addCaller adds the parts of the question that depend on the requester; asked has their
// id, the policy and the conversation.
func (p *Engine) addCaller(ctx context.Context, q *question, v *View, asked store.Call) {
	q.by, q.agent, q.grants = v.by, v.agent, v.grants
	q.trusted = !v.scope.View && (v.by.IsAdmin() || len(v.agent.Who) > 0 && v.agent.MayUse(v.by, v.groups)) // a view's request contains text from a server, for which no agent is responsible
	q.stands = func(gr store.Grant) bool {
		return (gr.Expires.IsZero() || p.now().Before(gr.Expires)) &&
			(!q.tool.destructive() || store.GetBool(p.config, "", "approvals.grant_destructive")) && p.suffices(ctx, gr, asked)
	}
}

// newQuestion reads the parts that don't depend on the requester.
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

// Lifting describes what would remove the need for approval of calls like a stored one.
type Lifting struct {
	Always bool       // a standing approval would
	How    store.Text // in words
}

// Lifting returns what would remove the need for approval of a stored call.
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
		l.How = store.Textf("nothing: %d people must approve each call", need)
	case v.grantable:
		standing := !t.destructive() || store.GetBool(p.config, "", "approvals.grant_destructive")
		claims, believe := t.Annotations.ReadOnly, "nizectl servers edit "+t.Server+" --trust-annotations"
		switch l.Always = standing; {
		case claims == nil || !*claims:
			l.How = store.Textf("nothing: calls that may destroy something always need approval (approvals.grant_destructive)")
			if standing {
				l.How = store.Textf("a standing approval (always)")
			}
		case standing:
			l.How = store.Textf("a standing approval (always), or an admin who trusts the server's annotations (%s)", believe)
		default:
			l.How = store.Textf("an admin who trusts the server's annotations (%s)", believe)
		}
	case !v.Asks(): // only the request asked for approval
		l.How = store.Textf("a request that does not ask for it")
	default:
		i := slices.IndexFunc(askRules[:], func(r askRule) bool { return r.name == v.rule })
		l.How = store.Textf("an admin (%s)", askRules[i].command(q))
	}
	return l, nil
}
