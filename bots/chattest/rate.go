package chattest

import (
	"slices"
	"time"
)

// Limit is a refusal for being too early that was answered.
type Limit struct {
	Bucket  string
	At      time.Time
	For     time.Duration
	Ignored int // calls that came nevertheless before it was over
}

// LimitLocked notes that a call was told to wait; b.Mu must be held.
func (b *Base) LimitLocked(bucket string, now time.Time, after time.Duration) {
	b.limits = append(b.limits, Limit{Bucket: bucket, At: now, For: after})
}

// Arrive counts a call against the limits that were told before and hold for it.
// Calls of the first are one after the other; of the others some may have been
// under way when the limit was told.
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
