package limit

import (
	"fmt"
	"testing"
	"time"
)

// TestLimit: so many in a span, for each key, whatever the clock does.
func TestLimit(t *testing.T) {
	l := Limit{Most: 2, Per: time.Minute}
	now := time.Now()
	take := func(key string, at time.Time, want bool) {
		t.Helper()
		if got := l.Take(key, at); got != want {
			t.Errorf("%s at %s: %v", key, at.Sub(now), got)
		}
	}
	take("a", now, true)
	take("a", now, true)
	take("a", now, false)
	take("a", now.Add(-time.Millisecond), false) // which took its time first, and came later
	take("b", now, true)
	take("a", now.Add(time.Minute), true)
	take("a", now.Add(-10*365*24*time.Hour), true) // set back: nobody is locked out for ten years
	for i := range maxKeys + 10 {
		l.Take(fmt.Sprint(i), now.Add(time.Hour))
	}
	take("new", now.Add(time.Hour), false)
	take("new", now.Add(2*time.Hour), true)
}
