package rounds

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"nize/daemon/api"
	"nize/store"
	"nize/store/follow"
	"nize/store/project"
)

// event is an entry of a round's log.
type event struct {
	Name string          `json:"name"`
	Text string          `json:"text,omitempty"` // for text.delta: the whole text
	Data json.RawMessage `json:"data,omitempty"` // for all other events
}

// The names of events.
const (
	textDelta     = "text.delta"
	toolProposed  = "tool.proposed"
	toolStarted   = "tool.started"
	toolFinished  = "tool.finished"
	usageEvent    = "usage"
	roundFinished = "round.finished"
	errorEvent    = "error"
)

// Event is an event as sent. ID is "" if it is not in the log.
type Event struct {
	ID, Name string
	Data     json.RawMessage
}

// Position is a position in a log: the next entry, from 1, and if that is text, how many
// bytes of it were sent.
type Position struct{ Entry, Offset int }

// ParsePosition parses the id of the last event that a client received.
func ParsePosition(id string) (Position, error) {
	if id == "" {
		return Position{Entry: 1}, nil
	}
	entry, offset, isText := strings.Cut(id, ".")
	n, err := strconv.ParseUint(entry, 10, 31)
	var off uint64
	if isText && err == nil {
		off, err = strconv.ParseUint(offset, 10, 31)
	}
	if err != nil || n == 0 {
		return Position{}, Invalid("Last-Event-ID", "Last-Event-ID is not the id of an event")
	}
	if isText {
		return Position{int(n), int(off)}, nil
	}
	return Position{Entry: int(n) + 1}, nil
}

// log appends an event. It is sent after the state is stored.
func (s *state) log(name string, data any) {
	s.Log = append(s.Log, event{Name: name, Data: withRound(s.ID, data)})
}

// withRound encodes the data of an event as JSON, with the round's id.
func withRound(id string, data any) json.RawMessage {
	raw, err := json.Marshal(data)
	if err != nil || len(raw) < 2 || raw[0] != '{' {
		panic(fmt.Sprintf("the data of an event is no object: %T", data)) // a programming error
	}
	head := `{"round_id":` + strconv.Quote(id)
	if string(raw) != "{}" {
		head += ","
	}
	return append([]byte(head), raw[1:]...)
}

type (
	deltaData struct {
		Delta string `json:"delta"`
	}
	startedData struct {
		ID        string          `json:"id"`
		Tool      string          `json:"tool"`
		Arguments json.RawMessage `json:"arguments" jsontype:"object"`
	}
	finishedData struct {
		ID         string `json:"id"`
		Outcome    string `json:"outcome" doc:"done, or why there is no result"`
		DurationMS int64  `json:"duration_ms"`
		Result     string `json:"result" doc:"the text for the model"`
	}
)

// EventData describes the data of an event, which is preceded by the round's id (round_id).
type EventData struct {
	Name, Summary string
	Data          any
}

// EventsOf returns the events of a stream.
func EventsOf() []EventData {
	return []EventData{
		{textDelta, "more of the assistant's text", deltaData{}},
		{toolProposed, "a call that waits for the caller", Proposed{}},
		{toolStarted, "a call runs", startedData{}},
		{toolFinished, "a call has ended", finishedData{}},
		{usageEvent, "what the round has cost so far", Usage{}},
		{roundFinished, "the last event: the whole response", Answer{}},
		{errorEvent, "an error that ended the stream; before other events, it means that the text so far is void", Failure{}},
	}
}

// entry is an event with its position in the log, from 1.
type entry struct {
	n int
	event
	partial bool // more of the text may follow; it is not stored yet
}

// replaces lets the newest version of an entry wait.
func replaces(older, newer entry) (replaces, inPlace bool) { return older.n == newer.n, true }

// live is a round in progress.
type live struct {
	round  string
	cancel context.CancelFunc
	grace  time.Duration

	streamed  bool        // it continues for a while without a client
	cancelled atomic.Bool // by DELETE

	mu      sync.Mutex
	log     []event    // the stored entries
	text    string     // the text received so far for the next entry
	broken  *api.Error // why it ended without a final event in the log
	ended   bool
	clients map[*Stream]struct{}
	timer   *time.Timer // grace period, while no client is connected
}

// follow registers a round as in progress.
func (e *Engine) follow(ctx context.Context, s *state, streamed bool) (context.Context, *live) {
	ctx, cancel := context.WithCancel(ctx)
	l := &live{round: s.ID, cancel: cancel, streamed: streamed, grace: store.GetSpan(e.Config, "", "http.resume_grace"), log: s.Log, clients: map[*Stream]struct{}{}}
	e.mu.Lock()
	e.live[s.ID] = l
	e.mu.Unlock()
	return ctx, l
}

// forget unregisters a round when the work on it ends.
func (e *Engine) forget(l *live) {
	e.mu.Lock()
	delete(e.live, l.round)
	e.mu.Unlock()
	l.cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil {
		l.timer.Stop()
	}
	l.ended = true
	for st := range l.clients {
		l.endLocked(st)
	}
}

// endLocked ends a client's events; l.mu must be held.
func (l *live) endLocked(st *Stream) {
	if len(l.log) > 0 && l.log[len(l.log)-1].Name != roundFinished {
		st.last = cmp.Or(l.broken, stopped())
	}
	st.queue.End()
}

