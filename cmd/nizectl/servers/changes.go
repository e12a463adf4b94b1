package servers

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"nize/cmd/nizectl/command"
	"nize/cmd/nizectl/display"
	"nize/daemon/api"
)

// Changes of accepted definitions: old against new, line by line, and once for all tools
// with the same change.

// contextLines is how many unchanged lines are shown around a change.
const contextLines = 2

// shownTools is how many tools a summary names.
const shownTools = 8

// summarize prints a short summary of what waits for acceptance.
func summarize(c *command.Call, server string, held []api.TrustView) {
	fresh := 0
	for _, t := range held {
		if t.Accepted == "" {
			fresh++
		}
	}
	head := command.Count(len(held), "definition") + " of " + server + " to accept:"
	c.Line("%s", c.Paint(command.Bold, display.Clean(fmt.Sprintf("%s %d new, %d changed", head, fresh, len(held)-fresh))))
	for _, t := range held[:min(len(held), shownTools)] {
		parts := command.Each(t.Changes, func(change api.TrustChange) string { return change.Part })
		about := "changed: " + strings.Join(parts, ", ")
		switch {
		case t.Accepted == "":
			about = "new"
		case len(parts) == 0:
			about = "changed"
		}
		for _, f := range t.Findings {
			about += "; " + f
		}
		if len(t.ViewSends) > 0 {
			about += "; its view can send its data elsewhere"
		}
		c.Line("  %s  %s", display.Clean(t.Tool), c.Wrap(display.Clean(about), 6))
	}
	if more := len(held) - shownTools; more > 0 {
		c.Line("  and %s more", command.Count(more, "tool"))
	}
	c.Line("")
}

// showChanges prints every line of the changes if a person must confirm them, and otherwise
// with --full.
func showChanges(c *command.Call, held []api.TrustView) error {
	full := c.Cmd.Bool("full")
	switch {
	case c.InTTY && c.OutTTY && !full && !c.Cmd.Bool("yes"):
		return c.Paged(func() { printChanges(c, held) })
	case full:
		printChanges(c, held)
	default:
		c.Note("to see every line of it: --full")
	}
	return c.Flush()
}

// printChanges prints the changes of several tools.
func printChanges(c *command.Call, held []api.TrustView) {
	tools := map[api.TrustChange][]string{}
	var order []api.TrustChange
	for _, t := range held {
		for _, change := range t.Changes {
			if tools[change] == nil {
				order = append(order, change)
			}
			tools[change] = append(tools[change], t.Tool)
		}
	}
	alike := func(change api.TrustChange) bool { return len(tools[change]) > 1 }
	for _, change := range order {
		if !alike(change) {
			continue
		}
		of := fmt.Sprintf("all %d tools", len(held))
		if len(tools[change]) < len(held) {
			of = strings.Join(tools[change], ", ")
		}
		c.Line("%s", c.Paint(command.Bold, display.Clean(change.Part+" of "+of+":")))
		printDiff(c, change)
		c.Line("")
	}
	for _, t := range held {
		printHeld(c, t)
		for _, change := range t.Changes {
			if !alike(change) {
				c.Line("%s", c.Paint(command.Bold, display.Clean(change.Part+":")))
				printDiff(c, change)
			}
		}
		c.Line("")
	}
}

// printDiff prints one change without cutting anything.
func printDiff(c *command.Call, change api.TrustChange) {
	width := math.MaxInt // uncut in a pipe
	if c.OutTTY && c.Columns() > 0 {
		width = c.Columns()
	}
	lines := diffLines(splitText(change.Old), splitText(change.New))
	for i, l := range lines {
		if l.sign == ' ' && !nearChange(lines, i) {
			if i > 0 && lines[i-1].sign == ' ' && !nearChange(lines, i-1) {
				continue
			}
			c.Line("      …")
			continue
		}
		colour := ""
		switch l.sign {
		case '-':
			colour = command.Red
		case '+':
			colour = command.Green
		}
		for n, row := range wrapLine(display.Clean(l.text), max(width-7, 20)) {
			sign := string(l.sign)
			if n > 0 { // a continuation line
				row = "  " + row
			}
			row = strings.TrimRight("    "+sign+" "+row, " ")
			if colour != "" {
				row = c.Paint(colour, row)
			}
			c.Line("%s", row)
		}
	}
}

// proseLine is the length in bytes from which a line is compared by sentences.
const proseLine = 60

// splitText splits a text into the units of comparison: its lines, and the sentences of a
// line of prose.
func splitText(text string) []string {
	if text == "" {
		return nil
	}
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		if len(line) < proseLine || strings.HasPrefix(strings.TrimSpace(line), `"`) {
			out = append(out, line)
			continue
		}
		sentences := strings.Split(line, ". ")
		for i := range len(sentences) - 1 {
			sentences[i] += "."
		}
		out = append(out, sentences...)
	}
	return out
}

// wrapLine breaks a line, at blanks if possible, and drops only those.
func wrapLine(line string, width int) []string {
	indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
	if len(indent) > width/2 {
		indent = ""
	}
	var rows []string
	row := ""
	for _, word := range strings.Split(strings.TrimPrefix(line, indent), " ") {
		switch {
		case row == "" && len(rows) == 0:
			row = indent + word
		case display.Width(row)+1+display.Width(word) <= width:
			row += " " + word
		default:
			rows, row = append(rows, row), indent+word
		}
		for display.Width(row) > width { // a longer word
			n := 0
			for i := range row {
				if display.Width(row[:i]) <= width {
					n = i
				}
			}
			rows, row = append(rows, row[:n]), row[n:]
		}
	}
	return append(rows, row)
}

type diffLine struct {
	sign byte // ' ', '-' or '+'
	text string
}

// nearChange reports whether an unchanged line is close enough to a change to be shown.
func nearChange(lines []diffLine, i int) bool {
	near := lines[max(0, i-contextLines):min(len(lines), i+contextLines+1)]
	return slices.ContainsFunc(near, func(l diffLine) bool { return l.sign != ' ' })
}

// maxDiffCells limits the table of a comparison; above it the whole old text precedes the
// whole new one.
const maxDiffCells = 4 << 20

// diffLines compares by the longest common subsequence.
func diffLines(old, now []string) (out []diffLine) {
	if len(old)*len(now) > maxDiffCells {
		for _, l := range old {
			out = append(out, diffLine{'-', l})
		}
		for _, l := range now {
			out = append(out, diffLine{'+', l})
		}
		return out
	}
	common := make([][]int32, len(old)+1)
	for i := range common {
		common[i] = make([]int32, len(now)+1)
	}
	for i := len(old) - 1; i >= 0; i-- {
		for j := len(now) - 1; j >= 0; j-- {
			if old[i] == now[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(old) || j < len(now) {
		switch {
		case i < len(old) && j < len(now) && old[i] == now[j]:
			out = append(out, diffLine{' ', old[i]})
			i, j = i+1, j+1
		case j == len(now) || i < len(old) && common[i+1][j] >= common[i][j+1]:
			out = append(out, diffLine{'-', old[i]})
			i++
		default:
			out = append(out, diffLine{'+', now[j]})
			j++
		}
	}
	return out
}
