package threads

import (
	"context"
	"encoding/json"
	"errors"

	"nize/store"
	"nize/store/commit"
	"nize/store/project"
	"nize/store/record"
)

// The result of a program's round: its conversation, the turns, the round itself.

type stepping struct {
	Thread *store.Thread   `json:"thread,omitempty"`
	Turns  []record.Turn   `json:"turns,omitempty"`
	Round  project.Round   `json:"round"`
	state  json.RawMessage // of the round; stored as a part of its own
}

func (c stepping) apply(t *commit.Tx) error {
	if c.Thread != nil {
		if err := begins(t, c.Thread.ID); err != nil {
			return err
		}
		if _, err := putThread(t, *c.Thread); err != nil {
			return err
		}
	}
	turns := make([]store.Turn, len(c.Turns))
	for i, r := range c.Turns {
		turns[i] = r.Value()
	}
	if err := appendTurns(t, turns, false); err != nil {
		return err
	}
	c.Round.State = c.state
	return record.PutRound(t.KV(), c.Round)
}

// begins announces, if a conversation is new, that nothing of it is stored yet, because its
// id was created for it.
func begins(t *commit.Tx, id string) error {
	err := t.IsNew("threads", []byte(id))
	if errors.Is(err, store.ErrExists) {
		return nil // it was stored by an earlier commit of the record
	}
	if err == nil {
		t.Fresh("turns", commit.Key(id, ""))
		t.Fresh("calls_by", []byte("x"+id+"\x00"))
		t.Fresh("grants_user", commit.Key(store.ConversationGrants(id), ""))
	}
	return err
}

// StepKind is the kind of its record in the journal.
const StepKind = "step"

// DecodeStep returns the function that commits such a record.
func DecodeStep(p [][]byte) (func(*commit.Tx) error, error) {
	c, err := commit.DecodeJSON[stepping](p[1])
	c.state = p[2]
	return c.apply, err
}

// threadShown returns the key of a conversation that is not committed yet.
func threadShown(id string) string { return "thread " + id }

// PutRound implements [project.Rounds].
func (d Threads) PutRound(ctx context.Context, step project.Step, durable bool) error {
	c := stepping{Thread: step.Thread, Round: step.Round, state: step.Round.State}
	c.Round.State = nil
	for _, turn := range step.Turns {
		c.Turns = append(c.Turns, record.OfTurn(turn))
	}
	head, err := json.Marshal(c)
	if err != nil {
		return err
	}
	l := commit.Later{Round: true}
	if step.Thread != nil {
		l.Key, l.Shown = threadShown(step.Thread.ID), step.Thread
	}
	j := d.db.Journal(commit.Pack([]byte(StepKind), head, c.state), l, c.apply)
	switch {
	case !j.OK():
		return d.db.Write(ctx, "storing a round", c.apply)
	case durable:
		return j.Flush(ctx)
	}
	return nil
}
