package store

import (
	"slices"
	"testing"
	"unicode/utf8"
)

func TestSameWish(t *testing.T) {
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
		if got := SameWish(WishWords(c.a), WishWords(c.b)); got != c.same {
			t.Errorf("%q and %q: %v (%q, %q)", c.a, c.b, got, WishWords(c.a), WishWords(c.b))
		}
	}
}

func FuzzWish(f *testing.F) {
	for _, s := range []string{"book a flight", "mail a@b.c", "订票", "\xff\x00 sk-abcdefghijklmnopqrstuv", "+41 79 123 45 67"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		text := WishText(s)
		if len(text) > maxWish || !utf8.ValidString(text) || LooksSecret(text) {
			t.Errorf("kept %q", text)
		}
		words := WishWords(text)
		if len(words) > 24 || !slices.IsSorted(words) {
			t.Errorf("words %q", words)
		}
		if len(words) > 0 && !SameWish(words, words) {
			t.Errorf("%q is not the same as itself", words)
		}
	})
}
