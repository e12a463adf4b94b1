package store

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
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
		if got := SameRequest(RequestWords(c.a), RequestWords(c.b)); got != c.same {
			t.Errorf("%q and %q: %v (%q, %q)", c.a, c.b, got, RequestWords(c.a), RequestWords(c.b))
		}
	}
}

// A key is hidden whatever parts it, and nothing that is hidden or cut leaves one.
func TestUnmetRequestText(t *testing.T) {
	key := "ghp_" + "0123456789abcdefXY"
	for in, want := range map[string]string{
		"use " + key[:9] + "\u200b" + key[9:] + " for me":           "use •••• for me",
		"Authorization: Bearer \u200bsecretsecretsecret":            "Authorization: ••••",
		"for +41 79 123 45 67" + "npm_" + "abcdefghijklmnopqrstu":   "for ••••••••",
		strings.Repeat("a ", 91) + "password: 12-character minimum": strings.Repeat("a ", 91) + "password: •…", // not "12-ch…"
		"two\nlines\u2028of\u00a0a\x00 request":                     "two lines of a request",
	} {
		if got := UnmetRequestText(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func FuzzUnmetRequest(f *testing.F) {
	for _, s := range []string{"book a flight", "mail a@b.c", "订票", "\xff\x00 sk-abcdefghijklmnopqrstuv", "+41 79 123 45 67", "Bearer \u200bsecretsecret", "0123456789hf_A1b2C3d4E5f6G7h8I9j0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		text := UnmetRequestText(s)
		if len(text) > maxUnmetRequest || !utf8.ValidString(text) || LooksSecret(text) {
			t.Errorf("kept %q", text)
		}
		words := RequestWords(text)
		if len(words) > 24 || !slices.IsSorted(words) {
			t.Errorf("words %q", words)
		}
		if len(words) > 0 && !SameRequest(words, words) {
			t.Errorf("%q is not the same as itself", words)
		}
	})
}
