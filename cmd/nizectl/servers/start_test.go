package servers

import (
	"testing"
	"time"
)

// TestStartLine: a start that takes its time says for how long, and what the
// server wrote last, in one row.
func TestStartLine(t *testing.T) {
	for _, c := range []struct {
		took    time.Duration
		said    string
		columns int
		want    string
	}{
		{0, "", 80, "contacting files …"},
		{time.Second, "npm warn", 80, "contacting files …"},
		{42 * time.Second, "", 80, "contacting files … 42 s"},
		{42 * time.Second, "added 12 packages\x1b[2J", 80, `contacting files … 42 s: added 12 packages\u001b[2J`},
		{3 * time.Minute, "added 12 packages", 40, "contacting files … 3 min: added 12 pac…"},
		{42 * time.Second, "", 0, "contacting files … 42 s"},
	} {
		if got := startLine("files", c.took, c.said, c.columns); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
