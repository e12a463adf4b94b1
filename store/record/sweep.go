package record

import (
	"context"

	"nize/store"
	"nize/store/kv"
)

// Sweeps implements [store.Sweeps].
type Sweeps struct{ db kv.DB }

var _ store.Sweeps = Sweeps{}

// GetSweep implements [store.Sweeps].
func (s Sweeps) GetSweep(ctx context.Context, at store.Surface) (store.Sweep, error) {
	return kv.ReadJSON[store.Sweep](ctx, s.db, "reading the last sweep", "sweeps", string(at))
}

// PutSweep implements [store.Sweeps].
func (s Sweeps) PutSweep(ctx context.Context, by store.Caller, sweep store.Sweep) error {
	return s.db.Update(ctx, "keeping a sweep", func(tx kv.Tx) error {
		if err := kv.CheckID("surface", string(sweep.Surface)); err != nil {
			return err
		}
		if err := kv.PutJSON(tx, "sweeps", string(sweep.Surface), sweep); err != nil || sweep.UnderWay() {
			return err
		}
		return tx.Event(by, store.Event{Kind: "bot.sweep", Subject: string(sweep.Surface)}, sweep)
	})
}
