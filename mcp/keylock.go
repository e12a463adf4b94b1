package mcp

import "sync"

// keyLocks holds one mutex per key, so that one user's slow work under the lock, such as a
// flush to disk or a hook, doesn't block other users.
type keyLocks struct {
	mu   sync.Mutex
	keys map[string]*keyLock
}

type keyLock struct {
	sync.Mutex
	users int // holders and waiters; guarded by keyLocks.mu
}

// lock locks the mutex of a key and returns the function that unlocks it.
func (k *keyLocks) lock(key string) (unlock func()) {
	k.mu.Lock()
	if k.keys == nil {
		k.keys = map[string]*keyLock{}
	}
	l := k.keys[key]
	if l == nil {
		l = &keyLock{}
		k.keys[key] = l
	}
	l.users++
	k.mu.Unlock()
	l.Lock()
	return func() {
		l.Unlock()
		k.mu.Lock()
		defer k.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(k.keys, key)
		}
	}
}
