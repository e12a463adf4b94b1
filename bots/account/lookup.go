package account

import (
	"math"
	"sync"
	"time"
)

// Lookups caches what a platform says about people and things, for a short time.
type Lookups[V any] struct {
	Now  func() time.Time
	Most int // maximum number of entries; 0 is 10,000

	mu    sync.Mutex // guards the fields below
	known map[string]lookup[V]
	// asking has the lookups in progress. Forget removes them, so that their results are
	// not cached.
	asking map[string]*int
}

type lookup[V any] struct {
	v  V
	at time.Time // when the lookup began
}

// Ever is the age for values that are valid until they are forgotten.
const Ever = time.Duration(math.MaxInt64)

// Known returns a cached value that is younger than age.
func (l *Lookups[V]) Known(key string, age time.Duration) (V, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	got, ok := l.known[key]
	return got.v, ok && (age == Ever || l.Now().Sub(got.at) < age)
}

// Get returns the cached value, or the result of ask.
func (l *Lookups[V]) Get(key string, age time.Duration, ask func() (V, error)) (V, error) {
	if v, ok := l.Known(key, age); ok {
		return v, nil
	}
	at := l.Now()
	l.mu.Lock()
	n := l.asking[key]
	if n == nil {
		n = new(int)
		if l.asking == nil {
			l.asking = map[string]*int{}
		}
		l.asking[key] = n
	}
	*n++
	l.mu.Unlock()
	v, err := ask()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asking[key] != n {
		return v, err // forgotten in the meantime
	}
	if *n--; *n == 0 {
		delete(l.asking, key)
	}
	if err == nil {
		l.putLocked(key, lookup[V]{v, at})
	}
	return v, err
}

// Put caches a value that was received without a lookup.
func (l *Lookups[V]) Put(key string, v V) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.putLocked(key, lookup[V]{v, l.Now()})
}

// putLocked caches a value within the limit; l.mu is held.
func (l *Lookups[V]) putLocked(key string, v lookup[V]) {
	most := l.Most
	if most == 0 {
		most = 10_000
	}
	if l.known == nil || len(l.known) >= most {
		l.known = map[string]lookup[V]{}
	}
	l.known[key] = v
}

// Forget makes the next lookup a fresh one, even if an older one is in progress.
func (l *Lookups[V]) Forget(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.known, key)
	delete(l.asking, key)
}
