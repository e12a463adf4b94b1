package outbox

import (
	"context"
	"sync"

	"nize/store"
)

// Edits. One whose answer was lost may be carried out after a later one, and then
// the message says what was true before. So of one message no two edits are under
// way at the same time, and after a doubtful one the newest is made again until
// the doubtful one can't come any more. What an earlier run sent as it ended is
// doubtful too: what it posted and this run edits at its beginning is edited once
// more.

// lastWait is the longest that a request may be on its way.
var lastWait = doubtWaits[len(doubtWaits)-1]

// repeatAtOnce is how many messages are edited again at the same time.
const repeatAtOnce = 4

// edit is what is known of a message's edits.
type edit struct {
	mu    sync.Mutex // held while one is under way, and before a Sent's
	users int        // who holds it or waits for it

	newest func(context.Context) error // while one before may come yet, else nil
	unsure func(error) bool
	looks  int // how often it was made again
}

// Edit edits the message at at, after any other edit of it. unsure says whether
// nobody knows, by its error, if it was done.
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
		e.newest = nil // it is gone, or can't be edited
	case e.newest != nil:
		e.newest = do // at its time
	case s.now().Sub(s.began) < lastWait && !s.made[at.Message]:
		e.newest, e.unsure = do, unsure
		s.repeatLocked(k, e, len(doubtWaits)-1)
	}
	return err
}

// repeatLocked has an edit made again, for the nth time; s.mu is held.
func (s *Sent) repeatLocked(k string, e *edit, n int) {
	if e.looks = n; n == len(doubtWaits) {
		e.newest = nil
		return
	}
	s.editing.Set(k, s.now().Add(doubtWaits[n]))
}

// beginEdit waits until no other edit of a message is under way.
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

// RepeatEdits makes the newest edits again where one before may come yet, until ctx
// ends. Each platform runs it.
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
