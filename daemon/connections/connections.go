// Package connections bounds what a listener holds open, and how long the body of
// a request may take, so that neither a stranger nor one person can use up the
// files and the memory of the process.
//
// Connections and requests each have two ledgers: of strangers, counted by
// address, and of people who are signed in, counted by person. A connection is a
// stranger's from its first packet until a request on it is authenticated
// ([SignedIn]). Strangers get far less room than people do, and that room is
// theirs alone: whatever they open, people keep their slots.
//
// A full ledger locks nobody out. The newcomer gets in, and what is ended for it is
// the least recently used connection that does no work: of the newcomer's own
// address or person if that has its share already, else of whoever holds most. A
// connection works while a handler runs on it, unless that waits for a body that
// doesn't come, or for a client that doesn't read. The newcomer is refused only if
// everything in its place works.
//
// The connections of a trusted proxy carry other people's requests. They count in
// all and not by address, and the requests on them by the address that the proxy
// forwards.
package connections

import (
	"container/list"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"syscall"
	"time"
)

// Limits say how much is open at once. [Limits.Sized] fills in what is 0.
type Limits struct {
	All      int // connections, and requests under way
	Unknown  int // those of them that nobody is signed in on
	Address  int // those of one address that nobody is signed in on
	Person   int // those of one person
	BodyTime time.Duration
}

// How limits follow from the number of files that the process may open.
const (
	mostConnections = 4096
	fewest          = 64
	bodyTime        = 30 * time.Second
)

// Sized returns the limits with everything that is 0 derived from the number of
// files that the process may open, of which half are for connections; the other
// half is left to the control socket, the database, servers and their processes.
// files may be 0, if it is not known.
func (l Limits) Sized(files int) Limits {
	if l.All == 0 {
		l.All = mostConnections
		if files > 0 {
			l.All = max(min(l.All, files/2), fewest)
		}
	}
	if l.Unknown == 0 {
		l.Unknown = max(l.All/8, fewest/4)
	}
	l.Unknown = min(l.Unknown, l.All*3/4) // people keep a quarter, whatever the settings say
	if l.Address == 0 {
		l.Address = max(l.Unknown/4, 8)
	}
	if l.Person == 0 {
		l.Person = max(l.All/4, 16)
	}
	if l.BodyTime == 0 {
		l.BodyTime = bodyTime
	}
	return l
}

// Options are what a Set needs.
type Options struct {
	// Client returns the address that a request is counted by, which a trusted
	// proxy may have forwarded; nil counts by the connection's.
	Client func(*http.Request) netip.Addr
	// Owner, if set, returns who is at the other end of a new connection, if that is
	// known before its first request. A bounded one counts as a person's.
	Owner func(net.Conn) (key string, bounded, known bool)
	// Short, if set, is called when the process has no file left for a connection.
	Short func()
	Log   *slog.Logger
}

// Set is the connections of one listener, and the requests on them.
type Set struct {
	opt Options

	mu        sync.Mutex // guards everything below, and every place
	limits    Limits
	conns     ledgers
	requests  ledgers
	addresses map[string]int // connections of people, by address
	ended     int            // for the sake of others
	refused   int
	said      time.Time // when the log last had a line about them
	due       bool      // it is to have one
}

// New returns a set whose limits are sized.
func New(l Limits, opt Options) *Set {
	return &Set{opt: opt, limits: l, addresses: map[string]int{}}
}

// SetLimits changes the limits; what is open stays open.
func (s *Set) SetLimits(l Limits) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits = l
}

// Counts is what is open now, and what was turned away since the start.
type Counts struct {
	Limits  Limits
	Open    int
	Unknown int
	Ended   int // ended to make room
	Refused int
}

// Counts counts.
func (s *Set) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Counts{Limits: s.limits, Open: s.conns.unknown.n + s.conns.known.n, Unknown: s.conns.unknown.n, Ended: s.ended, Refused: s.refused}
}

// place is what takes room in a ledger. Its fields are guarded by Set.mu.
type place struct {
	key  string
	in   *ledger // nil: in none any more
	at   *list.Element
	idle func() bool // whether it may be ended for another
	end  func()      // is called without the lock
}

// ledger is places by key, the least recently used first.
type ledger struct {
	keys map[string]*list.List
	n    int
}

type ledgers struct{ unknown, known ledger }

func (l *ledger) count(key string) int {
	if of := l.keys[key]; of != nil {
		return of.Len()
	}
	return 0
}

func (l *ledger) add(p *place) {
	if l.keys == nil {
		l.keys = map[string]*list.List{}
	}
	of := l.keys[p.key]
	if of == nil {
		of = list.New()
		l.keys[p.key] = of
	}
	p.in, p.at = l, of.PushBack(p)
	l.n++
}

func (p *place) leave() {
	l := p.in
	if l == nil {
		return
	}
	of := l.keys[p.key]
	of.Remove(p.at)
	if of.Len() == 0 {
		delete(l.keys, p.key)
	}
	l.n--
	p.in, p.at = nil, nil
}

// touch makes it the most recently used one of its key.
func (p *place) touch() {
	if p.in != nil {
		p.in.keys[p.key].MoveToBack(p.at)
	}
}

// oldest is the least recently used place of a key that is idle, or nil.
func (l *ledger) oldest(key string) *place {
	of := l.keys[key]
	if of == nil {
		return nil
	}
	for at := of.Front(); at != nil; at = at.Next() {
		if p := at.Value.(*place); p.idle() {
			return p
		}
	}
	return nil
}

// largest is the least recently used idle place of the key that has most, or nil.
func (l *ledger) largest() (found *place) {
	most := 0
	for key, of := range l.keys {
		if of.Len() <= most {
			continue
		}
		if p := l.oldest(key); p != nil {
			found, most = p, of.Len()
		}
	}
	return found
}

