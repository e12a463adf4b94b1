package mcp

import (
	"cmp"
	"encoding/json"
	"sync"
	"time"

	"nize/store"
)

// rejectionRecorder records the events. A caller who is rejected continuously adds at most
// rejectionsEach events per minute to the audit trail, and one that counts the rest.
type rejectionRecorder struct {
	Events interface {
		AddEvent(by store.Caller, e store.Event)
	}
	Now func() time.Time
	// Later calls f after a delay, once per key.
	Later func(key string, after time.Duration, f func())
	// Counted, if set, is called for each rejection, including those without their own
	// event.
	Counted func(by store.Caller, why store.Code)

	mu      sync.Mutex
	callers map[string]*callerRejections // by user, token and surface
}

// callerRejections holds a caller's rejections in the current minute.
type callerRejections struct {
	since time.Time
	n     int
	last  store.Event // the newest event that is only counted
}

const (
	rejectionsEach = 60
	rejectionsSpan = time.Minute
	// maxRejected is the maximum number of callers that are tracked.
	maxRejected = 10_000
)

// turnsAway reports whether a code is that of a rejection. Other errors belong to a call,
// or were not caused by the caller.
func turnsAway(code store.Code) bool {
	switch code {
	case store.CodeNotFound, store.CodeRefused, store.CodeInvalid, store.CodeRateLimited:
		return true
	}
	return false
}

// Note records the event of a rejected call of by.
func (r *rejectionRecorder) Note(by store.Caller, tool string, why *store.CallError) {
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
		c = &callerRejections{since: now}
		if r.callers == nil {
			r.callers = map[string]*callerRejections{}
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

// closeLocked ends a caller's minute with the event that counts the rest. r.mu must be
// held.
func (r *rejectionRecorder) closeLocked(key string, by store.Caller) {
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

// dropLocked removes callers whose minute is over and has nothing left to count.
func (r *rejectionRecorder) dropLocked(now time.Time) {
	for key, c := range r.callers {
		if c.n <= rejectionsEach && now.Sub(c.since) >= rejectionsSpan {
			delete(r.callers, key)
		}
	}
}

func jsonOf(v any) json.RawMessage {
	b, _ := json.Marshal(v) // unreachable: strings and numbers always encode
	return b
}
