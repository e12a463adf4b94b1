package storetest

import (
	"time"

	"nize/store"
)

// sweeps: how far one is outlives a restart, and its end is in the trail.
func sweeps(e *env) {
	ctx := e.Context()
	_, err := e.GetSweep(ctx, store.OnSlack)
	e.is(err, store.ErrNotFound)
	began := time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)
	s := store.Sweep{Surface: store.OnSlack, Team: "T", Began: began, After: "01A", Checked: 3, Failed: 1}
	e.ok(e.PutSweep(ctx, store.System, s))
	e.reopen()
	e.same(must(e.GetSweep(ctx, store.OnSlack))(e), s)
	if !s.UnderWay() {
		e.Error("it is not under way")
	}
	s.Ended, s.After, s.Disabled = began.Add(time.Minute), "", []string{"01A"}
	e.ok(e.PutSweep(ctx, store.System, s))
	e.same(must(e.GetSweep(ctx, store.OnSlack))(e), s)
	e.is(e.PutSweep(ctx, store.System, store.Sweep{}), store.ErrInvalid)
	e.same(e.kinds(), "bot.sweep")
}
