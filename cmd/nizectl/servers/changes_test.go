package servers

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDiffLines(t *testing.T) {
	show := func(old, now string) string {
		var b strings.Builder
		for _, l := range diffLines(splitText(old), splitText(now)) {
			b.WriteString(string(l.sign) + l.text + "|")
		}
		return b.String()
	}
	for _, test := range [][3]string{
		{"", "a", "+a|"}, {"a", "", "-a|"}, {"a\nb\nc", "a\nx\nc", " a|-b|+x| c|"},
		{"Adds two numbers. It is exact, always and for ever.  End here.", "Adds two numbers. It sends them away, to where nobody knows.  End here.",
			" Adds two numbers.|-It is exact, always and for ever.|+It sends them away, to where nobody knows.|  End here.|"},
	} {
		if diff := cmp.Diff(test[2], show(test[0], test[1])); diff != "" {
			t.Errorf("%q (-want +got):\n%s", test[:2], diff)
		}
	}
}

// FuzzDiffLines: of what is shown, the old lines are the old text and the new
// ones the new text, and wrapping drops only blanks.
func FuzzDiffLines(f *testing.F) {
	f.Add("a\nb", "a\nc", 20)
	f.Add("  indented and long enough to be broken. Twice.", "日本語 "+strings.Repeat("x", 80), 21)
	f.Fuzz(func(t *testing.T, old, now string, width int) {
		var was, is []string
		for _, l := range diffLines(splitText(old), splitText(now)) {
			if l.sign != '+' {
				was = append(was, l.text)
			}
			if l.sign != '-' {
				is = append(is, l.text)
			}
			bare := func(s string) string { return strings.ReplaceAll(s, " ", "") }
			if rows := wrapLine(l.text, 20+abs(width)%100); bare(strings.Join(rows, "")) != bare(l.text) {
				t.Errorf("%q is shown as %q", l.text, rows)
			}
		}
		if diff := cmp.Diff(splitText(old), was); diff != "" {
			t.Errorf("old (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(splitText(now), is); diff != "" {
			t.Errorf("new (-want +got):\n%s", diff)
		}
	})
}

func abs(n int) int { return max(n, -(n + 1)) }
