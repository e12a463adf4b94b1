package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
	"unicode/utf16"

	"nize/bots"
	"nize/bots/outbox"
	"nize/bots/web"
	"nize/daemon/api"
	"nize/daemon/limit"
	"nize/store"
	"nize/store/eventstream"
)

const (
	// calm is the minimum time between two reads of the same data.
	calm = 300 * time.Millisecond
	// patience is the write timeout of one event.
	patience = 30 * time.Second
)

// events streams a conversation's and a person's events until the client disconnects.
// Events need not be stored, since a new connection gets the complete state.
func (b *Browser) events(w http.ResponseWriter, r *http.Request) {
	session, err := b.person(r)
	var by store.Caller
	if err == nil {
		by, err = b.caller(r)
	}
	if err == nil {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		var leave func()
		if leave, err = b.enter(by.User, cancel); err == nil {
			defer leave()
			err = b.follow(w, r.WithContext(ctx), session, by)
		}
	}
	if err != nil {
		e, known := api.FromError(err)
		if !known {
			b.Log.Error("following a conversation", "err", err)
		}
		fail(w, e)
	}
}

// enter counts a stream of a page.
func (b *Browser) enter(user string, end context.CancelFunc) (leave func(), err error) {
	leave, err = b.streams.Enter(user, end)
	if many := new(limit.StreamsError); errors.As(err, &many) {
		return nil, &api.Error{Code: "closed", Message: "too many pages are open (the setting " + many.Setting + "); close one"}
	}
	return leave, err
}

// tab is one stream.
type tab struct {
	b       *Browser
	w       http.ResponseWriter
	by      store.Caller
	thread  string
	reader  func() bots.Reader
	title   string
	waiting []string // the calls last sent, and other pending calls that the person may see
	told    bool     // waiting was sent
	rested  time.Time
}

// follow serves the stream. It returns an error only if the stream has not begun.
func (b *Browser) follow(w http.ResponseWriter, r *http.Request, session, by store.Caller) error {
	t := &tab{b: b, w: w, by: by, thread: r.URL.Query().Get("thread")}
	t.reader = func() bots.Reader {
		return b.reader(by, r.Header.Get("Accept-Language"), r.URL.Query().Get("zone"))
	}
	elsewhere := false
	if t.thread != "" {
		// If the person may not read it, return the error before the stream begins.
		th, err := b.readable(r.Context(), by, t.thread)
		if err != nil {
			return err
		}
		elsewhere = th.Address.Surface != store.OnWeb
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer b.Watch(ctx, session, cancel)()
	f := b.Platform.Follow(web.Tab{Thread: t.thread, User: by.User, Session: session.Token, Elsewhere: elsewhere})
	defer f.Close()
	defer context.AfterFunc(b.Closing, cancel)()
	eventstream.SetHeader(w.Header())
	for {
		e, err := f.Next(ctx)
		if err == nil && e.Kind == web.Rights {
			if _, err := b.Person(r); err != nil {
				return nil // the next request gets the error
			}
			continue
		}
		if err == nil {
			err = t.tell(ctx, f, e)
		}
		switch {
		case b.Closing.Err() != nil:
			_ = t.send("bye", struct{}{}) // the browser has disconnected
			return nil
		case ctx.Err() != nil:
			return nil
		case err != nil:
			if !errors.Is(err, errLeft) {
				b.Log.Error("sending events to a page", "err", err)
			}
			return nil // it reconnects and gets the complete state
		}
	}
}

// errLeft is returned if the browser has disconnected.
var errLeft = errors.New("the browser has disconnected")

func (t *tab) send(name string, data any) error {
	line, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("encoding an event: %w", err)
	}
	out := http.NewResponseController(t.w)
	_ = out.SetWriteDeadline(time.Now().Add(patience)) // if it isn't supported, the write may block
	if _, err := t.w.Write(eventstream.Event{Name: name, Data: line}.Append(nil)); err != nil {
		return errLeft
	}
	if err := out.Flush(); err != nil {
		return errLeft
	}
	_ = out.SetWriteDeadline(time.Time{}) // idle until the next event
	return nil
}

