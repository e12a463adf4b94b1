package bots

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"nize/bots/outbox"
	"nize/store"
)

// What people have read: without its button a call is decided only
// once its full card was posted, where anyone who decides reads it. What stands
// where is the store's to tell ([store.Places]), so this holds over restarts.

// ReadCards says what people have read. [Conversation] is it.
type ReadCards interface {
	// Shown says whether the whole card of a call stands where by reads it: in
	// private, or in the conversation at at. Where a call waits for somebody
	// who has not read it, its card is on its way to them afterwards. True for
	// anyone who has no say in it: what they are told is the gateway's to decide.
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
		c.wake(call.Thread, nil) // it may have been refused there, and is put there once more
	} else {
		c.copies.Bring(call.ID, by.User)
	}
	return false, nil
}

// keeps says whether the conversation of a call is where cards are kept, so
// that its own card comes.
func (c *Conversation) keeps(ctx context.Context, call store.Call) bool {
	th, err := c.o.Threads.GetThread(ctx, call.Thread)
	_, keeps := c.platforms[th.Address.Surface].(outbox.Finder)
	return err == nil && keeps
}

// onScreen narrows "run all" to the calls of the step whose cards stand where
// by reads them, on platforms that keep what they show.
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
	waiting, err := c.o.Calls.ListCalls(ctx, store.CallQuery{Waiting: true, Thread: call.Thread, Limit: maxCalls})
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

// refreshCards brings the cards of a server's waiting calls up to date: what is
// said of its tools may have changed, and then a card says so.
func (c *Conversation) refreshCards(ctx context.Context, server string) error {
	waiting, err := c.o.Calls.ListCalls(ctx, store.CallQuery{Waiting: true, Limit: maxCalls})
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
			continue // in no conversation
		case err != nil:
			return fmt.Errorf("reading the conversation of call %s: %w", call.ID, err)
		}
		if sc := c.screenFor(ctx, th); sc != nil {
			sc.Card(call.ID)
		}
	}
	return nil
}

// Refresh brings the copies of a call's card up to date: what it says rests on
// more than the call's record.
func (c *Conversation) Refresh(call string) { c.copies.Bring(call) }

// CardAt is where somebody reads the card of a call: in private, or in the
// conversation if it is theirs; without a message where they don't.
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
