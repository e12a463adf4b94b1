package outbox

import "sync"

// Unfinished remembers what is known of texts that are not final, by message id.
// The zero one knows none.
type Unfinished[T any] struct {
	mu sync.Mutex // guards of
	of map[string]*T
}

// maxUnfinished is how many are remembered that never became final. Those that are
// forgotten are edited once more.
const maxUnfinished = 4096

// Get is nil for what is not known.
func (u *Unfinished[T]) Get(id string) *T {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.of[id]
}

// Put remembers one.
func (u *Unfinished[T]) Put(id string, v *T) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.of == nil || len(u.of) >= maxUnfinished {
		u.of = map[string]*T{}
	}
	u.of[id] = v
}

// Drop forgets one.
func (u *Unfinished[T]) Drop(id string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.of, id)
}
