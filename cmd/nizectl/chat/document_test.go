package chat

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRenderPage: paragraphs and items are joined and broken at the width, code
// keeps its lines, and tables fit.
func TestRenderPage(t *testing.T) {
	const page = "# A page\n\nOne two three\nfour five six\nseven eight.\n\n- an item that goes\n  on below\n- another\n1. first\n\n```sh\n$ nize --all \\\n    --these    # stays\n```\n\n| a | what it is |\n| --- | --- |\n| `x` | something that is far too long for this terminal |\n\n> quoted\n> twice\n"
	want := strings.Join([]string{
		"A page", "", "One two three four five six", "seven eight.", "",
		"• an item that goes on below", "• another", "1. first", "",
		"  $ nize --all \\", "      --these    # stays", "",
		"a  what it is", strings.Repeat("─", 30), "x  something that is far too", "   long for this terminal", "",
		"│ quoted", "│ twice", "",
	}, "\n")
	env := func(name string) string { return map[string]string{"TERM": "xterm", "NO_COLOR": "1"}[name] }
	got := RenderPage(page, 30, env)
	for _, code := range []string{"\x1b[1m", "\x1b[2m", "\x1b[0m"} {
		got = strings.ReplaceAll(got, code, "")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
