package mcp

import (
	"cmp"
	"sync"
	"time"

	"nize/store"
)

// rejections leave an event of each call that was turned away before it was one:
// unknown, forbidden, held, with arguments that don't fit, or over a limit. A
// caller who is turned away all the time floods the audit trail with at most
// rejectionsEach events a minute, and one that counts the rest.
type rejections struct {
	events interface {
		AddEvent(by store.Caller, e store.Event)
	}
	now   func() time.Time
	tasks *tasks

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

// note leaves the event of a call that by asked for in vain.
func (r *rejections) note(by store.Caller, tool string, why *store.CallError) {
	if !turnsAway(why.Code) {
		return
	}
	tool = store.RedactText(store.Clip(store.Line(tool), 100))
	e := store.Event{Kind: "call.rejected", Subject: cmp.Or(tool, "-"), Tool: tool, Outcome: store.State(why.Code),
		Data: mustJSON(map[string]string{"why": store.RedactText(store.Clip(why.Message.String(), 300))})}
	key := by.User + "\x00" + by.Token + "\x00" + string(by.Surface)
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	c := r.callers[key]
	if c == nil || now.Sub(c.since) >= rejectionsSpan {
		r.closeLocked(key, by)
		if len(r.callers) >= maxRejected {
			r.dropLocked(now)
		}
		c = &rejected{since: now}
		r.callers[key] = c
	}
	if c.n++; c.n <= rejectionsEach {
		r.events.AddEvent(by, e)
		return
	}
	if c.last = e; c.n == rejectionsEach+1 {
		r.tasks.setTimer("rejected "+key, c.since.Add(rejectionsSpan).Sub(now), func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.callers[key] == c {
				r.closeLocked(key, by)
			}
		})
	}
}

// closeLocked ends a caller's minute with the event that counts. r.mu is held.
func (r *rejections) closeLocked(key string, by store.Caller) {
	c := r.callers[key]
	if c == nil {
		return
	}
	delete(r.callers, key)
	if more := c.n - rejectionsEach; more > 0 {
		c.last.Data = mustJSON(map[string]int{"count": more})
		r.events.AddEvent(by, c.last)
	}
}

// dropLocked forgets callers whose minute is over and left nothing to count.
func (r *rejections) dropLocked(now time.Time) {
	for key, c := range r.callers {
		if c.n <= rejectionsEach && now.Sub(c.since) >= rejectionsSpan {
			delete(r.callers, key)
		}
	}
}
