package slack

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	slackgo "github.com/slack-go/slack"

	"nize/bots"
	"nize/bots/slack/view"
	"nize/bots/slack/wire"
	"nize/store"
)

// errOff is why nothing can be shown while no account is used.
var errOff = errors.New("slack is not connected")

// maxUnsure is how many messages are remembered whose post got no answer.
const maxUnsure = 10_000

// Post implements [bots.Platform].
func (b *Bot) Post(ctx context.Context, to store.Address, m store.Message) (store.Address, error) {
	l, err := b.at(ctx, to)
	if err != nil {
		return store.Address{}, err
	}
	to.Message, err = l.show(ctx, to, m)
	l.tellShut(ctx, to, m, err)
	return to, err
}

// Update implements [bots.Platform].
func (b *Bot) Update(ctx context.Context, at store.Address, m store.Message) error {
	l, err := b.at(ctx, at)
	if err != nil {
		return err
	}
	_, err = l.show(ctx, at, m)
	l.tellShut(ctx, at, m, err)
	return err
}

// startTime is how long a message waits for a bot that is about to start.
const startTime = 5 * time.Second

// at is the account that an address belongs to.
func (b *Bot) at(ctx context.Context, a store.Address) (*live, error) {
	b.mu.Lock()
	l, ready, wanted := b.live, b.ready, b.account != nil
	b.mu.Unlock()
	if l == nil && wanted {
		ctx, cancel := context.WithTimeout(ctx, startTime)
		defer cancel()
		select {
		case <-ready:
		case <-ctx.Done():
		}
		l = b.current()
	}
	switch {
	case l == nil:
		return nil, errOff
	case l.account.Team != a.Team:
		return nil, fmt.Errorf("%w: it is in another workspace, %s", errOff, a.Team)
	}
	return l, nil
}

// Batch implements [bots.Batcher]: in channels three, as much as one likes in
// private.
func (b *Bot) Batch(in store.Address) int {
	if strings.HasPrefix(in.Channel, "D") {
		return 0
	}
	return 3
}

// show posts m, or edits it at at.Message, and returns its ts.
func (l *live) show(ctx context.Context, at store.Address, m store.Message) (string, error) {
	switch m.Kind {
	case store.TextMessage:
		return l.showText(ctx, at, m)
	case store.CardMessage:
		if m.Card == nil {
			return "", fmt.Errorf("%w message: a card without its call", store.ErrInvalid)
		}
		return l.showCard(ctx, at, m)
	case store.ToolMessage:
		if m.Tool == nil {
			return "", fmt.Errorf("%w message: no tool", store.ErrInvalid)
		}
		return l.showTool(ctx, at, m)
	}
	if m.Card != nil { // about a call, to one person
		m.Text = bots.ReminderText(*m.Card, l.reader(ctx, at).Locale)
	}
	if m.Share != nil {
		return l.put(ctx, at, m.ID, view.OfferContent(m, l.wordsOf(ctx, m.Only)))
	}
	return l.put(ctx, at, m.ID, view.Notice(m))
}

// fixed are Slack's answers where a message can't be edited, ever: its blocks
// are of a kind that must stay, or the workspace does not let it be changed.
var fixed = map[string]bool{"block_mismatch": true, "cant_update_message": true, "edit_window_closed": true}

// giveWay deletes the message whose edit led to err if Slack lets nobody edit
// it: then there is none to edit, and another takes its place.
func (l *live) giveWay(ctx context.Context, at store.Address, err error) error {
	if !fixed[wire.Code(err)] {
		return err
	}
	l.log.Info("a message can't be edited; another takes its place", "channel", at.Channel, "message", at.Message, "err", err)
	if undone := l.unpost(ctx, at, at.Message); undone != nil {
		return undone
	}
	return fmt.Errorf("%w: %w", store.ErrNotFound, err)
}

// put makes a message, or edits the one at at.Message.
func (l *live) put(ctx context.Context, at store.Address, id string, c view.Content) (string, error) {
	if at.Message != "" {
		return at.Message, l.giveWay(ctx, at, l.wire.Edit(ctx, at.Channel, at.Message, c.Edit...))
	}
	options := append([]slackgo.MsgOption{slackgo.MsgOptionDisableLinkUnfurl(), slackgo.MsgOptionDisableMediaUnfurl()}, c.Post...)
	if at.Thread != "" {
		options = append(options, slackgo.MsgOptionTS(at.Thread))
	}
	ts, found, err := l.create(ctx, at, id, func(ctx context.Context) (string, error) {
		return l.wire.Post(ctx, at.Channel, options...)
	})
	if err == nil {
		l.status.posted(at, l.b.o.Now())
	}
	if err == nil && found { // it may be of an older state
		if err = l.wire.Edit(ctx, at.Channel, ts, c.Edit...); err == nil {
			l.stages.unsure.settled(unsureKey(at, id), ts)
		}
	}
	return ts, err
}

