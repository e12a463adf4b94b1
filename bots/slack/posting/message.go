package posting

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	slackgo "github.com/slack-go/slack"

	"nize/bots/slack/people"
	"nize/bots/slack/view"
	"nize/bots/slack/wire"
	"nize/store"
)

// messages are what nize sends that is no text in the making: posted once, also
// where an answer was lost, edited, found again and taken away.
type messages struct {
	wire   *wire.Client
	people *people.Directory
	store  Store
	status *statusLines // of threads, which a post takes away
	now    func() time.Time
	log    *slog.Logger
	team   string // the workspace
	self   string // nize's own id there
	unsure unsurePosts
}

// noteTime bounds noting where something stands, also while a stop is under way.
const noteTime = 5 * time.Second

// maxUnsure is how many messages are remembered whose post got no answer.
const maxUnsure = 10_000

// fixed are Slack's answers where a message can't be edited, ever: its blocks
// are of a kind that must stay, or the workspace does not let it be changed.
var fixed = map[string]bool{"block_mismatch": true, "cant_update_message": true, "edit_window_closed": true}

// giveWay deletes the message whose edit led to err if Slack lets nobody edit
// it: then there is none to edit, and another takes its place.
func (b *messages) giveWay(ctx context.Context, at store.Address, err error) error {
	if !fixed[wire.Code(err)] {
		return err
	}
	b.log.Info("a message can't be edited; another takes its place", "channel", at.Channel, "message", at.Message, "err", err)
	if undone := b.unpost(ctx, at, at.Message); undone != nil {
		return undone
	}
	return fmt.Errorf("%w: %w", store.ErrNotFound, err)
}

// Put makes a message, or edits the one at at.Message.
func (b *messages) Put(ctx context.Context, at store.Address, id string, c view.Content) (string, error) {
	if at.Message != "" {
		return at.Message, b.giveWay(ctx, at, b.wire.Edit(ctx, at.Channel, at.Message, c.Edit...))
	}
	options := append([]slackgo.MsgOption{slackgo.MsgOptionDisableLinkUnfurl(), slackgo.MsgOptionDisableMediaUnfurl()}, c.Post...)
	if at.Thread != "" {
		options = append(options, slackgo.MsgOptionTS(at.Thread))
	}
	ts, found, err := b.create(ctx, at, id, func(ctx context.Context) (string, error) {
		return b.wire.Post(ctx, at.Channel, options...)
	})
	if err == nil {
		b.status.posted(at, b.now())
	}
	if err == nil && found { // it may be of an older state
		if err = b.wire.Edit(ctx, at.Channel, ts, c.Edit...); err == nil {
			b.unsure.settled(unsureKey(at, id), ts)
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
func (b *messages) create(ctx context.Context, at store.Address, id string, make func(context.Context) (string, error)) (ts string, found bool, err error) {
	u := &b.unsure
	key := unsureKey(at, id)
	u.mu.Lock()
	since, lost := u.since[key]
	u.mu.Unlock()
	if lost {
		ts, err := b.found(ctx, at, id, since)
		if err != nil {
			return "", false, err
		}
		if ts != "" {
			return ts, true, nil
		}
	}
	began := b.now()
	ts, err = make(ctx)
	switch {
	case err == nil:
		u.settled(key, ts)
	case wire.Unsure(err) && !lost:
		u.lost(key, began)
	}
	return ts, false, err
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

// found looks for a message of nize's own in a thread that no answer told of,
// made after since by any clock that is right to a minute.
func (b *messages) found(ctx context.Context, at store.Address, id string, since time.Time) (ts string, err error) {
	places, err := b.placesOf(ctx, at, id)
	if err != nil {
		return "", err
	}
	before := namedBy(places) // of an earlier run, too
	oldest := view.Stamp(since.Add(-time.Minute))
	list, err := b.List(ctx, at, oldest)
	if err != nil {
		return "", fmt.Errorf("looking for a message whose post got no answer: %w", err)
	}
	u := &b.unsure
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, m := range list {
		if m.User == b.self && m.Timestamp != at.Thread && m.Timestamp >= oldest && !u.known[m.Timestamp] && !before[m.Timestamp] {
			return m.Timestamp, nil
		}
	}
	return "", nil
}

// maxPages bounds how far back a thread is looked through.
const maxPages = 10

// List reads the newest messages of a thread, or of a channel outside any.
func (b *messages) List(ctx context.Context, at store.Address, oldest string) (list []slackgo.Message, err error) {
	cursor := ""
	for range maxPages {
		more := false
		err := b.wire.Call(ctx, func(ctx context.Context) error {
			if at.Thread == "" {
				h, err := b.wire.API.GetConversationHistoryContext(ctx, &slackgo.GetConversationHistoryParameters{ChannelID: at.Channel, Oldest: oldest, Limit: 200, Cursor: cursor})
				if err == nil {
					list, more, cursor = append(list, h.Messages...), h.HasMore, h.ResponseMetaData.NextCursor
				}
				return err
			}
			page, again, next, err := b.wire.API.GetConversationRepliesContext(ctx, &slackgo.GetConversationRepliesParameters{ChannelID: at.Channel, Timestamp: at.Thread, Oldest: oldest, Limit: 200, Cursor: cursor})
			list, more, cursor = append(list, page...), again, next
			return err
		})
		if err != nil || !more || cursor == "" {
			return list, err
		}
	}
	return list, nil
}
