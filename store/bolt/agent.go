package bolt

import (
	"context"

	"nize/store"
)

// PutAgent implements [store.Agents].
func (d *DB) PutAgent(ctx context.Context, by store.Caller, a store.Agent) error {
	return d.update(ctx, "storing agent "+a.ID, func(t *tx) error {
		a := a
		if err := checkIDs("agent", a.ID); err != nil {
			return err
		}
		if err := t.checkGroups(a.Who); err != nil {
			return err
		}
		others, err := listJSON[store.Agent](t, "agents", nil)
		if err != nil {
			return err
		}
		for _, o := range others {
			if o.ID == a.ID {
				a.Created = o.Created
				continue
			}
			if !a.Default || !o.Default {
				continue
			}
			o.Default = false
			if err := t.putThing(by, thing{"agent", "agents", o.ID}, o); err != nil {
				return err
			}
		}
		if a.Created.IsZero() {
			a.Created = t.now
		}
		return t.putThing(by, thing{"agent", "agents", a.ID}, a)
	})
}

// GetAgent implements [store.Agents].
func (d *DB) GetAgent(ctx context.Context, id string) (a store.Agent, err error) {
	err = d.view(ctx, "reading agent "+id, func(t *tx) (err error) {
		a, err = getJSON[store.Agent](t, "agents", []byte(id))
		return err
	})
	return a, err
}

// ListAgents implements [store.Agents].
func (d *DB) ListAgents(ctx context.Context) (list []store.Agent, err error) {
	err = d.view(ctx, "listing agents", func(t *tx) (err error) {
		list, err = listJSON[store.Agent](t, "agents", nil)
		return err
	})
	return list, err
}

// DeleteAgent implements [store.Agents].
func (d *DB) DeleteAgent(ctx context.Context, by store.Caller, id string) error {
	return d.remove(ctx, by, thing{"agent", "agents", id})
}
