package fileconfig

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"nize/store"
)

// refusal is why an extension's agent is rejected, at one of its fields.
type refusal struct {
	field string
	error
}

func (r *refusal) Field() string { return r.field }

// Extend applies all the agents of extensions, identified by their Origin, and removes
// those that no extension has any more. It doesn't overwrite an agent whose name was set by
// hand or belongs to the file or an earlier extension; the file may overwrite theirs. It
// returns an error for each agent that was not applied.
func (a *Applier) Extend(ctx context.Context, all []store.Agent) ([]error, error) {
	a.applying.Lock()
	defer a.applying.Unlock()
	stored, err := a.Store.ListAgents(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing agents: %w", err)
	}
	refused := make([]error, len(all))
	left := map[int]bool{}
	for i, agent := range all {
		refused[i] = taken(agent, stored, all[:i])
		there := slices.ContainsFunc(stored, func(o store.Agent) bool { return o.ID == agent.ID && o.Origin == agent.Origin })
		known := slices.ContainsFunc(a.brought, func(o store.Agent) bool { return same(o, agent) })
		left[i] = refused[i] == nil && !(there && known)
	}
	for again := true; again; { // an agent may refer to a later one
		again = false
		for i, agent := range all {
			if left[i] {
				refused[i] = a.extend(ctx, agent)
				left[i] = refused[i] != nil
				again = again || !left[i]
			}
		}
	}
	a.brought = nil
	for i, agent := range all {
		if refused[i] == nil {
			a.brought = append(a.brought, agent)
		}
	}
	for _, o := range stored {
		if o.FromExtension() && !slices.ContainsFunc(a.brought, func(b store.Agent) bool { return b.ID == o.ID }) {
			err = errors.Join(err, a.Store.DeleteAgent(ctx, store.System, o.ID))
		}
	}
	return refused, err
}

// taken returns an error if an agent's name is taken; before are the agents of earlier
// extensions.
func taken(agent store.Agent, stored, before []store.Agent) error {
	for _, o := range before {
		if o.ID == agent.ID {
			return &refusal{"id", fmt.Errorf("%s has an agent %s", o.Origin, o.ID)}
		}
	}
	for _, o := range stored {
		switch {
		case o.ID != agent.ID || o.FromExtension():
		case o.Origin == "":
			return &refusal{"id", fmt.Errorf("there is an agent %s that was made by hand: remove it (nizectl agents remove %s), or give this one another name", o.ID, o.ID)}
		default:
			return &refusal{"id", fmt.Errorf("the configuration file %s has an agent %s", o.Origin, o.ID)}
		}
	}
	return nil
}

func (a *Applier) extend(ctx context.Context, agent store.Agent) error {
	if agent.Model != "" {
		if _, err := a.Router.Resolve(ctx, agent.Model); err != nil {
			return &refusal{"model", err}
		}
	}
	return a.putAgent(ctx, agent)
}
