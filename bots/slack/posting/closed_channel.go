package posting

import (
	"context"

	slackgo "github.com/slack-go/slack"

	"nize/bots/phrases"
	"nize/bots/slack/people"
	"nize/bots/slack/view"
	"nize/bots/slack/wire"
	"nize/store"
)

// A channel may become unavailable while nize works in it: nize is removed, the channel is
// archived, or the thread's first message is deleted. The requester is told in private what
// can't be shown there.

// tellClosed tells the requester, once a day per thread, that m could not be shown in its
// channel, if that is the reason for err.
func (po *Poster) tellClosed(ctx context.Context, at store.Address, m store.Message, err error) {
	id := view.SlackID(m.For)
	awaited := m.Final && (m.Kind == store.TextMessage || m.Kind == store.NoticeMessage) || m.Card != nil && m.Card.State == store.Pending
	if !wire.Closed[wire.Code(err)] || id == "" || !awaited || !Shared(at) {
		return
	}
	if err := po.sendClosedNotice(ctx, at, id); err != nil && ctx.Err() == nil {
		po.messages.log.Warn("telling somebody that a channel is closed", "channel", at.Channel, "err", err)
	}
}

func (po *Poster) sendClosedNotice(ctx context.Context, at store.Address, id string) error {
	p, err := po.messages.people.Who(ctx, id, people.Recent)
	if err != nil || p.User.ID == "" {
		return err
	}
	first, err := po.messages.people.FirstToday(ctx, "shut:"+id+":"+at.Channel+":"+at.Thread)
	if err != nil || !first {
		return err
	}
	channel, err := po.messages.people.OpenDM(ctx, id)
	if err != nil {
		return err
	}
	text := view.SayIn(p.Words(), phrases.PlaceShut, at.Channel)
	_, err = po.messages.wire.Post(ctx, channel, slackgo.MsgOptionText(text, false), slackgo.MsgOptionBlocks(slackgo.NewSectionBlock(view.Mrkdwn(text), nil, nil)))
	return err
}
