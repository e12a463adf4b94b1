package chat

import (
	"slices"
	"strings"
)

// widestPage is the widest line of a page: longer lines are hard to read.
const widestPage = 100

// RenderPage renders a whole page of Markdown for a terminal with that many columns. getenv
// provides the terminal's capabilities.
func RenderPage(text string, columns int, getenv func(string) string) string {
	o := Options{TTY: true, Getenv: getenv}
	if columns <= 0 {
		columns = 80
	}
	m := newMarkdown(o.style(), min(columns, widestPage))
	m.page = true
	lines := m.write(joinLines(text) + "\n")
	lines = append(lines, m.close()...)
	return strings.TrimRight(strings.Join(lines, "\n"), "\n") + "\n"
}

// joinLines joins each paragraph and each list item into one line, because a page wraps
// them at the width of its source.
func joinLines(text string) string {
	var out []string
	fence, open := "", false // open: the last line may be continued
	for line := range strings.SplitSeq(text, "\n") {
		trimmed := strings.TrimSpace(line)
		if mark := fenceMark(trimmed); mark != "" && (fence == "" || strings.HasPrefix(mark, fence) && trimmed == mark) {
			if fence == "" {
				fence = mark
			} else {
				fence = ""
			}
			out, open = append(out, line), false
			continue
		}
		head, _ := split(trimmed)
		heading := head != "" && strings.Trim(head, "#") == ""
		begins := heading || head == ">" || slices.Contains([]string{"-", "*", "+"}, head) || numbered(head) || isRule(trimmed)
		switch {
		case fence != "" || trimmed == "" || strings.HasPrefix(trimmed, "|") || strings.HasPrefix(trimmed, "<"):
			out, open = append(out, line), false
		case open && !begins:
			out[len(out)-1] += " " + trimmed
		default:
			out, open = append(out, line), !heading && !isRule(trimmed)
		}
	}
	return strings.Join(out, "\n")
}
