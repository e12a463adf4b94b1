package chattest

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"time"
)

// Fault is a failure injected into calls of the platform's API.
type Fault struct {
	Times      int           // number of affected calls; 0 is one
	Delay      time.Duration // before anything else
	Status     int           // HTTP status without a JSON body, e.g. 500
	RetryAfter time.Duration // status 429
	Error      string        // one of the platform's own errors
	Body       string        // a page instead of the response, as from a proxy
	After      bool          // the call is carried out, and only its response is lost
	Hang       bool          // the call is carried out, and its response never comes

	Held <-chan struct{} // the call is carried out, and its response comes when this is closed
}

// Fail makes calls of a method fail; "*" is any method. Faults of a method apply in the
// order in which they were added.
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

// Mend removes the remaining faults.
func (b *Base) Mend() {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	b.faults = nil
}

// TakeFault returns the fault for a call, or nil.
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

// Pause waits for a fault's delay and reports whether to continue.
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
	Write func(any, error)    // writes the result
	Fault func(*Fault) bool   // writes a fault in the platform's own form
}

// ErrLimited is returned for calls that came too early but are otherwise valid.
var ErrLimited = errors.New("rate limited")

// ServeCall carries out a call, applies its fault, and counts it.
func (b *Base) ServeCall(w http.ResponseWriter, r *http.Request, c Call) {
	f := b.TakeFault(c.Name)
	if !b.Pause(r, f) {
		return // the client is gone, or the platform was closed
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

// Write writes the fault's response; it returns false if the fault was only a delay.
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

// Counts are common to all platforms.
type Counts struct {
	Calls   map[string]int // keyed by method, including failed ones
	Refused []Refusal      // by the platform's rules, without injected faults
	Unknown []string       // methods that the platform, or its double, doesn't have
	Links   int            // currently open
	Opened  int            // total
	Sent    int            // events and similar messages, including repeated ones
	Missed  int            // messages that the app didn't answer in time
	Limits  []Limit        // each rate-limit response, and whether it was obeyed
	Ignored int            // calls that ignored a rate limit
}

// Refusal is a call that was answered with an error.
type Refusal struct{ Method, Error string }

// CountsLocked returns the current counts; b.Mu must be held.
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

// JSON encodes the platforms' own values, which can't fail.
func JSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
