package alert

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"nize/store"
	"nize/store/backoff"
)

const (
	// maxTries is after how many failures a message is given up: with backoff, after some
	// eight hours.
	maxTries  = 15
	firstWait = 15 * time.Second
	maxWait   = time.Hour
	// patience is the timeout of one attempt.
	patience = 10 * time.Second
	// forever is a wait that a poke ends.
	forever = 24 * time.Hour
)

// deliver sends due messages until ctx ends.
func (a *Manager) deliver(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.wake:
		case <-timer.C:
		}
		wait, err := a.Deliver(ctx)
		if err != nil && ctx.Err() == nil {
			a.opt.Log.Error("delivering alerts", "err", err)
			wait = firstWait
		}
		timer.Reset(wait)
	}
}

// Deliver sends the messages that are due now, and returns when the next is due. It stops
// at the first failure, since the destination is most likely unavailable, and starts with
// the messages that failed least, so that one that is never accepted doesn't block others.
func (a *Manager) Deliver(ctx context.Context) (time.Duration, error) {
	if a.again.Swap(false) {
		if err := a.forget(ctx); err != nil {
			a.again.Store(true)
			return firstWait, err
		}
	}
	due, err := a.opt.Incidents.ListIncidents(ctx, store.IncidentQuery{Due: true})
	if err != nil || len(due) == 0 {
		return forever, err
	}
	slices.SortStableFunc(due, func(a, b store.Incident) int { return cmp.Compare(a.Delivery.Tries, b.Delivery.Tries) })
	to, toErr := a.opt.To(ctx)
	wait := forever
	for n, i := range due {
		if pause := i.Delivery.Next.Sub(a.opt.Now()); pause > 0 {
			// If the clock was set back, don't wait longer than one interval.
			wait = min(wait, pause, maxWait)
			continue
		}
		if to == nil && toErr == nil {
			if i.State == store.IncidentRecovered { // it was never reported, and it is over
				i.Delivery.Sent = store.IncidentRecovered
				err = errors.Join(err, a.note(ctx, i, i.Delivery))
			}
			continue
		}
		next, failed := a.try(ctx, i, to, toErr)
		if failed && ctx.Err() != nil {
			return forever, ctx.Err() // it may have failed because of the stop
		}
		if err = errors.Join(err, a.note(ctx, i, next)); err != nil {
			return firstWait, err
		}
		if failed && !next.GaveUp {
			wait = min(wait, next.Next.Sub(a.opt.Now()))
			if n < len(due)-1 {
				wait = min(wait, firstWait)
			}
			break
		}
	}
	return max(wait, time.Second), err
}

// try sends one message and returns the delivery state to store.
func (a *Manager) try(ctx context.Context, i store.Incident, to Notifier, err error) (next store.Delivery, failed bool) {
	handle := ""
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, patience)
		handle, err = to.Notify(ctx, i)
		cancel()
	}
	if err == nil {
		return store.Delivery{Sent: i.State, Handle: handle}, false
	}
	next = i.Delivery
	next.Tries++
	next.Error = store.Head(store.RedactText(err.Error()), maxText)
	next.GaveUp = next.Tries >= maxTries || errors.Is(err, ErrPermanent)
	next.Next = a.opt.Now().Add(retryDelay(next.Tries))
	switch {
	case next.GaveUp:
		a.opt.Log.Error("an alert was given up", "id", i.ID, "title", i.Title.String(), "tries", next.Tries, "err", next.Error)
	case next.Tries == 1:
		a.opt.Log.Warn("an alert is sent again later", "id", i.ID, "title", i.Title.String(), "err", next.Error)
	}
	return next, true
}

// retryDelay returns the delay after a number of failures, with jitter.
func retryDelay(tries int) time.Duration {
	wait := backoff.Exponential{First: firstWait, Most: maxWait}.After(tries)
	return backoff.Jitter(wait, wait/5)
}

func (a *Manager) note(ctx context.Context, i store.Incident, next store.Delivery) error {
	// Record what was sent even if the daemon is stopping.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if err := a.opt.Incidents.NoteDelivery(ctx, store.System, i.ID, next); err != nil {
		return fmt.Errorf("noting that alert %s was sent: %w", i.ID, err)
	}
	return nil
}

// Again retries failed and given-up messages immediately, since the destination changed or
// was fixed. It doesn't wait.
func (a *Manager) Again() {
	a.again.Store(true)
	a.poke()
}

// forget resets the delivery state of failed messages. Only Deliver calls it, so that no
// other goroutine changes the state of a message while it is sent.
func (a *Manager) forget(ctx context.Context) error {
	list, err := a.opt.Incidents.ListIncidents(ctx, store.IncidentQuery{All: true})
	for _, i := range list {
		if i.Delivery.Tries == 0 || i.State == store.IncidentRecovered && a.opt.Now().Sub(i.Recovered) > forever {
			continue
		}
		err = errors.Join(err, a.note(ctx, i, store.Delivery{Sent: i.Delivery.Sent, Handle: i.Delivery.Handle}))
	}
	return err
}
