package policy

import (
	"context"
	"slices"

	"nize/store"
)

// Explanation holds the results of the rules for one tool and one caller, from the same
// lists that calls and searches use.
type Explanation struct {
	Tool     string
	Usable   bool
	Rules    []RuleResult         // in the order of evaluation
	Approval *ApprovalExplanation // nil if the tool is not usable
}

// RuleResult is one rule and its result.
type RuleResult struct {
	Rule    string
	Verdict string // access: allows or denies; approval: asks, asks unless lifted, lifts, or "" if it doesn't apply; approvers: the policy
	Says    string
	Decides bool
	Command string // command that changes it
}

// ApprovalExplanation describes whether a call would need approval, and from whom.
type ApprovalExplanation struct {
	Asks      bool
	Reason    string
	RunsAs    string
	Private   bool   // its results are only for the requester
	Approvers string // the approvers, in words
	Rules     []RuleResult
	Deciders  []RuleResult // the rules that determine the approvers, with the policy as verdict; empty if no approval is needed
}

// Explain evaluates the rules of a tool for the caller who, on behalf of by. If by is not
// an admin and can't see the tool, the result doesn't reveal whether it exists.
func (p *Engine) Explain(ctx context.Context, by, who store.Caller, scope store.Scope, id string) (Explanation, error) {
	v, err := p.View(ctx, who, scope)
	if err != nil {
		return Explanation{}, err
	}
	t, ok := p.tools.Get(id)
	if ok && !by.IsAdmin() && slices.ContainsFunc(rules[:], func(r rule) bool { return r.hides && r.deniesTo(v, t) }) {
		ok = false
	}
	if !ok {
		if by.IsAdmin() {
			var ids []string
			p.tools.Each(func(t *Tool) bool {
				if t.Server != BuiltinServer {
					ids = append(ids, t.id)
				}
				return true
			})
			return Explanation{}, store.Unknown("tool", id, ids)
		}
		return Explanation{}, p.unknown(v, id)
	}
	w := Explanation{Tool: t.id, Usable: true}
	for i := range rules {
		r := &rules[i]
		if t.Server == BuiltinServer && !r.builtin || r.name == "native" && t.Server != NativeServer || r.name == "connection" && t.credential == "" || r.name == "view" && !t.View().NotModel || r.name == "asker" && !t.Asked() ||
			r.name == "schema" && t.State != store.ToolRefused || r.name == "definition" && t.State == store.ToolRefused {
			continue
		}
		said := RuleResult{Rule: r.name, Verdict: "allows", Says: r.yes}
		if r.deniesTo(v, t) {
			said.Verdict, said.Says, said.Command = "denies", r.reason(t).String(), r.command(v, t)
			said.Decides, w.Usable = w.Usable, false
			if r.name == "channel" && !by.IsAdmin() {
				said.Command = "" // the command names all servers of the channel, and is for admins
			}
		}
		w.Rules = append(w.Rules, said)
	}
	if w.Usable {
		w.Approval, err = p.explainApproval(ctx, v, t)
	}
	return w, err
}

func (p *Engine) explainApproval(ctx context.Context, v *View, t *Tool) (*ApprovalExplanation, error) {
	q, err := p.newQuestion(ctx, v.scope.Thread, t)
	if err != nil {
		return nil, err
	}
	as, err := p.wouldRunAs(ctx, v.by, t)
	if err != nil {
		return nil, err
	}
	asked := store.Call{By: v.by.User, ByName: v.by.Name, Thread: v.scope.Thread, Place: v.scope.Place, Policy: p.ApproverPolicy(v, t, as)}
	p.addCaller(ctx, q, v, asked)
	decided := q.decide()
	w := &ApprovalExplanation{Asks: decided.Asks(), Reason: decided.Reason.String(), RunsAs: as.Words.String(), Private: t.Private(as)}
	if w.Asks {
		if asked.Policy, err = p.Reachable(ctx, asked.Policy, asked.By); err != nil {
			return nil, err
		}
		w.Approvers, w.Deciders = p.WhoDecides(ctx, asked).String(), p.newApproverQuestion(v, t, as).explain()
		if p.CheckReachable(ctx, asked) != nil {
			w.Approvers += "; too few could, so such a call is refused at once"
		}
	}
	for i := range askRules {
		r := &askRules[i]
		said := RuleResult{Rule: r.name, Verdict: r.says(q).word(), Decides: r.name == decided.rule}
		if said.Verdict != "" {
			said.Says, said.Command = r.reason(q).String(), r.command(q)
		}
		w.Rules = append(w.Rules, said)
	}
	return w, nil
}

func (s stance) word() string {
	switch s {
	case asksFirmly:
		return "asks"
	case asksSoftly:
		return "asks unless lifted"
	case lifts:
		return "lifts"
	}
	return ""
}
