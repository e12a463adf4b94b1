package mcp

import "sync"

// keyLocks are a mutex for each key, so that what one person does under theirs, such as
// a flush to the disk or a hook, holds nobody else up.
type keyLocks struct {
	mu   sync.Mutex
	keys map[string]*keyLock
}

type keyLock struct {
	sync.Mutex
	users int // who have it or wait for it; guarded by keyLocks.mu
}

// lock locks the mutex of a key, and returns what unlocks it.
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
