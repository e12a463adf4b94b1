// Package sessions limits the number of sessions of MCP clients, per token and in total.
//
// A client starts a session and need not end it, so any holder of a token could start as
// many as fit into memory. A session beyond a limit is accepted, and the least recently
// used idle session is ended for it: one of the same token if that is at its limit, and
// otherwise one of the user who has most. Its client then gets 404 and has to start another
// one, as the protocol specifies. A session is idle while none of its requests is in
// flight; sessions whose client listens for events are ended after those without. The new
// session is refused only if all candidates are in use.
package sessions

import (
	"fmt"
	"sync"
	"time"

	"nize/store"
)

// Limits is the maximum number of sessions; 0 allows none.
type Limits struct{ All, Token int }

// Options configures a Set.
type Options struct {
	Limits func() Limits // called for each new session
	Idle   time.Duration // idle timeout of a session
	Now    func() time.Time
}

// Set holds the open sessions. It is safe for concurrent use.
type Set struct {
	opt Options

	mu     sync.Mutex
	open   map[string]*session // by id
	tokens map[string]int      // number of open sessions, by token
	users  map[string]int      // number of open sessions, by user
	ended  int                 // number of sessions ended for others
}

// New returns an empty set.
func New(opt Options) *Set {
	return &Set{opt: opt, open: map[string]*session{}, tokens: map[string]int{}, users: map[string]int{}}
}

// session is an open session. Its fields are guarded by Set.mu.
type session struct {
	id, token, user string
	asks            bool
	end             func()
	used            time.Time
	busy, listening int // requests in flight
	timer           *time.Timer
}

// Owner describes the owner of a session.
type Owner struct {
	Token, User string
	Asks        bool // its client can ask its user a server's question
}

// Begin adds a session. end ends it, and is called at most once, after the session was
// removed from the set. Begin returns ErrRefused if there is no room.
func (s *Set) Begin(id string, of Owner, end func()) error {
	limits := s.opt.Limits()
	s.mu.Lock()
	if s.open[id] != nil {
		s.mu.Unlock()
		return nil
	}
	victim, err := s.makeRoomLocked(of, limits)
	if err == nil {
		one := &session{id: id, token: of.Token, user: of.User, asks: of.Asks, end: end, used: s.opt.Now()}
		one.timer = time.AfterFunc(s.opt.Idle, func() { s.expire(one) })
		s.open[id] = one
		s.tokens[of.Token]++
		s.users[of.User]++
	}
	s.mu.Unlock()
	if victim != nil {
		time.AfterFunc(0, victim.end) // it may wait for a call whose client has left
	}
	return err
}

// makeRoomLocked removes the session that has to end for another one. s.mu must be held.
func (s *Set) makeRoomLocked(of Owner, limits Limits) (victim *session, err error) {
	switch {
	case s.tokens[of.Token] >= limits.Token:
		if victim = s.idlestLocked(func(o *session) bool { return o.token == of.Token }); victim == nil {
			err = fmt.Errorf("all %d MCP sessions that a token may have are in use (limits.token.sessions); end one of them, or wait until one is idle", limits.Token)
		}
	case len(s.open) >= limits.All:
		if victim = s.largestLocked(); victim == nil {
			err = fmt.Errorf("all %d MCP sessions are in use (limits.sessions); try again later", limits.All)
		}
	}
	if err != nil {
		return nil, store.Mark(err, store.ErrRefused)
	}
	if victim != nil {
		s.ended++
		s.dropLocked(victim)
	}
	return victim, nil
}

// idlestLocked returns the session to end first among the eligible ones, or nil.
func (s *Set) idlestLocked(eligible func(*session) bool) (found *session) {
	for _, o := range s.open {
		if o.busy == 0 && eligible(o) && (found == nil || before(o, found)) {
			found = o
		}
	}
	return found
}

// before reports whether a is ended before b.
func before(a, b *session) bool {
	if (a.listening > 0) != (b.listening > 0) {
		return a.listening == 0
	}
	return a.used.Before(b.used)
}

// largestLocked returns the session to end first of the user who has most sessions, among
// users with an idle one, or nil.
func (s *Set) largestLocked() (found *session) {
	most := 0
	for _, o := range s.open {
		n := s.users[o.user]
		if o.busy == 0 && (found == nil || n > most || n == most && before(o, found)) {
			found, most = o, n
		}
	}
	return found
}

// dropLocked removes a session. s.mu must be held.
func (s *Set) dropLocked(o *session) {
	if s.open[o.id] != o {
		return
	}
	delete(s.open, o.id)
	lower(s.tokens, o.token)
	lower(s.users, o.user)
	o.timer.Stop()
}

func lower(counts map[string]int, key string) {
	if counts[key]--; counts[key] <= 0 {
		delete(counts, key)
	}
}

// expire ends a session after its idle timeout.
func (s *Set) expire(o *session) {
	s.mu.Lock()
	over := s.open[o.id] == o && o.busy == 0
	if over {
		s.dropLocked(o)
	}
	s.mu.Unlock()
	if over {
		o.end()
	}
}

// Use is the way in which a request uses its session.
type Use int

const (
	Asks    Use = iota // for a response
	Listens            // for events, without a time limit
)

// Enter records a request of a session. known is false if there is no session with this id.
// ok is also false if it belongs to another user. leave records the end of the request.
func (s *Set) Enter(id, user string, use Use) (leave func(), known, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.open[id]
	if o == nil || o.user != user {
		return func() {}, o != nil, false
	}
	o.used = s.opt.Now()
	if use == Listens { // listening keeps no session alive, because its client may be long gone
		o.listening++
	} else {
		o.busy++
		o.timer.Stop()
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		o.used = s.opt.Now()
		if use == Listens {
			o.listening--
			return
		}
		if o.busy--; o.busy == 0 && s.open[id] == o {
			o.timer.Reset(s.opt.Idle)
		}
	}, true, true
}

// Asks reports whether the client of a session can ask its user questions.
func (s *Set) Asks(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.open[id]
	return o != nil && o.asks
}

// Drop removes a session that has ended.
func (s *Set) Drop(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.open[id]; o != nil {
		s.dropLocked(o)
	}
}

// Counts returns the number of open sessions, and of sessions ended for others.
func (s *Set) Counts() (open, ended int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open), s.ended
}
