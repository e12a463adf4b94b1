package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"nize/store"
)

// channelOf is how the channel is set up that the scope is in, the zero one outside
// any. What can't be read is an error: nothing may be wider than it was set.
func (p *Engine) channelOf(ctx context.Context, scope store.Scope) (store.Channel, error) {
	place := scope.Place
	if scope.Thread != "" {
		th, err := p.store.GetThread(ctx, scope.Thread)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return store.Channel{}, fmt.Errorf("reading the conversation: %w", err)
		}
		place = th.Address.Place()
	}
	if place == "" {
		return store.Channel{}, nil
	}
	c, err := p.store.GetChannel(ctx, place)
	if err != nil {
		return c, fmt.Errorf("reading how the channel is set up: %w", err)
	}
	return c, nil
}

// addressOf is where a call is, the zero one outside any conversation; of a
// call that only the rules are asked about it may be a channel.
func (p *Approvers) addressOf(ctx context.Context, c store.Call) store.Address {
	if c.Thread == "" && c.Place != "" {
		at, err := store.ParsePlace(c.Place)
		if err != nil {
			p.log.Warn("reading a place; it counts as in no channel", "err", err)
		}
		return at
	}
	return p.Address(ctx, c.Thread)
}

// Address is where the conversation of a call is, the zero one outside one.
func (p *Approvers) Address(ctx context.Context, thread string) store.Address {
	return p.Thread(ctx, thread).Address
}

// Thread reads a conversation; one that is not kept narrows nothing and has no
// channel.
func (p *Approvers) Thread(ctx context.Context, id string) store.Thread {
	if id == "" {
		return store.Thread{}
	}
	th, err := p.store.GetThread(ctx, id)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		p.log.Warn("reading a conversation; it counts as in no channel", "thread", id, "err", err)
	}
	return th
}

// TokenName is what a user called their token; "" for one that is gone.
func (p *Approvers) TokenName(ctx context.Context, user, id string) (string, error) {
	tokens, err := p.store.ListTokens(ctx, user)
	if err != nil {
		return "", fmt.Errorf("reading the tokens of %s: %w", user, err)
	}
	if i := slices.IndexFunc(tokens, func(t store.Token) bool { return t.ID == id }); i >= 0 {
		return tokens[i].Name, nil
	}
	return "", nil
}
