package main

import (
	"slices"
	"strings"

	"nize/cmd/nizectl/display"
)

// stateColour is the colour of a state's word.
func stateColour(state string) string {
	switch state {
	case "ready", "active", "done", "accepted", "enabled", "connected", "yes", "recovered":
		return green
	case "unreachable", "failed", "refused", "lost", "revoked", "open", "down", "no":
		return red
	case "pending", "connecting", "quarantined", "expired", "cancelled", "waiting", "outcome unknown", "acked":
		return yellow
	case "disabled":
		return faint
	}
	return ""
}

// table collects rows and prints them aligned. Cells are cleaned on the way in.
type table struct {
	a    *app
	rows [][]string
	// state is the column whose words are coloured, -1 for none.
	state int
	// right holds the columns that are numbers.
	right map[int]bool
	// cut holds the columns of free text, which may be shortened on a terminal.
	cut []int
}

// table starts one with its head.
func (a *app) table(head ...string) *table {
	return &table{a: a, rows: [][]string{head}, state: -1}
}

// numbers sets the columns that are aligned to the right.
func (t *table) numbers(columns ...int) *table {
	t.right = map[int]bool{}
	for _, c := range columns {
		t.right[c] = true
	}
	return t
}

// text names the columns of free text. On a terminal that the table is too wide
// for they are shortened, the widest first; names, ids and commands, which
// people copy, never are.
func (t *table) text(columns ...int) *table {
	t.cut = columns
	return t
}

// leastText is what stays of a column that is shortened.
const leastText = 12

// fit takes what is too much for the terminal from the columns of text.
func (t *table) fit(widths []int) {
	if !t.a.outTTY || len(t.cut) == 0 {
		return
	}
	most := t.a.columns()
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

// row adds a line.
func (t *table) row(cells ...string) {
	for i, cell := range cells {
		cells[i] = display.Clean(cell)
	}
	t.rows = append(t.rows, cells)
}

// print writes the table, or the sentence for an empty one to standard error.
func (t *table) print(empty string) {
	if len(t.rows) == 1 {
		t.a.note("%s", empty)
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
				painted = t.a.paint(bold, cell)
			} else if i == t.state {
				painted = t.a.paint(stateColour(cell), cell)
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
		t.a.line("%s", strings.TrimRight(line.String(), " "))
	}
}
