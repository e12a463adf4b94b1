package wire

import (
	"fmt"
	"sync"
	"time"

	"nize/store"
	"nize/store/backoff"
)

// Limits on a server's unsolicited messages. They allow far more than well-behaved servers
// send, and cost far less than a flood.
const (
	noiseRate  = 256 << 10        // bytes per second
	stderrRate = 1 << 20          // the same for standard error, on which many servers log a lot
	noiseBurst = MaxMessage       // burst after a quiet period
	noiseTime  = 20 * time.Second // over the limit, after which the session is ended
	lineCost   = 256              // processing cost of a line of any kind, on top of its bytes
	openCost   = 16 << 10         // cost of opening a standing stream, which a server can force repeatedly

	restTime    = time.Minute      // pause after the first such end of a session; doubled each time
	maxRest     = time.Hour        // maximum of that pause
	forgiveTime = 10 * time.Minute // time without a flood, after the pause, that resets the pause to restTime
)

// Budget limits one server's unsolicited messages over all of its sessions: notifications,
// requests, answers without a request, and data that is not a message. Each reader spends
// from it and is delayed once it is used up, so that the pipe or connection fills and the
// server waits. A server that continues for noiseTime is disconnected, for longer each
// time. A nil Budget is unlimited.
type Budget struct {
	what string  // the kind of data, for messages
	rate float64 // bytes per second

	mu   sync.Mutex
	left float64   // bytes left at the time at; negative if overspent
	at   time.Time // of left
	over time.Time // when it was used up; zero if it is not
	cuts int       // number of consecutive disconnects
	cut  time.Time // time of the last disconnect
}

// NoiseError is the reason why a session with a flooding server has ended. Pause is how
// long the server is not reconnected.
type NoiseError struct {
	text  string
	Pause time.Duration
}

func (e *NoiseError) Error() string {
	return fmt.Sprintf("%s; it was disconnected, and is left alone for %s", e.text, e.Pause)
}

// NewBudget returns the budget of one server.
func NewBudget() *Budget { return newBudget("of unsolicited data", noiseRate) }

func newBudget(what string, rate float64) *Budget {
	return &Budget{what: what, rate: rate, left: noiseBurst, at: time.Now()}
}

// Spend spends n bytes and waits until the budget covers them. It returns a *NoiseError if
// the server must be disconnected, and ErrEnded if done was closed in the meantime.
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

// refillLocked refills the budget. b.mu must be held. A server counts as within its limits
// again only when half of the budget is available, so that one that sends exactly at the
// limit stays over it. A server that was disconnected has a smaller burst.
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

// restAfter returns the pause after the given number of consecutive disconnects.
func restAfter(cuts int) time.Duration {
	return backoff.Exponential{First: restTime, Most: maxRest}.After(cuts)
}

// Reason returns a message about a server that is being delayed, or "" if it is not.
func (b *Budget) Reason() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refillLocked(time.Now())
	if b.over.IsZero() {
		return ""
	}
	return b.reason() + "; it is held back"
}
