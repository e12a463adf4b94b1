package postgres

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"nize/store/kv"
)

const (
	// mostKnown limits the size of each of the cache's two generations, in bytes.
	mostKnown = 2 << 20
	// largeValue is the size from which values are not cached.
	largeValue = 16 << 10
	// mostStored limits the number of keys of which only the existence is cached.
	mostStored = 4096
	// mostSpan limits the size of a cached range, in bytes.
	mostSpan = 64 << 10
)

// known caches what writers read and put, so that later writers and readers of the newest
// state need not query the server. It equals the database: a commit fails if another engine
// committed since this engine's last. Entries that were not used for a while are dropped.
type known struct {
	mu         sync.Mutex      // guards the fields below
	read       map[string]bool // the buckets in which writers read keys
	young, old map[place]put
	size       int  // of the young generation
	doubt      bool // a key that was declared new existed already, or a known one didn't
	// there are keys that the server has, also of buckets in which writers read none.
	there map[place]bool

	// committing are the keys changed by the commit in progress, if any. Readers of the
	// database may see the change before its response arrives here; if the connection is
	// lost, that takes until the outage ends. So readers of the cache get neither the old
	// nor the new values.
	committing map[place]bool

	spans map[string]spans // by bucket: completely cached ranges
	held  int              // how large those are
}

// spans are the ranges of one bucket, by prefix.
type spans struct {
	all     map[string]span
	lengths map[int]int // how many prefixes have a length
}

// span has the values of all keys that start with a prefix.
type span map[string][]byte

func (k *known) find(at place) (p put, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.findLocked(at)
}

func (k *known) findLocked(at place) (p put, ok bool) {
	if p, ok = k.young[at]; ok {
		return p, true
	}
	if p, ok = k.old[at]; ok {
		k.keepLocked(at, p)
		return p, true
	}
	in := k.spans[at.bucket]
	for n := range in.lengths {
		if n <= len(at.key) {
			if s, ok := in.all[at.key[:n]]; ok {
				return put{value: s[at.key]}, true
			}
		}
	}
	return p, false
}

func (k *known) keepLocked(at place, p put) {
	delete(k.old, at)
	if k.size > mostKnown {
		k.young, k.old, k.size = nil, k.young, 0
	}
	if k.young == nil {
		k.young = map[place]put{}
	}
	k.young[at] = p
	k.size += p.size(at)
}

// begin records the keys that a commit changes, before it is sent to the server.
func (k *known) begin(changed map[place]bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.committing = changed
}

// end records that the commit's outcome is known, and included if it succeeded.
func (k *known) end() { k.begin(nil) }

// settledLocked reports whether the commit in progress, if any, changes no key that starts
// with a prefix.
func (k *known) settledLocked(at place) bool {
	for changed := range k.committing {
		if changed.bucket == at.bucket && strings.HasPrefix(changed.key, at.key) {
			return false
		}
	}
	return true
}

// commit adds what a committed transaction read and put, and which keys there are since.
func (k *known) commit(news map[place]put, ranges map[place]span, there map[place]bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.doubt = false
	if k.there == nil || len(k.there) > mostStored {
		k.there = map[place]bool{}
	}
	for at, is := range there {
		if is {
			k.there[at] = true
		} else {
			delete(k.there, at)
		}
	}
	for at, s := range ranges {
		k.addLocked(at, s)
	}
	for at, p := range news {
		k.keepLocked(at, p)
		in := k.spans[at.bucket]
		for n := range in.lengths {
			if n > len(at.key) {
				continue
			}
			s, ok := in.all[at.key[:n]]
			switch {
			case !ok:
			case p.large:
				k.dropLocked(place{at.bucket, at.key[:n]})
			case p.value == nil:
				delete(s, at.key)
			default:
				if _, was := s[at.key]; !was {
					k.held += p.size(at)
				}
				s[at.key] = p.value
			}
		}
	}
	if k.held > mostKnown {
		k.spans, k.held = nil, 0
	}
}

func (k *known) addLocked(at place, s span) {
	if k.spans == nil {
		k.spans = map[string]spans{}
	}
	in, ok := k.spans[at.bucket]
	if !ok {
		in = spans{map[string]span{}, map[int]int{}}
		k.spans[at.bucket] = in
	}
	if _, ok := in.all[at.key]; !ok {
		in.lengths[len(at.key)]++
	}
	in.all[at.key] = s
	k.held += s.size(at)
}

