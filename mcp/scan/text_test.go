package scan

import (
	"nize/store/printable"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

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
			if printable.Escape(w) != w || len(w) > 1000 {
				t.Errorf("warning %q", w)
			}
		}
	})
}

// Expressions are compiled when they are first needed; each can be.
func TestFormsCompile(t *testing.T) {
	for _, f := range forms {
		f.re()
	}
	overrideBefore()
	overrideAfter()
}
