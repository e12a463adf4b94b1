package store

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

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
	})
}
