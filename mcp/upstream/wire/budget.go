package wire

import (
	"fmt"
	"sync"
	"time"

	"nize/store"
)

// What a server may send without being asked. It is far more than well-behaved
// ones send, and costs far less than a flood.
const (
	noiseRate  = 256 << 10        // bytes a second
	stderrRate = 1 << 20          // the same, on standard error: many servers are talkative there
	noiseBurst = MaxMessage       // at once, after a quiet time
	noiseTime  = 20 * time.Second // over it, after which the session is ended
	lineCost   = 256              // for what handling costs beside the bytes, whatever it is
	openCost   = 16 << 10         // of a standing stream, which it can have us open again and again

	restTime    = time.Minute      // the first time that a session was ended so; then twice as long each time
	maxRest     = time.Hour        // at most
	forgiveTime = 10 * time.Minute // after its rest, without a flood, until it is the first time again
)

// Budget bounds what one server may send without being asked, over all of its
// sessions: notifications, requests, answers to nothing, what is no message at
// all. Whoever reads it spends for it, and is held back once the budget is used
// up, so that the pipe or connection fills and the server waits. One that goes
// on for noiseTime is cut off, for longer each time. A nil Budget has no bound.
type Budget struct {
	what string  // that is sent, for people
	rate float64 // bytes a second

	mu   sync.Mutex
	left float64   // bytes, at that time; below zero it is in debt
	at   time.Time // of left
	over time.Time // since when it has been used up; zero if it is not
	cuts int       // how often in a row the server was cut off
	cut  time.Time // the last time
}

// NoiseError is why a session with a server that floods has ended. Pause is for
// how long the server is left alone.
type NoiseError struct {
	text  string
	Pause time.Duration
}

func (e *NoiseError) Error() string {
	return fmt.Sprintf("%s; it was disconnected, and is left alone for %s", e.text, e.Pause)
}

// NewBudget returns the budget of one server.
func NewBudget() *Budget { return newBudget("that nobody asked for", noiseRate) }

func newBudget(what string, rate float64) *Budget {
	return &Budget{what: what, rate: rate, left: noiseBurst, at: time.Now()}
}

// Spend takes n bytes and waits until they are paid for. It is a *NoiseError if
// the server is to be cut off, and ErrEnded if done was closed meanwhile.
func (b *Budget) Spend(n int, done <-chan struct{}) error {
	if b == nil {
		return nil
	}
	wait, err := b.spend(n)
	if wait <= 0 || err != nil {
		return err
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-done:
		return ErrEnded
	}
}

func (b *Budget) spend(n int) (wait time.Duration, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.refillLocked(now)
	b.left -= float64(n)
	if b.left >= 0 {
		return 0, nil
	}
	if b.over.IsZero() {
		b.over = now
		if now.Sub(b.cut) > restAfter(b.cuts)+forgiveTime {
			b.cuts = 0
		}
	}
	if now.Sub(b.over) < noiseTime>>min(b.cuts, 4) {
		return time.Duration(-b.left / b.rate * float64(time.Second)), nil
	}
	b.cuts++
	b.cut, b.over, b.left = now, time.Time{}, 0
	return 0, &NoiseError{text: b.reason(), Pause: restAfter(b.cuts)}
}

// refillLocked needs b.mu. A server is back in its bounds only when half of the
// budget is there again: one that sends as much as it may stays over it. One
// that was cut off has less of it at once.
func (b *Budget) refillLocked(now time.Time) {
	whole := float64(int(noiseBurst) >> min(b.cuts, 4))
	b.left = min(whole, b.left+now.Sub(b.at).Seconds()*b.rate)
	b.at = now
	if b.left >= whole/2 {
		b.over = time.Time{}
	}
}

func (b *Budget) reason() string {
	return fmt.Sprintf("it floods: it sends more than %s a second %s", store.Size(b.rate), b.what)
}

// restAfter is how long a server is left alone that was cut off so often.
func restAfter(cuts int) time.Duration {
	if cuts == 0 {
		return 0
	}
	return min(restTime<<min(cuts-1, 10), maxRest)
}

// Reason says in words what is wrong with a server that is being held back; ""
// if it is not.
func (b *Budget) Reason() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refillLocked(time.Now())
	if b.over.IsZero() {
		return ""
	}
	return b.reason() + "; it is held back"
}