func (k *known) dropLocked(at place) {
	in := k.spans[at.bucket]
	delete(in.all, at.key)
	if in.lengths[len(at.key)]--; in.lengths[len(at.key)] == 0 {
		delete(in.lengths, len(at.key))
	}
}

func (s span) size(at place) int {
	n := 100 + len(at.bucket) + len(at.key)
	for key, value := range s {
		n += put{value: value}.size(place{at.bucket, key})
	}
	return n
}

// span returns a copy of the narrowest cached range that includes all of a prefix.
func (k *known) span(at place) (span, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.spanLocked(at)
}

func (k *known) spanLocked(at place) (found span, ok bool) {
	in := k.spans[at.bucket]
	for _, n := range slices.Backward(slices.Sorted(maps.Keys(in.lengths))) {
		if n > len(at.key) {
			continue
		}
		if s, ok := in.all[at.key[:n]]; ok {
			found = span{}
			for key, value := range s {
				if strings.HasPrefix(key, at.key) {
					found[key] = value
				}
			}
			return found, true
		}
	}
	return nil, false
}

func (k *known) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.young, k.old, k.size, k.spans, k.held, k.there = nil, nil, 0, nil, 0, nil
}

// setDoubt makes the next writer check whether a key is new.
func (k *known) setDoubt() {
	k.forget()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.doubt = true
}

func (k *known) doubts() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.doubt
}

// asks records that writers read keys of a bucket.
func (k *known) asks(bucket string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.read == nil {
		k.read = map[string]bool{}
	}
	k.read[bucket] = true
}

func (k *known) asked(bucket string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.read[bucket]
}

// find returns a value that a writer need not query.
func (t *transaction) find(at place) (p put, ok bool) {
	if p, ok = t.puts[at]; ok {
		return p, true
	}
	if t.fresh[at] {
		return put{}, true
	}
	if p, ok = t.news[at]; !ok && !t.plain && t.e.Current() {
		if p, ok = t.e.known.find(at); !ok {
			p, ok = t.findRead(at)
		}
	}
	return p, ok && !p.large
}

// findRead looks a key up in the ranges that this transaction read.
func (t *transaction) findRead(at place) (p put, ok bool) {
	for of, s := range t.ranges {
		if of.bucket == at.bucket && strings.HasPrefix(at.key, of.key) {
			return put{value: s[at.key]}, true
		}
	}
	return p, false
}

// has reports whether the server is known to have a key, so that a put can update it.
func (t *transaction) has(at place) bool {
	if t.plain {
		return false
	}
	if _, pending := t.puts[at]; pending { // since the transaction deleted it, or put it
		return t.stored[at]
	}
	if is, ok := t.there[at]; ok {
		return is
	}
	if p, ok := t.news[at]; ok {
		return p.large || p.value != nil
	}
	if !t.e.Current() {
		return false
	}
	return t.e.known.has(at)
}

func (k *known) has(at place) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.there[at] {
		return true
	}
	p, ok := k.findLocked(at)
	return ok && (p.large || p.value != nil)
}

// note records a value that will be cached once the transaction is committed.
func (t *transaction) note(at place, p put) {
	if t.plain || !t.e.known.asked(at.bucket) {
		return
	}
	if len(p.value) > largeValue {
		p = put{large: true}
	}
	t.news[at] = p
	if t.noted += p.size(at); t.noted > mostKnown {
		t.forget()
	}
}

// forget stops recording values: this transaction reads and puts too much.
func (t *transaction) forget() {
	t.plain, t.news, t.changed, t.ranges, t.there = true, nil, nil, nil, nil
	t.e.known.forget()
}

// New implements [kv.Transaction]. The server checks the key when it is put.
func (t *transaction) New(bucket string, key []byte) (bool, error) {
	at := place{bucket, string(key)}
	if t.write && t.err == nil && !t.e.known.doubts() {
		if _, ok := t.find(at); !ok {
			t.e.known.asks(bucket)
			t.fresh[at] = true
			return true, nil
		}
	}
	v, err := t.Get(bucket, key)
	return v == nil, err
}

// Absent declares that there is no such key, which the caller puts next: it contains an id or
// a number that was created for this transaction. Unlike [transaction.New] it is no check: if
// the key exists, the next transaction replaces its value.
func (t *transaction) Absent(bucket string, key []byte) {
	at := place{bucket, string(key)}
	if !t.write || t.err != nil || t.e.known.doubts() {
		return
	}
	if _, ok := t.find(at); !ok {
		t.fresh[at] = true
	}
}

