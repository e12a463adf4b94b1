package command

import (
	"slices"
	"strings"

	"nize/cmd/nizectl/display"
)

// StateColour is the colour of a state's word.
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
	// state is the column whose words are coloured, -1 for none.
	State int
	// right holds the columns that are numbers.
	right map[int]bool
	// cut holds the columns of free text, which may be shortened on a terminal.
	cut []int
}

// Table starts one with its head.
func (a *App) Table(head ...string) *Table {
	t := &Table{a: a, State: -1}
	t.Row(head...)
	return t
}

// Numbers sets the columns that are aligned to the right.
func (t *Table) Numbers(columns ...int) *Table {
	t.right = map[int]bool{}
	for _, c := range columns {
		t.right[c] = true
	}
	return t
}

// Text names the columns of free text. On a terminal that the table is too wide
// for they are shortened, the widest first; names, ids and commands, which
// people copy, never are.
func (t *Table) Text(columns ...int) *Table {
	t.cut = columns
	return t
}

// leastText is what stays of a column that is shortened.
const leastText = 12

// fit takes what is too much for the terminal from the columns of text.
func (t *Table) fit(widths []int) {
	if !t.a.OutTTY || len(t.cut) == 0 {
		return
	}
	most := t.a.Columns()
	total := 2 * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	for ; most > 0 && total > most; total-- {
		widest := slices.MaxFunc(t.cut, func(i, j int) int { return widths[i] - widths[j] })
		if widths[widest] <= leastText {
			return
		}
		widths[widest]--
	}
}

// Row adds a line.
func (t *Table) Row(cells ...string) {
	for i, cell := range cells {
		cells[i] = display.Clean(cell)
	}
	t.rows = append(t.rows, cells)
}

// Print writes the table, or the sentence for an empty one to standard error.
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
	t.fit(widths)
	for n, row := range t.rows {
		var line strings.Builder
		for i, cell := range row {
			cell = display.Shorten(cell, widths[i], "…")
			pad := strings.Repeat(" ", widths[i]-display.Width(cell))
			painted := cell
			if n == 0 {
				painted = t.a.Paint(Bold, cell)
			} else if i == t.State {
				painted = t.a.Paint(StateColour(cell), cell)
			}
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
	}
}
