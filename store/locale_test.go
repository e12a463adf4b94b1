package store

import "testing"

// chosen is what a user and the system set.
type chosen struct{ own, system string }

func (c chosen) Get(user, _ string) string {
	if user != "" && c.own != "" {
		return c.own
	}
	return c.system
}

func (c chosen) UserValue(_, _ string) string { return c.own }

func TestLanguage(t *testing.T) {
	for _, x := range []struct{ own, chat, system, want string }{
		{"", "", "auto", ""},
		{"", "", "zh", "zh"},
		{"", "de-DE", "zh", "de-DE"},
		{"auto", "de-DE", "zh", "de-DE"},
		{"auto", "", "zh", "zh"},
		{"zh", "en-US", "zh", "zh"}, // their own, though the system's is the same
		{"zh", "en-US", "auto", "zh"},
		{"zh", "zh-TW", "auto", "zh-TW"},
		{"zh-Hans", "zh-TW", "auto", "zh-Hans"},
		{"zh-Hant", "zh-CN", "auto", "zh-Hant"},
		{"en", "en_GB", "zh", "en_GB"},
	} {
		if got := Language(chosen{x.own, x.system}, "u", x.chat); got != x.want {
			t.Errorf("own %q, chat %q, system %q: got %q, want %q", x.own, x.chat, x.system, got, x.want)
		}
	}
	if got := Language(nil, "u", "de"); got != "de" {
		t.Errorf("without settings: %q", got)
	}
	if got := TimeZone(chosen{"Asia/Taipei", "auto"}, "u", "Europe/Berlin"); got != "Asia/Taipei" {
		t.Errorf("zone %q", got)
	}
}

func TestCheckZone(t *testing.T) {
	key, err := FindKey("timezone")
	if err != nil {
		t.Fatal(err)
	}
	for value, good := range map[string]bool{"auto": true, "UTC": true, "Asia/Taipei": true, "": false, "Local": false, "Mars/Olympus": false, "../etc/passwd": false} {
		if _, err := key.Check(value); (err == nil) != good {
			t.Errorf("%q: %v", value, err)
		}
	}
}
