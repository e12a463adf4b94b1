// Package posting shows on Slack what a conversation says, once.
//
// Texts stream ([texts]): chat.startStream, append, stop, in a new message before
// Slack's five minutes are over; where streaming is refused, or a request was
// lost and nobody knows whether it counted, the message is edited whole, which
// may be repeated. Cards, lines of tools and notices are ordinary messages
// ([messages]), edited with the bot's token. A post whose answer was lost is
// looked for where it would stand before it is made again, when it is on its way no
// more; one that got there after that is taken away. So are words to one person and
// files, by what somebody did that they answer. Of one message no two edits are
// under way at the same time, and the newest is made again while an earlier one may
// come yet. What a thread looks like beyond its messages is [presence].
package posting

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"nize/bots"
	"nize/bots/outbox"
	"nize/bots/queue"
	"nize/bots/slack/people"
	"nize/bots/slack/view"
	"nize/bots/slack/wire"
	"nize/store"
)

// Options are what a poster works with.
type Options struct {
	Wire   *wire.Client
	People *people.Directory
	Store  Store
	Calls  bots.Calls
	Now    func() time.Time
	Pace   time.Duration // between two pieces of a stream
	Log    *slog.Logger
	Team   string // the workspace
	Self   string // nize's own id there
}

// Poster shows what a conversation says, in one workspace.
type Poster struct {
	*messages
	*texts
	*presence
	tools  *tools
	cards  *cards
	Images *images
}

func New(o Options) *Poster {
	status := &statusLines{of: map[string]*statusLine{}, again: queue.New[string](o.Now)}
	lines := &toolLines{Most: view.MaxToolLines}
	m := &messages{wire: o.Wire, people: o.People, store: o.Store, status: status, now: o.Now, log: o.Log, team: o.Team, self: o.Self}
	m.sent = outbox.NewSent(o.Store, m, o.Now, o.Log)
	m.sent.Patience, m.sent.Account = 4*o.Pace, store.Address{Surface: store.OnSlack, Team: o.Team}
	return &Poster{
		messages: m,
		texts:    &texts{messages: m, lines: lines, gap: o.Pace},
		tools:    &tools{messages: m, calls: o.Calls, lines: lines},
		cards:    &cards{messages: m, lines: lines},
		presence: &presence{messages: m, lines: lines, status: status},
		Images:   &images{messages: m, calls: o.Calls},
	}
}

// Show posts m, or edits it at at.Message, and returns its ts. Who waits for
// what a closed channel does not take is told so.
func (po *Poster) Show(ctx context.Context, at store.Address, m store.Message) (string, error) {
	ts, err := po.showAny(ctx, at, m)
	po.tellClosed(ctx, at, m, err)
	return ts, err
}

func (po *Poster) showAny(ctx context.Context, at store.Address, m store.Message) (string, error) {
	switch m.Kind {
	case store.TextMessage:
		return po.texts.showText(ctx, at, m)
	case store.CardMessage:
		if m.Card == nil {
			return "", fmt.Errorf("%w message: a card without its call", store.ErrInvalid)
		}
		return po.cards.showCard(ctx, at, m)
	case store.ToolMessage:
		if m.Tool == nil {
			return "", fmt.Errorf("%w message: no tool", store.ErrInvalid)
		}
		return po.tools.showTool(ctx, at, m)
	case store.ImagesMessage:
		return po.Images.showImages(ctx, at, m)
	}
	if m.Card != nil { // about a call, to one person
		m.Text = bots.ReminderText(*m.Card, po.messages.Reader(ctx, at).Locale)
	}
	if m.Share != nil {
		return po.messages.Put(ctx, at, m.ID, view.OfferContent(m, po.messages.WordsOf(ctx, m.Only)))
	}
	return po.messages.Put(ctx, at, m.ID, view.Notice(m))
}
