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

// Private results: what is for one person of a channel's thread goes
// to a thread of its own in their conversation with nize. Its first message
// says which thread it belongs to; the button under an answer shares that.

// Shared says whether more than one person may read what is shown there: only a
// conversation with nize has one reader.
func Shared(at store.Address) bool { return !strings.HasPrefix(at.Channel, "D") }

// PrivateThread is a thread of somebody's own in their conversation with nize for
// what is theirs of the conversation in, opened where there is none.
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

// findPrivateThread is the first message of such a thread that stands there already, since
// its post got no answer or the process ended before it was noted; "" for none.
// It is no older than the thread that it belongs to.
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

// WordsOf are nize's words in the language of a user; English where Slack does
// not say which that is.
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

// unreachable makes what Slack refuses for good an ErrNotFound: the person has
// no place to read alone.
func unreachable(err error) error {
	if err != nil && wire.Lasting(err) && !errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("%w: %w", store.ErrNotFound, err)
	}
	return err
}

// Permalink is where a thread is found, "" where Slack does not say.
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
