package printable

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// hidden are characters that a person can't see, of every kind.
var hidden = map[string][]rune{
	"controls":           {0, 0x07, 0x08, 0x1B, 0x7F, 0x85, 0x9B},
	"bidi":               {0x061C, 0x200E, 0x200F, 0x202A, 0x202E, 0x2066, 0x2069},
	"zero width":         {0xAD, 0x034F, 0x180E, 0x200B, 0x2060, 0x2064, 0xFEFF},
	"fillers":            {0x115F, 0x1160, 0x17B4, 0x3164, 0xFFA0, 0x16FE4},
	"blank glyphs":       {0x2800, 0xFFFC, 0x13441, 0x1D159},
	"variation":          {0x180B, 0xFE00, 0xFE0F, 0xE0100, 0xE01EF},
	"tags":               {0xE0001, 0xE0041, 0xE007F},
	"ignorable, no name": {0x2065, 0xFFF0, 0xE0080, 0xE0FFF},
	"annotation":         {0xFFF9, 0xFFFB},
	"private use":        {0xE000, 0xF8FF, 0xF0000, 0x10FFFD},
	"not assigned":       {0x0378, 0xFFFE, 0x1FFFE, 0x10FFFF},
	"line ends":          {'\n', '\r', 0x2028, 0x2029},
	"blanks":             {'\t', 0xA0, 0x1680, 0x2003, 0x202F, 0x3000},
}

func TestHiddenIsEscaped(t *testing.T) {
	for kind, runes := range hidden {
		for _, r := range runes {
			if Is(r) {
				t.Errorf("%s: %U counts as seen", kind, r)
			}
			if got := Escape("a" + string(r) + "b"); !strings.HasPrefix(got, `a\u`) || !strings.HasSuffix(got, "b") || strings.ContainsRune(got, r) {
				t.Errorf("%s: %U is shown as %q", kind, r, got)
			}
		}
	}
}

func TestEscape(t *testing.T) {
	for _, test := range []struct{ in, line, lines, prose string }{
		{"plain", "plain", "plain", "plain"},
		{"Grüße 世界 🎲 €", "Grüße 世界 🎲 €", "Grüße 世界 🎲 €", "Grüße 世界 🎲 €"},
		{"\x1b[31mred\x1b[0m", `\u001b[31mred\u001b[0m`, `\u001b[31mred\u001b[0m`, "[31mred[0m"},
		{"\x1b]0;owned\x07", `\u001b]0;owned\u0007`, `\u001b]0;owned\u0007`, "]0;owned"},
		{"yes\b\b\bno", `yes\u0008\u0008\u0008no`, `yes\u0008\u0008\u0008no`, "yesno"},
		{"\u009b31m", `\u009b31m`, `\u009b31m`, "31m"},
		{"\x9b31m\xff", `\x9b31m\xff`, `\x9b31m\xff`, "\ufffd31m\ufffd"},
		{"\ufffd", "\ufffd", "\ufffd", "\ufffd"},
		{"a\nb\tc\rd\r\ne\vf\u0085g\u2028h", `a\u000ab\u0009c\u000dd\u000d\u000ae\u000bf\u0085g\u2028h`, "a\nb\tc\\u000dd\\u000d\ne\\u000bf\\u0085g\\u2028h", "a\nb\tc\nd\ne\nf\ng\nh"},
		{"pay\u202epal", `pay\u202epal`, `pay\u202epal`, "paypal"},
		{"שלום\u200f!", `שלום\u200f!`, `שלום\u200f!`, "שלום!"},
		{"a\u200bb\ufeff\u00ad\u034fc", `a\u200bb\ufeff\u00ad\u034fc`, `a\u200bb\ufeff\u00ad\u034fc`, "abc"},
		{"tag\U000e0041", `tag\udb40\udc41`, `tag\udb40\udc41`, "tag"},
		{"3\u00a0km", `3\u00a0km`, `3\u00a0km`, "3\u00a0km"},
		{"⠁\u2800⠁", `⠁\u2800⠁`, `⠁\u2800⠁`, "⠁\u2800⠁"},
		{"\ue0b0\ufffc", `\ue0b0\ufffc`, `\ue0b0\ufffc`, "\ufffd"},
		{"می\u200cخواهم", `می\u200cخواهم`, `می\u200cخواهم`, "می\u200cخواهم"},
		{"क्\u200dष", `क्\u200dष`, `क्\u200dष`, "क्\u200dष"},
		{"pass\u200dword\u200c", `pass\u200dword\u200c`, `pass\u200dword\u200c`, "password"},
		{"👩\u200d👧 ⚠\ufe0f 1\ufe0f\u20e3 葛\U000e0100", `👩\u200d👧 ⚠\ufe0f 1\ufe0f⃣ 葛\udb40\udd00`, `👩\u200d👧 ⚠\ufe0f 1\ufe0f⃣ 葛\udb40\udd00`, "👩\u200d👧 ⚠\ufe0f 1\ufe0f\u20e3 葛\U000e0100"},
		{"a\ufe0fb\U000e0100", `a\ufe0fb\udb40\udd00`, `a\ufe0fb\udb40\udd00`, "ab"},
		{"\u0600١", `\u0600١`, `\u0600١`, "\u0600١"},
		{"e\u0301 ก็", "e\u0301 ก็", "e\u0301 ก็", "e\u0301 ก็"},
		{"\u0301a", `\u0301a`, `\u0301a`, "\u0301a"},
		{"a\u0301\u0302\u0303\u0304\u0305\u0306b", "a\u0301\u0302\u0303\u0304\\u0305\\u0306b", "a\u0301\u0302\u0303\u0304\\u0305\\u0306b", "a\u0301\u0302\u0303\u0304b"},
	} {
		if got := Escape(test.in); got != test.line {
			t.Errorf("Escape(%+q) = %+q, want %+q", test.in, got, test.line)
		}
		if got := EscapeLines(test.in); got != test.lines {
			t.Errorf("EscapeLines(%+q) = %+q, want %+q", test.in, got, test.lines)
		}
		if got := Prose(test.in); got != test.prose {
			t.Errorf("Prose(%+q) = %+q, want %+q", test.in, got, test.prose)
		}
	}
}