// tell sends one event to the tab.
func (t *tab) tell(ctx context.Context, f *web.Follower, e web.Event) error {
	switch e.Kind {
	case web.Whole:
		return t.whole(ctx, f)
	case web.Gone:
		return t.send("gone", goneEvent{e.Message.ID})
	case web.State:
		return t.send("state", stateEvent{string(e.State), ""})
	case web.Calls:
		if err := t.rest(ctx); err != nil {
			return err
		}
		return t.tellWaiting(ctx)
	case web.Title:
		th, err := t.b.Store.GetThread(ctx, t.thread)
		if errors.Is(err, store.ErrNotFound) {
			return errLeft // erased: the page gets the error when it reconnects
		}
		if err != nil || th.Title == t.title {
			return err
		}
		t.title = th.Title
		return t.send("title", titleEvent{th.ID, th.Title})
	}
	r := t.reader()
	m, err := t.b.complete(ctx, t.by, web.Worded(e.Message, r), r)
	if err != nil {
		return err
	}
	if e.Appended {
		return t.send("append", appendEvent{m.ID, utf16Len(m.Text[:e.Had]), m.Text[e.Had:]})
	}
	if m.Kind == store.ImagesMessage || m.Text == "" && m.Kind == store.TextMessage {
		m.Final = true
	}
	return t.send("message", m)
}

type stateEvent struct {
	State string `json:"state"`
	Note  string `json:"note"`
}

type goneEvent struct {
	ID string `json:"id"`
}

type titleEvent struct {
	ID    string `json:"id"`
	Title string `json:"title"`
}

type appendEvent struct {
	ID   string `json:"id"`
	At   int    `json:"at"` // the length so far, in UTF-16 units
	Text string `json:"text"`
}

type waitingEvent struct {
	IDs []string `json:"ids"`
}

// threadEvent is the complete state of a conversation. Without a conversation it only
// signals that the stream has begun.
type threadEvent struct {
	*conversation
	Cards []Card `json:"cards,omitempty"` // pending ones, also of turns that are not among the messages
	State string `json:"state,omitempty"`
}

// whole sends the complete state.
func (t *tab) whole(ctx context.Context, f *web.Follower) error {
	if err := t.rest(ctx); err != nil {
		return err
	}
	state, live := f.Snapshot()
	e := threadEvent{}
	if t.thread != "" {
		r := t.reader()
		c, err := t.b.read(ctx, t.by, t.thread, 0, r)
		if errors.Is(err, store.ErrNotFound) {
			return errLeft // erased
		}
		if err != nil {
			return fmt.Errorf("reading a conversation again: %w", err)
		}
		for _, m := range live {
			m, err := t.b.complete(ctx, t.by, web.Worded(web.Message{Message: m}, r), r)
			if err != nil {
				return err
			}
			if i := slices.IndexFunc(c.Messages, func(o web.Message) bool { return o.ID == m.ID }); i >= 0 {
				c.Messages[i] = m
			} else if m.Tool == nil || !slices.ContainsFunc(c.Messages, func(o web.Message) bool { return o.Call == m.Call }) {
				c.Messages = append(c.Messages, m)
			}
		}
		waiting, err := t.b.Approvals.ListThread(ctx, t.by, t.thread)
		if err != nil {
			return err
		}
		for _, card := range waiting.Items {
			e.Cards = append(e.Cards, t.b.card(card, r))
		}
		if state == outbox.Idle && len(e.Cards) > 0 {
			state = outbox.Waiting
		} else if state == outbox.Idle && c.Thread.Open {
			state = outbox.Working
		}
		e.conversation, e.State, t.title = &c, string(state), c.Thread.Title
	}
	if err := t.send("thread", e); err != nil {
		return err
	}
	return t.tellWaiting(ctx)
}

// tellWaiting sends the pending calls that the person may approve, if they have changed.
// Outside a conversation the person may be viewing calls that others decide, so there it
// also sends when the calls that they may only see have changed.
func (t *tab) tellWaiting(ctx context.Context) error {
	mine, seen, err := t.b.Approvals.Waiting(ctx, t.by)
	if err != nil {
		return err
	}
	ids := idsOf(mine)
	state := ids
	if t.thread == "" {
		state = slices.Concat(ids, idsOf(seen))
	}
	if t.told && slices.Equal(state, t.waiting) {
		return nil
	}
	t.told, t.waiting = true, state
	return t.send("waiting", waitingEvent{ids})
}

func idsOf(calls []store.Call) []string {
	ids := make([]string, len(calls)) // an empty list, not null
	for i, c := range calls {
		ids[i] = c.ID
	}
	return ids
}

// rest waits until calm has passed since its last call, to limit how often busy data is
// read.
func (t *tab) rest(ctx context.Context) error {
	defer func() { t.rested = time.Now() }()
	wait := calm - time.Since(t.rested)
	if wait <= 0 {
		return nil
	}
	select {
	case <-time.After(wait):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func utf16Len(text string) int {
	n := 0
	for _, r := range text {
		n += utf16.RuneLen(r)
	}
	return n
}
