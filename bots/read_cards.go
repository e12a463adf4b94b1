package bots

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"nize/bots/outbox"
	"nize/store"
)

// A call is decided without its button only if its complete card was posted in a place that
// the decider reads. [store.Places] keeps the places, so this holds across restarts.

// ReadCards reports which cards people could read. [Conversation] implements it.
type ReadCards interface {
	// Shown reports whether the complete card of a call is in a place that by reads: in
	// private, or in the conversation at at. If not, and the call waits for them, Shown
	// sends them the card. It returns true if by has no say in the call; the gateway then
	// decides what they learn.
	Shown(ctx context.Context, by store.Caller, call store.Call, at store.Address) (bool, error)
}

var _ ReadCards = (*Conversation)(nil)

// Shown implements [ReadCards].
func (c *Conversation) Shown(ctx context.Context, by store.Caller, call store.Call, at store.Address) (bool, error) {
	if !call.Waiting() || c.o.Audience == nil || c.o.Places == nil || !c.o.Audience.Sees(ctx, by, call) {
		return true, nil
	}
	shown, err := c.copies.Read(ctx, by, call, at)
	if err != nil || shown {
		return shown, err
	}
	if call.By == by.User && c.keeps(ctx, call) {
		c.wake(call.Thread, nil) // the platform may have refused it; post it again
	} else {
		c.copies.Bring(call.ID, by.User)
	}
	return false, nil
}

// keeps reports whether the call's conversation is on a platform that keeps cards, so that
// its own card will appear there.
func (c *Conversation) keeps(ctx context.Context, call store.Call) bool {
	th, err := c.o.Threads.GetThread(ctx, call.Thread)
	_, keeps := c.platforms[th.Address.Surface].(outbox.Finder)
	return err == nil && keeps
}

// onScreen limits "run all" to the calls of the step whose cards by can read, on platforms
// that keep messages.
func (c *Conversation) onScreen(ctx context.Context, by store.Caller, id string) ([]string, error) {
	p := c.platforms[by.Surface]
	if _, keeps := p.(outbox.Finder); !keeps || c.o.Places == nil {
		return nil, nil
	}
	call, err := c.o.Calls.GetCall(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("reading call %s: %w", id, err)
	}
	at, err := c.o.Places.GetPlace(ctx, call.Thread, id)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("reading where a card stands: %w", err)
	}
	waiting, err := c.o.Calls.ListCalls(ctx, store.CallQuery{Waiting: true, Thread: call.Thread, Limit: maxWaiting})
	if err != nil {
		return nil, fmt.Errorf("reading the calls of a step: %w", err)
	}
	shown := []string{}
	for _, o := range waiting {
		if yes, err := c.copies.Read(ctx, by, o, at); err != nil {
			return nil, err
		} else if yes && !slices.Contains(shown, o.ID) {
			shown = append(shown, o.ID)
		}
	}
	return shown, nil
}

// refreshCards updates the cards of a server's waiting calls, because the descriptions of
// its tools may have changed.
func (c *Conversation) refreshCards(ctx context.Context, server string) error {
	waiting, err := c.o.Calls.ListCalls(ctx, store.CallQuery{Waiting: true, Limit: maxWaiting})
	if err != nil {
		return fmt.Errorf("reading waiting calls: %w", err)
	}
	for _, call := range waiting {
		if call.Server != server {
			continue
		}
		c.copies.Bring(call.ID)
		th, err := c.o.Threads.GetThread(ctx, call.Thread)
		switch {
		case errors.Is(err, store.ErrNotFound):
			continue // not part of a conversation
		case err != nil:
			return fmt.Errorf("reading the conversation of call %s: %w", call.ID, err)
		}
		if sc := c.screenFor(ctx, th); sc != nil {
			sc.Card(call.ID)
		}
	}
	return nil
}

// Refresh updates the copies of a call's card, which show more than the call's record.
func (c *Conversation) Refresh(call string) { c.copies.Bring(call) }

// CardAt returns where a person reads the card of a call: in private, or in their own
// conversation. The address has no message if there is no card.
func (c *Conversation) CardAt(ctx context.Context, by store.Caller, call store.Call) (store.Address, error) {
	places, err := c.o.Places.ListPlaces(ctx, call.ID)
	if err != nil {
		return store.Address{}, fmt.Errorf("reading where copies of a card stand: %w", err)
	}
	if at := places[outbox.CopyOf(by.User)]; at.Message != "" {
		return at, nil
	}
	if call.Thread == "" || call.By != by.User {
		return store.Address{}, nil
	}
	at, err := c.o.Places.GetPlace(ctx, call.Thread, call.ID)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return store.Address{}, fmt.Errorf("reading where a card stands: %w", err)
	}
	return at, nil
}
