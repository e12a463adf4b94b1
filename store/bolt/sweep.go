package bolt

import (
	"context"

	"nize/store"
)

// GetSweep implements [store.Sweeps].
func (d *DB) GetSweep(ctx context.Context, at store.Surface) (s store.Sweep, err error) {
	err = d.view(ctx, "reading the last sweep", func(t *tx) (err error) {
		s, err = getJSON[store.Sweep](t, "sweeps", []byte(at))
		return err
	})
	return s, err
}

// PutSweep implements [store.Sweeps].
func (d *DB) PutSweep(ctx context.Context, by store.Caller, s store.Sweep) error {
	return d.update(ctx, "keeping a sweep", func(t *tx) error {
		if err := checkIDs("surface", string(s.Surface)); err != nil {
			return err
		}
		if err := t.putJSON("sweeps", []byte(s.Surface), s); err != nil || s.UnderWay() {
			return err
		}
		return t.event(auditNote{by: by, kind: "bot.sweep", subject: string(s.Surface), data: s})
	})
}
