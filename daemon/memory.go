package daemon

import (
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
	// settle is how long after the last change of tools memory is given back.
	settle = 2 * time.Second
)

// memory sets the collector's target by what is live, and gives back what a
// large list of tools needed while it was read.
type memory struct {
	mu      sync.Mutex
	timer   *time.Timer
	stopped bool
}

func newMemory() *memory {
	debug.SetMemoryLimit(memoryLimit)
	debug.SetGCPercent(400)
	return &memory{}
}

// changed asks for a new target soon.
func (m *memory) changed() {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.stopped:
	case m.timer == nil:
		m.timer = time.AfterFunc(settle, m.tune)
	default:
		m.timer.Reset(settle)
	}
}

func (m *memory) tune() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopped {
		return
	}
	debug.FreeOSMemory()
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	percent := 400
	if n := live[0].Value.Uint64(); n > 0 {
		percent = int(min(400, max(40, headroom*100/n)))
	}
	debug.SetGCPercent(percent)
}

func (m *memory) stop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stopped = true
	if m.timer != nil {
		m.timer.Stop()
	}
}
