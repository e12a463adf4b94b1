package slack

import (
	"testing"
	"time"
)

// TestBackoff: a link that lasted is replaced at once, however often it is dropped; only
// repeatedly failing attempts wait, from the third on.
func TestBackoff(t *testing.T) {
	t.Parallel()
	var b attempts
	for range 20 {
		if got := b.after(true, 2*time.Second); got != 0 {
			t.Fatalf("a link that is dropped every 2 s waits %v", got)
		}
	}
	for i, want := range []time.Duration{0, 0, firstPause, 2 * firstPause, 4 * firstPause} {
		if got := b.after(false, 0); got != want {
			t.Errorf("failure %d in a row waits %v, want %v", i+1, got, want)
		}
	}
	for range 100 {
		if got := b.after(true, firstPause); got > lastPause { // accepted and cut immediately
			t.Fatalf("it waits %v", got)
		}
	}
	if got := b.after(false, 0); got != lastPause {
		t.Errorf("after many failures it waits %v, want %v", got, lastPause)
	}
}
