package record

import (
	"context"
	"fmt"
	"strings"

	"nize/store"
	"nize/store/kv"
)

// Agents implements [store.Agents].
type Agents struct{ db kv.DB }

var _ store.Agents = Agents{}

var agents = kv.Noun{Kind: "agent", Bucket: "agents"}

// PutAgent implements [store.Agents].
func (a Agents) PutAgent(ctx context.Context, by store.Caller, agent store.Agent) error {
	return a.db.Update(ctx, "storing agent "+agent.ID, func(tx kv.Tx) error {
		agent := agent
		if err := kv.CheckID("agent", agent.ID); err != nil {
			return err
		}
		for _, who := range agent.Who {
			name, ok := strings.CutPrefix(who, "group:")
			if !ok {
				continue
			}
			if _, err := tx.Get("groups", []byte(name)); err != nil {
				return fmt.Errorf("group %q: %w", name, err)
			}
		}
		others, err := kv.ListJSON[store.Agent](tx, agents.Bucket, "")
		if err != nil {
			return err
		}
		for _, o := range others {
			if o.ID == agent.ID {
				agent.Created = o.Created
				continue
			}
			if !agent.Default || !o.Default {
				continue
			}
			o.Default = false
			if err := agents.Put(tx, by, o.ID, o); err != nil {
				return err
			}
		}
		if agent.Created.IsZero() {
			agent.Created = tx.Now()
		}
		return agents.Put(tx, by, agent.ID, agent)
	})
}

// GetAgent implements [store.Agents].
func (a Agents) GetAgent(ctx context.Context, id string) (store.Agent, error) {
	return kv.ReadJSON[store.Agent](ctx, a.db, "reading agent "+id, agents.Bucket, id)
}

// ListAgents implements [store.Agents].
func (a Agents) ListAgents(ctx context.Context) ([]store.Agent, error) {
	return kv.ReadAllJSON[store.Agent](ctx, a.db, "listing agents", agents.Bucket)
}

// DeleteAgent implements [store.Agents].
func (a Agents) DeleteAgent(ctx context.Context, by store.Caller, id string) error {
	return agents.Remove(ctx, a.db, by, id)
}
