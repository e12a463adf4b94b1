package settings

import (
	"testing"
	"time"
)

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
