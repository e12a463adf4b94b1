// Package posting posts a conversation's messages on Slack, each exactly once.
//
// Texts are streamed ([texts]) with chat.startStream, append and stop, and continue in a
// new message before Slack's limit of five minutes. If streaming is refused, or a request
// got no response, the complete message is edited instead, which can safely be repeated.
// Cards, lines of tools and notices are ordinary messages ([messages]), edited with the bot
// token.
//
// If the response to a post was lost, nize waits until the request can't be in flight any
// more, looks for the message in its place, and only then posts again. A message that
// arrives even later is deleted. The same holds for messages to one person and for files,
// which are identified by the action that they answer. Edits of one message never overlap,
// and the newest edit is repeated while an earlier one may still arrive. [presence] handles
// the state of a thread outside its messages.
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

// Options configure a [Poster].
type Options struct {
	Wire   *wire.Client
	People *people.Directory
	Store  Store
	Calls  bots.Calls
	Now    func() time.Time
	Pace   time.Duration // pause between two pieces of a stream
	Log    *slog.Logger
	Team   string // the workspace
	Self   string // nize's own user id
}

// Poster posts the messages of conversations in one workspace.
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

// Show posts m, or edits it at at.Message, and returns its ts. If the channel is closed, it
// tells the requester.
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
	if m.Card != nil { // about a call, for one person
		m.Text = bots.ReminderText(*m.Card, po.messages.Reader(ctx, at).Locale)
	}
	if m.Share != nil {
		return po.messages.Put(ctx, at, m.ID, view.OfferContent(m, po.messages.WordsOf(ctx, m.Only)))
	}
	return po.messages.Put(ctx, at, m.ID, view.Notice(m))
}
