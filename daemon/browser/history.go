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

// What was said in a conversation is read a page at a time, from its end: a long one
// opens as quickly as a short one.

var showConversation = api.Op[showRequest, conversation]{Method: "GET", Path: api.ShowConversation.Path, Summary: "show a conversation"}

const (
	// pageSize is how many messages, or conversations, a page gets at a time.
	pageSize = 50
	// turnsRead is how many turns are read at once: what a tool returned is one too,
	// and no message.
	turnsRead = 2 * pageSize
)

// showRequest names a conversation and the turn before which its messages are read;
// 0 is the end.
type showRequest struct {
	ID     string `path:"id" json:"-"`
	Before int    `query:"before" json:"-"`
	reading
}

// conversation is a part of one.
type conversation struct {
	Thread   store.Thread  `json:"thread"`
	Messages []web.Message `json:"messages"`
	From     int           `json:"from"` // the turn that the first message is of
	More     bool          `json:"more"` // something was said before it
}

func (b *Browser) show(ctx context.Context, by store.Caller, req showRequest) (conversation, error) {
	return b.read(ctx, by, req.ID, req.Before, b.reader(by, req.Locale, req.Zone))
}

// own finds a conversation that the caller began; nobody else's is found, by admins
// neither.
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

// readable finds a conversation that the caller began or wrote in. Nobody gives a
// reason here, so admins read no others'.
func (b *Browser) readable(ctx context.Context, by store.Caller, id string) (store.Thread, error) {
	th, err := b.own(ctx, by, id)
	if !errors.Is(err, store.ErrNotFound) {
		return th, err
	}
	by.Role = store.Member
	view, err := b.Conversations.Show(ctx, by, api.ShowConversationRequest{ID: id})
	return view.Thread, err
}

// read reads the messages of a conversation that are before a turn, as its reader
// may read them.
func (b *Browser) read(ctx context.Context, by store.Caller, id string, before int, r bots.Reader) (none conversation, err error) {
	th, err := b.readable(ctx, by, id)
	if err != nil {
		return none, err
	}
	rec := web.Record{Cards: map[string]store.Card{}, Reader: by.User}
	if before <= 0 {
		if rec.Queued, err = b.queued(ctx, id); err != nil { // before the turns: what leaves the queue is one
			return none, err
		}
	}
	out := conversation{Thread: th}
	if rec.Turns, out.More, err = lastTurns(ctx, b.Store, id, before); err != nil {
		return none, err
	}
	if before <= 0 { // a turn that began after th was read is among the turns, and goes on
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

// turnReader reads the last n turns before one, or before the end.
type turnReader interface {
	TurnsBefore(ctx context.Context, thread string, before, n int) ([]store.Turn, error)
}

// lastTurns reads as many turns before one as make a page, and says whether there are
// earlier ones. What tools returned stays with the turn that asked for it, and what was
// replaced with what replaces it.
func lastTurns(ctx context.Context, of turnReader, id string, before int) (turns []store.Turn, more bool, err error) {
	replaced := -1 // from that turn on, up to the last one in force
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

// addCalls reads a call that a turn asked for and what was made in its place, with the
// cards of those that were put to people.
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
		case !errors.Is(err, store.ErrNotFound): // it is for others to see
			return err
		}
	}
	return nil
}

// queued are the messages of a conversation that wait for their turn.
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
