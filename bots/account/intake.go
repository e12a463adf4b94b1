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

// Intake stores what a platform sends, lets it be acknowledged, and processes it in its
// lane. Nothing that was acknowledged is lost, and the items of one thread stay in order.
type Intake struct {
	Inbox  store.Inbox
	Kinds  string // prefix of the platform's item kinds
	Title  string // the platform's name
	Lanes  *queue.Lanes
	Now    func() time.Time
	Log    *slog.Logger
	Health func(func(*bots.Health)) // updates the bot's health
	// Decode decodes an item into work, which is empty for an item of an older or newer
	// nize.
	Decode func(store.Item) (Work, error)
	// Retry runs the work for an item until it succeeds, can't succeed, or ctx ends.
	Retry func(ctx context.Context, run func(context.Context) error) error

	wg sync.WaitGroup
}

// Work is what has to be done for an item.
type Work struct {
	Lane  string
	Order string // see [queue.Lanes.Add]
	// Run does the work; act is the item's id, the same after a restart.
	Run func(ctx context.Context, act string) error
}

// Wait waits until all items are stored and then until the running work has ended.
func (in *Intake) Wait() {
	in.wg.Wait()
	in.Lanes.Wait()
}

// Soon runs work that can't wait for its lane and is not worth storing.
func (in *Intake) Soon(ctx context.Context, what string, do func(context.Context) error) {
	in.wg.Go(func() {
		if err := queue.Guard(func() error { return do(ctx) }); err != nil && ctx.Err() == nil {
			in.Log.Warn(what, "err", err)
		}
	})
}

// Replay processes the items that an earlier run stored but did not finish.
func (in *Intake) Replay(ctx context.Context) {
	items, err := in.Inbox.Pending(ctx)
	if err != nil {
		if ctx.Err() == nil {
			in.Log.Error("reading what was left over", "err", err)
		}
		return
	}
	var begin []func() // run after all of them have their places
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

// Accept stores an item and processes it. It calls done once, with true if the item is
// stored or doesn't need to be sent again.
func (in *Intake) Accept(ctx context.Context, item store.Item, done func(bool)) {
	w, err := in.Decode(item)
	if err != nil { // it was decodable before
		in.Log.Error("decoding", "err", err)
		done(true)
		return
	}
	in.AcceptWork(ctx, item, w, done)
}

// AcceptWork is Accept for an item that is already decoded.
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
		var panicked *queue.PanicError // it would panic again
		done(err == nil || errors.As(err, &panicked))
		if err != nil || !fresh {
			t.SetWork(nil)
			return
		}
		in.Health(func(h *bots.Health) { h.Events++; h.LastSeen = in.Now() })
		t.SetWork(func(ctx context.Context) { in.run(ctx, item.ID, w.Run) })
	})
}

// run does the work for an item and marks it done. If ctx ends, the item stays for the next
// start.
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
