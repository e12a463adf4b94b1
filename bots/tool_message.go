package bots

import (
	"context"
	"errors"
	"strings"
	"sync"

	"nize/store"
)

// ToolMessage holds the lines about tools in one message of a chat; B is what an earlier
// run wrote there.
type ToolMessage[B any] struct {
	ID     string   // of the message there, "" until it is posted
	Order  []string // message ids, tool/CALL
	Lines  map[string]store.ToolLine
	None   map[string]bool // ids of calls that were never made, so there is no result
	Before B
}

// Set adds or changes a line.
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

// Result returns the call of a line whose result can be shown; ok is false for other lines.
func (m *ToolMessage[B]) Result(id string) (call string, ok bool) {
	line := m.Lines[id]
	call, ok = strings.CutPrefix(id, "tool/")
	ended := line.State == store.Done || line.State == store.Failed && !m.None[id]
	return call, ok && ended && store.ValidID(call) && strings.Contains(line.Name, ":")
}

// shown counts the lines that stay. Lookup lines are replaced by the next line, so they
// don't count: otherwise a message could be full, and left, with a lookup as its last line.
func (m *ToolMessage[B]) shown() (n int) {
	for _, id := range m.Order {
		if _, lookup := lookups[m.Lines[id].Name]; !lookup {
			n++
		}
	}
	return n
}

// maxToolMessages limits how many are kept in memory.
const maxToolMessages = 8192

// ToolMessages are a platform's messages about tools: one per turn, until another message
// is posted.
type ToolMessages[B any] struct {
	Most int // maximum lines per message

	mu sync.Mutex // guards the fields below
	of map[string]*ToolMessage[B]
}

// Find returns the message that contains the line: the one with that id, else the thread's
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

// Posted records where a message was posted.
func (t *ToolMessages[B]) Posted(thread, id string, m *ToolMessage[B]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m.ID = id
	if t.of == nil {
		t.of = map[string]*ToolMessage[B]{}
	}
	t.of[thread+"/"+id] = m
}

// End closes the thread's message: the next tool begins a new one.
func (t *ToolMessages[B]) End(thread string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.of, thread)
}
