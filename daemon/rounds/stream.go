package rounds

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"nize/store"
	"nize/store/project"
)

// event is an entry of a round's log.
type event struct {
	Name string          `json:"name"`
	Text string          `json:"text,omitempty"` // of text.delta: all of it
	Data json.RawMessage `json:"data,omitempty"` // of all others
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

// Event is one as it is sent. ID is "" for one that is not in the log.
type Event struct {
	ID, Name string
	Data     json.RawMessage
}

// Position is a place in a log: the entry that is next, from 1 on, and how many
// bytes of it were sent, if it is text.
type Position struct{ Entry, Offset int }

// ParsePosition reads the id of the last event that a client has.
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

// log notes an event. It is sent once the state was stored.
func (s *state) log(name string, data any) {
	s.Log = append(s.Log, event{Name: name, Data: withRound(s.ID, data)})
}

// withRound is the data of an event as JSON, with the round's id.
func withRound(id string, data any) json.RawMessage {
	raw, err := json.Marshal(data)
	if err != nil || len(raw) < 2 || raw[0] != '{' {
		panic(fmt.Sprintf("the data of an event is no object: %T", data)) // a mistake of the code
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
		Result     string `json:"result" doc:"what the model is told"`
	}
)

// EventData is what the data of an event has, with the round's id (round_id) before
// it.
type EventData struct {
	Name, Summary string
	Data          any
}

// EventsOf lists the events of a stream.
func EventsOf() []EventData {
	return []EventData{
		{textDelta, "more of the assistant's text", deltaData{}},
		{toolProposed, "a call that waits for the caller", Proposed{}},
		{toolStarted, "a call runs", startedData{}},
		{toolFinished, "a call has ended", finishedData{}},
		{usageEvent, "what the round has cost so far", Usage{}},
		{roundFinished, "the last event: the whole answer", Answer{}},
		{errorEvent, "what ended the stream otherwise; before other events, that the text so far does not count", Failure{}},
	}
}

// live is a round that is worked on.
type live struct {
	round  string
	cancel context.CancelFunc
	grace  time.Duration

	streamed  bool        // it goes on for a while without a client
	cancelled atomic.Bool // by DELETE

	mu      sync.Mutex
	log     []event // as stored
	text    string  // of the entry behind them, as far as it came
	broken  *Error  // why it ended without an end in the log
	ended   bool
	news    chan struct{} // closed when there is more
	clients int
	timer   *time.Timer // of the grace, while there is no client
}

// follow makes a round known as one that is worked on.
func (e *Engine) follow(ctx context.Context, s *state, streamed bool) (context.Context, *live) {
	ctx, cancel := context.WithCancel(ctx)
	l := &live{round: s.ID, cancel: cancel, streamed: streamed, grace: store.GetSpan(e.Config, "", "http.resume_grace"), log: s.Log, news: make(chan struct{})}
	e.mu.Lock()
	e.live[s.ID] = l
	e.mu.Unlock()
	return ctx, l
}

// forget is the end of the work on a round.
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
	l.wakeLocked()
}

// wakeLocked needs l.mu.
func (l *live) wakeLocked() {
	close(l.news)
	l.news = make(chan struct{})
}

// stored takes over the log as it was stored.
func (l *live) stored(s *state) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(s.Log) > len(l.log) {
		l.log, l.text = s.Log[:len(s.Log):len(s.Log)], ""
		l.wakeLocked()
	}
}

// isBehind says whether the state has more in its log than was stored.
func (l *live) isBehind(s *state) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(s.Log) > len(l.log)
}

// addText sends text as it comes. A round that is not streamed has no log yet that
// it could stand behind.
func (l *live) addText(text string) {
	if text == "" || !l.streamed {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text += text
	l.wakeLocked()
}

func (l *live) textSoFar() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text
}

func (l *live) fail(why *Error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = why
}

// Stream is a client that follows a round. Close must be called.
type Stream struct {
	Round string
	live  *live // nil: nothing comes any more
	rest  []event
	at    Position
	last  *Error // sent at the end; of a round that stopped
}

// attach has a client follow a round.
func (e *Engine) attach(l *live, at Position) *Stream {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clients++
	if l.timer != nil {
		l.timer.Stop()
	}
	return &Stream{Round: l.round, live: l, at: at}
}

// replay is the stream of a round that nobody works on.
func (e *Engine) replay(s *state, at Position) *Stream {
	st := &Stream{Round: s.ID, rest: s.Log, at: at}
	if s.Status == "" {
		st.last = stopped()
	}
	return st
}

// Events follows a round from a position on; nil says that there is nothing behind
// it, and that nothing comes.
func (e *Engine) Events(ctx context.Context, of project.Project, id string, at Position) (*Stream, error) {
	if _, err := e.load(ctx, of, id); err != nil { // whose it is
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
	if st := e.replay(s, at); st.at.Entry <= len(st.rest) || st.last != nil {
		return st, nil
	}
	return nil, nil
}

// Close lets the client go. Without another one the round goes on for a while.
func (st *Stream) Close() {
	l := st.live
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.clients--; l.clients == 0 && l.streamed && !l.ended {
		l.timer = time.AfterFunc(l.grace, l.cancel)
	}
}

// ErrDone says that a stream has ended.
var ErrDone = errors.New("the stream has ended")

// Next returns what is there to send, and waits for it if need be. ErrDone after
// the last.
func (st *Stream) Next(ctx context.Context) ([]Event, error) {
	for {
		events, news, ended := st.take()
		switch {
		case len(events) > 0:
			return events, nil
		case ended && st.last != nil:
			last := Event{Name: errorEvent, Data: withRound(st.Round, Failure{st.last})}
			st.last = nil
			return []Event{last}, nil
		case ended:
			return nil, ErrDone
		}
		select {
		case <-news:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// take moves on over what there is.
func (st *Stream) take() (events []Event, news chan struct{}, ended bool) {
	log, text := st.rest, ""
	ended = true
	if l := st.live; l != nil {
		l.mu.Lock()
		log, text, news, ended = l.log, l.text, l.news, l.ended
		if ended && len(log) > 0 && log[len(log)-1].Name != roundFinished {
			st.last = l.broken
			if st.last == nil {
				st.last = stopped()
			}
		}
		l.mu.Unlock()
		if ended {
			st.live, st.rest = nil, log
		}
	}
	for ; st.at.Entry <= len(log); st.at = (Position{Entry: st.at.Entry + 1}) {
		one := log[st.at.Entry-1]
		if one.Name != textDelta {
			events = append(events, Event{strconv.Itoa(st.at.Entry), one.Name, one.Data})
		} else if st.at.Offset < len(one.Text) {
			events = append(events, st.delta(one.Text))
		}
	}
	if st.at.Entry == len(log)+1 && st.at.Offset < len(text) && !ended {
		events = append(events, st.delta(text))
		st.at.Offset = len(text)
	}
	return events, news, ended
}

// delta is what is new of a text.
func (st *Stream) delta(text string) Event {
	id := fmt.Sprintf("%d.%d", st.at.Entry, len(text))
	return Event{id, textDelta, withRound(st.Round, deltaData{text[st.at.Offset:]})}
}
