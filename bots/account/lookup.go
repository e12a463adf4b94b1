package account

import (
	"math"
	"sync"
	"time"
)

// Lookups remember what a platform says of people and things, for a short time.
type Lookups[V any] struct {
	Now  func() time.Time
	Most int // how many are remembered; 0 is 10,000

	mu    sync.Mutex // guards what follows
	known map[string]lookup[V]
	// asking are what is being looked up, until it is forgotten: what was answered
	// before that is not remembered.
	asking map[string]*int
}

type lookup[V any] struct {
	v  V
	at time.Time // when it was asked for
}

// Ever is the age of what holds until it is forgotten.
const Ever = time.Duration(math.MaxInt64)

// Known is what is remembered and younger than age.
func (l *Lookups[V]) Known(key string, age time.Duration) (V, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	got, ok := l.known[key]
	return got.v, ok && (age == Ever || l.Now().Sub(got.at) < age)
}

// Get is what is known, or else what ask says.
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
		return v, err // forgotten meanwhile
	}
	if *n--; *n == 0 {
		delete(l.asking, key)
	}
	if err == nil {
		l.putLocked(key, lookup[V]{v, at})
	}
	return v, err
}

// Put remembers what was told without being asked for.
func (l *Lookups[V]) Put(key string, v V) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.putLocked(key, lookup[V]{v, l.Now()})
}

// putLocked remembers something within bounds; l.mu must be held.
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

// Forget makes the next look a fresh one, also where an older one is under way.
func (l *Lookups[V]) Forget(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.known, key)
	delete(l.asking, key)
}
