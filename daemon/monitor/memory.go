package monitor

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

const (
	// headroom is how much garbage may accumulate between two collections. A call allocates
	// some 300 KB in the SDK's decoders: with Go's default target and a small heap the
	// collector would run on every other call.
	headroom = 24 << 20
	// memoryLimit makes the collector work harder before the system runs out of memory.
	memoryLimit = 2 << 30
	// givenBack is the delay after the last new definition before memory is returned to the
	// system.
	givenBack = 2 * time.Second
)

// The collector's target is a percentage of the live heap. It is set so that headroom
// remains, within these limits.
const (
	leastPercent = 40
	mostPercent  = 400
)

// Memory adjusts the collector's target to the live heap after each collection, and returns
// the memory that was needed to read a large list of tools.
type Memory struct {
	set func(percent int) int // debug.SetGCPercent

	mu      sync.Mutex // guards the fields below
	percent int
	timer   *time.Timer
	stopped bool
}

// NewMemory returns a Memory that works until Stop is called.
func NewMemory() *Memory {
	debug.SetMemoryLimit(memoryLimit)
	m := &Memory{set: debug.SetGCPercent}
	m.aim(0)
	m.follow()
	return m
}

// mark is garbage from the start, so that its cleanup runs after the next collection. A
// smaller type would share its memory block with others.
type mark [16]byte

// follow sets the target after each collection: nized starts with a tiny heap, and a
// percentage that suits that would let a heap of 25 MB grow to 125.
func (m *Memory) follow() {
	runtime.AddCleanup(new(mark), func(m *Memory) {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		if m.aim(live[0].Value.Uint64()) {
			m.follow()
		}
	}, m)
}

// aim sets the target for the live heap; it returns false after Stop. Since setting it
// stops all goroutines for a moment, small changes are deferred.
func (m *Memory) aim(live uint64) bool {
	percent := mostPercent
	if live > 0 {
		percent = int(min(mostPercent, max(leastPercent, headroom*100/live)))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopped {
		return false
	}
	if off := percent - m.percent; off*10 > m.percent || -off*10 > m.percent {
		m.set(percent)
		m.percent = percent
	}
	return true
}

// Changed requests that memory be returned soon.
func (m *Memory) Changed() {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.stopped:
	case m.timer == nil:
		m.timer = time.AfterFunc(givenBack, debug.FreeOSMemory)
	default:
		m.timer.Reset(givenBack)
	}
}

// Stop stops the adjustments.
func (m *Memory) Stop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stopped = true
	if m.timer != nil {
		m.timer.Stop()
	}
}
