package account

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"nize/bots"
	"nize/bots/queue"
	"nize/store"
	"nize/store/outage"
)

// Intake stores what a platform sends, lets it be acknowledged, and has it worked
// on in its lane: nothing that was acknowledged is lost, and nothing of one thread
// overtakes another.
type Intake struct {
	Inbox  store.Inbox
	Kinds  string // what the kinds of the platform's items begin with
	Title  string // of the platform
	Lanes  *queue.Lanes
	Now    func() time.Time
	Log    *slog.Logger
	Health func(func(*bots.Health)) // notes how the bot fares
	// Decode reads an item into what is to be done; nothing for one of an older or a
	// newer nize.
	Decode func(store.Item) (Work, error)
	// Retry runs what works on an item until it is done, can't be, or ctx ends.
	Retry func(ctx context.Context, run func(context.Context) error) error

	wg sync.WaitGroup
}

// Work is what an item asks for.
type Work struct {
	Lane  string
	Order string // see [queue.Lanes.Add]
	// Run does it; act is the item's id, the same over restarts.
	Run func(ctx context.Context, act string) error
}

// Wait waits for what is being stored, and then for what is worked on.
func (in *Intake) Wait() {
	in.wg.Wait()
	in.Lanes.Wait()
}

// Soon does what can't wait for its lane and is not worth keeping.
func (in *Intake) Soon(ctx context.Context, what string, do func(context.Context) error) {
	in.wg.Go(func() {
		if err := queue.Guard(func() error { return do(ctx) }); err != nil && ctx.Err() == nil {
			in.Log.Warn(what, "err", err)
		}
	})
}

// Replay takes up what an earlier run stored and did not work off.
func (in *Intake) Replay(ctx context.Context) {
	items, err := in.Inbox.Pending(ctx)
	if err != nil {
		if ctx.Err() == nil {
			in.Log.Error("reading what was left over", "err", err)
		}
		return
	}
	var begin []func() // once all of them have their place
	for _, item := range items {
		if !strings.HasPrefix(item.Kind, in.Kinds) {
			continue
		}
		w, err := in.Decode(item)
		if err != nil {
			in.Log.Error("an item of the inbox is unreadable", "item", item.ID, "err", err)
		}
		t := in.Lanes.Add(ctx, w.Lane, w.Order)
		begin = append(begin, func() { t.SetWork(func(ctx context.Context) { in.run(ctx, item.ID, w.Run) }) })
	}
	for _, f := range begin {
		f()
	}
}

// Accept stores an item and works on it. done is told once whether it is stored, or
// need not come again.
func (in *Intake) Accept(ctx context.Context, item store.Item, done func(bool)) {
	w, err := in.Decode(item)
	if err != nil { // it was decoded before
		in.Log.Error("decoding", "err", err)
		done(true)
		return
	}
	in.AcceptWork(ctx, item, w, done)
}

// AcceptWork is Accept for an item that is decoded.
func (in *Intake) AcceptWork(ctx context.Context, item store.Item, w Work, done func(bool)) {
	item.ID, item.At = store.NewID(in.Now()), in.Now()
	t := in.Lanes.Add(ctx, w.Lane, w.Order)
	in.wg.Go(func() {
		fresh := false
		err := queue.Guard(func() (err error) {
			fresh, err = in.Inbox.Accept(ctx, item)
			return err
		})
		if err != nil && ctx.Err() == nil {
			in.Log.Error("storing what "+in.Title+" sent", "err", err)
		}
		var panicked *queue.PanicError // it would do so again
		done(err == nil || errors.As(err, &panicked))
		if err != nil || !fresh {
			t.SetWork(nil)
			return
		}
		in.Health(func(h *bots.Health) { h.Events++; h.LastSeen = in.Now() })
		t.SetWork(func(ctx context.Context) { in.run(ctx, item.ID, w.Run) })
	})
}

// run does what an item asks for and marks it done. While ctx ends it stays for the
// next start.
func (in *Intake) run(ctx context.Context, id string, run func(ctx context.Context, act string) error) {
	if run != nil {
		err := queue.Guard(func() error {
			return outage.Await(ctx, func() error {
				return in.Retry(ctx, func(ctx context.Context) error { return run(ctx, id) })
			})
		})
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			in.Log.Error("working on what "+in.Title+" sent", "item", id, "err", err)
		}
	}
	if err := outage.Await(ctx, func() error { return in.Inbox.Done(ctx, id) }); err != nil && ctx.Err() == nil {
		in.Log.Error("marking an item as worked off", "item", id, "err", err)
	}
}
