package posting

import (
	"context"
	"errors"
	"fmt"
	"strings"

	slackgo "github.com/slack-go/slack"

	"nize/bots/phrases"
	"nize/bots/slack/incoming"
	"nize/bots/slack/people"
	"nize/bots/slack/view"
	"nize/bots/slack/wire"
	"nize/store"
)

// Private results: the part of a channel's thread that is for one person is posted in a
// separate thread in their direct conversation. Its first message names the original
// thread; the button under an answer shares it.

// Shared reports whether more than one person may read messages there: only a direct
// conversation with nize has a single reader.
func Shared(at store.Address) bool { return !strings.HasPrefix(at.Channel, "D") }

// PrivateThread returns a person's thread for their private part of the conversation in, in
// their direct conversation, and creates it if needed.
func (ms *messages) PrivateThread(ctx context.Context, u store.User, in store.Address) (store.Address, error) {
	to, err := ms.people.Direct(ctx, u)
	if err != nil {
		return to, unreachable(err)
	}
	head := view.BlockOf("aside/" + in.Channel + "/" + in.Thread)
	if to.Thread, err = ms.findPrivateThread(ctx, to, head, in.Thread); err != nil || to.Thread != "" {
		return to, unreachable(err)
	}
	w := ms.WordsOf(ctx, u.ID)
	text := view.SayIn(w, phrases.AsideHead, in.Channel)
	if link := ms.Permalink(ctx, in); link != "" {
		text += " <" + link + "|" + incoming.Escape(w.Say(phrases.AsideLink)) + ">"
	}
	to.Thread, err = ms.wire.Post(ctx, to.Channel, slackgo.MsgOptionText(text, false), slackgo.MsgOptionDisableLinkUnfurl(),
		slackgo.MsgOptionBlocks(slackgo.NewSectionBlock(view.Mrkdwn(text), nil, nil, slackgo.SectionBlockOptionBlockID(head))))
	return to, unreachable(err)
}

// findPrivateThread returns the first message of such a thread that exists already, because
// its post got no response or the process ended before it was recorded; "" for none. It is
// not older than the original thread.
func (ms *messages) findPrivateThread(ctx context.Context, in store.Address, block, oldest string) (string, error) {
	list, err := ms.List(ctx, in, oldest)
	if err != nil {
		return "", fmt.Errorf("looking for where somebody reads alone: %w", err)
	}
	for _, m := range list {
		if m.User == ms.self && view.Marked(m, block) {
			return m.Timestamp, nil
		}
	}
	return "", nil
}

// WordsOf returns nize's texts in a user's language, in English if Slack doesn't say which
// it is.
func (ms *messages) WordsOf(ctx context.Context, user string) phrases.Catalogue {
	u, err := ms.store.GetUser(ctx, user)
	if err != nil {
		return phrases.For("")
	}
	for _, id := range people.IDs(u) {
		if p, err := ms.people.Who(ctx, id, people.Recent); err == nil && p.Member {
			return p.Words()
		}
	}
	return phrases.For("")
}

// unreachable turns Slack's lasting refusals into ErrNotFound: the person has no private
// place.
func unreachable(err error) error {
	if err != nil && wire.Lasting(err) && !errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("%w: %w", store.ErrNotFound, err)
	}
	return err
}

// Permalink returns the URL of a thread, "" if Slack doesn't provide it.
func (ms *messages) Permalink(ctx context.Context, in store.Address) (link string) {
	err := ms.wire.Call(ctx, func(ctx context.Context) (err error) {
		link, err = ms.wire.API.GetPermalinkContext(ctx, &slackgo.PermalinkParameters{Channel: in.Channel, Ts: in.Thread})
		return err
	})
	if err != nil || !strings.HasPrefix(link, "http") || strings.ContainsAny(link, "<>|") {
		return ""
	}
	return link
}
