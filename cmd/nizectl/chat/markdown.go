package chat

import (
	"slices"
	"strings"

	"nize/bots"
	"nize/cmd/nizectl/display"
)

// maxInline is the longest line that is searched for markers.
const maxInline = 8 << 10

// markdown renders a stream of Markdown for a terminal, line by line, as it arrives. A
// document parser has to see the end of a block before it can render its beginning, but a
// reader wants the words at once. So this is a line scanner: it recognizes headings, lists,
// quotes, fences, rules and tables by the beginning of the line, and strong, emphasis, code
// and links within it. Everything else is shown as written; nothing is dropped.
type markdown struct {
	style  style
	width  int
	line   strings.Builder // the current line, raw
	fence  string          // the open fence, "" outside
	table  []string        // rows of the current table
	blanks int             // blank lines just seen
	any    bool
	page   bool // a finished page, which shows no fences
}

func newMarkdown(s style, width int) *markdown {
	return &markdown{style: s, width: width}
}

// write adds text and returns the lines that are complete now.
func (m *markdown) write(text string) []string {
	var out []string
	for {
		head, rest, found := strings.Cut(text, "\n")
		m.line.WriteString(head)
		if !found {
			return out
		}
		out = append(out, m.full(m.line.String())...)
		m.line.Reset()
		text = rest
	}
}

// partial returns the unfinished line as it looks so far.
func (m *markdown) partial() []string {
	if m.line.Len() == 0 {
		return nil
	}
	raw := m.line.String()
	if m.fence == "" && strings.HasPrefix(strings.TrimSpace(raw), "|") {
		return []string{m.style.dim(display.Shorten(bots.Plain(raw), m.width, "…"))}
	}
	return m.render(raw)
}

// close ends the text and returns the rest.
func (m *markdown) close() []string {
	var out []string
	if m.line.Len() > 0 {
		out = m.full(m.line.String())
		m.line.Reset()
	}
	out = append(out, m.endTable()...)
	m.fence = ""
	return out
}

// full renders a whole line; the rows of a table are kept until it ends.
func (m *markdown) full(raw string) []string {
	raw = strings.TrimRight(raw, "\r")
	trimmed := strings.TrimSpace(raw)
	if m.fence == "" && strings.HasPrefix(trimmed, "|") && len(m.table) < 500 {
		m.table = append(m.table, trimmed)
		return nil
	}
	out := m.endTable()
	if m.fence == "" && trimmed == "" {
		if m.blanks++; m.blanks > 1 || !m.any {
			return out // several blank lines become one
		}
		return append(out, "")
	}
	m.blanks, m.any = 0, true
	switch mark := fenceMark(trimmed); {
	case mark != "" && m.fence == "":
		defer func() { m.fence = mark }()
	case mark != "" && strings.HasPrefix(mark, m.fence) && trimmed == mark:
		defer func() { m.fence = "" }()
	default:
		return append(out, m.render(raw)...)
	}
	if m.page {
		return out
	}
	return append(out, m.render(raw)...)
}

// fenceMark returns the run of backticks or tildes that begins or ends a code
// block, "" for other lines.
func fenceMark(line string) string {
	for _, c := range []string{"`", "~"} {
		if n := len(line) - len(strings.TrimLeft(line, c)); n >= 3 && !strings.Contains(line[n:], "`") {
			return line[:n]
		}
	}
	return ""
}

// render renders one line outside of tables.
func (m *markdown) render(raw string) []string {
	s := m.style
	safe := bots.Plain(strings.ReplaceAll(raw, "\t", "    "))
	text := strings.TrimLeft(safe, " ")
	indent := len(safe) - len(text)
	if m.fence != "" || fenceMark(text) != "" {
		return s.each(s.code, s.wrap(cells(safe), m.width-2, "  ", "  "))
	}
	pad := strings.Repeat(" ", min(indent, 12))
	switch head, body := split(text); {
	case strings.Trim(head, "#") == "" && head != "" && len(head) <= 6:
		return s.each(s.bold, s.wrap(m.inline(body), m.width, "", ""))
	case head == ">":
		return s.wrap(m.inline(body), m.width, s.dim("│ "), s.dim("│ "))
	case head == "-" || head == "*" || head == "+":
		return s.wrap(m.inline(body), m.width, pad+s.bullet()+" ", pad+"  ")
	case numbered(head):
		return s.wrap(m.inline(body), m.width, pad+head+" ", pad+strings.Repeat(" ", len(head)+1))
	case isRule(text):
		return []string{s.dim(strings.Repeat(s.line(), min(m.width, 40)))}
	}
	return s.wrap(m.inline(text), m.width, pad, pad)
}

// split separates the first word, which may be a marker, from the rest.
func split(text string) (head, body string) {
	head, body, found := strings.Cut(text, " ")
	if !found {
		return "", text
	}
	return head, strings.TrimLeft(body, " ")
}

func numbered(head string) bool {
	digits := strings.TrimRight(head, ".)")
	if digits == "" || len(head)-len(digits) != 1 || len(digits) > 4 {
		return false
	}
	return strings.Trim(digits, "0123456789") == ""
}

func isRule(text string) bool {
	t := strings.ReplaceAll(text, " ", "")
	return len(t) >= 3 && (strings.Trim(t, "-") == "" || strings.Trim(t, "*") == "" || strings.Trim(t, "_") == "")
}