// unsurePosts are posts whose answer was lost, by message, and every ts that is
// known to be another message's.
type unsurePosts struct {
	mu    sync.Mutex // guards what follows
	since map[string]time.Time
	known map[string]bool
}

func unsureKey(at store.Address, id string) string { return at.Channel + "/" + at.Thread + "/" + id }

// create makes a message once: where the answer to an earlier try was lost, it
// is looked for in the thread first, and found says so. What was found stays
// unsettled until the caller says that it is in use.
func (l *live) create(ctx context.Context, at store.Address, id string, make func(context.Context) (string, error)) (ts string, found bool, err error) {
	u := &l.stages.unsure
	key := unsureKey(at, id)
	u.mu.Lock()
	since, lost := u.since[key]
	u.mu.Unlock()
	if lost {
		ts, err := l.find(ctx, at, id, since)
		if err != nil {
			return "", false, err
		}
		if ts != "" {
			return ts, true, nil
		}
	}
	began := l.b.o.Now()
	ts, err = make(ctx)
	switch {
	case err == nil:
		u.settled(key, ts)
	case wire.Unsure(err) && !lost:
		u.lost(key, began)
	}
	return ts, false, err
}

// takeLost adds to a text the message that was begun after its last one, if
// nobody knows whether it got there and it did.
func (l *live) takeLost(ctx context.Context, at store.Address, t *writing) error {
	u := &l.stages.unsure
	id := partID(t.id, len(t.parts))
	u.mu.Lock()
	since, lost := u.since[unsureKey(at, id)]
	u.mu.Unlock()
	if !lost {
		return nil
	}
	ts, err := l.find(ctx, at, id, since)
	if err != nil {
		return err
	}
	u.settled(unsureKey(at, id), ts)
	if ts != "" {
		t.parts = append(t.parts, part{ts: ts})
	}
	return nil
}

func (u *unsurePosts) settled(key, ts string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.known == nil || len(u.known) > maxUnsure {
		u.known = map[string]bool{}
	}
	u.known[ts] = true
	delete(u.since, key)
}

func (u *unsurePosts) lost(key string, at time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.since == nil || len(u.since) > maxUnsure {
		u.since = map[string]time.Time{}
	}
	u.since[key] = at
}

// knows notes that these are messages of which it is known what they are.
func (u *unsurePosts) knows(parts []part) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.known == nil {
		u.known = map[string]bool{}
	}
	for _, p := range parts {
		u.known[p.ts] = true
	}
}

// find looks for a message of nize's own in a thread that no answer told of,
// made after since by any clock that is right to a minute.
func (l *live) find(ctx context.Context, at store.Address, id string, since time.Time) (ts string, err error) {
	places, err := l.placesOf(ctx, at, id)
	if err != nil {
		return "", err
	}
	before := namedBy(places) // of an earlier run, too
	oldest := view.Stamp(since.Add(-time.Minute))
	list, err := l.list(ctx, at, oldest)
	if err != nil {
		return "", fmt.Errorf("looking for a message whose post got no answer: %w", err)
	}
	u := &l.stages.unsure
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, m := range list {
		if m.User == l.account.User && m.Timestamp != at.Thread && m.Timestamp >= oldest && !u.known[m.Timestamp] && !before[m.Timestamp] {
			return m.Timestamp, nil
		}
	}
	return "", nil
}

// maxPages bounds how far back a thread is looked through.
const maxPages = 10

// list reads the newest messages of a thread, or of a channel outside any.
func (l *live) list(ctx context.Context, at store.Address, oldest string) (list []slackgo.Message, err error) {
	cursor := ""
	for range maxPages {
		more := false
		err := l.wire.Call(ctx, func(ctx context.Context) error {
			if at.Thread == "" {
				h, err := l.wire.API.GetConversationHistoryContext(ctx, &slackgo.GetConversationHistoryParameters{ChannelID: at.Channel, Oldest: oldest, Limit: 200, Cursor: cursor})
				if err == nil {
					list, more, cursor = append(list, h.Messages...), h.HasMore, h.ResponseMetaData.NextCursor
				}
				return err
			}
			page, again, next, err := l.wire.API.GetConversationRepliesContext(ctx, &slackgo.GetConversationRepliesParameters{ChannelID: at.Channel, Timestamp: at.Thread, Oldest: oldest, Limit: 200, Cursor: cursor})
			list, more, cursor = append(list, page...), again, next
			return err
		})
		if err != nil || !more || cursor == "" {
			return list, err
		}
	}
	return list, nil
}

// Tell says something of nize's own in a channel, or edits what it said there
// at ts, and returns where that stands. It is not a part of any conversation.
func (b *Bot) Tell(ctx context.Context, channel, ts, text string) (string, error) {
	l := b.current()
	if l == nil {
		return "", errOff
	}
	at := store.Address{Surface: store.OnSlack, Team: l.account.Team, Channel: channel, Message: ts}
	return l.put(ctx, at, "tell/"+channel+"/"+text, view.Words(text))
}