// addLocked passes an entry to the clients; l.mu must be held.
func (l *live) addLocked(e entry) {
	for st := range l.clients {
		st.queue.Add(e)
	}
}

// stored takes over the entries that were stored.
func (l *live) stored(s *state) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(s.Log) <= len(l.log) {
		return
	}
	for i, e := range s.Log[len(l.log):] {
		l.addLocked(entry{n: len(l.log) + i + 1, event: e})
	}
	l.log, l.text = s.Log[:len(s.Log):len(s.Log)], ""
}

// isBehind reports whether the state's log has entries that are not stored yet.
func (l *live) isBehind(s *state) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(s.Log) > len(l.log)
}

// addText sends text as it arrives. It does nothing for a round that is not streamed, whose
// log may not be stored yet, so that the text would have no position.
func (l *live) addText(text string) {
	if text == "" || !l.streamed {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text += text
	l.addLocked(l.partialLocked())
}

// partialLocked returns the entry that is being written; l.mu must be held.
func (l *live) partialLocked() entry {
	return entry{n: len(l.log) + 1, event: event{Name: textDelta, Text: l.text}, partial: true}
}

func (l *live) textSoFar() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text
}

func (l *live) fail(why *api.Error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = why
}

// Stream is a client's subscription to a round. Close must be called.
type Stream struct {
	Round string
	live  *live // nil if there will be no new events
	queue *follow.Queue[entry]
	at    Position
	last  *api.Error // for a round that stopped: sent last; set before the queue ends
}

// newStream returns a stream that begins with the entries of a log from a position on.
func newStream(round string, at Position, log []event) *Stream {
	var first []entry
	for i, e := range log {
		if n := i + 1; n >= at.Entry {
			first = append(first, entry{n: n, event: e})
		}
	}
	return &Stream{Round: round, at: at, queue: follow.NewQueue(follow.Options[entry]{Replaces: replaces}, first...)}
}

// attach subscribes a client to a round.
func (e *Engine) attach(l *live, at Position) *Stream {
	l.mu.Lock()
	defer l.mu.Unlock()
	st := newStream(l.round, at, l.log)
	st.live = l
	if l.text != "" {
		st.queue.Add(l.partialLocked())
	}
	l.clients[st] = struct{}{}
	if l.timer != nil {
		l.timer.Stop()
	}
	if l.ended {
		l.endLocked(st)
	}
	return st
}

// replay returns the stream of a round that is not in progress.
func (e *Engine) replay(s *state, at Position) *Stream {
	st := newStream(s.ID, at, s.Log)
	if s.Status == "" {
		st.last = stopped()
	}
	st.queue.End()
	return st
}

// Events subscribes to a round from a position on. It returns nil if there are no events
// after that position and none will follow.
func (e *Engine) Events(ctx context.Context, of project.Project, id string, at Position) (*Stream, error) {
	if _, err := e.load(ctx, of, id); err != nil { // checks that the project owns it
		return nil, err
	}
	e.mu.Lock()
	l := e.live[id]
	e.mu.Unlock()
	if l != nil {
		return e.attach(l, at), nil
	}
	s, err := e.load(ctx, of, id) // its work may have ended in between
	if err != nil {
		return nil, err
	}
	if at.Entry <= len(s.Log) || s.Status == "" {
		return e.replay(s, at), nil
	}
	return nil, nil
}

// Close ends the subscription. If it was the last one, the round continues for the grace
// period.
func (st *Stream) Close() {
	l := st.live
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if delete(l.clients, st); len(l.clients) == 0 && l.streamed && !l.ended {
		l.timer = time.AfterFunc(l.grace, l.cancel)
	}
}

// ErrDone is returned at the end of a stream.
var ErrDone = errors.New("the stream has ended")

// Next returns the next events, and waits until there are some. It returns ErrDone after
// the last one.
func (st *Stream) Next(ctx context.Context) (events []Event, err error) {
	for len(events) == 0 {
		one, err := st.queue.Next(ctx)
		switch {
		case errors.Is(err, follow.ErrEnded) && st.last != nil:
			last := Event{Name: errorEvent, Data: withRound(st.Round, FailureOf(st.last))}
			st.last = nil
			return []Event{last}, nil
		case errors.Is(err, follow.ErrEnded):
			return nil, ErrDone
		case err != nil:
			return nil, err
		}
		for ok := true; ok; one, ok, _ = st.queue.Take() { // an end is returned next time
			events = st.append(events, one)
		}
	}
	return events, nil
}

// append appends an entry's event and advances past it.
func (st *Stream) append(events []Event, one entry) []Event {
	switch {
	case one.n < st.at.Entry: // the client has it
	case one.Name != textDelta:
		events = append(events, Event{strconv.Itoa(one.n), one.Name, one.Data})
		st.at = Position{Entry: one.n + 1}
	default:
		if st.at.Offset < len(one.Text) {
			events = append(events, st.delta(one.Text))
		}
		if st.at.Offset = len(one.Text); !one.partial {
			st.at = Position{Entry: one.n + 1}
		}
	}
	return events
}

// delta returns the new part of a text.
func (st *Stream) delta(text string) Event {
	id := fmt.Sprintf("%d.%d", st.at.Entry, len(text))
	return Event{id, textDelta, withRound(st.Round, deltaData{text[st.at.Offset:]})}
}
