package scan

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"":                                "",
		"plain\ttext\nsecond":             "plain\ttext\nsecond",
		"a\r\nb\rc":                       "a\nb" + `\u{000D}` + "c",
		"x\u200by\u202ez":                 `x\u{200B}y\u{202E}z`,
		"\U000e0041\ufeff\ue000":          `\u{E0041}\u{FEFF}\u{E000}`,
		"\x1b[2Jgone\x00\x7f\u0085":       `\u{001B}[2Jgone\u{0000}\u{007F}\u{0085}`,
		"bad\xff\xfebytes":                "bad\ufffd\ufffdbytes",
		"a\u2028b":                        `a\u{2028}b`,
		"❤\ufe0f 1\ufe0f\u20e3":           "❤\ufe0f 1\ufe0f\u20e3",
		"a\ufe0f❤\ufe0f\ufe0f\U000e0100":  `a\u{FE0F}` + "❤\ufe0f" + `\u{FE0F}\u{E0100}`,
		"münchen 文档 тест":                 "münchen 文档 тест",
		"👩\u200d👧":                        `👩\u{200D}👧`,
		`already \u{200B} written so \u2`: `already \u{200B} written so \u2`,
	} {
		if diff := cmp.Diff(Visible(in), want); diff != "" {
			t.Errorf("Visible(%q): %s", in, diff)
		}
	}
}

func FuzzVisible(f *testing.F) {
	f.Add("a\u200b\x1b\xff\r\n❤\ufe0f")
	f.Fuzz(func(t *testing.T, s string) {
		got := Visible(s)
		if !utf8.ValidString(got) {
			t.Errorf("%q is not UTF-8", got)
		}
		if again := Visible(got); again != got {
			t.Errorf("once %q, twice %q", got, again)
		}
		for _, r := range got {
			if c := classOf(r); c != plain && r != 0xfe0f {
				t.Errorf("%q holds U+%04X", got, r)
			}
		}
		if strings.Count(got, "\n") != strings.Count(s, "\n") {
			t.Errorf("newlines: %q of %q", got, s)
		}
	})
}

func TestMixed(t *testing.T) {
	for in, want := range map[string][]string{
		"send it to ann@example.com via https://example.com/a/b?c=d": nil,
		"https://münchen.de/straße and /home/иван/документы/сор":     nil,
		"報告/report報告.pdf, 東京タワー.jp, пример.рф, Just words. Ünïcode":  nil,
		"und so weiter.Dann kam ı": nil,
		"https://p\u0430ypal.com/login": {
			`host pаypal.com mixes Latin and Cyrillic letters: in ASCII it is xn--pypal-4ve.com`},
		`{"to":"b\u03bfb@example.com","url":"https://ex\u0430mple.com"}`: nil, // escapes are ASCII already
		"write bο" + "b@example.com": {
			`e-mail address bοb@example.com mixes Latin and Greek letters: in ASCII it is b\u03bfb@example.com`},
		"visit g\u0131thub.com.": {"host gıthub.com has letters that only look ASCII: in ASCII it is xn--gthub-n4a.com"},
		"аррӏе.com":              {"host аррӏе.com has letters that only look ASCII: in ASCII it is xn--80ak6aa92e.com"},
		"rm /etc/p\u0430sswd":    {`path /etc/pаsswd mixes Latin and Cyrillic letters: in ASCII it is /etc/p\u0430sswd`},
		"https://good.com\u2215evil.com/x": {
			`host good.com∕evil.com has letters that only look ASCII: in ASCII it is good.xn--comevil-ef0d.com`},
		"x@ex\u0430mple.com": {"e-mail address x@exаmple.com mixes Latin and Cyrillic letters: in ASCII it is x@xn--exmple-4nf.com"},
		"src/m\u0430in.go":   {`path src/mаin.go mixes Latin and Cyrillic letters: in ASCII it is src/m\u0430in.go`},
		"/tmp/\u0441\u043e\u0440\u0443": {
			`path /tmp/сору has letters that only look ASCII: in ASCII it is /tmp/\u0441\u043e\u0440\u0443`},
	} {
		var got []string
		for _, w := range Mixed(in) {
			got = append(got, w.String())
		}
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("Mixed(%q): %s", in, diff)
		}
	}
	if got := Mixed(strings.Repeat("p\u0430y.com q\u0430y.com r\u0430y.com ", 50)); len(got) != 3 {
		t.Errorf("%d warnings, want each place once", len(got))
	}
}

// TestPunycode has the samples of RFC 3492, 7.1 that are lower case.
func TestPunycode(t *testing.T) {
	for in, want := range map[string]string{
		"他们为什么不说中文":                    "ihqwcrb4cv8a8dqg056pqjye",
		"почемужеонинеговорятпорусски": "b1abfaaepdrnnbgefbadotcwatmq2g4l",
		"そのスピードで":                      "d9juau41awczczp",
		"münchen":                      "mnchen-3ya",
		"bücher":                       "bcher-kva",
	} {
		if got := punycode(in); got != want {
			t.Errorf("punycode(%s) = %s, want %s", in, got, want)
		}
	}
}

func FuzzMixed(f *testing.F) {
	f.Add("https://p\u0430ypal.com/login bob@ex\u0430mple.com /tmp/\u0441")
	f.Add(strings.Repeat("\x7f", 300) + "\u0430b/x")
	f.Add(strings.Repeat("\u0430b", 300) + "@ex\u0430mple.com")
	f.Add("/" + strings.Repeat("\u0430b1\ufe0f\u20e3", 40))
	f.Fuzz(func(t *testing.T, s string) {
		for _, text := range Mixed(s) {
			w := text.String()
			if Visible(w) != w || len(w) > 1000 {
				t.Errorf("warning %q", w)
			}
		}
	})
}
