package settings

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestUnknownVariables: a variable that nobody reads is named, with the one
// that was meant.
func TestUnknownVariables(t *testing.T) {
	l, err := Open(Sources{NoFile: true, Env: envOf(nil), Environ: []string{
		"PATH=/bin", "NIZE_LISTEN=x", "NIZE_AGENT_TOOLS_MAXSTEPS=3", "NIZE_CONFIG=x", "NIZE_MASTER_KEY=secret", "NIZE_MCP_CONFIG=x", "NIZE_SOCKET=x", "NIZE_DATA_DIR=x",
		"NIZE_LISEN=127.0.0.1:1", "NIZE_APPROVAL_MODE=all", "NIZE_QQQQQQQQQQQQ\x1b[2J=1",
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"the environment variable NIZE_APPROVAL_MODE does nothing; did you mean NIZE_APPROVALS_MODE?",
		"the environment variable NIZE_LISEN does nothing; did you mean NIZE_LISTEN?",
		`the environment variable NIZE_QQQQQQQQQQQQ\u001b[2J does nothing`,
	}
	if diff := cmp.Diff(want, l.Warnings()); diff != "" {
		t.Error(diff)
	}
}
