package command

import (
	"slices"
	"strings"

	"nize/cmd/nizectl/display"
)

// StateColour returns the color of a state's word.
func StateColour(state string) string {
	switch state {
	case "ready", "active", "done", "accepted", "enabled", "connected", "yes", "recovered":
		return Green
	case "unreachable", "failed", "refused", "lost", "revoked", "open", "down", "no":
		return Red
	case "pending", "connecting", "quarantined", "expired", "cancelled", "waiting", "outcome unknown", "acked":
		return Yellow
	case "disabled":
		return Faint
	}
	return ""
}

// Table collects rows and prints them aligned. Cells are cleaned on the way in.
type Table struct {
	a    *App
	rows [][]string
	// State is the column whose words are colored, -1 for none.
	State int
	// right holds the numeric columns.
	right map[int]bool
	// cut holds the columns of free text, which may be shortened on a terminal.
	cut []int
}

// Table returns a new table with its header.
func (a *App) Table(head ...string) *Table {
	t := &Table{a: a, State: -1}
	t.Row(head...)
	return t
}

// Numbers sets the right-aligned columns.
func (t *Table) Numbers(columns ...int) *Table {
	t.right = map[int]bool{}
	for _, c := range columns {
		t.right[c] = true
	}
	return t
}

// Text sets the columns of free text: one line each, uncut in a pipe. If the table is too
// wide for a terminal, they are cut between words, the widest first; names, ids and
// commands, which people copy, are never cut.
func (t *Table) Text(columns ...int) *Table {
	t.cut = columns
	return t
}

// leastText is the minimum width of a shortened column.
const leastText = 12

// mostLines is about how many lines a cell of text takes below its row.
const mostLines = 4

// mostPadding is the maximum column width in a pipe; a longer cell exceeds it.
const mostPadding = 60

// fit narrows the columns of text to the terminal's width, and returns how many columns are
// in the first line of a row. The others follow below it with their names.
func (t *Table) fit(widths []int) int {
	most := 0
	if t.a.OutTTY {
		most = t.a.Columns()
	}
	if most <= 0 {
		return len(widths)
	}
	for first := len(widths); ; first-- {
		total := 2 * (first - 1)
		for _, w := range widths[:first] {
			total += w
		}
		trial := slices.Clone(widths)
		cut := slices.DeleteFunc(slices.Clone(t.cut), func(c int) bool { return c >= first })
		for ; total > most && len(cut) > 0; total-- {
			widest := slices.MaxFunc(cut, func(i, j int) int { return trial[i] - trial[j] })
			if trial[widest] <= leastText {
				break
			}
			trial[widest]--
		}
		if total <= most || first == 1 {
			copy(widths, trial)
			return first
		}
	}
}

// Row adds a row.
func (t *Table) Row(cells ...string) {
	for i, cell := range cells {
		if slices.Contains(t.cut, i) {
			cell = strings.Join(strings.Fields(cell), " ")
		}
		cells[i] = display.Clean(cell)
	}
	t.rows = append(t.rows, cells)
}

// Print prints the table, or, if it is empty, the sentence to standard error.
func (t *Table) Print(empty string) {
	if len(t.rows) == 1 {
		t.a.Note("%s", empty)
		return
	}
	widths := make([]int, len(t.rows[0]))
	for _, row := range t.rows {
		for i, cell := range row {
			widths[i] = max(widths[i], display.Width(cell))
		}
	}
	first := t.fit(widths)
	if !t.a.OutTTY { // one long cell must not widen every row; cells are cut on a terminal only
		for i := range widths {
			widths[i] = min(widths[i], mostPadding)
		}
	}
	for n, row := range t.rows {
		var line strings.Builder
		for i, cell := range row[:first] {
			if t.a.OutTTY && slices.Contains(t.cut, i) {
				cell = display.ShortenWords(cell, widths[i], "…")
			}
			pad := strings.Repeat(" ", max(0, widths[i]-display.Width(cell)))
			painted := t.painted(n, i, cell)
			if t.right[i] {
				painted = pad + painted
			} else if i < len(row)-1 {
				painted += pad
			}
			if i > 0 {
				line.WriteString("  ")
			}
			line.WriteString(painted)
		}
		t.a.Line("%s", strings.TrimRight(line.String(), " "))
		var rest []string
		for i := first; i < len(row) && n > 0; i++ {
			cell := row[i]
			if slices.Contains(t.cut, i) {
				cell = display.ShortenWords(cell, mostLines*t.a.Columns(), "…")
			}
			if cell != "" && cell != "-" {
				rest = append(rest, strings.ToLower(t.rows[0][i])+": "+cell)
			}
		}
		if len(rest) > 0 {
			t.a.Line("    %s", t.a.Wrap(strings.Join(rest, ", "), 4))
		}
	}
}

// painted returns a cell in its color.
func (t *Table) painted(row, column int, cell string) string {
	switch {
	case row == 0:
		return t.a.Paint(Bold, cell)
	case column == t.State:
		return t.a.Paint(StateColour(cell), cell)
	}
	return cell
}