// Fresh declares that no keys of a bucket start with prefix: prefix contains an id that was
// created for this transaction, and [transaction.New] was called for a key with it.
func (t *transaction) Fresh(bucket string, prefix []byte) {
	if t.write && !t.plain && !t.e.known.doubts() {
		t.noteRange(place{bucket, string(prefix)}, span{})
	}
}

func (t *transaction) noteRange(at place, s span) {
	if t.plain {
		return
	}
	t.e.known.asks(at.bucket)
	if t.ranges == nil {
		t.ranges = map[place]span{}
	}
	t.ranges[at] = s
	if t.noted += s.size(at); t.noted > mostKnown {
		t.forget()
	}
}

// span returns a range as this transaction sees it, if all of it is cached.
func (t *transaction) span(at place) (s span, ok bool) {
	if t.plain {
		return nil, false
	}
	for of, read := range t.ranges {
		if of.bucket == at.bucket && strings.HasPrefix(at.key, of.key) {
			s, ok = span{}, true
			for key, value := range read {
				if strings.HasPrefix(key, at.key) {
					s[key] = value
				}
			}
			break
		}
	}
	if !ok && t.e.Current() {
		s, ok = t.e.known.span(at)
	}
	if !ok {
		return nil, false
	}
	for _, puts := range []map[place]put{t.news, t.puts} {
		for to, p := range puts {
			switch {
			case to.bucket != at.bucket || !strings.HasPrefix(to.key, at.key):
			case p.large:
				return nil, false
			case p.value == nil:
				delete(s, to.key)
			default:
				s[to.key] = p.value
			}
		}
	}
	return s, true
}

// each calls do for a part of a range in order.
func (s span) each(r kv.Range, do func(k, v []byte) bool) {
	keys := slices.Sorted(maps.Keys(s))
	if r.Reverse {
		slices.Reverse(keys)
	}
	end, n := kv.End(r), 0
	for _, key := range keys {
		if key < string(r.From) || end != nil && key >= string(end) {
			continue
		}
		if n++; r.Limit > 0 && n > r.Limit || !do([]byte(key), notNil(s[key])) {
			return
		}
	}
}

// errUnknown is returned by a recent transaction for values that are not cached.
var errUnknown = errors.New("not known here")

// Recent runs fn in a transaction that reads the newest committed state from the cache. It
// returns false if the cache lacks something that fn read, if a commit in progress changes
// some of it, or if another engine may own the database; the caller must then ignore the
// results of fn. So no result is older than what any reader of the database saw before.
func (e *Engine) Recent(fn func(kv.Transaction)) bool {
	if e.closed.Load() || !e.Current() {
		return false
	}
	e.known.mu.Lock()
	defer e.known.mu.Unlock()
	r := &recent{known: &e.known}
	whole := func() (whole bool) {
		defer func() { // callers turn a read error into a panic
			if p := recover(); p != nil && !r.missed {
				panic(p)
			}
		}()
		fn(r)
		return !r.missed
	}()
	return whole && e.Current()
}

// recent is a transaction that reads the cache. It holds known.mu.
type recent struct {
	known  *known
	missed bool
}

func (r *recent) Get(bucket string, key []byte) ([]byte, error) {
	at := place{bucket, string(key)}
	p, ok := r.known.findLocked(at)
	if !ok || p.large || r.known.committing[at] {
		r.missed = true
		return nil, errUnknown
	}
	return p.value, nil
}

func (r *recent) Range(bucket string, part kv.Range, do func(key, value []byte) bool) error {
	at := place{bucket, string(part.Prefix)}
	s, ok := r.known.spanLocked(at)
	if !ok || !r.known.settledLocked(at) {
		r.missed = true
		return errUnknown
	}
	s.each(part, do)
	return nil
}

func (r *recent) miss() error {
	r.missed = true
	return errUnknown
}

func (r *recent) New(string, []byte) (bool, error)        { return false, r.miss() }
func (r *recent) Put(string, []byte, []byte) error        { return r.miss() }
func (r *recent) Delete(string, []byte) error             { return r.miss() }
func (r *recent) Sequence(string, uint64) (uint64, error) { return 0, r.miss() }
func (r *recent) Buckets() ([]string, error)              { return nil, r.miss() }
func (r *recent) Make(string) error                       { return r.miss() }
func (r *recent) Commit() error                           { return r.miss() }
func (r *recent) Rollback()                               {}

var _ kv.Transaction = (*recent)(nil)
