package account

import (
	"errors"
	"testing"
	"time"
)

// TestLookups: a fresh value is not looked up again; a failed lookup, or one forgotten in
// the meantime, is not cached; and the number of entries is limited.
func TestLookups(t *testing.T) {
	now := time.Unix(0, 0)
	l := Lookups[string]{Now: func() time.Time { return now }, Most: 2}
	asked := 0
	get := func(key string, during func() error) (string, error) {
		return l.Get(key, time.Minute, func() (string, error) {
			asked++
			return key, during()
		})
	}
	fine := func() error { return nil }
	for n, row := range []struct {
		key    string
		during func() error
		after  time.Duration
		asked  int // number of lookups so far
	}{
		{"a", fine, 0, 1}, {"a", fine, 59 * time.Second, 1}, {"a", fine, time.Second, 2},
		{"b", func() error { return errors.New("away") }, 0, 3}, {"b", func() error { l.Forget("b"); return nil }, 0, 4}, {"b", fine, 0, 5}, {"b", fine, 0, 5},
		{"c", fine, 0, 6}, {"a", fine, 0, 7}, // c exceeded the limit
	} {
		now = now.Add(row.after)
		if v, err := get(row.key, row.during); v != row.key || asked != row.asked {
			t.Errorf("%d: %q, %v; asked %d times, want %d", n, v, err, asked, row.asked)
		}
	}
	now = now.Add(time.Hour)
	if _, ok := l.Known("a", Ever); !ok {
		t.Error("what is known for ever was forgotten")
	}
	l.Put("a", "x")
	if v, ok := l.Known("a", time.Second); !ok || v != "x" {
		t.Errorf("after Put it is %q, %v", v, ok)
	}
}