// TestFlags: the three flags that are written with tags are kept, any other run
// of tags is lost.
func TestFlags(t *testing.T) {
	for _, f := range Flags {
		if got := Prose("x" + f + "y"); got != "x"+f+"y" {
			t.Errorf("%+q became %+q", f, got)
		}
	}
	if got, want := Prose("🏴\U000e0067\U000e0062\U000e0073\U000e0065"), "🏴\U000e0067\U000e0062\U000e0073"; got != want {
		t.Errorf("got %+q, want %+q", got, want)
	}
	if got := Prose("🏴\U000e0041\U000e0067 \U000e0067"); got != "🏴 " {
		t.Errorf("got %+q", got)
	}
}

// TestEveryCharacter holds each policy over all of Unicode: what categories and
// properties say is not shown, and letters, numbers, marks, punctuation and
// symbols are.
func TestEveryCharacter(t *testing.T) {
	not := []*unicode.RangeTable{unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector}
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		unseen := unicode.In(r, not...) || r != ' ' && unicode.Is(unicode.Zs, r) || unicode.Is(blanks, r) || !unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Zs)
		if Is(r) == unseen {
			t.Fatalf("Is(%U) = %v", r, !unseen)
		}
		s := "a" + string(r) + "b"
		if got := Escape(s); (got == s) == unseen || !onlySeen(got, "") {
			t.Fatalf("Escape of %U: %+q", r, got)
		}
		if got := EscapeLines(s); (got == s) == (unseen && r != '\n' && r != '\t') || !onlySeen(got, "\n\t") {
			t.Fatalf("EscapeLines of %U: %+q", r, got)
		}
		got := Prose(s)
		if !unseen && got != s {
			t.Fatalf("Prose of %U: %+q", r, got)
		}
		steers := unicode.In(r, unicode.Cc, unicode.Co, unicode.Zl, unicode.Zp, unicode.Bidi_Control, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, unicode.Join_Control, unicode.Noncharacter_Code_Point)
		if got == s && steers && r != '\n' && r != '\t' {
			t.Fatalf("Prose of %U is %+q", r, got)
		}
		doc, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var back string
		if shown := JSON(doc); json.Unmarshal(shown, &back) != nil || back != s || !onlySeen(string(shown), "") {
			t.Fatalf("JSON of %U: %+q", r, shown)
		}
	}
}

func onlySeen(s, keep string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !Is(r) && !strings.ContainsRune(keep, r) })
}

func FuzzEscape(f *testing.F) {
	f.Add("a\x1b[2J\u202e\xff\r\n\tb")
	f.Add("\u0301👩\u200d👧🏴\U000e0067\U000e0062⚠\ufe0f")
	f.Fuzz(func(t *testing.T, s string) {
		if got := Escape(s); !onlySeen(got, "") {
			t.Errorf("Escape(%+q) = %+q", s, got)
		} else if again := Escape(got); again != got {
			t.Errorf("Escape(%+q) = %+q", got, again)
		}
		if got := EscapeLines(s); !onlySeen(got, "\n\t") {
			t.Errorf("EscapeLines(%+q) = %+q", s, got)
		}
		got := Prose(s)
		for _, r := range got {
			if r != '\n' && r != '\t' && (unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Co, unicode.Bidi_Control)) {
				t.Errorf("Prose(%+q) shows %U", s, r)
			}
		}
		for i := range s {
			var st Stream
			if pieces := st.Next(s[:i]) + st.Next(s[i:]); pieces != got {
				t.Errorf("Prose(%+q) = %+q, in two pieces %+q", s, got, pieces)
			}
		}
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var before, after string
		if shown := JSON(b); json.Unmarshal(b, &before) != nil || json.Unmarshal(shown, &after) != nil || before != after || !onlySeen(string(shown), "") {
			t.Errorf("JSON(%+q) = %+q", b, shown)
		}
	})
}

// FuzzJSON: what a person reads is the same document as what runs, and holds
// nothing that can't be seen. What is no JSON does no harm either.
func FuzzJSON(f *testing.F) {
	f.Add([]byte(`{"a":[1,2.50,"x"],"b":{"c":null}}`))
	f.Add([]byte("{\"\u202e\":\"\u200b\U000E0041\x7f\\n\u00a0\\ud800\"}"))
	f.Add([]byte(`"\u001b[2J"`))
	f.Add([]byte("\x1b[2J\r{}"))
	f.Add([]byte("0  \t"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		pretty, ok := PrettyJSON(raw)
		if shown := JSON(raw); !onlySeen(pretty, "\n") || !onlySeen(string(shown), "\n\t") {
			t.Fatalf("%+q is shown as %+q and %+q", raw, pretty, shown)
		}
		if ok != (utf8.Valid(raw) && json.Valid(raw)) {
			t.Fatalf("%+q: %v", raw, ok)
		}
		if ok && (compact(t, []byte(pretty)) != compact(t, raw) || compact(t, JSON(raw)) != compact(t, raw)) {
			t.Fatalf("%+q is shown as %+q", raw, pretty)
		}
	})
}

func compact(t *testing.T, raw []byte) string {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%+q: %v", raw, err)
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
