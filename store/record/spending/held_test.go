package spending

import "testing"

// TestExactReservations: who read the budgets while a reservation was made in the
// database, or before one that is there by now, may not reserve by what it read.
func TestExactReservations(t *testing.T) {
	h := &held{}
	before, ok := h.seen()
	if !ok {
		t.Fatal("nothing is under way")
	}
	end := h.beginExact()
	if _, ok := h.seen(); ok {
		t.Error("one is under way, and a reader may miss it")
	}
	other := h.beginExact()
	end()
	if _, ok := h.seen(); ok {
		t.Error("another is under way, and a reader may miss it")
	}
	other()
	after, ok := h.seen()
	if !ok || after == before {
		t.Errorf("mark %d after it and %d before it, %t", after, before, ok)
	}
}
