// Package sessions bounds the sessions of MCP clients: of one token, and in all.
//
// A client begins a session and need not end it, so that whoever has a token could
// begin as many as memory holds. A session beyond a bound gets in, and the least
// recently used idle one is ended for it: of the same token if that has its share,
// else of the person who has most. Its client learns by 404 that it has to begin
// another one, as the protocol has it. A session is idle while none of its requests
// is under way; one whose client listens for events goes after those without. The
// newcomer is refused only if all that could be ended are in use.
package sessions

import (
	"fmt"
	"sync"
	"time"

	"nize/store"
)

// Limits are how many sessions there may be; 0 lets none begin.
type Limits struct{ All, Token int }

// Options are what a Set needs.
type Options struct {
	Limits func() Limits // is asked at each beginning
	Idle   time.Duration // after which a session ends by itself
	Now    func() time.Time
}

// Set is the sessions that are open. It is safe for concurrent use.
type Set struct {
	opt Options

	mu     sync.Mutex
	open   map[string]*session // by id
	tokens map[string]int      // how many are open, by token
	users  map[string]int      // by user
	ended  int                 // for others
}

// New returns an empty set.
func New(opt Options) *Set {
	return &Set{opt: opt, open: map[string]*session{}, tokens: map[string]int{}, users: map[string]int{}}
}

// session is one of them. Its fields are guarded by Set.mu.
type session struct {
	id, token, user string
	asks            bool
	end             func()
	used            time.Time
	busy, listening int // requests under way
	timer           *time.Timer
}

// Owner is whose a session is.
type Owner struct {
	Token, User string
	Asks        bool // its client can ask its person what a server asks
}

// Begin adds a session; end ends it, and is called at most once, when it has left the
// set. ErrRefused if it has no room.
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
		time.AfterFunc(0, victim.end) // which may wait for a call whose client has left
	}
	return err
}

// makeRoomLocked takes the session out that has to end for another; s.mu is held.
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

// idlestLocked is the session to end first of those that are eligible, or nil.
func (s *Set) idlestLocked(eligible func(*session) bool) (found *session) {
	for _, o := range s.open {
		if o.busy == 0 && eligible(o) && (found == nil || before(o, found)) {
			found = o
		}
	}
	return found
}

// before says whether a ends sooner than b.
func before(a, b *session) bool {
	if (a.listening > 0) != (b.listening > 0) {
		return a.listening == 0
	}
	return a.used.Before(b.used)
}

// largestLocked is the session to end first of the person who has most sessions, of
// those who have an idle one, or nil.
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

// dropLocked takes a session out; s.mu is held.
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

// expire ends a session whose time is over.
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

// Use is how a request uses its session.
type Use int

const (
	Asks    Use = iota // and is answered
	Listens            // for events, for as long as it likes
)

// Enter notes a request of a session. known is false if there is none of that id, and
// ok if it is another user's, too; leave notes the end of the request.
func (s *Set) Enter(id, user string, use Use) (leave func(), known, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.open[id]
	if o == nil || o.user != user {
		return func() {}, o != nil, false
	}
	o.used = s.opt.Now()
	if use == Listens { // which keeps none alive: its client may be gone for long
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

// Asks reports whether the client of a session can ask its person.
func (s *Set) Asks(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.open[id]
	return o != nil && o.asks
}

// Drop forgets a session that has ended.
func (s *Set) Drop(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.open[id]; o != nil {
		s.dropLocked(o)
	}
}

// Counts returns how many are open, and how many were ended for others.
func (s *Set) Counts() (open, ended int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open), s.ended
}
