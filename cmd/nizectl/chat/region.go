package chat

import (
	"bufio"
	"io"
	"strconv"
	"strings"
)

// region is the live region of a terminal: finished lines scroll away above it, and its few
// rows are redrawn in place each time.
type region struct {
	w             *bufio.Writer
	width, height int
	rows          []string // the current live rows
	cursor        int      // the row with the cursor
}

func newRegion(w io.Writer, width, height int) *region {
	return &region{w: bufio.NewWriterSize(w, 16<<10), width: width, height: height}
}

// draw prints the finished lines and then the live rows, with the cursor at row and col of
// them. Rows that don't fit the terminal scroll out at the top.
func (r *region) draw(output, rows []string, row, col int) error {
	r.erase()
	for _, line := range output {
		r.w.WriteString(line)
		r.w.WriteString("\r\n")
	}
	if over := len(rows) - (r.height - 1); over > 0 && r.height > 1 {
		rows = rows[over:]
		row = max(row-over, 0)
	}
	r.w.WriteString(strings.Join(rows, "\r\n"))
	r.rows, r.cursor = rows, row
	r.up(len(rows) - 1 - row)
	r.w.WriteByte('\r')
	if col > 0 {
		r.w.WriteString("\x1b[" + strconv.Itoa(min(col, r.width-1)) + "C")
	}
	return r.w.Flush()
}

// erase removes the live rows. After a resize the terminal may have wrapped them
// differently; their new number is computed from their widths.
func (r *region) erase() {
	above := 0
	for _, row := range r.rows[:min(r.cursor, len(r.rows))] {
		above += max((visible(row)+r.width-1)/max(r.width, 1), 1)
	}
	r.up(above)
	r.w.WriteString("\r\x1b[J")
	r.rows, r.cursor = nil, 0
}

// clear clears the terminal.
func (r *region) clear() {
	r.w.WriteString("\x1b[H\x1b[2J")
	r.rows, r.cursor = nil, 0
}

func (r *region) up(n int) {
	if n > 0 {
		r.w.WriteString("\x1b[" + strconv.Itoa(n) + "A")
	}
}
