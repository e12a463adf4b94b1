package discord

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"nize/bots"
	"nize/bots/discord/posting"
	"nize/bots/discord/view"
	"nize/bots/outbox"
	"nize/bots/phrases"
	"nize/store"
)

// What the house asks of the platform is answered for the account in use.

// errOff is why nothing can be shown while no account is used.
var errOff = errors.New("discord is not connected")

// startTime is how long a message waits for a bot that is about to start.
const startTime = 5 * time.Second

// at is the account that an address belongs to.
func (b *Bot) at(ctx context.Context, a store.Address) (*live, error) {
	l, err := b.used(ctx)
	if err == nil && l.account.Team != a.Team {
		err = fmt.Errorf("%w: it is in another guild, %s", errOff, a.Team)
	}
	return l, err
}

// used is the account in use, whichever it is.
func (b *Bot) used(ctx context.Context) (*live, error) {
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
	if l == nil {
		return nil, errOff
	}
	return l, nil
}

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

// Batch implements [bots.Batcher]: in channels three, as much as one likes in
// private.
func (b *Bot) Batch(in store.Address) int {
	if in.Direct {
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
	at := store.Address{Surface: store.OnDiscord, Team: l.account.Team, Channel: a.Channel, Message: a.Message}
	return l.posts.Announce(ctx, at, a)
}

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

// PrivateThread implements [outbox.PrivateThreads]: somebody's own channel with
// nize, where a line says which thread the rest belongs to.
func (b *Bot) PrivateThread(ctx context.Context, u store.User, in store.Address) (store.Address, error) {
	l, err := b.at(ctx, in)
	if err != nil {
		return store.Address{}, err
	}
	to, err := l.people.Direct(ctx, u)
	if err != nil {
		return to, unreachable(err)
	}
	text := l.posts.WordsOf(ctx, u.ID).Say(phrases.AsideHead, "<#"+in.Thread+">")
	_, err = l.posts.Put(ctx, to, "aside/"+in.Channel+"/"+in.Thread+"/"+u.ID, view.Notice(text))
	return to, unreachable(err)
}

// Member implements [bots.ChannelDirectory].
func (b *Bot) Member(ctx context.Context, at store.Address, user string) (bool, error) {
	l, err := b.at(ctx, at)
	if err != nil {
		return false, err
	}
	return l.people.Member(ctx, at.Channel, user)
}

// Admins implements [bots.ChannelDirectory]: those with the permission Manage
// Channels there.
func (b *Bot) Admins(ctx context.Context, at store.Address) ([]string, error) {
	l, err := b.at(ctx, at)
	if err != nil {
		return nil, err
	}
	return l.people.Admins(ctx, at.Channel)
}

// ChannelName implements [bots.ChannelDirectory].
func (b *Bot) ChannelName(ctx context.Context, at store.Address) (string, error) {
	l, err := b.at(ctx, at)
	if err != nil {
		return "", err
	}
	return l.people.ChannelName(ctx, at.Channel)
}

// UserGroup implements [bots.GroupDirectory]: the groups of Discord are roles.
func (b *Bot) UserGroup(ctx context.Context, name string) (source, handle string, err error) {
	l, err := b.used(ctx)
	if err != nil {
		return "", "", err
	}
	return l.people.Role(ctx, name)
}

// InUserGroup implements [bots.GroupDirectory].
func (b *Bot) InUserGroup(ctx context.Context, source string) ([]string, error) {
	parts := strings.Split(source, ":")
	if len(parts) != 3 || parts[0] != string(store.OnDiscord) {
		return nil, fmt.Errorf("%w source %q: it is no role of Discord's", store.ErrInvalid, source)
	}
	l, err := b.at(ctx, store.Address{Team: parts[1]})
	if err != nil {
		return nil, err
	}
	return l.people.InRole(ctx, parts[2])
}

// Direct implements [outbox.Courier].
func (b *Bot) Direct(ctx context.Context, u store.User) (store.Address, error) {
	l := b.current()
	if l == nil {
		return store.Address{}, fmt.Errorf("%w: %w", store.ErrNotFound, errOff)
	}
	to, err := l.people.Direct(ctx, u)
	return to, unreachable(err)
}

// Sweep implements [bots.Sweeper].
func (b *Bot) Sweep() error {
	l := b.current()
	if l == nil {
		return fmt.Errorf("%w: %w", store.ErrRefused, errOff)
	}
	l.people.Sweep()
	return nil
}

var channelForm = regexp.MustCompile(`^[0-9]{15,20}$`)

// CheckChannel implements [bots.ChannelDirectory].
func (b *Bot) CheckChannel(id string) error { return CheckChannel(id) }

// CheckChannel says how the id of a channel is written, where id is none.
func CheckChannel(id string) error {
	if channelForm.MatchString(id) {
		return nil
	}
	return errors.New("write it as discord:GUILD/CHANNEL, or its id alone, such as 1187349812345678901; Discord copies it from the channel's menu in developer mode")
}
