package store

import (
	"testing"
	"time"
)

func TestTimeOfID(t *testing.T) {
	now := time.UnixMilli(1_795_000_000_123)
	id := NewID(now)
	for n := 2; n <= len(id); n++ {
		got, ok := TimeOfID(id[:n])
		if !ok || got.After(now) || n >= 10 && !got.Equal(now) {
			t.Errorf("%s: %v, %v", id[:n], got, ok)
		}
	}
	for _, none := range []string{"", "0", "toolbox", "ZZZZ", id + "0", "01-A"} {
		if got, ok := TimeOfID(none); ok {
			t.Errorf("%q: %v", none, got)
		}
	}
}
