package outbox

import "sync"

// Unfinished keeps a value for each text that is not final, by message id. The zero value
// is empty.
type Unfinished[T any] struct {
	mu sync.Mutex // guards the fields below
	of map[string]*T
}

// maxUnfinished is how many texts that never became final are kept. A text that was dropped
// is edited once more.
const maxUnfinished = 4096

// Get returns nil for an unknown id.
func (u *Unfinished[T]) Get(id string) *T {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.of[id]
}

// Put stores a value.
func (u *Unfinished[T]) Put(id string, v *T) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.of == nil || len(u.of) >= maxUnfinished {
		u.of = map[string]*T{}
	}
	u.of[id] = v
}

// Drop deletes a value.
func (u *Unfinished[T]) Drop(id string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.of, id)
}
