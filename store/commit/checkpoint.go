package commit

import (
	"context"
	"fmt"

	"nize/store"
	"nize/store/kv"
)

// A checkpoint is an event, and an entry in the bucket checkpoints that contains its number
// and chain under an HMAC: verification can start there without reading earlier events. The
// event records its reason and author.

// Checkpoint appends an event and makes it a checkpoint.
func (t *Tx) Checkpoint(n Note) error {
	if err := t.Event(n); err != nil {
		return err
	}
	return t.Put("checkpoints", SeqKey(t.head.seq), t.head.encode(t.DB.auditKey))
}

// AddCheckpoint implements [store.Trail].
func (d *Trail) AddCheckpoint(ctx context.Context, by store.Caller, held int) error {
	err := d.db.Write(ctx, "adding a checkpoint", func(t *Tx) error {
		return t.Checkpoint(Note{By: by, Kind: "audit.verify", Subject: fmt.Sprintf("%d events", held), Outcome: store.Done, Data: struct {
			Events int `json:"events"`
		}{held}})
	})
	if err == nil {
		d.db.NoteBeside(ctx)
	}
	return err
}

// Checkpoints implements [store.Trail].
func (d *Trail) Checkpoints(ctx context.Context, limit int) ([]store.Event, error) {
	var (
		out   []store.Event
		known names
	)
	err := d.db.Read(ctx, "reading checkpoints", func(t *Tx) error {
		for k := range t.Scan("checkpoints", kv.Range{Reverse: true, Limit: limit}) {
			v := t.Get("events", k)
			if v == nil { // pruned meanwhile
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

// loadCheckpoint returns a checkpoint after verifying its HMAC.
func loadCheckpoint(t *Tx, seq uint64) (auditHead, error) {
	v := t.Get("checkpoints", SeqKey(seq))
	if v == nil {
		return auditHead{}, fmt.Errorf("checkpoint %d %w", seq, store.ErrNotFound)
	}
	h, err := decodeHead(t.DB.auditKey, v)
	if err != nil || h.seq != seq {
		return h, tampered(seq, "its checkpoint was changed")
	}
	return h, nil
}
