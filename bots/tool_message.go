package bots

import (
	"context"
	"errors"
	"strings"
	"sync"

	"nize/store"
)

// ToolMessage are the lines about tools that one message of a chat holds; B is
// what an earlier run wrote there.
type ToolMessage[B any] struct {
	ID     string   // of the message there, "" while it is not posted
	Order  []string // ids of messages, tool/CALL
	Lines  map[string]store.ToolLine
	None   map[string]bool // those of calls that were never made: there is no result
	Before B
}

// Set adds a line, or changes it.
func (m *ToolMessage[B]) Set(ctx context.Context, calls Calls, id string, line store.ToolLine) {
	if _, ok := m.Lines[id]; !ok {
		m.Order = append(m.Order, id)
	}
	m.Lines[id] = line
	if call, ok := strings.CutPrefix(id, "tool/"); ok && line.State == store.Failed {
		m.None[id] = line.Unmade
		if !line.Unmade {
			_, err := calls.GetCall(ctx, call)
			m.None[id] = errors.Is(err, store.ErrNotFound)
		}
	}
}

// Result is the call of a line whose result can be shown; ok is false for others.
func (m *ToolMessage[B]) Result(id string) (call string, ok bool) {
	line := m.Lines[id]
	call, ok = strings.CutPrefix(id, "tool/")
	ended := line.State == store.Done || line.State == store.Failed && !m.None[id]
	return call, ok && ended && store.ValidID(call) && strings.Contains(line.Name, ":")
}

// shown is how many lines stand for good: what was looked up gives way to what follows,
// so that a message isn't full, and left, with a lookup as its last line.
func (m *ToolMessage[B]) shown() (n int) {
	for _, id := range m.Order {
		if _, lookup := lookups[m.Lines[id].Name]; !lookup {
			n++
		}
	}
	return n
}

// maxToolMessages bounds how many are remembered.
const maxToolMessages = 8192

// ToolMessages are a platform's messages about tools: one for a turn, until
// something else is said.
type ToolMessages[B any] struct {
	Most int // lines of one

	mu sync.Mutex // guards of
	of map[string]*ToolMessage[B]
}

// Find is the message that a line belongs to: the one of that id, else the thread's
// newest, else a new one.
func (t *ToolMessages[B]) Find(thread, id string) *ToolMessage[B] {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil || len(t.of) > maxToolMessages {
		t.of = map[string]*ToolMessage[B]{}
	}
	made := &ToolMessage[B]{ID: id, Lines: map[string]store.ToolLine{}, None: map[string]bool{}}
	if id != "" {
		if have := t.of[thread+"/"+id]; have != nil {
			return have
		}
		return made
	}
	if have := t.of[thread]; have != nil && have.shown() < t.Most {
		return have
	}
	t.of[thread] = made
	return made
}

// Posted remembers where a message was posted.
func (t *ToolMessages[B]) Posted(thread, id string, m *ToolMessage[B]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m.ID = id
	if t.of == nil {
		t.of = map[string]*ToolMessage[B]{}
	}
	t.of[thread+"/"+id] = m
}

// End ends the thread's message: the next tool begins a new one.
func (t *ToolMessages[B]) End(thread string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.of, thread)
}
