// Package rejections leaves an event of each call that was turned away before it
// was one: unknown, forbidden, held, with arguments that don't fit, or over a
// limit.
package rejections

import (
	"cmp"
	"encoding/json"
	"sync"
	"time"

	"nize/store"
)

// Recorder leaves the events. A caller who is turned away all the time floods the
// audit trail with at most rejectionsEach a minute, and one that counts the rest.
type Recorder struct {
	Events interface {
		AddEvent(by store.Caller, e store.Event)
	}
	Now func() time.Time
	// Later does f after a while, once for a key.
	Later func(key string, after time.Duration, f func())
	// Counted, if set, is told of each, also of those that leave no event of their own.
	Counted func(by store.Caller, why store.Code)

	mu      sync.Mutex
	callers map[string]*rejected // by user, token and surface
}

// rejected is a caller's minute.
type rejected struct {
	since time.Time
	n     int
	last  store.Event // the newest of those that are only counted
}

const (
	rejectionsEach = 60
	rejectionsSpan = time.Minute
	// maxRejected bounds the callers that are remembered.
	maxRejected = 10_000
)

// turnsAway are the codes of what is turned away; everything else is a call, or
// none of its caller's doing.
func turnsAway(code store.Code) bool {
	switch code {
	case store.CodeNotFound, store.CodeRefused, store.CodeInvalid, store.CodeRateLimited:
		return true
	}
	return false
}

// Note leaves the event of a call that by asked for in vain.
func (r *Recorder) Note(by store.Caller, tool string, why *store.CallError) {
	if !turnsAway(why.Code) {
		return
	}
	if r.Counted != nil {
		r.Counted(by, why.Code)
	}
	tool = store.RedactText(store.Clip(store.Line(tool), 100))
	e := store.Event{Kind: "call.rejected", Subject: cmp.Or(tool, "-"), Tool: tool, Outcome: store.State(why.Code),
		Data: jsonOf(map[string]string{"why": store.RedactText(store.Clip(why.Message.String(), 300))})}
	key := by.User + "\x00" + by.Token + "\x00" + string(by.Surface)
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.Now()
	c := r.callers[key]
	if c == nil || now.Sub(c.since) >= rejectionsSpan {
		r.closeLocked(key, by)
		if len(r.callers) >= maxRejected {
			r.dropLocked(now)
		}
		c = &rejected{since: now}
		if r.callers == nil {
			r.callers = map[string]*rejected{}
		}
		r.callers[key] = c
	}
	if c.n++; c.n <= rejectionsEach {
		r.Events.AddEvent(by, e)
		return
	}
	if c.last = e; c.n == rejectionsEach+1 {
		r.Later("rejected "+key, c.since.Add(rejectionsSpan).Sub(now), func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.callers[key] == c {
				r.closeLocked(key, by)
			}
		})
	}
}

// closeLocked ends a caller's minute with the event that counts. r.mu is held.
func (r *Recorder) closeLocked(key string, by store.Caller) {
	c := r.callers[key]
	if c == nil {
		return
	}
	delete(r.callers, key)
	if more := c.n - rejectionsEach; more > 0 {
		c.last.Data = jsonOf(map[string]int{"count": more})
		r.Events.AddEvent(by, c.last)
	}
}

// dropLocked forgets callers whose minute is over and left nothing to count.
func (r *Recorder) dropLocked(now time.Time) {
	for key, c := range r.callers {
		if c.n <= rejectionsEach && now.Sub(c.since) >= rejectionsSpan {
			delete(r.callers, key)
		}
	}
}

func jsonOf(v any) json.RawMessage {
	b, _ := json.Marshal(v) // texts and numbers always have a form
	return b
}
