package fileconfig

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"nize/store"
)

// refusal is why an agent of an extension can't be, at one of its fields.
type refusal struct {
	field string
	error
}

func (r *refusal) Field() string { return r.field }

// Extend makes all the agents that extensions bring, by their Origin, and removes
// those that they bring no more. A name that was given by hand, that the file has, or
// that an extension before it has, is not taken over; the file takes over theirs. It
// says of each agent why it is not there.
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
	for again := true; again; { // one that another offers may stand behind it
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

// taken says who has the name of an agent; before are those of extensions before it.
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
