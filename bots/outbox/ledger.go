package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"nize/store"
)

// ledger keeps the places of one thread's messages across restarts.
type ledger struct {
	places   store.Places // if nil, places are lost on exit
	platform Platform
	thread   string
	log      *slog.Logger
}

// finds reports whether the platform can find a message whose place was never learned. If
// it can, no message may be posted twice.
func (l *ledger) finds() bool {
	_, ok := l.platform.(Finder)
	return ok && l.places != nil
}

// placed returns where a message that an earlier run recorded under name was posted.
func (l *ledger) placed(ctx context.Context, name string, m store.Message) (store.Address, bool, error) {
	if l.places == nil {
		return store.Address{}, false, nil
	}
	at, err := l.places.GetPlace(ctx, l.thread, name)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return at, false, nil
	case err != nil:
		return at, false, fmt.Errorf("finding where a message stands: %w", err)
	case at.Message != "":
		return at, true, nil
	}
	at, ok, err := l.find(ctx, at, m)
	if ok {
		l.notePlace(ctx, name, at)
	}
	return at, ok, err
}

// find looks for a message that was about to be posted when the last run ended.
func (l *ledger) find(ctx context.Context, in store.Address, m store.Message) (store.Address, bool, error) {
	if !l.finds() {
		return in, false, nil
	}
	at, err := l.platform.(Finder).Find(ctx, in, m)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return at, false, nil
	case err != nil:
		return at, false, fmt.Errorf("looking for a message: %w", err)
	}
	return at, true, nil
}

// notePlace records where a message is, even during a shutdown: a message without a record
// is posted a second time.
func (l *ledger) notePlace(ctx context.Context, name string, at store.Address) {
	l.note(ctx, name, func(ctx context.Context) error { return l.places.PutPlace(ctx, l.thread, name, at) })
}

// noteIntent records that a message is about to be posted. If this fails, it must not be
// posted: after a crash it would be posted again without looking for it first.
func (l *ledger) noteIntent(ctx context.Context, name string, to store.Address) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := l.places.PutPlace(ctx, l.thread, name, to); err != nil {
		return fmt.Errorf("noting what is about to be posted: %w", err)
	}
	return nil
}

// movePlace records at under the name to and deletes the name from.
func (l *ledger) movePlace(ctx context.Context, from, to string, at store.Address) {
	l.note(ctx, from, func(ctx context.Context) error { return l.places.MovePlace(ctx, l.thread, from, to, at) })
}

func (l *ledger) note(ctx context.Context, name string, put func(context.Context) error) {
	if l.places == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := put(ctx); err != nil {
		l.log.Error("noting where a message stands", "message", name, "err", err)
	}
}
