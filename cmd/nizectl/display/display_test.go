package display

import "testing"

func TestWidth(t *testing.T) {
	for s, want := range map[string]int{"": 0, "abc": 3, "Grüße": 5, "世界": 4, "🎲": 2, "e\u0301": 1, "ｗ": 2, "한": 2, "✅": 2, "→": 1, "⏰": 2, "⛔": 2, "㉈": 1, "ก็": 1} {
		if got := Width(s); got != want {
			t.Errorf("Width(%q) = %d, want %d", s, got, want)
		}
	}
}