// inline recognizes strong, emphasis, code and links. A marker without its counterpart on
// the line is shown as written.
func (m *markdown) inline(text string) []cell {
	var out []cell
	if len(text) > maxInline {
		return cells(text)
	}
	for i := 0; i < len(text); {
		inner, skip, look := m.span(text[i:], i == 0 || !wordByte(text[i-1]))
		if skip == 0 {
			n := nextMark(text[i:])
			out = append(out, cells(text[i:i+n])...)
			i += n
			continue
		}
		if look == lookCode || look == 0 {
			out = append(out, paint(cells(inner), look)...)
		} else {
			out = append(out, paint(m.inline(inner), look)...) // code within strong, and the like
		}
		i += skip
	}
	return out
}

// nextMark returns the number of bytes before the next possible marker.
func nextMark(text string) int {
	if n := strings.IndexAny(text[1:], "\\`*_["); n >= 0 {
		return n + 1
	}
	return len(text)
}

func wordByte(b byte) bool {
	return b == '_' || b >= 0x80 || b >= '0' && b <= '9' || b >= 'A' && b <= 'Z' || b >= 'a' && b <= 'z'
}

// span parses what a marker at the beginning of text opens: the text within, its length in
// bytes with its markers (0 if there is no marker), and its look.
func (m *markdown) span(text string, atWord bool) (inner string, skip int, look look) {
	switch text[0] {
	case '\\':
		if len(text) > 1 && strings.IndexByte("\\`*_[]#", text[1]) >= 0 {
			return text[1:2], 2, 0
		}
	case '`':
		ticks := text[:len(text)-len(strings.TrimLeft(text, "`"))]
		if end := strings.Index(text[len(ticks):], ticks); end > 0 {
			return text[len(ticks) : len(ticks)+end], end + 2*len(ticks), lookCode
		}
	case '*', '_':
		for _, n := range []int{2, 1} {
			if body, ok := emphasis(text, n); ok && (text[0] == '*' || atWord) {
				as := lookItalic
				if n == 2 {
					as = lookBold
				}
				return body, len(body) + 2*n, as
			}
		}
	case '[':
		// The URL is always shown, so that the text of a link can't mislead about its
		// target.
		label, rest, ok := strings.Cut(text[1:], "](")
		url, _, ok2 := strings.Cut(rest, ")")
		if ok && ok2 && label != "" && !strings.ContainsAny(label, "[]") && !strings.ContainsAny(url, " (") {
			if label == url {
				return url, len(label) + len(url) + 4, lookLink
			}
			return label + " (" + url + ")", len(label) + len(url) + 4, lookLink
		}
	}
	return "", 0, 0
}

// emphasis parses a text in n markers, which adjoin the words that they mark.
func emphasis(text string, n int) (string, bool) {
	mark := strings.Repeat(text[:1], n)
	if !strings.HasPrefix(text, mark) || len(text) <= 2*n || text[n] == ' ' || text[n] == text[0] {
		return "", false
	}
	for from := n; ; {
		end := strings.Index(text[from:], mark)
		if end < 0 {
			return "", false
		}
		end += from
		after := end + n
		closes := end > n && text[end-1] != ' ' && text[end-1] != '\\' && (after == len(text) || text[after] != text[0]) &&
			(text[0] == '*' || after == len(text) || !wordByte(text[after]))
		if closes {
			return text[n:end], true
		}
		from = after
	}
}

// endTable renders the current table with aligned columns. If the table is too wide for the
// terminal, the widest cells take several lines; if it has too many columns, it is shown as
// written.
func (m *markdown) endTable() []string {
	rows := m.table
	m.table = nil
	if len(rows) == 0 {
		return nil
	}
	m.blanks, m.any = 0, true
	var grid [][][]cell
	var widths []int
	for i, row := range rows {
		fields := strings.Split(strings.Trim(row, "|"), "|")
		if i == 1 && strings.Trim(row, "|-: ") == "" {
			continue
		}
		var line [][]cell
		for j, field := range fields {
			cs := m.inline(bots.Plain(strings.TrimSpace(field)))
			if field == "" || strings.TrimSpace(field) == "" {
				cs = nil
			}
			line = append(line, cs)
			if j == len(widths) {
				widths = append(widths, 0)
			}
			widths[j] = max(widths[j], cellsWidth(cs))
		}
		grid = append(grid, line)
	}
	if !fitColumns(widths, m.width) {
		var out []string
		for _, row := range rows {
			out = append(out, m.style.wrap(cells(bots.Plain(row)), m.width, "", "  ")...)
		}
		return out
	}
	total := 2 * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	var out []string
	for i, line := range grid {
		out = append(out, m.style.row(line, widths)...)
		if i == 0 && len(grid) > 1 {
			out = append(out, m.style.dim(strings.Repeat(m.style.line(), max(total, 1))))
		}
	}
	return out
}

// leastCell is the minimum width of a table's column.
const leastCell = 8

// fitColumns narrows the widest columns to the available width, and reports whether that
// was enough.
func fitColumns(widths []int, most int) bool {
	total := 2 * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	for ; total > most; total-- {
		widest := slices.Index(widths, slices.Max(widths))
		if widths[widest] <= leastCell {
			return false
		}
		widths[widest]--
	}
	return true
}

// row returns a row of a table as as many lines as its longest cell needs.
func (s style) row(line [][]cell, widths []int) []string {
	columns := make([][]string, len(line))
	tall := 0
	for j, cs := range line {
		columns[j] = s.wrap(cs, widths[j], "", "")
		tall = max(tall, len(columns[j]))
	}
	out := make([]string, tall)
	for n := range out {
		var b strings.Builder
		for j, column := range columns {
			text := ""
			if n < len(column) {
				text = column[n]
			}
			b.WriteString(text)
			if j < len(columns)-1 {
				b.WriteString(strings.Repeat(" ", max(widths[j]-visible(text), 0)+2))
			}
		}
		out[n] = strings.TrimRight(b.String(), " ")
	}
	return out
}
