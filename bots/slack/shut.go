package slack

import (
	"context"

	slackgo "github.com/slack-go/slack"

	"nize/bots/phrases"
	"nize/bots/slack/view"
	"nize/bots/slack/wire"
	"nize/store"
)

// A channel may be shut while nize works for somebody there: nize is taken out,
// the channel is archived, or the thread's first message deleted. What can't be
// shown there is told to who waits for it.

// tellShut tells who asked, once a day for a thread, that m could not be shown
// where they asked, if that is why err came.
func (l *live) tellShut(ctx context.Context, at store.Address, m store.Message, err error) {
	id := view.SlackID(m.For)
	awaited := m.Final && (m.Kind == store.TextMessage || m.Kind == store.NoticeMessage) || m.Card != nil && m.Card.State == store.Pending
	if !wire.Closed[wire.Code(err)] || id == "" || !awaited || !l.b.Shared(at) {
		return
	}
	if err := l.sayShut(ctx, at, id); err != nil && ctx.Err() == nil {
		l.log.Warn("telling somebody that a channel is shut", "channel", at.Channel, "err", err)
	}
}

func (l *live) sayShut(ctx context.Context, at store.Address, id string) error {
	p, err := l.who(ctx, id, keepPerson)
	if err != nil || p.user.ID == "" {
		return err
	}
	first, err := l.once(ctx, "shut:"+id+":"+at.Channel+":"+at.Thread)
	if err != nil || !first {
		return err
	}
	channel, err := l.dm(ctx, id)
	if err != nil {
		return err
	}
	text := view.SayIn(p.words(), phrases.PlaceShut, at.Channel)
	_, err = l.wire.Post(ctx, channel, slackgo.MsgOptionText(text, false), slackgo.MsgOptionBlocks(slackgo.NewSectionBlock(view.Mrkdwn(text), nil, nil)))
	return err
}
