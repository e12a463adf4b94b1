package control

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"nize/daemon/api"
	"nize/daemon/mux"
	"nize/daemon/people"
	"nize/llm"
	"nize/store"
)

// Agents implements the operations on agents, the named profiles of conversations.
type Agents struct {
	Store     store.Agents
	Router    *llm.Router
	Directory *people.Directory
	Now       func() time.Time
	// CheckPattern returns an error for a pattern of native tools that matches none.
	CheckPattern func(string) error
}

// Mount registers the operations.
func (a *Agents) Mount(m *mux.Mux) {
	mux.Handle(m, api.ListAgents, a.List)
	mux.Handle(m, api.RemoveAgent, a.Remove)
	mux.Handle(m, api.PutAgent, a.Put)
}

// List returns the agents that the caller may use.
func (a *Agents) List(ctx context.Context, by store.Caller, _ api.Empty) (none api.List[store.Agent], err error) {
	list, err := a.UsableBy(ctx, by)
	if err != nil {
		return none, err
	}
	if !by.IsAdmin() {
		for i, agent := range list { // only admins may see its configuration
			list[i] = store.Agent{ID: agent.ID, Name: agent.Name, Default: agent.Default, Created: agent.Created}
		}
	}
	return api.Items(list), nil
}

// UsableBy returns the agents that the caller may use.
func (a *Agents) UsableBy(ctx context.Context, by store.Caller) ([]store.Agent, error) {
	list, err := a.Store.ListAgents(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing agents: %w", err)
	}
	groups := a.Directory.GroupsOf(ctx, by)
	return slices.DeleteFunc(list, func(agent store.Agent) bool { return !agent.MayUse(by, groups) }), nil
}

// Find returns an agent that the caller may use. The error is the same for a forbidden
// agent and an unknown one.
func (a *Agents) Find(ctx context.Context, by store.Caller, id string) (store.Agent, error) {
	list, err := a.UsableBy(ctx, by)
	if err != nil {
		return store.Agent{}, err
	}
	names := make([]string, len(list))
	for i, agent := range list {
		if agent.ID == id {
			return agent, nil
		}
		names[i] = agent.ID
	}
	return store.Agent{}, store.Unknown("agent", id, names)
}

// Check returns an error if the caller may not use the agent of that name.
func (a *Agents) Check(ctx context.Context, by store.Caller, id string) error {
	_, err := a.Find(ctx, by, id)
	return err
}

// Put creates an agent, or replaces it if the id exists.
func (a *Agents) Put(ctx context.Context, by store.Caller, req api.PutAgentRequest) (none store.Agent, err error) {
	agent := req.Agent
	agent.ID = req.ID
	if err := store.CheckSlug(agent.ID); err != nil {
		return none, err
	}
	if agent.Approval != "" {
		k, err := store.FindKey("approvals.mode")
		if err != nil {
			return none, err
		}
		if _, err := k.Check(agent.Approval); err != nil {
			return none, fmt.Errorf("agent %s: %w", agent.ID, err)
		}
	}
	if agent.Who, err = a.Directory.WhoMay(ctx, by, agent.Who); err != nil {
		return none, err
	}
	if agent.Model != "" {
		if _, err := a.Router.Resolve(ctx, agent.Model); err != nil {
			return none, err
		}
	}
	for _, pattern := range agent.AllowedTools {
		if err := a.CheckPattern(pattern); err != nil {
			return none, err
		}
		if id, ok := strings.CutPrefix(pattern, "agent:"); ok && !strings.HasSuffix(id, "*") && id != agent.ID {
			if _, err := a.Find(ctx, by, id); err != nil {
				return none, err
			}
		}
	}
	if agent.MaxSteps < 0 || agent.MaxSteps > 100 || agent.MaxTokens < 0 || agent.Temperature != nil && !(*agent.Temperature >= 0 && *agent.Temperature <= 2) {
		return none, fmt.Errorf("%w agent %s: max_steps is 0 to 100, max_tokens at least 0, temperature 0 to 2", store.ErrInvalid, agent.ID)
	}
	if old, err := a.Store.GetAgent(ctx, agent.ID); err == nil {
		agent.Created = old.Created
	} else {
		agent.Created = a.Now()
	}
	if err := a.Store.PutAgent(ctx, by, agent); err != nil {
		return none, fmt.Errorf("storing agent %s: %w", agent.ID, err)
	}
	return agent, nil
}

// Remove removes an agent.
func (a *Agents) Remove(ctx context.Context, by store.Caller, req api.RemoveAgentRequest) (none api.Empty, err error) {
	agent, err := a.Find(ctx, by, req.ID)
	if err != nil {
		return none, err
	}
	if err := a.Store.DeleteAgent(ctx, by, agent.ID); err != nil {
		return none, fmt.Errorf("removing agent %s: %w", agent.ID, err)
	}
	return none, nil
}
