package chat

import (
	"bufio"
	"io"
	"strings"
)

// live is the terminal as the screen writes to it: lines that are settled, and
// below them a few rows that are drawn anew each time.
type live struct {
	w             *bufio.Writer
	width, height int
	rows          []string // the live rows as they stand
	cursor        int      // the row of them that the cursor is in
}

func newLive(w io.Writer, width, height int) *live {
	return &live{w: bufio.NewWriterSize(w, 16<<10), width: width, height: height}
}

// resize notes the new size. A terminal may have broken the live rows anew:
// how many they are now follows from their widths.
func (l *live) resize(width, height int) {
	l.width, l.height = width, height
}

// draw prints the settled lines and then the live rows, with the cursor at row
// and col of them. Rows that don't fit the terminal scroll out at the top.
func (l *live) draw(settled, rows []string, row, col int) error {
	l.erase()
	for _, line := range settled {
		l.w.WriteString(line)
		l.w.WriteString("\r\n")
	}
	if over := len(rows) - (l.height - 1); over > 0 && l.height > 1 {
		rows = rows[over:]
		row = max(row-over, 0)
	}
	l.w.WriteString(strings.Join(rows, "\r\n"))
	l.rows, l.cursor = rows, row
	l.up(len(rows) - 1 - row)
	l.w.WriteByte('\r')
	if col > 0 {
		l.w.WriteString("\x1b[" + itoa(min(col, l.width-1)) + "C")
	}
	return l.w.Flush()
}

// erase takes the live rows away.
func (l *live) erase() {
	above := 0
	for _, r := range l.rows[:min(l.cursor, len(l.rows))] {
		above += max((visible(r)+l.width-1)/max(l.width, 1), 1)
	}
	l.up(above)
	l.w.WriteString("\r\x1b[J")
	l.rows, l.cursor = nil, 0
}

// clear empties the terminal.
func (l *live) clear() {
	l.w.WriteString("\x1b[H\x1b[2J")
	l.rows, l.cursor = nil, 0
}

func (l *live) up(n int) {
	if n > 0 {
		l.w.WriteString("\x1b[" + itoa(n) + "A")
	}
}
