package slack

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"nize/bots"
	"nize/bots/outbox"
	"nize/bots/slack/incoming"
	"nize/bots/slack/posting"
	"nize/store"
)

// errOff is why nothing can be shown while no account is used.
var errOff = errors.New("slack is not connected")

// Post implements [bots.Platform].
func (b *Bot) Post(ctx context.Context, to store.Address, m store.Message) (store.Address, error) {
	l, err := b.at(ctx, to)
	if err != nil {
		return store.Address{}, err
	}
	to.Message, err = l.posts.Show(ctx, to, m)
	return to, err
}

// Update implements [bots.Platform].
func (b *Bot) Update(ctx context.Context, at store.Address, m store.Message) error {
	l, err := b.at(ctx, at)
	if err != nil {
		return err
	}
	_, err = l.posts.Show(ctx, at, m)
	return err
}

// startTime is how long a message waits for a bot that is about to start.
const startTime = 5 * time.Second

// at is the account that an address belongs to.
func (b *Bot) at(ctx context.Context, a store.Address) (*live, error) {
	b.mu.Lock()
	l, ready, wanted := b.live, b.ready, b.account != nil
	b.mu.Unlock()
	if l == nil && wanted {
		ctx, cancel := context.WithTimeout(ctx, startTime)
		defer cancel()
		select {
		case <-ready:
		case <-ctx.Done():
		}
		l = b.current()
	}
	switch {
	case l == nil:
		return nil, errOff
	case l.account.Team != a.Team:
		return nil, fmt.Errorf("%w: it is in another workspace, %s", errOff, a.Team)
	}
	return l, nil
}

// Batch implements [bots.Batcher]: in channels three, as much as one likes in
// private.
func (b *Bot) Batch(in store.Address) int {
	if strings.HasPrefix(in.Channel, "D") {
		return 0
	}
	return 3
}

// Tell implements [bots.Announcer].
func (b *Bot) Tell(ctx context.Context, a bots.Announcement) (string, error) {
	l := b.current()
	if l == nil {
		return "", errOff
	}
	return l.posts.Announce(ctx, store.Address{Surface: store.OnSlack, Team: l.account.Team, Channel: a.Channel, Message: a.Message}, a)
}

// Mentions implements [outbox.Mentioner].
func (b *Bot) Mentions(store.Address) bool { return true }

// Find implements [outbox.Finder].
func (b *Bot) Find(ctx context.Context, in store.Address, m store.Message) (store.Address, error) {
	l, err := b.at(ctx, in)
	if err != nil {
		return in, err
	}
	return l.posts.Find(ctx, in, m)
}

// Remove implements [outbox.Remover].
func (b *Bot) Remove(ctx context.Context, at store.Address, m store.Message) error {
	l, err := b.at(ctx, at)
	if err != nil {
		return err
	}
	return l.posts.Remove(ctx, at, m)
}

// Present implements [outbox.Presence].
func (b *Bot) Present(ctx context.Context, to store.Address, s outbox.State) error {
	l, err := b.at(ctx, to)
	if err != nil {
		return err // it is shown when it is back
	}
	return l.posts.Present(ctx, to, s)
}

// Shared implements [outbox.PrivateThreads].
func (b *Bot) Shared(at store.Address) bool { return posting.Shared(at) }

// PrivateThread implements [outbox.PrivateThreads].
func (b *Bot) PrivateThread(ctx context.Context, u store.User, in store.Address) (store.Address, error) {
	l, err := b.at(ctx, in)
	if err != nil {
		return store.Address{}, err
	}
	return l.posts.PrivateThread(ctx, u, in)
}

// place is where something stands in a workspace.
func place(team, channel, thread string) store.Address {
	return store.Address{Surface: store.OnSlack, Team: team, Channel: channel, Thread: thread}
}

// pressedHere says whether a press or a dialog is for this workspace's installation
// of the app. A dialog may come from another workspace that its person is in, or
// that shares the channel; who may do what is decided by who they are.
func pressedHere(i incoming.Interaction, team string) bool {
	return i.Team.ID == team || i.View.Team == team
}

// happenedHere says whether an event is for this workspace's installation of the app. In
// a channel that workspaces share it may have happened in another one; who may
// talk is decided by who they are.
func happenedHere(e *incoming.Event, team string) bool {
	return e.Team == team || e.Through == team
}
