package chattest

import (
	"slices"
	"time"
)

// Limit is a rate-limit response.
type Limit struct {
	Bucket  string
	At      time.Time
	For     time.Duration
	Ignored int // calls that came before it was over
}

// LimitLocked records that a call was rate-limited; b.Mu must be held.
func (b *Base) LimitLocked(bucket string, now time.Time, after time.Duration) {
	b.limits = append(b.limits, Limit{Bucket: bucket, At: now, For: after})
}

// Arrive counts a call against the limits that were announced earlier and apply to it.
// Calls of the first bucket are sequential; for the others, some calls may have been in
// flight when the limit was announced.
func (b *Base) Arrive(now time.Time, bucket string, others ...string) {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	for i := range b.limits {
		l := &b.limits[i]
		after := now.Sub(l.At)
		if (l.Bucket == bucket || slices.Contains(others, l.Bucket) && after > underWay) && after < l.For {
			l.Ignored++
		}
	}
}

const underWay = 300 * time.Millisecond
