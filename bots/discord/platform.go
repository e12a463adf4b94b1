package discord

import (
	"cmp"
	"context"
	"errors"
	"regexp"

	"nize/bots/discord/posting"
	"nize/bots/discord/view"
	"nize/bots/discord/wire"
	"nize/bots/phrases"
	"nize/store"
)

// Batch implements [bots.Batcher]: three per minute in channels, no limit in private.
func (b *Bot) Batch(in store.Address) int {
	if in.Direct {
		return 0
	}
	return 3
}

// Below implements [outbox.Replier]: in a direct channel, the thread of a message is the
// replies to it.
func (b *Bot) Below(at store.Address) store.Address {
	if at.Thread == "" || at.Thread == at.Channel {
		at.Thread = at.Message
	}
	at.Message = ""
	return at
}

// PostsImages implements [outbox.ImagePoster].
func (b *Bot) PostsImages() bool { return true }

// Shared implements [outbox.PrivateThreads].
func (b *Bot) Shared(at store.Address) bool { return posting.Shared(at) }

// PrivateThread implements [outbox.PrivateThreads]: it returns the person's direct channel,
// after posting a line that names the original thread.
func (b *Bot) PrivateThread(ctx context.Context, u store.User, in store.Address) (store.Address, error) {
	l, err := b.At(ctx, in)
	if err != nil {
		return store.Address{}, err
	}
	to, err := l.people.Direct(ctx, u)
	if err != nil {
		return to, err
	}
	text := l.posts.WordsOf(ctx, u.ID).Say(phrases.AsideHead, "<#"+in.Thread+">")
	_, err = l.posts.Put(ctx, to, "aside/"+in.Channel+"/"+in.Thread+"/"+u.ID, view.Notice(text))
	return to, wire.Unreachable(err)
}

// Link implements [bots.Linker].
func (b *Bot) Link(_ context.Context, at store.Address) string {
	if at.Direct {
		return "https://discord.com/channels/@me/" + at.Channel
	}
	return "https://discord.com/channels/" + at.Team + "/" + cmp.Or(at.Thread, at.Channel)
}

var channelForm = regexp.MustCompile(`^[0-9]{15,20}$`)

// CheckChannel implements [bots.ChannelDirectory].
func (b *Bot) CheckChannel(id string) error { return CheckChannel(id) }

// CheckChannel returns an error that explains the form of a channel id if id doesn't have
// it.
func CheckChannel(id string) error {
	if channelForm.MatchString(id) {
		return nil
	}
	return errors.New("write it as discord:GUILD/CHANNEL, or its id alone, such as 1187349812345678901; Discord copies it from the channel's menu in developer mode")
}
