package outbox

import (
	"context"
	"sync"

	"nize/store"
)

// Edits. If the response to an edit was lost, the edit may still be carried out after a
// later one, and the message would then show outdated content. So edits of one message
// never overlap, and after an uncertain one the newest edit is repeated until the uncertain
// one can't arrive any more. The last edits of an earlier run are uncertain too: if this
// run edits a message of an earlier run soon after its start, it repeats that edit once.

// lastWait is the longest time that a request may be in flight.
var lastWait = doubtWaits[len(doubtWaits)-1]

// repeatAtOnce is how many messages are edited again concurrently.
const repeatAtOnce = 4

// edit is the state of a message's edits.
type edit struct {
	mu    sync.Mutex // held during an edit; locked before Sent.mu
	users int        // number of goroutines that hold mu or wait for it

	newest func(context.Context) error // set while an earlier edit may still arrive, otherwise nil
	unsure func(error) bool
	looks  int // how often it was repeated
}

// Edit edits the message at at after any other edit of it. unsure reports whether an error
// leaves it open if the edit was made.
func (s *Sent) Edit(ctx context.Context, at store.Address, do func(context.Context) error, unsure func(error) bool) error {
	k := at.Channel + "/" + at.Message
	e := s.beginEdit(k)
	defer s.endEdit(k, e)
	err := do(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil && unsure(err):
		e.newest, e.unsure = do, unsure
		s.repeatLocked(k, e, 0)
	case err != nil:
		e.newest = nil // it was deleted or can't be edited
	case e.newest != nil:
		e.newest = do // repeated when its time comes
	case s.now().Sub(s.began) < lastWait && !s.made[at.Message]:
		e.newest, e.unsure = do, unsure
		s.repeatLocked(k, e, len(doubtWaits)-1)
	}
	return err
}

// repeatLocked schedules the nth repetition of an edit; s.mu is held.
func (s *Sent) repeatLocked(k string, e *edit, n int) {
	if e.looks = n; n == len(doubtWaits) {
		e.newest = nil
		return
	}
	s.editing.Set(k, s.now().Add(doubtWaits[n]))
}

// beginEdit waits until no other edit of the message is running.
func (s *Sent) beginEdit(k string) *edit {
	s.mu.Lock()
	e := s.edits[k]
	if e == nil {
		e = &edit{}
		s.edits[k] = e
	}
	e.users++
	s.mu.Unlock()
	e.mu.Lock()
	return e
}

func (s *Sent) endEdit(k string, e *edit) {
	e.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.users--; e.users == 0 && e.newest == nil {
		delete(s.edits, k)
	}
}

// RepeatEdits repeats the newest edits of messages whose earlier edits may still arrive,
// until ctx ends. Each platform runs it.
func (s *Sent) RepeatEdits(ctx context.Context) {
	s.editing.Run(ctx, repeatAtOnce, func(ctx context.Context, k string) {
		e := s.beginEdit(k)
		defer s.endEdit(k, e)
		s.mu.Lock()
		do := e.newest
		s.mu.Unlock()
		if do == nil {
			return
		}
		err := do(ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		switch {
		case err == nil:
			s.repeatLocked(k, e, e.looks+1)
		case e.unsure(err):
			s.repeatLocked(k, e, 0)
		default:
			e.newest = nil
		}
	})
}
