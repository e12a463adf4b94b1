// Package connections limits a listener's open connections, concurrent requests and slow
// request bodies.
//
// Without it, an unauthenticated client or one person could exhaust the process's files and
// memory.
//
// Connections and requests each have two ledgers: one for unauthenticated clients, counted
// by address, and one for people who are signed in, counted by person. A connection is
// unauthenticated until a request on it is authenticated ([SignedIn]). Unauthenticated
// clients get a much smaller share, and can't use more than that, so people keep their
// slots whatever others open.
//
// A full ledger doesn't lock new clients out. A new connection is accepted, and to make
// room the least recently used connection that does no work is closed: one of the same
// address or person if that has already used its share, else one of whoever has most. A
// connection does work while a handler runs on it, unless the handler waits for a body that
// doesn't arrive, or for a client that doesn't read. A new connection is rejected only if
// all that could be closed for it do work.
//
// A trusted proxy's connections carry other people's requests. They count towards the total
// but not by address, and the requests on them count by the address that the proxy
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

// Limits bound how much is open at once. [Limits.Sized] fills in fields that are 0.
type Limits struct {
	All      int // connections, and concurrent requests
	Unknown  int // unauthenticated ones
	Address  int // unauthenticated ones of one address
	Person   int // those of one person
	BodyTime time.Duration
}

// How limits depend on the number of files that the process may open.
const (
	mostConnections = 4096
	fewest          = 64
	bodyTime        = 30 * time.Second
)

// Sized returns the limits with every 0 replaced by a value derived from the number of
// files that the process may open. Half of these are for connections; the rest is left for
// the control socket, the database, servers and their processes. files may be 0 if it is
// unknown.
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
	l.Unknown = min(l.Unknown, l.All*3/4) // a quarter is reserved for people, whatever the settings are
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

// Options are a Set's dependencies.
type Options struct {
	// Client returns the address to which a request counts, which a trusted proxy may have
	// forwarded; if it is nil, the connection's address is used.
	Client func(*http.Request) netip.Addr
	// Owner, if set, returns the peer of a new connection, if that is known before its
	// first request. A bounded one counts as a person's.
	Owner func(net.Conn) (key string, bounded, known bool)
	// Short, if set, is called if the process can't open another file for a connection.
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
	addresses map[string]int // authenticated connections, by address
	ended     int            // to make room for others
	refused   int
	said      time.Time // time of the last log line about closed connections
	due       bool      // a log line is due
}

// New returns a Set. The limits must be sized.
func New(l Limits, opt Options) *Set {
	return &Set{opt: opt, limits: l, addresses: map[string]int{}}
}

// SetLimits changes the limits; it closes nothing.
func (s *Set) SetLimits(l Limits) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits = l
}

// Counts is what is open now, and what was rejected or closed since the start.
type Counts struct {
	Limits  Limits
	Open    int
	Unknown int
	Ended   int // closed to make room
	Refused int
}

// Counts returns the current counts.
func (s *Set) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Counts{Limits: s.limits, Open: s.conns.unknown.n + s.conns.known.n, Unknown: s.conns.unknown.n, Ended: s.ended, Refused: s.refused}
}

// place is an entry in a ledger. Its fields are guarded by Set.mu.
type place struct {
	key  string
	in   *ledger // nil if removed
	at   *list.Element
	idle func() bool // reports whether it may be closed to make room
	end  func()      // closes it; called without the lock
}

// ledger is places by key, least recently used first.
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

// oldest returns the least recently used idle place of a key, or nil.
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

// largest returns the least recently used idle place of the key that has most, or nil.
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

// take adds p: each is the limit of its key, 0 for none. The returned victim must be closed
// to make room; it is already removed from the ledger. ok is false if nothing that could be
// closed for p is idle.
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

// group returns the key of an address: for IPv6 its /64 network, since one host can have
// any number of addresses in it.
func group(ip netip.Addr) string {
	ip = ip.Unmap().WithZone("")
	if ip.Is6() {
		if p, err := ip.Prefix(64); err == nil {
			return p.String()
		}
	}
	return ip.String()
}

// admit adds a place for a connection or a request; bounded is true if the limit per key
// applies.
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

// noteLocked counts a closed place; s.mu is held.
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

// tell logs from time to time that connections were closed to make room.
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

// promoteLocked moves a place from the unauthenticated ledger to a person's. If the person
// has used their share and all of it does work, the place stays; s.mu is held.
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

// SignedIn marks the context's request as a person's, and from now on its connection. It
// does nothing for a context without a request.
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

// Relieve closes idle connections, unauthenticated ones first, if the process can't open
// another file.
func (s *Set) Relieve() {
	const some = 32 // enough for new connections, and few enough to keep most
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

// Listener returns a listener that counts the connections that ln accepts.
func (s *Set) Listener(ln net.Listener) net.Listener { return listener{ln, s} }

type listener struct {
	net.Listener
	set *Set
}

// Accept never waits for room: it closes a connection that it can't admit.
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

// take adds a connection to the set, or closes it.
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
		_ = nc.Close() // nothing was sent on it
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
