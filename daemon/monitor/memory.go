package monitor

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

const (
	// headroom is how much garbage may gather between two collections. A call
	// allocates some 300 KB in the SDK's decoders: with Go's default target and
	// a small heap the collector would run on every other call.
	headroom = 24 << 20
	// memoryLimit makes the collector work harder before the system has to.
	memoryLimit = 2 << 30
	// givenBack is how long after the last definition that is new memory is given
	// back.
	givenBack = 2 * time.Second
)

// The collector's target is a percentage of what is live. Between these bounds
// it follows what leaves headroom.
const (
	leastPercent = 40
	mostPercent  = 400
)

// Memory sets the collector's target by what is live, from one collection to
// the next, and gives back what a large list of tools needed while it was read.
type Memory struct {
	set func(percent int) int // debug.SetGCPercent

	mu      sync.Mutex // guards what follows
	percent int
	timer   *time.Timer
	stopped bool
}

// NewMemory returns one that works until Stop.
func NewMemory() *Memory {
	debug.SetMemoryLimit(memoryLimit)
	m := &Memory{set: debug.SetGCPercent}
	m.aim(0)
	m.follow()
	return m
}

// mark is garbage from the start, so that its cleanup runs after the next
// collection. A smaller one would share its memory with others.
type mark [16]byte

// follow sets the target anew after each collection: nized starts with nothing,
// and a percentage that suits that would let a heap of 25 MB grow to 125.
func (m *Memory) follow() {
	runtime.AddCleanup(new(mark), func(m *Memory) {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		if m.aim(live[0].Value.Uint64()) {
			m.follow()
		}
	}, m)
}

// aim sets the target for what is live; false says that nobody needs it any
// more. To set one stops all goroutines for a moment, so a small change waits
// for more.
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

// Changed asks for memory to be given back soon.
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

// Stop ends it.
func (m *Memory) Stop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stopped = true
	if m.timer != nil {
		m.timer.Stop()
	}
}
