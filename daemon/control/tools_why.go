package control

import (
	"context"
	"fmt"
	"slices"

	"nize/daemon/api"
	"nize/mcp/policy"
	"nize/store"
)

// Explain evaluates the gateway's rules for a person's use of a tool. Members may explain
// their own.
func (t *Tools) Explain(ctx context.Context, by store.Caller, req api.ExplainToolRequest) (none api.Why, err error) {
	who, err := t.as(ctx, by, req.User)
	if err != nil {
		return none, err
	}
	u, err := t.Store.GetUser(ctx, who.User)
	if err != nil {
		return none, fmt.Errorf("reading user %s: %w", who.User, err)
	}
	if req.Token != "" {
		if err := t.withToken(ctx, &who, req.Token); err != nil {
			return none, err
		}
	}
	if req.Agent != "" {
		if _, err := t.Agents.Find(ctx, by, req.Agent); err != nil {
			return none, err
		}
	}
	scope := store.Scope{Agent: req.Agent}
	if req.Channel != "" {
		if scope.Place, err = t.PlaceOf(ctx, req.Channel); err != nil {
			return none, err
		}
	}
	why, err := t.Gateway.Policy.Explain(ctx, by, who, scope, req.ID)
	if err != nil {
		return none, err
	}
	out := whyView(why, u)
	if t.Hooks != nil {
		if out.Hooks, err = t.hooksAround(ctx, u.ID, why.Tool); err != nil {
			return none, err
		}
	}
	out.Budgets, err = t.Budgets.OfTool(ctx, u.ID, why.Tool)
	return out, err
}

// as returns a person as the caller for whom rules are evaluated; only admins may name
// others.
func (t *Tools) as(ctx context.Context, by store.Caller, who string) (none store.Caller, err error) {
	id, err := t.Directory.Owner(ctx, by, who)
	if err != nil {
		return none, err
	}
	u, err := t.Store.GetUser(ctx, id)
	if err != nil {
		return none, fmt.Errorf("reading user %s: %w", id, err)
	}
	return store.Caller{User: u.ID, Name: u.Name, Role: u.Role, Surface: store.OnTerminal}, nil
}

// hooksAround returns the hooks around a person's call of a tool, in order, with the result
// of each at the newest call.
func (t *Tools) hooksAround(ctx context.Context, user, tool string) ([]api.WhyHook, error) {
	around := slices.Concat(t.Hooks.Around(user, "nize:execute_tool"), t.Hooks.Around(user, tool))
	if len(around) == 0 {
		return nil, nil
	}
	calls, err := t.Store.ListCalls(ctx, store.CallQuery{User: user, Limit: 200})
	if err != nil {
		return nil, fmt.Errorf("reading calls: %w", err)
	}
	var last []store.HookRef
	for _, c := range calls {
		if c.ToolID() == tool {
			last = c.Hooks
			break
		}
	}
	var out []api.WhyHook
	for _, h := range around {
		view := api.WhyHook{Name: h.Name, Type: h.Type, Scope: h.Scope, Tool: h.Tool, Priority: h.Priority, Personal: h.Owner != "", Revision: h.Revision}
		if i := slices.IndexFunc(last, func(ref store.HookRef) bool { return ref.ID == h.ID }); i >= 0 {
			view.Last = &last[i]
		}
		if !slices.ContainsFunc(out, func(w api.WhyHook) bool { return w.Name == view.Name && w.Personal == view.Personal }) {
			out = append(out, view)
		}
	}
	return out, nil
}

// withToken makes who authenticate with their active token of that name.
func (t *Tools) withToken(ctx context.Context, who *store.Caller, name string) error {
	tokens, err := t.Store.ListTokens(ctx, who.User)
	if err != nil {
		return fmt.Errorf("listing tokens: %w", err)
	}
	var names []string
	for _, token := range tokens {
		if token.State(t.Now()) != "active" {
			continue
		}
		if token.Name == name {
			who.Token, who.Scopes, who.Surface = token.ID, token.Scopes, store.OnMCP
			return nil
		}
		names = append(names, token.Name)
	}
	return store.Unknown("token", name, names)
}

func whyView(w policy.Explanation, u store.User) api.Why {
	out := api.Why{ID: w.Tool, Tool: w.Tool, User: u.ID, UserName: u.Name, Usable: w.Usable, Rules: whyRules(w.Rules)}
	if a := w.Approval; a != nil {
		out.Approval = &api.WhyApproval{Asks: a.Asks, Reason: a.Reason, RunsAs: a.RunsAs, Private: a.Private, Approvers: a.Approvers, Rules: whyRules(a.Rules), Deciders: whyRules(a.Deciders)}
	}
	return out
}

func whyRules(rules []policy.RuleResult) []api.WhyRule {
	out := make([]api.WhyRule, len(rules))
	for i, r := range rules {
		out[i] = api.WhyRule(r)
	}
	return out
}
