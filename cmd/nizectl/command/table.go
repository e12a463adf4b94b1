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

// Text names the columns of free text: one line each, whole in a pipe. On a
// terminal that the table is too wide for they are cut between words, the widest
// first; names, ids and commands, which people copy, never are.
func (t *Table) Text(columns ...int) *Table {
	t.cut = columns
	return t
}

// leastText is what stays of a column that is shortened.
const leastText = 12

// mostPadding is how wide a column is made in a pipe; a longer cell stands out.
const mostPadding = 60

// fit takes what is too much for the terminal from the columns of text, and says
// how many columns stand in the first line of a row. The others follow below it,
// by their names.
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

// Row adds a line.
func (t *Table) Row(cells ...string) {
	for i, cell := range cells {
		if slices.Contains(t.cut, i) {
			cell = strings.Join(strings.Fields(cell), " ")
		}
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
	first := t.fit(widths)
	if !t.a.OutTTY { // one long cell must not widen every row; what is cut to fit is so on a terminal alone
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
			if row[i] != "" && row[i] != "-" {
				rest = append(rest, strings.ToLower(t.rows[0][i])+": "+row[i])
			}
		}
		if len(rest) > 0 {
			t.a.Line("    %s", t.a.Wrap(strings.Join(rest, ", "), 4))
		}
	}
}

// painted is a cell in its colour.
func (t *Table) painted(row, column int, cell string) string {
	switch {
	case row == 0:
		return t.a.Paint(Bold, cell)
	case column == t.State:
		return t.a.Paint(StateColour(cell), cell)
	}
	return cell
}
