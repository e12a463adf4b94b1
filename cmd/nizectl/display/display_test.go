package display

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestClean(t *testing.T) {
	for _, test := range []struct{ in, line, text string }{
		{"plain", "plain", "plain"},
		{"Grüße 世界 🎲", "Grüße 世界 🎲", "Grüße 世界 🎲"},
		{"\x1b[31mred\x1b[0m", `\x1b[31mred\x1b[0m`, `\x1b[31mred\x1b[0m`},
		{"a\nb\tc\r", `a\x0ab\x09c\x0d`, "a\nb\tc\\x0d"},
		{"\u009b31m", `\x9b31m`, `\x9b31m`},
		{"\x9b31m", `\x9b31m`, `\x9b31m`}, // a raw C1 byte, no UTF-8
		{"pay\u202epal", `pay\u202epal`, `pay\u202epal`},
		{"a\u200bb", `a\u200bb`, `a\u200bb`},
		{"tag\U000e0041", `tag\U000e0041`, `tag\U000e0041`},
		{"del\x7f", `del\x7f`, `del\x7f`},
		{"\u2028", `\u2028`, `\u2028`},
		{"soft\u00adhyphen", `soft\xadhyphen`, `soft\xadhyphen`},
	} {
		if got := Clean(test.in); got != test.line {
			t.Errorf("Clean(%q) = %q, want %q", test.in, got, test.line)
		}
		if got := CleanLines(test.in); got != test.text {
			t.Errorf("CleanLines(%q) = %q, want %q", test.in, got, test.text)
		}
	}
}

func FuzzClean(f *testing.F) {
	f.Add("\x1b]0;x\x07 \u202e \xff\n")
	f.Fuzz(func(t *testing.T, s string) {
		for _, got := range []string{Clean(s), strings.ReplaceAll(strings.ReplaceAll(CleanLines(s), "\n", ""), "\t", "")} {
			if !utf8.ValidString(got) || strings.IndexFunc(got, unsafeRune) >= 0 {
				t.Errorf("%q became %q", s, got)
			}
		}
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var before, after string
		safe := CleanJSON(b)
		if err := errors.Join(json.Unmarshal(b, &before), json.Unmarshal(safe, &after)); err != nil || before != after {
			t.Errorf("%q: %q, %v", b, safe, err)
		}
		if strings.IndexFunc(strings.ReplaceAll(string(safe), "\n", ""), unsafeRune) >= 0 {
			t.Errorf("%q is not safe", safe)
		}
	})
}

func TestWidth(t *testing.T) {
	for s, want := range map[string]int{"": 0, "abc": 3, "Grüße": 5, "世界": 4, "🎲": 2, "e\u0301": 1, "ｗ": 2, "한": 2, "✅": 2, "→": 1, "⏰": 2, "⛔": 2, "㉈": 1, "ก็": 1} {
		if got := Width(s); got != want {
			t.Errorf("Width(%q) = %d, want %d", s, got, want)
		}
	}
}
