package slack

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"nize/store"
)

// What the roof asks of people and channels is answered for the account in use.

// Member says whether a user of nize's is in the channel and a full member of
// the workspace.
func (b *Bot) Member(ctx context.Context, at store.Address, user string) (bool, error) {
	l, err := b.at(ctx, at)
	if err != nil {
		return false, err
	}
	return l.people.Member(ctx, at.Channel, user)
}

// Admins returns the users of nize's who administer a channel: the workspace's
// admins and owners, and who made the channel.
func (b *Bot) Admins(ctx context.Context, at store.Address) ([]string, error) {
	l, err := b.at(ctx, at)
	if err != nil {
		return nil, err
	}
	return l.people.Admins(ctx, at.Channel)
}

// ChannelName is how people there call a channel. ErrNotFound where nize sees no
// channel of that id, since it is in none or a private one.
func (b *Bot) ChannelName(ctx context.Context, at store.Address) (string, error) {
	l, err := b.at(ctx, at)
	if err != nil {
		return "", err
	}
	return l.people.ChannelName(ctx, at.Channel)
}

// UserGroup finds a user group of the workspace by its id or its handle, and
// returns by what it is known from then on. A miss names the nearest.
func (b *Bot) UserGroup(ctx context.Context, name string) (source, handle string, err error) {
	l, err := b.used(ctx)
	if err != nil {
		return "", "", err
	}
	return l.people.UserGroup(ctx, name)
}

// used is the account in use, whichever it is.
func (b *Bot) used(ctx context.Context) (*live, error) {
	b.mu.Lock()
	account := b.account
	b.mu.Unlock()
	if account == nil {
		return nil, errOff
	}
	return b.at(ctx, store.Address{Surface: store.OnSlack, Team: account.Team})
}

// InUserGroup lists the identities of those who are in a user group now, by its
// source. Of those whom nize knows they are full members of the workspace only;
// of others that is asked when they come.
func (b *Bot) InUserGroup(ctx context.Context, source string) ([]string, error) {
	parts := strings.Split(source, ":")
	if len(parts) != 3 || parts[0] != string(store.OnSlack) {
		return nil, fmt.Errorf("%w source %q: it is no user group of Slack's", store.ErrInvalid, source)
	}
	l, err := b.at(ctx, store.Address{Surface: store.OnSlack, Team: parts[1]})
	if err != nil {
		return nil, err
	}
	return l.people.InUserGroup(ctx, parts[2])
}

// Direct implements [outbox.Courier]: somebody's conversation with nize, outside
// any thread. Only who may talk to nize gets anything.
func (b *Bot) Direct(ctx context.Context, u store.User) (store.Address, error) {
	l := b.current()
	if l == nil {
		return store.Address{}, fmt.Errorf("%w: %w", store.ErrNotFound, errOff)
	}
	return l.people.Direct(ctx, u)
}

// Sweep begins to look everybody up now, or leaves one that is under way.
func (b *Bot) Sweep() error {
	l := b.current()
	if l == nil {
		return fmt.Errorf("%w: %w", store.ErrRefused, errOff)
	}
	l.people.Sweep()
	return nil
}

// channelForm is the id of a channel, not of somebody's own conversation.
var channelForm = regexp.MustCompile(`^[CG][A-Z0-9]{1,31}$`)

// CheckChannel implements [bots.ChannelDirectory].
func (b *Bot) CheckChannel(id string) error { return CheckChannel(id) }

// CheckChannel says how the id of a channel is written, where id is none.
func CheckChannel(id string) error {
	if channelForm.MatchString(id) {
		return nil
	}
	return errors.New("write it as slack:TEAM/CHANNEL, or its id alone, such as C0123456; Slack shows it at the end of the channel's details")
}
