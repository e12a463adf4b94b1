package mcp

import (
	"context"
	"slices"

	"nize/store"
)

// Why is what the gateway's rules say of one tool for one caller,
// from the same lists that calls and searches walk.
type Why struct {
	Tool     string
	Usable   bool
	Rules    []WhyRule    // in the order in which they are asked
	Approval *WhyApproval // nil where the tool is not usable
}

// WhyRule is one rule and what it says.
type WhyRule struct {
	Rule    string
	Verdict string // allows or denies; of an approval: asks, asks unless lifted, lifts, or "" for nothing; of who decides: the policy
	Says    string
	Decides bool
	Command string // that changes it
}

// WhyApproval says whether a call would need a yes, and whose.
type WhyApproval struct {
	Asks      bool
	Reason    string
	RunsAs    string
	Private   bool   // its results are for who asks alone
	Approvers string // who may press, in words
	Rules     []WhyRule
	Deciders  []WhyRule // by which rule they may: the verdict is the policy; none where nothing asks
}

// Why asks the rules of a tool for the caller who, on behalf of by. Somebody
// who is no admin is not told whether a tool exists that they cannot see.
func (g *Gateway) Why(ctx context.Context, by, who store.Caller, scope store.Scope, id string) (Why, error) {
	v, err := g.view(ctx, who, scope)
	if err != nil {
		return Why{}, err
	}
	e, ok := g.tools.get(id)
	if ok && !by.IsAdmin() && slices.ContainsFunc(rules[:], func(r rule) bool { return r.hides && r.deniesTo(v, e) }) {
		ok = false
	}
	if !ok {
		if by.IsAdmin() {
			ids, err := g.ToolIDs(ctx)
			if err != nil {
				return Why{}, err
			}
			return Why{}, store.Unknown("tool", id, ids)
		}
		return Why{}, g.unknown(v, id)
	}
	w := Why{Tool: e.id, Usable: true}
	for i := range rules {
		r := &rules[i]
		if e.Server == ownServer && !r.own {
			continue
		}
		said := WhyRule{Rule: r.name, Verdict: "allows", Says: r.yes}
		if r.deniesTo(v, e) {
			said.Verdict, said.Says, said.Command = "denies", r.no, r.command(v, e)
			said.Decides, w.Usable = w.Usable, false
			if r.name == "channel" && !by.IsAdmin() {
				said.Command = "" // it names all servers of the channel, and is for admins
			}
		}
		w.Rules = append(w.Rules, said)
	}
	if w.Usable {
		w.Approval, err = g.whyApproval(ctx, v, scope, e)
	}
	return w, err
}

func (g *Gateway) whyApproval(ctx context.Context, v *view, scope store.Scope, e *entry) (*WhyApproval, error) {
	q, err := g.question(ctx, scope, e)
	if err != nil {
		return nil, err
	}
	as, err := g.wouldRunAs(ctx, v.by, e)
	if err != nil {
		return nil, err
	}
	asked := store.Call{By: v.by.User, ByName: v.by.Name, Thread: scope.Thread, Place: scope.Place, Policy: g.policy(e, as.shared, v.room)}
	g.person(ctx, q, v, asked)
	decided := q.decide()
	w := &WhyApproval{Asks: decided.ask != "", Reason: decided.ask, RunsAs: as.words, Private: e.private(as)}
	if w.Asks {
		if asked.Policy, err = g.reached(ctx, asked.Policy, asked.By); err != nil {
			return nil, err
		}
		w.Approvers, w.Deciders = g.whoDecides(ctx, asked), g.appointing(e, as.shared, v.room).why()
		if g.reachable(ctx, asked) != nil {
			w.Approvers += "; too few could, so such a call is refused at once"
		}
	}
	for i := range askRules {
		r := &askRules[i]
		said := WhyRule{Rule: r.name, Verdict: r.says(q).word(), Decides: r.name == decided.by}
		if said.Verdict != "" {
			said.Says, said.Command = r.reason(q), r.command(q)
		}
		w.Rules = append(w.Rules, said)
	}
	return w, nil
}

func (s say) word() string {
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
