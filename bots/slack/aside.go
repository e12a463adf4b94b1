package slack

import (
	"context"
	"errors"
	"fmt"
	"strings"

	slackgo "github.com/slack-go/slack"

	"nize/bots"
	"nize/bots/phrases"
	"nize/bots/slack/incoming"
	"nize/bots/slack/view"
	"nize/bots/slack/wire"
	"nize/store"
)

// Private results: what is for one person of a channel's thread goes
// to a thread of its own in their conversation with nize. Its first message
// says which thread it belongs to; the button under an answer shares that.

var _ bots.Aside = (*Bot)(nil)

// addAsideViews registers what the button that shares does.
func (b *Bot) addAsideViews() {
	b.views.addPress(view.ShareAction, onPress{kept: true, do: pressShare})
}

// Shared implements [bots.Aside]: only a conversation with nize has one reader.
func (b *Bot) Shared(at store.Address) bool { return !strings.HasPrefix(at.Channel, "D") }

// Aside implements [bots.Aside].
func (b *Bot) Aside(ctx context.Context, u store.User, in store.Address) (store.Address, error) {
	l, err := b.at(ctx, in)
	if err != nil {
		return store.Address{}, err
	}
	to, err := b.Direct(ctx, u)
	if err != nil {
		return to, unreachable(err)
	}
	head := view.BlockOf("aside/" + in.Channel + "/" + in.Thread)
	if to.Thread, err = l.asideHead(ctx, to, head, in.Thread); err != nil || to.Thread != "" {
		return to, unreachable(err)
	}
	w := l.wordsOf(ctx, u.ID)
	text := view.SayIn(w, phrases.AsideHead, in.Channel)
	if link := l.permalink(ctx, in); link != "" {
		text += " <" + link + "|" + incoming.Escape(w.Say(phrases.AsideLink)) + ">"
	}
	to.Thread, err = l.wire.Post(ctx, to.Channel, slackgo.MsgOptionText(text, false), slackgo.MsgOptionDisableLinkUnfurl(),
		slackgo.MsgOptionBlocks(slackgo.NewSectionBlock(view.Mrkdwn(text), nil, nil, slackgo.SectionBlockOptionBlockID(head))))
	return to, unreachable(err)
}

// asideHead is the first message of such a thread that stands there already, since
// its post got no answer or the process ended before it was noted; "" for none.
// It is no older than the thread that it belongs to.
func (l *live) asideHead(ctx context.Context, in store.Address, block, oldest string) (string, error) {
	list, err := l.list(ctx, in, oldest)
	if err != nil {
		return "", fmt.Errorf("looking for where somebody reads alone: %w", err)
	}
	for _, m := range list {
		if m.User == l.account.User && view.Marked(m, block) {
			return m.Timestamp, nil
		}
	}
	return "", nil
}

// wordsOf are nize's words in the language of a user; English where Slack does
// not say which that is.
func (l *live) wordsOf(ctx context.Context, user string) phrases.Catalogue {
	u, err := l.b.o.Store.GetUser(ctx, user)
	if err != nil {
		return phrases.For("")
	}
	for _, id := range l.idsOf(u) {
		if p, err := l.who(ctx, id, keepPerson); err == nil && p.member {
			return p.words()
		}
	}
	return phrases.For("")
}

// unreachable makes what Slack refuses for good an ErrNotFound: the person has
// no place to read alone.
func unreachable(err error) error {
	if err != nil && wire.Lasting(err) && !errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("%w: %w", store.ErrNotFound, err)
	}
	return err
}

// permalink is where a thread is found, "" where Slack does not say.
func (l *live) permalink(ctx context.Context, in store.Address) (link string) {
	err := l.wire.Call(ctx, func(ctx context.Context) (err error) {
		link, err = l.wire.API.GetPermalinkContext(ctx, &slackgo.PermalinkParameters{Channel: in.Channel, Ts: in.Thread})
		return err
	})
	if err != nil || !strings.HasPrefix(link, "http") || strings.ContainsAny(link, "<>|") {
		return ""
	}
	return link
}

// pressShare shares an answer; whose it is the store knows.
func pressShare(ctx context.Context, l *live, p person, i incoming.Interaction, a incoming.Action) error {
	thread, n, ok := view.ReadShare(a.Value)
	if !ok {
		return fmt.Errorf("%w press", store.ErrInvalid)
	}
	err := l.handler.Share(ctx, p.by(), thread, n)
	switch {
	case errors.Is(err, store.ErrDecided):
		return nil // it says so where the button was
	case errors.Is(err, store.ErrRefused), errors.Is(err, store.ErrNotFound):
		return l.tell(ctx, p, i.Channel.ID, i.Message.Thread, p.words().Say(phrases.ShareNotYours))
	}
	return err
}
