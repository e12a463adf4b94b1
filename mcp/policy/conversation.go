package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"nize/store"
)

// channelOf returns the configuration of the scope's channel, the zero value outside a
// channel. It returns an error if it can't be read, because access must not be wider than
// configured.
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

// addressOf returns the address of a call's conversation, the zero value outside one. For a
// call that is only explained it may be that of a channel.
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

// Address returns the address of a conversation, the zero value without one.
func (p *Approvers) Address(ctx context.Context, thread string) store.Address {
	return p.Thread(ctx, thread).Address
}

// Thread returns a conversation. One that isn't stored limits nothing and has no channel.
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

// TokenName returns the name of a user's token, or "" if it no longer exists.
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
