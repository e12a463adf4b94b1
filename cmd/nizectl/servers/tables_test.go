package servers

import "testing"

func TestAreHeld(t *testing.T) {
	for n, want := range map[int]string{0: "0 tools are", 1: "1 tool is", 2: "2 tools are", 11: "11 tools are", 14: "14 tools are", 21: "21 tools are", 101: "101 tools are"} {
		if got := areHeld(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
