package view

import (
	"regexp"
	"testing"
)

// TestLocale: a view finds a tag with a region, whatever the browser or the page said.
func TestLocale(t *testing.T) {
	for accepted, want := range map[string]string{
		"": "en-US", "*": "en-US", "C": "en-US", "en": "en-US", "en-GB": "en-GB", "en-GB,en;q=0.9": "en-GB", "de": "de-DE", "de;q=0.5": "de-DE",
		"zh": "zh-CN", "zh-Hans": "zh-CN", "zh-Hant": "zh-TW", "zh-HK": "zh-HK", "zh-Hant-HK": "zh-Hant-HK", "zh-Hans,en;q=0.5": "zh-CN",
		"sr-Latn": "sr-Latn-RS", "pt": "pt-BR", " fr , en": "fr-FR", "en_US": "en-US", "\"><script>": "en-US", "es-419": "es-419",
	} {
		if got := Locale(accepted); got != want {
			t.Errorf("%q: %s, want %s", accepted, got, want)
		}
	}
}

// FuzzLocale: what comes out is a tag, whatever a request says.
func FuzzLocale(f *testing.F) {
	for _, seed := range []string{"en-US,en;q=0.9", "zh-Hant", "x-private", "i-klingon", "de-u-co-phonebk"} {
		f.Add(seed)
	}
	tag := regexp.MustCompile(`^[A-Za-z0-9]+(-[A-Za-z0-9]+)*$`)
	f.Fuzz(func(t *testing.T, accepted string) {
		if got := Locale(accepted); !tag.MatchString(got) {
			t.Errorf("%q gives %q", accepted, got)
		}
	})
}
