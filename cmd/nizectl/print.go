package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// clean returns s for one line of a terminal: control, format (zero-width,
// bidi, tag) and undecodable characters become escapes. Everything that nizectl
// didn't write itself goes through here or through cleanText.
func clean(s string) string { return escape(s, false) }

// cleanText is clean for text of several lines: newlines and tabs stay.
func cleanText(s string) string { return escape(s, true) }

func escape(s string, lines bool) string {
	if isPlain(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case lines && (r == '\n' || r == '\t'):
			b.WriteRune(r)
		case !unsafeRune(r):
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
		i += size
	}
	return b.String()
}

func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

// unsafeRune says whether a terminal might act on the rune, or a person not
// see it.
func unsafeRune(r rune) bool {
	switch {
	case r < 0x20, r >= 0x7f && r < 0xa0, r == 0x2028, r == 0x2029, r == 0x115f, r == 0x1160, r == 0x3164, r == 0xffa0:
		return true
	case r < 0xad:
		return false
	}
	return unicode.Is(unicode.Cf, r)
}

// width is how many columns a terminal gives to s.
func width(s string) int {
	n := 0
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

// wide holds the ranges that take two columns (Unicode TR 11, W and F).
var wide = []struct{ lo, hi rune }{
	{0x1100, 0x115f}, {0x231a, 0x231b}, {0x23e9, 0x23ec}, {0x23f0, 0x23f0}, {0x23f3, 0x23f3},
	{0x25fd, 0x25fe}, {0x2614, 0x2615}, {0x2648, 0x2653}, {0x267f, 0x267f}, {0x2693, 0x2693},
	{0x26a1, 0x26a1}, {0x26aa, 0x26ab}, {0x26bd, 0x26be}, {0x26c4, 0x26c5}, {0x26ce, 0x26ce},
	{0x26d4, 0x26d4}, {0x26ea, 0x26ea}, {0x26f2, 0x26f3}, {0x26f5, 0x26f5}, {0x26fa, 0x26fa},
	{0x26fd, 0x26fd}, {0x2705, 0x2705}, {0x270a, 0x270b}, {0x2728, 0x2728}, {0x274c, 0x274c},
	{0x274e, 0x274e}, {0x2753, 0x2755}, {0x2757, 0x2757}, {0x2795, 0x2797}, {0x27b0, 0x27b0},
	{0x27bf, 0x27bf}, {0x2b1b, 0x2b1c}, {0x2b50, 0x2b50}, {0x2b55, 0x2b55}, {0x2e80, 0x303e},
	{0x3041, 0x33ff}, {0x3400, 0x4dbf}, {0x4e00, 0x9fff}, {0xa000, 0xa4cf}, {0xa960, 0xa97f},
	{0xac00, 0xd7a3}, {0xf900, 0xfaff}, {0xfe30, 0xfe6f}, {0xff01, 0xff60}, {0xffe0, 0xffe6},
	{0x16fe0, 0x18aff}, {0x1b000, 0x1b2ff}, {0x1f004, 0x1f004}, {0x1f0cf, 0x1f0cf}, {0x1f18e, 0x1f18e},
	{0x1f191, 0x1f19a}, {0x1f200, 0x1f320}, {0x1f32d, 0x1f335}, {0x1f337, 0x1f37c}, {0x1f37e, 0x1f393},
	{0x1f3a0, 0x1f3ca}, {0x1f3cf, 0x1f3d3}, {0x1f3e0, 0x1f3f0}, {0x1f3f4, 0x1f3f4}, {0x1f3f8, 0x1f43e},
	{0x1f440, 0x1f440}, {0x1f442, 0x1f4fc}, {0x1f4ff, 0x1f53d}, {0x1f54b, 0x1f54e}, {0x1f550, 0x1f567},
	{0x1f57a, 0x1f57a}, {0x1f595, 0x1f596}, {0x1f5a4, 0x1f5a4}, {0x1f5fb, 0x1f64f}, {0x1f680, 0x1f6c5},
	{0x1f6cc, 0x1f6cc}, {0x1f6d0, 0x1f6d2}, {0x1f6d5, 0x1f6d7}, {0x1f6dc, 0x1f6df}, {0x1f6eb, 0x1f6ec},
	{0x1f6f4, 0x1f6fc}, {0x1f7e0, 0x1f7eb}, {0x1f7f0, 0x1f7f0}, {0x1f90c, 0x1f93a}, {0x1f93c, 0x1f945},
	{0x1f947, 0x1f9ff}, {0x1fa70, 0x1faff}, {0x20000, 0x2fffd}, {0x30000, 0x3fffd},
}

func runeWidth(r rune) int {
	if r < 0x300 {
		return 1
	}
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	for _, w := range wide {
		if r < w.lo {
			return 1
		}
		if r <= w.hi {
			return 2
		}
	}
	return 1
}

// Colours of a terminal; a state is always a word too.
const (
	bold   = "1"
	red    = "31"
	green  = "32"
	yellow = "33"
	faint  = "2"
)

// colourful says whether standard output wants colours (no-color.org).
func (a *app) colourful() bool {
	return a.outTTY && a.env("NO_COLOR") == "" && a.env("TERM") != "dumb"
}

func (a *app) paint(colour, s string) string {
	if colour == "" || s == "" || !a.colourful() {
		return s
	}
	return "\x1b[" + colour + "m" + s + "\x1b[0m"
}

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
		cells[i] = clean(cell)
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
			widths[i] = max(widths[i], width(cell))
		}
	}
	t.fit(widths)
	for n, row := range t.rows {
		var line strings.Builder
		for i, cell := range row {
			cell = shorten(cell, widths[i], "…")
			pad := strings.Repeat(" ", widths[i]-width(cell))
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

// line writes a line of the answer. Its arguments must be clean.
func (a *app) line(format string, args ...any) {
	fmt.Fprintf(a.out, format+"\n", args...) // the writer keeps the error for run
}

// note writes a line that is no part of the answer.
func (a *app) note(format string, args ...any) {
	a.out.Flush() // keeps the order on a terminal; the writer keeps the error
	fmt.Fprintln(a.err, clean(fmt.Sprintf(format, args...)))
}

// field writes "name: value" aligned, and nothing for an empty value.
func (a *app) field(name, value string) {
	if value != "" {
		a.line("%s %s", a.paint(bold, fmt.Sprintf("%-12s", name+":")), a.wrap(clean(value), 13))
	}
}

// wrap breaks a text, which begins at column indent of a terminal, between
// words, and indents what follows. Elsewhere it stays as it is.
func (a *app) wrap(s string, indent int) string {
	room := 0
	if a.outTTY {
		room = a.columns() - indent
	}
	if room < leastText {
		return s
	}
	var b strings.Builder
	used := 0
	for i, word := range strings.Split(s, " ") {
		switch wide := width(word); {
		case i == 0:
			used = wide
		case used+1+wide > room:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			used = wide
		default:
			b.WriteByte(' ')
			used += 1 + wide
		}
		b.WriteString(word)
	}
	return b.String()
}

// busy says on a terminal's standard error what takes its time; the function
// returned wipes it away.
func (a *app) busy(format string, args ...any) (done func()) {
	if !a.errTTY || a.env("TERM") == "dumb" {
		return func() {}
	}
	fmt.Fprint(a.err, clean(fmt.Sprintf(format, args...)))
	return func() { fmt.Fprint(a.err, "\r\x1b[K") }
}

// progress is busy for what goes on and on: show replaces the line, ten times a
// second at most, and done wipes it away.
func (a *app) progress() (show func(format string, args ...any), done func()) {
	if !a.errTTY || a.env("TERM") == "dumb" {
		return func(string, ...any) {}, func() {}
	}
	var last time.Time
	return func(format string, args ...any) {
			if now := a.now(); now.Sub(last) >= 100*time.Millisecond {
				last = now
				fmt.Fprint(a.err, "\r\x1b[K"+clean(fmt.Sprintf(format, args...)))
			}
		}, func() {
			if !last.IsZero() {
				fmt.Fprint(a.err, "\r\x1b[K")
			}
		}
}

// printJSON writes v indented, as one document.
func (a *app) printJSON(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	a.out.Write(safeJSON(b.Bytes())) // the writer keeps the error for run
	return nil
}

// printJSONLine writes v as one line of a stream, at once.
func (a *app) printJSONLine(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	a.out.Write(safeJSON(b.Bytes()))
	return a.flush()
}

// flush sends what is printed so far; a stream that nobody reads any more ends.
func (a *app) flush() error {
	if err := a.out.Flush(); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return nil
}

// items keeps an empty list from being null.
func items[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// safeJSON escapes within JSON what a terminal might act on; the value stays
// the same. Such runes can only stand inside strings there.
func safeJSON(b []byte) []byte {
	if isPlain(strings.ReplaceAll(string(b), "\n", "")) {
		return b
	}
	var out bytes.Buffer
	for _, r := range string(b) {
		switch {
		case r == '\n' || !unsafeRune(r):
			out.WriteRune(r)
		case r < 0x10000:
			fmt.Fprintf(&out, `\u%04x`, r)
		default:
			hi, lo := utf16.EncodeRune(r)
			fmt.Fprintf(&out, `\u%04x\u%04x`, hi, lo)
		}
	}
	return out.Bytes()
}

// prettyJSON indents JSON for reading, keys and numbers as they are.
func prettyJSON(raw json.RawMessage) string {
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		return string(raw)
	}
	return b.String()
}

// indent puts spaces before every line of a text.
func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n  ")
}

// clip cuts a text to one short line for a table.
func clip(s string, most int) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return strings.TrimSpace(string([]rune(s)[:most-1])) + "…"
}

// when is a time for people: how long ago or until.
func (a *app) when(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	d := a.now().Sub(t)
	if d < 0 {
		return "in " + span(-d+time.Second) // 90 days don't become 89 while they are printed
	}
	if d < 5*time.Second {
		return "now"
	}
	return span(d) + " ago"
}

// span is a duration in its one biggest unit.
func span(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return strconv.Itoa(int(d.Seconds())) + " s"
	case d < 2*time.Hour:
		return strconv.Itoa(int(d.Minutes())) + " min"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d.Hours())) + " h"
	}
	return strconv.Itoa(int(d.Hours()/24)) + " d"
}

// millis is a measured time for people.
func millis(ms float64) string {
	switch {
	case ms == 0:
		return "-"
	case ms < 10:
		return strconv.FormatFloat(ms, 'f', 1, 64) + " ms"
	case ms < 10000:
		return strconv.FormatFloat(ms, 'f', 0, 64) + " ms"
	}
	return strconv.FormatFloat(ms/1000, 'f', 1, 64) + " s"
}

// count is "1 tool" or "3 tools".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
