// Package backoff computes the delays between retries.
package backoff

import (
	"math"
	"math/rand/v2"
	"time"
)

// Exponential is a delay that doubles with each failure.
type Exponential struct {
	First time.Duration // after the first failure
	Most  time.Duration // the longest delay; 0 is no limit
}

// After returns the delay after n consecutive failures. It is 0 if there is none.
func (e Exponential) After(n int) time.Duration {
	if n < 1 {
		return 0
	}
	most := e.Most
	if most <= 0 {
		most = math.MaxInt64
	}
	d := min(e.First, most)
	for range n - 1 {
		if d > most/2 {
			return most
		}
		d *= 2
	}
	return d
}

// Jitter returns a random delay of at least d-span and at most d, so that clients that failed
// together don't retry together.
func Jitter(d, span time.Duration) time.Duration { return d - rand.N(span+1) }
