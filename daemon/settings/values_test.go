package settings

import (
	"errors"
	"testing"
	"time"

	"nize/store"
)

func TestEgressAllow(t *testing.T) {
	key, err := store.FindKey("egress.allow")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := checkValue(key, " tools.corp.example, 10.0.0.0/8 ", nil); got != "tools.corp.example,10.0.0.0/8" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	for _, bad := range []string{"10.0.0.1/8", "http://tools.corp.example", "*.corp.example", "127.1"} {
		if _, err := checkValue(key, bad, nil); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestWidgetsOrigin(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "https://*.apps.example.com": "https://*.apps.example.com", "https://*.Apps.example.com:8443/": "https://*.apps.example.com:8443",
		"https://*.apps.example.com:443": "https://*.apps.example.com", "http://*.localhost:80": "http://*.localhost", "http://*.apps.localhost:19560": "http://*.apps.localhost:19560",
		"http://*.example.com": "!", "http://*.localhost.example.com": "!", "http://localhost": "!", "http://*localhost": "!", "https://apps.example.com": "!", "https://*": "!", "https://*.": "!",
		"https://*.*.example.com": "!", "https://x.*.example.com": "!", "https://x*.example.com": "!", "https://u@*.example.com": "!", "https://*.example.com/x": "!", "https://*.example.com?x": "!",
		"https://*.example.com; script-src *": "!", "https://*.example.com:0": "!", "wss://*.example.com": "!", "*.example.com": "!",
	} {
		got, err := ParseWidgetsOrigin(text)
		if err != nil {
			got = "!"
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestNextTime(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for line, want := range map[string]time.Time{
		"@daily":     at.Add(12 * time.Hour),
		"30 3 * * *": time.Date(2026, 3, 2, 3, 30, 0, 0, time.UTC),
		NoSchedule:   {},
	} {
		if got := NextTime(line, at); !got.Equal(want) {
			t.Errorf("%s: %v, want %v", line, got, want)
		}
		if err := checkOptionalSchedule(line); err != nil {
			t.Error(err)
		}
	}
	if err := checkOptionalSchedule("never"); err == nil {
		t.Error("a line that is none")
	}
}
