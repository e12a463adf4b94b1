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
