package bots

import (
	"strings"
	"unicode/utf8"

	"nize/bots/phrases"
	"nize/store/display"
)

// ViewText returns a rendered result as plain text for a terminal, a notification or a
// screen reader. All of it is harmless.
func ViewText(v display.View, w phrases.Catalogue) string {
	var lines []string
	add := func(line string) {
		if line != "" {
			lines = append(lines, line)
		}
	}
	add(Escape(v.Title))
	add(v.Link) // a URL: see display.IsAddress
	add(Plain(v.Text))
	for _, f := range v.Fields {
		add(Escape(f.Name) + ": " + Plain(f.Value))
	}
	if v.Table != nil {
		add(strings.Join(TableLines(*v.Table), "\n"))
		add(RowsLeft(*v.Table, w))
	}
	return strings.Join(lines, "\n")
}

// Rendered is a renderer's view of a result for platforms with their own tables and links.
// All its texts are harmless.
type Rendered struct {
	display.View
	More string `json:"more,omitempty"` // how many rows are omitted, in words
}

// RenderedView returns a view whose texts are made harmless.
func RenderedView(v display.View, w phrases.Catalogue) Rendered {
	out := Rendered{View: display.View{Title: Escape(v.Title), Link: v.Link, Text: Plain(v.Text), Image: v.Image}}
	for _, f := range v.Fields {
		out.Fields = append(out.Fields, display.Field{Name: Escape(f.Name), Value: Plain(f.Value)})
	}
	if v.Table != nil {
		t := display.Table{Columns: harmless(v.Table.Columns), Left: v.Table.Left}
		for _, row := range v.Table.Rows {
			t.Rows = append(t.Rows, harmless(row))
		}
		out.Table, out.More = &t, RowsLeft(t, w)
	}
	return out
}

func harmless(cells []string) []string {
	out := make([]string, len(cells))
	for i, cell := range cells {
		out[i] = Escape(cell)
	}
	return out
}

// RowsLeft returns how many rows are omitted, in words, or "" for none.
func RowsLeft(t display.Table, w phrases.Catalogue) string {
	if t.Left == 0 {
		return ""
	}
	return w.Say(phrases.RowsLeft, t.Left)
}

// TableLines returns a table's header and rows as lines for a monospaced font. They contain
// no backquote, which would end a code block.
func TableLines(t display.Table) (lines []string) {
	rows := append([][]string{t.Columns}, t.Rows...)
	widths := make([]int, len(t.Columns))
	shown := make([][]string, len(rows))
	for i, row := range rows {
		for n, cell := range row[:min(len(row), len(widths))] {
			cell = strings.ReplaceAll(Escape(cell), "`", "'")
			shown[i] = append(shown[i], cell)
			widths[n] = max(widths[n], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range shown {
		var b strings.Builder
		for n, cell := range row {
			b.WriteString(cell + strings.Repeat(" ", widths[n]-utf8.RuneCountInString(cell)+2))
		}
		lines = append(lines, strings.TrimRight(b.String(), " "))
	}
	return lines
}
