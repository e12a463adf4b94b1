package policy

import (
	"context"
	"slices"

	"nize/store"
)

// Explanation is what the rules say of one tool for one caller,
// from the same lists that calls and searches walk.
type Explanation struct {
	Tool     string
	Usable   bool
	Rules    []RuleResult         // in the order in which they are asked
	Approval *ApprovalExplanation // nil where the tool is not usable
}

// RuleResult is one rule and what it says.
type RuleResult struct {
	Rule    string
	Verdict string // allows or denies; of an approval: asks, asks unless lifted, lifts, or "" for nothing; of who decides: the policy
	Says    string
	Decides bool
	Command string // that changes it
}

// ApprovalExplanation says whether a call would need a yes, and whose.
type ApprovalExplanation struct {
	Asks      bool
	Reason    string
	RunsAs    string
	Private   bool   // its results are for who asks alone
	Approvers string // who may press, in words
	Rules     []RuleResult
	Deciders  []RuleResult // by which rule they may: the verdict is the policy; none where nothing asks
}

// Explain asks the rules of a tool for the caller who, on behalf of by. Somebody
// who is no admin is not told whether a tool exists that they cannot see.
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
				said.Command = "" // it names all servers of the channel, and is for admins
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
