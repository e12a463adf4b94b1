package browser

import (
	"context"
	"errors"
	"fmt"

	"nize/bots"
	"nize/bots/web"
	"nize/daemon/api"
	"nize/store"
)

// A conversation is read page by page from its end, so that a long one opens as quickly as
// a short one.

var showConversation = api.Op[showRequest, conversation]{Method: "GET", Path: api.ShowConversation.Path, Summary: "show a conversation"}

const (
	// pageSize is the number of messages, or conversations, in a page.
	pageSize = 50
	// turnsRead is how many turns are read at once. It is larger than pageSize because a
	// tool's result is a turn but not a message.
	turnsRead = 2 * pageSize
)

// showRequest names a conversation and the turn before which to read; 0 is the end.
type showRequest struct {
	ID     string `path:"id" json:"-"`
	Before int    `query:"before" json:"-"`
	reading
}

// conversation is a part of a conversation.
type conversation struct {
	Thread   store.Thread  `json:"thread"`
	Messages []web.Message `json:"messages"`
	From     int           `json:"from"` // the first message's turn
	More     bool          `json:"more"` // there are earlier messages
}

func (b *Browser) show(ctx context.Context, by store.Caller, req showRequest) (conversation, error) {
	return b.read(ctx, by, req.ID, req.Before, b.reader(by, req.Locale, req.Zone))
}

// own returns a conversation that the caller started; not even an admin gets other
// people's.
func (b *Browser) own(ctx context.Context, by store.Caller, id string) (store.Thread, error) {
	th, err := b.Store.GetThread(ctx, id)
	if err == nil && th.User != by.User {
		err = store.ErrNotFound
	}
	if err != nil {
		return store.Thread{}, fmt.Errorf("conversation %q: %w", store.Clip(id, 80), err)
	}
	return th, nil
}

// readable returns a conversation that the caller started or wrote in. Since the page takes
// no reason, admins can't read other people's here.
func (b *Browser) readable(ctx context.Context, by store.Caller, id string) (store.Thread, error) {
	th, err := b.own(ctx, by, id)
	if !errors.Is(err, store.ErrNotFound) {
		return th, err
	}
	by.Role = store.Member
	view, err := b.Conversations.Show(ctx, by, api.ShowConversationRequest{ID: id})
	return view.Thread, err
}

// read returns the messages of a conversation before a turn, as visible to their reader.
func (b *Browser) read(ctx context.Context, by store.Caller, id string, before int, r bots.Reader) (none conversation, err error) {
	th, err := b.readable(ctx, by, id)
	if err != nil {
		return none, err
	}
	rec := web.Record{Cards: map[string]store.Card{}, Reader: by.User}
	if before <= 0 {
		if rec.Queued, err = b.queued(ctx, id); err != nil { // read the queue before the turns: a message that leaves the queue becomes a turn
			return none, err
		}
	}
	out := conversation{Thread: th}
	if rec.Turns, out.More, err = lastTurns(ctx, b.Store, id, before); err != nil {
		return none, err
	}
	if before <= 0 { // a turn that began after th was read is among the turns, and still running
		now, err := b.Store.GetThread(ctx, id)
		if err != nil {
			return none, fmt.Errorf("conversation %q: %w", store.Clip(id, 80), err)
		}
		out.Thread.Open = now.Open
	}
	if len(rec.Turns) > 0 {
		out.From = rec.Turns[0].N
	}
	rec.Turns = store.InForce(rec.Turns)
	for i, t := range rec.Turns {
		rec.Turns[i] = t.SeenBy(by.User)
		for _, asked := range rec.Turns[i].Calls {
			if err := b.addCalls(ctx, by, &rec, asked.ID); err != nil {
				return none, err
			}
		}
	}
	r.At = th.Address
	out.Messages = web.History(rec, r)
	for i, m := range out.Messages {
		if out.Messages[i], err = b.complete(ctx, by, m, r); err != nil {
			return none, err
		}
	}
	return out, nil
}

// turnReader returns the last n turns before one, or before the end.
type turnReader interface {
	TurnsBefore(ctx context.Context, thread string, before, n int) ([]store.Turn, error)
}

// lastTurns returns the turns before one that fill a page, and whether there are earlier
// ones. It keeps a tool's result together with the turn that called the tool, and replaced
// turns with those that replace them.
func lastTurns(ctx context.Context, of turnReader, id string, before int) (turns []store.Turn, more bool, err error) {
	replaced := -1 // the turns from this one up to the last one in force are replaced
	for n := 0; ; {
		read, err := of.TurnsBefore(ctx, id, before, turnsRead)
		if err != nil {
			return nil, false, fmt.Errorf("reading the conversation: %w", err)
		}
		for i := len(read) - 1; i >= 0; i-- {
			if replaced >= 0 && read[i].N >= replaced {
				continue
			}
			replaced = -1
			if r := read[i].Replaces; r > 0 {
				replaced = read[i].N - r
			}
			c := web.CountMessages(read[i])
			if n > 0 && n+c > pageSize {
				for i++; i < len(read) && read[i].Role == store.FromTool; i++ {
				}
				return append(read[i:], turns...), true, nil
			}
			n += c
		}
		turns = append(read, turns...)
		if len(read) == 0 || read[0].N == 0 {
			return turns, false, nil
		}
		before = read[0].N
	}
}

// addCalls reads a turn's call and the calls that replaced it, with the cards of those that
// needed a decision.
func (b *Browser) addCalls(ctx context.Context, by store.Caller, rec *web.Record, id string) error {
	for seen := 0; id != "" && seen < turnsRead; seen++ {
		c, err := b.Store.GetCall(ctx, id)
		if errors.Is(err, store.ErrNotFound) {
			return nil // it was never made
		}
		if err != nil {
			return fmt.Errorf("reading a call of the conversation: %w", err)
		}
		rec.Calls = append(rec.Calls, c)
		id = c.Successor
		if !web.Asked(c) {
			continue
		}
		card, err := b.Approvals.Get(ctx, by, api.CallRequest{ID: c.ID})
		switch {
		case err == nil:
			rec.Cards[c.ID] = card
		case !errors.Is(err, store.ErrNotFound): // only others may see it
			return err
		}
	}
	return nil
}

// queued returns a conversation's queued messages.
func (b *Browser) queued(ctx context.Context, thread string) (list []store.Inbound, err error) {
	items, err := b.Store.Pending(ctx)
	if err != nil {
		return nil, err
	}
	for _, item := range items {
		if in, ok := web.QueuedIn(item, thread); ok {
			list = append(list, in)
		}
	}
	return list, nil
}
