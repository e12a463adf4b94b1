package store

import (
	"testing"
	"unicode/utf8"
)

func TestClip(t *testing.T) {
	for _, c := range []struct {
		s          string
		n          int
		head, clip string
	}{
		{"", 0, "", ""},
		{"abc", 3, "abc", "abc"},
		{"abcd", 3, "abc", "abc…"},
		{"aé", 2, "a", "a…"},
		{"aé", 3, "aé", "aé"},
		{"日本", 5, "日", "日…"},
		{"日本", 2, "", "…"},
		{"abc", -1, "", "…"},
		{"\x80\x80\x80", 2, "", "…"},
	} {
		if got := Head(c.s, c.n); got != c.head {
			t.Errorf("Head(%q, %d) = %q, want %q", c.s, c.n, got, c.head)
		}
		if got := Clip(c.s, c.n); got != c.clip {
			t.Errorf("Clip(%q, %d) = %q, want %q", c.s, c.n, got, c.clip)
		}
	}
	for n := range 12 {
		if s := Head("a日b本cé", n); !utf8.ValidString(s) || len(s) > n {
			t.Errorf("Head of %d bytes = %q", n, s)
		}
	}
}