// take finds room for p: each is what its key may have, 0 without a bound. The place
// that has to end for it has left the ledger already. ok is false if nothing in p's
// way is idle.
func (l *ledger) take(p *place, each, all int) (victim *place, ok bool) {
	switch {
	case each > 0 && l.count(p.key) >= each:
		if victim = l.oldest(p.key); victim == nil {
			return nil, false
		}
	case l.n >= all:
		if victim = l.largest(); victim == nil {
			return nil, false
		}
	}
	if victim != nil {
		victim.leave()
	}
	l.add(p)
	return victim, true
}

// group is the key of an address: of IPv6 the network, since one host has as many
// addresses as it likes there.
func group(ip netip.Addr) string {
	ip = ip.Unmap().WithZone("")
	if ip.Is6() {
		if p, err := ip.Prefix(64); err == nil {
			return p.String()
		}
	}
	return ip.String()
}

// admit takes a place for a connection or a request; bounded says that its key is.
func (s *Set) admit(p *place, in *ledgers, known, bounded bool) bool {
	s.mu.Lock()
	l, each, all := &in.unknown, s.limits.Address, s.limits.Unknown
	if known {
		l, each, all = &in.known, s.limits.Person, s.limits.All-s.limits.Unknown
	}
	if !bounded {
		each = 0
	}
	victim, ok := l.take(p, each, all)
	s.noteLocked(victim, ok)
	s.mu.Unlock()
	if victim != nil {
		victim.end()
	}
	s.tell()
	return ok
}

// noteLocked counts who had to go; s.mu is held.
func (s *Set) noteLocked(victim *place, ok bool) {
	switch {
	case victim != nil:
		s.ended++
	case !ok:
		s.refused++
	default:
		return
	}
	s.due = true
}

// tell logs now and then that somebody had to go.
func (s *Set) tell() {
	now := time.Now()
	s.mu.Lock()
	if !s.due || now.Sub(s.said) < time.Minute {
		s.mu.Unlock()
		return
	}
	s.due, s.said = false, now
	open, unknown, ended, refused := s.conns.unknown.n+s.conns.known.n, s.conns.unknown.n, s.ended, s.refused
	s.mu.Unlock()
	s.opt.Log.Warn("connections were ended to make room for others", "open", open, "not signed in", unknown, "ended since the start", ended, "refused", refused)
}

// promote moves a place from the strangers' ledger to that of a person. If the person
// has their share and uses all of it, the place stays where it is; s.mu is held.
func (s *Set) promoteLocked(p *place, in *ledgers, person string) (victim *place, ok bool) {
	if p.in != &in.unknown {
		return nil, false
	}
	key := p.key
	p.leave()
	p.key = person
	if victim, ok = in.known.take(p, s.limits.Person, s.limits.All-s.limits.Unknown); !ok {
		p.key = key
		in.unknown.add(p)
	}
	s.noteLocked(victim, true)
	return victim, ok
}

// SignedIn notes that the request of that context is a person's, and so is its
// connection from now on. A context that is of no request changes nothing.
func SignedIn(ctx context.Context, person string) {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	if x == nil {
		return
	}
	s := x.set
	s.mu.Lock()
	first, _ := s.promoteLocked(&x.place, &s.requests, person)
	var second *place
	if c := x.conn; c != nil && s.addresses[c.address] < s.limits.All/2 {
		var ok bool
		if second, ok = s.promoteLocked(&c.place, &s.conns, person); ok {
			s.addresses[c.address]++
			c.counted = true
		}
	}
	s.mu.Unlock()
	for _, victim := range []*place{first, second} {
		if victim != nil {
			victim.end()
		}
	}
	s.tell()
}

// Relieve ends idle connections, strangers' first: the process has no file left.
func (s *Set) Relieve() {
	const some = 32 // enough for whoever waits, and few enough that most go on
	var gone []*place
	s.mu.Lock()
	for _, l := range []*ledger{&s.conns.unknown, &s.conns.known} {
		for len(gone) < some {
			p := l.largest()
			if p == nil {
				break
			}
			p.leave()
			s.noteLocked(p, true)
			gone = append(gone, p)
		}
	}
	s.mu.Unlock()
	for _, p := range gone {
		p.end()
	}
	s.tell()
}

// Listener counts what ln accepts.
func (s *Set) Listener(ln net.Listener) net.Listener { return listener{ln, s} }

type listener struct {
	net.Listener
	set *Set
}

// Accept never waits for room: a connection that has none is closed.
func (l listener) Accept() (net.Conn, error) {
	for {
		nc, err := l.Listener.Accept()
		if err != nil {
			if l.set.opt.Short != nil && (errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)) {
				l.set.opt.Short()
			}
			return nil, err
		}
		if c := l.set.take(nc); c != nil {
			return c, nil
		}
	}
}

// take makes a connection one of the set, or closes it.
func (s *Set) take(nc net.Conn) *conn {
	c := &conn{Conn: nc, set: s, address: addressOf(nc)}
	c.place = place{key: c.address, idle: c.isIdle, end: c.cut}
	known, bounded := false, true
	if s.opt.Owner != nil {
		if key, b, ok := s.opt.Owner(nc); ok {
			c.key, c.owner, bounded, known = key, key, b, true
		}
	}
	if !s.admit(&c.place, &s.conns, known, bounded) {
		_ = nc.Close() // nothing was said on it
		return nil
	}
	return c
}

func addressOf(c net.Conn) string {
	if at, err := netip.ParseAddrPort(c.RemoteAddr().String()); err == nil {
		return group(at.Addr())
	}
	return ""
}
