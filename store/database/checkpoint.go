package database

import (
	"context"
	"fmt"

	"nize/store"
	"nize/store/kv"
)

// A checkpoint is an event, and an entry in the bucket checkpoints that holds
// its number and chain under an HMAC: a place to verify from without reading
// what came before. Why and by whom is what the event says.

// checkpoint appends an event and makes it a checkpoint.
func (t *tx) checkpoint(n auditNote) error {
	if err := t.event(n); err != nil {
		return err
	}
	return t.put("checkpoints", seqKey(t.head.seq), t.head.encode(t.db.auditKey))
}

// AddCheckpoint implements [store.Trail].
func (d *DB) AddCheckpoint(ctx context.Context, by store.Caller, held int) error {
	err := d.update(ctx, "adding a checkpoint", func(t *tx) error {
		return t.checkpoint(auditNote{by: by, kind: "audit.verify", subject: fmt.Sprintf("%d events", held), outcome: store.Done, data: struct {
			Events int `json:"events"`
		}{held}})
	})
	if err == nil {
		d.noteBeside(ctx)
	}
	return err
}

// Checkpoints implements [store.Trail].
func (d *DB) Checkpoints(ctx context.Context, limit int) ([]store.Event, error) {
	var (
		out   []store.Event
		known names
	)
	err := d.view(ctx, "reading checkpoints", func(t *tx) error {
		for k := range t.scan("checkpoints", kv.Range{Reverse: true, Limit: limit}) {
			v := t.get("events", k)
			if v == nil { // pruned a moment ago
				break
			}
			e, err := t.decodeEvent(k, v, &known)
			if err != nil {
				return err
			}
			out = append(out, e)
		}
		return nil
	})
	return out, err
}

// loadCheckpoint returns a checkpoint that nobody changed.
func loadCheckpoint(t *tx, seq uint64) (auditHead, error) {
	v := t.get("checkpoints", seqKey(seq))
	if v == nil {
		return auditHead{}, fmt.Errorf("checkpoint %d %w", seq, store.ErrNotFound)
	}
	h, err := decodeHead(t.db.auditKey, v)
	if err != nil || h.seq != seq {
		return h, tampered(seq, "its checkpoint was changed")
	}
	return h, nil
}
