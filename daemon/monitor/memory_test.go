package monitor

import (
	"runtime"
	"slices"
	"testing"
)

func TestMemoryFollows(t *testing.T) {
	aims := make(chan int, 1)
	m := &Memory{}
	m.set = func(percent int) int {
		select {
		case aims <- percent:
		default:
		}
		return 0
	}
	m.follow()
	for range 3 {
		// The collection that finds the mark may be one after the first.
		for aimed := false; !aimed; {
			runtime.GC()
			select {
			case <-aims:
				aimed = true
			default:
				runtime.Gosched()
			}
		}
		m.mu.Lock()
		m.percent = 0 // so that it is set again
		m.mu.Unlock()
	}
	m.Stop()
	if m.aim(1) {
		t.Error("a stopped one goes on")
	}
}

func TestMemoryAims(t *testing.T) {
	var got []int
	m := &Memory{set: func(percent int) int { got = append(got, percent); return 0 }}
	for _, live := range []uint64{0, 1 << 20, headroom / 4, headroom / 2, headroom/2 + headroom/100, headroom, 10 * headroom, 0} {
		m.aim(live)
	}
	if want := []int{400, 200, 100, 40, 400}; !slices.Equal(got, want) {
		t.Errorf("targets of %d %%, want %d %%", got, want)
	}
}
