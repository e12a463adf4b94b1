package mcp

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"nize/store"
)

type eventList struct {
	mu   sync.Mutex
	list []store.Event
}

func (l *eventList) AddEvent(_ store.Caller, e store.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, e)
}

func (l *eventList) got() []store.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.list
}

// A caller's first sixty a minute are events of their own, and one counts the
// rest, whether or not more come; others are not held up by them.
func TestRejectionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := &eventList{}
		var last *time.Timer
		counted := 0
		r := &rejectionRecorder{Events: events, Now: time.Now, Later: func(_ string, after time.Duration, f func()) { last = time.AfterFunc(after, f) }, Counted: func(store.Caller, store.Code) { counted++ }}
		mia, ann := store.Caller{User: "mia", Surface: store.OnMCP}, store.Caller{User: "ann"}
		no := &store.CallError{Code: store.CodeNotFound, Message: store.Plain("no such tool")}
		for range 200 {
			r.Note(mia, "box:x", no)
		}
		r.Note(ann, strings.Repeat("a", 500), no)
		r.Note(ann, "box:x", &store.CallError{Code: store.CodeInternal, Message: store.Plain("x")})
		if len(events.got()) != 61 || events.got()[0].Outcome != "not_found" || events.got()[0].Tool != "box:x" || len(events.got()[60].Tool) > 103 {
			t.Fatalf("%d events, the last %+v", len(events.got()), events.got()[len(events.got())-1])
		}
		time.Sleep(61 * time.Second)
		synctest.Wait()
		if len(events.got()) != 62 || string(events.got()[61].Data) != `{"count":140}` {
			t.Fatalf("%d events, the last %s", len(events.got()), events.got()[len(events.got())-1].Data)
		}
		r.Note(mia, "box:x", no)
		if len(events.got()) != 63 {
			t.Errorf("the next minute: %d events", len(events.got()))
		}
		if counted != 202 {
			t.Errorf("%d were counted", counted)
		}
		last.Stop()
	})
}

// What is turned away is seen in the audit trail, by whatever way it was asked.
func TestTurnsAway(t *testing.T) {
	for code, want := range map[store.Code]bool{store.CodeNotFound: true, store.CodeRefused: true, store.CodeInvalid: true, store.CodeRateLimited: true, store.CodeTool: false, store.CodeInternal: false, store.CodeTimeout: false} {
		if turnsAway(code) != want {
			t.Errorf("%s: %v", code, !want)
		}
	}
}
