package slack

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"strings"

	"nize/bots/slack/incoming"
	"nize/bots/slack/posting"
	"nize/store"
)

// Batch implements [bots.Batcher]: three per minute in channels, no limit in private.
func (b *Bot) Batch(in store.Address) int {
	if strings.HasPrefix(in.Channel, "D") {
		return 0
	}
	return 3
}

// Mentions implements [outbox.Mentioner].
func (b *Bot) Mentions(store.Address) bool { return true }

// Below implements [outbox.Replier].
func (b *Bot) Below(at store.Address) store.Address {
	at.Thread, at.Message = cmp.Or(at.Thread, at.Message), ""
	return at
}

// PostsImages implements [outbox.ImagePoster].
func (b *Bot) PostsImages() bool { return true }

// Shared implements [outbox.PrivateThreads].
func (b *Bot) Shared(at store.Address) bool { return posting.Shared(at) }

// PrivateThread implements [outbox.PrivateThreads].
func (b *Bot) PrivateThread(ctx context.Context, u store.User, in store.Address) (store.Address, error) {
	l, err := b.At(ctx, in)
	if err != nil {
		return store.Address{}, err
	}
	return l.posts.PrivateThread(ctx, u, in)
}

// Link implements [bots.Linker].
func (b *Bot) Link(ctx context.Context, at store.Address) string {
	l, err := b.At(ctx, at)
	if err != nil {
		return ""
	}
	return l.posts.Permalink(ctx, at)
}

// channelForm matches the id of a channel, but not of a direct conversation.
var channelForm = regexp.MustCompile(`^[CG][A-Z0-9]{1,31}$`)

// CheckChannel implements [bots.ChannelDirectory].
func (b *Bot) CheckChannel(id string) error { return CheckChannel(id) }

// CheckChannel returns an error that explains the form of a channel id if id doesn't have
// it.
func CheckChannel(id string) error {
	if channelForm.MatchString(id) {
		return nil
	}
	return errors.New("write it as slack:TEAM/CHANNEL, or its id alone, such as C0123456; Slack shows it at the end of the channel's details")
}

// place returns the address of a thread in a workspace.
func place(team, channel, thread string) store.Address {
	return store.Address{Surface: store.OnSlack, Team: team, Channel: channel, Thread: thread}
}

// pressedHere reports whether a press or a dialog is for this workspace's installation of
// the app. A dialog may come from another workspace of its person, or one that shares the
// channel; access is decided by the person.
func pressedHere(i incoming.Interaction, team string) bool {
	return i.Team.ID == team || i.View.AppInstalledTeamID == team
}

// happenedHere reports whether an event is for this workspace's installation of the app. In
// a shared channel it may have happened in another workspace; access is decided by the
// person.
func happenedHere(e *incoming.Event, team string) bool {
	return e.Team == team || e.Through == team
}
