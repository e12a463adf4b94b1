package monitor

import (
	"testing"
	"time"
)

// TestDownWords: how long, and what is true of the admins.
func TestDownWords(t *testing.T) {
	for _, test := range []struct {
		lasts time.Duration
		told  bool
		want  string
	}{
		{300 * time.Millisecond, false, "server box has been unreachable for 1s; the admins will be notified if that continues"},
		{12 * time.Minute, true, "server box has been unreachable for 12m, and the admins were notified"},
		{90*time.Minute + 20*time.Second, true, "server box has been unreachable for 1h30m, and the admins were notified"},
	} {
		if got := downWords("box", test.lasts, test.told); got.String() != test.want {
			t.Errorf("%v: %q, want %q", test.lasts, got, test.want)
		}
	}
}
