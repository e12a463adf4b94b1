package daemon

import (
	"context"
	"fmt"
	"net/http"

	"nize/daemon/api"
	"nize/mcp/policy"
	"nize/store"
)

// whyTool asks the gateway's rules about somebody's use of a tool. Members may
// ask about themselves.
func (d *Daemon) whyTool(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	p := r.URL.Query()
	id, err := d.directory.Owner(ctx, by, p.Get("user"))
	if err != nil {
		return nil, err
	}
	u, err := d.db.GetUser(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("reading user %s: %w", id, err)
	}
	who := store.Caller{User: u.ID, Name: u.Name, Role: u.Role, Surface: store.OnTerminal}
	if name := p.Get("token"); name != "" {
		if err := d.withToken(ctx, &who, name); err != nil {
			return nil, err
		}
	}
	agent := p.Get("agent")
	if agent != "" {
		if _, err := d.agent(ctx, by, agent); err != nil {
			return nil, err
		}
	}
	scope := store.Scope{Agent: agent}
	if channel := p.Get("channel"); channel != "" {
		if scope.Place, err = d.placeOf(ctx, channel); err != nil {
			return nil, err
		}
	}
	why, err := d.gateway.Policy.Explain(ctx, by, who, scope, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return whyView(why, u), nil
}

// withToken makes who come in with their active token of that name.
func (d *Daemon) withToken(ctx context.Context, who *store.Caller, name string) error {
	tokens, err := d.db.ListTokens(ctx, who.User)
	if err != nil {
		return fmt.Errorf("listing tokens: %w", err)
	}
	var names []string
	for _, t := range tokens {
		if t.State(d.now()) != "active" {
			continue
		}
		if t.Name == name {
			who.Token, who.Scopes, who.Surface = t.ID, t.Scopes, store.OnMCP
			return nil
		}
		names = append(names, t.Name)
	}
	return store.Unknown("token", name, names)
}

func whyView(w policy.Explanation, u store.User) api.Why {
	out := api.Why{Tool: w.Tool, User: u.ID, UserName: u.Name, Usable: w.Usable, Rules: whyRules(w.Rules)}
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

// What people asked for and no tool could do.

func (d *Daemon) listWanted(ctx context.Context, _ store.Caller, _ *http.Request) (any, error) {
	if err := d.db.Flush(ctx); err != nil { // the newest of them, too
		return nil, err
	}
	list, err := d.db.ListUnmetRequests(ctx)
	if err != nil {
		return nil, err
	}
	return items(list), nil
}

func (d *Daemon) forgetWanted(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	p := r.URL.Query()
	text := p.Get("text")
	if (text == "") != (p.Get("all") == "1") {
		return nil, fmt.Errorf("%w request: say which by text, or all=1", store.ErrInvalid)
	}
	n, err := d.db.DeleteUnmetRequests(ctx, by, text)
	if err != nil {
		return nil, err
	}
	return api.Forgotten{Forgotten: n}, nil
}
