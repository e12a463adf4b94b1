package record

import (
	"testing"

	"nize/store"
)

func TestSameRequest(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"book a flight to Lisbon", "Please book me flights to Lisbon!", true},
		{"book a flight to Lisbon", "print a label", false},
		{"book a flight to Lisbon", "book a hotel in Lisbon", false},
		{"订一张去里斯本的机票", "订去里斯本的机票", true},
		{"", "", false},
	} {
		if got := sameRequest(store.RequestWords(c.a), store.RequestWords(c.b)); got != c.same {
			t.Errorf("%q and %q: %v (%q, %q)", c.a, c.b, got, store.RequestWords(c.a), store.RequestWords(c.b))
		}
	}
}
