package chattest

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
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

// Call is one request to the platform's API.
type Call struct {
	Name  string
	Do    func() (any, error) // with Base.Mu held
	Write func(any, error)    // what came of it
	Fault func(*Fault) bool   // writes a fault that has a form of the platform's own
}

// ErrLimited is for calls that came too early: nothing is wrong with them.
var ErrLimited = errors.New("rate limited")

// ServeCall does a call, with the fault that hits it, and counts it.
func (b *Base) ServeCall(w http.ResponseWriter, r *http.Request, c Call) {
	f := b.TakeFault(c.Name)
	if !b.Pause(r, f) {
		return // the client left, or the platform was closed
	}
	if f == nil {
		f = &Fault{}
	} else if !f.After && !f.Hang && f.Write(w, c.Fault) {
		b.Mu.Lock()
		defer b.Mu.Unlock()
		b.Counts.Calls[c.Name]++
		b.TouchLocked()
		return
	}
	answer, err := b.do(c)
	if f.Hang || f.Held != nil {
		select {
		case <-f.Held:
		case <-r.Context().Done():
			return
		case <-b.ctx.Done():
			return
		}
	}
	if !f.After || err != nil || !f.Write(w, c.Fault) {
		c.Write(answer, err)
	}
}

func (b *Base) do(c Call) (any, error) {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	defer b.TouchLocked()
	b.Counts.Calls[c.Name]++
	answer, err := c.Do()
	if err != nil && !errors.Is(err, ErrLimited) {
		b.Counts.Refused = append(b.Counts.Refused, Refusal{Method: c.Name, Error: err.Error()})
	}
	return answer, err
}

// Write answers in a call's stead; false means that the fault was a delay only.
func (f *Fault) Write(w http.ResponseWriter, own func(*Fault) bool) bool {
	switch {
	case own(f):
	case f.Status != 0:
		http.Error(w, http.StatusText(f.Status), f.Status)
	case f.Body != "":
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(f.Body)) // the client is gone
	default:
		return false
	}
	return true
}

// Counts are what every platform counts.
type Counts struct {
	Calls   map[string]int // by method, failed ones too
	Refused []Refusal      // by the platform's rules, not by faults
	Unknown []string       // methods that the platform, or its double, does not have
	Links   int            // open now
	Opened  int            // links ever
	Sent    int            // events and the like, repeated ones too
	Missed  int            // what the app did not answer in time
	Limits  []Limit        // each answer that told to wait, and whether it was obeyed
	Ignored int            // calls that came although they had been told to wait
}

// Refusal is a call that was answered with an error.
type Refusal struct{ Method, Error string }

// CountsLocked are the counts up to now; b.Mu must be held.
func (b *Base) CountsLocked() Counts {
	out := b.Counts
	out.Calls, out.Refused, out.Unknown = maps.Clone(out.Calls), slices.Clone(out.Refused), slices.Clone(out.Unknown)
	out.Limits = slices.Clone(b.limits)
	for _, l := range out.Limits {
		out.Ignored += l.Ignored
	}
	return out
}

// WriteJSON writes a value with a status.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client is gone
}

// JSON is for the platforms' own values, which can be written.
func JSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
