package chattest

import (
	"net/http"
	"time"
)

// Fault is what goes wrong with calls of the platform's API.
type Fault struct {
	Times      int           // calls that it hits; 0 is one
	Delay      time.Duration // before anything else
	Status     int           // HTTP status without a JSON body, e.g. 500
	RetryAfter time.Duration // a 429
	Error      string        // an error of the platform's own
	Body       string        // a page in the answer's place, as of a proxy
	After      bool          // the call is done first, and only its answer is lost
	Hang       bool          // the call is done, and its answer never comes

	Held <-chan struct{} // the call is done, and its answer comes when this is closed
}

// Fail makes calls of a method fail; "*" is any method. Faults of a method hit
// in the order in which they were asked for.
func (b *Base) Fail(method string, f Fault) {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	if f.Times == 0 {
		f.Times = 1
	}
	if b.faults == nil {
		b.faults = map[string][]*Fault{}
	}
	b.faults[method] = append(b.faults[method], &f)
}

// Mend takes back what faults are left.
func (b *Base) Mend() {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	b.faults = nil
}

// TakeFault is the fault that hits a call now, or nil.
func (b *Base) TakeFault(method string) *Fault {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	for _, key := range []string{method, "*"} {
		list := b.faults[key]
		if len(list) == 0 {
			continue
		}
		f := list[0]
		if f.Times--; f.Times <= 0 {
			b.faults[key] = list[1:]
		}
		return f
	}
	return nil
}

// Pause waits a fault's delay and says whether to go on.
func (b *Base) Pause(r *http.Request, f *Fault) bool {
	if f == nil || f.Delay <= 0 {
		return true
	}
	t := time.NewTimer(f.Delay)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.Context().Done():
	case <-b.ctx.Done():
	}
	return false
}
