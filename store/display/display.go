// Package display defines how a renderer presents a result, independently of any platform.
//
// A view has a title, a text, fields, a table and an image. The gateway makes it from a
// tool's result, it is stored with the result, and each platform draws it. All of it is
// text from outside: it is limited here, and sanitized where it is drawn.
package display

import (
	"encoding/json"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of a view, in characters: the smallest of the platforms' limits.
const (
	MaxTitle   = 120
	MaxText    = 1500
	MaxFields  = 10
	MaxName    = 60
	MaxValue   = 250
	MaxColumns = 6
	MaxRows    = 20
	MaxCell    = 40
	MaxURL     = 1000
	maxRaw     = 256 << 10 // bytes of a stored view
)

// View is a result as shown to people.
type View struct {
	Title  string  `json:"title,omitempty"`
	Link   string  `json:"link,omitempty"` // the target of the title: a URL that occurs in the result
	Text   string  `json:"text,omitempty"`
	Fields []Field `json:"fields,omitempty"`
	Table  *Table  `json:"table,omitempty"`
	Image  *int    `json:"image,omitempty"` // the only image of the result to show, from 1; 0 is none; nil is all
}

// Field is a name with its value.
type Field struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Table holds some rows of a table.
type Table struct {
	Columns []string   `json:"columns"`
	Rows    [][]string `json:"rows"`
	Left    int        `json:"left,omitempty"` // rows omitted
}

// Bounded returns the view within the limits; longer parts are cut and marked.
func (v View) Bounded() View {
	out := View{Title: line(v.Title, MaxTitle), Text: clip(strings.TrimSpace(v.Text), MaxText)}
	if IsAddress(v.Link) && out.Title != "" {
		out.Link = v.Link
	}
	for _, f := range v.Fields {
		f = Field{line(f.Name, MaxName), clip(strings.TrimSpace(f.Value), MaxValue)}
		if f.Name != "" && f.Value != "" && len(out.Fields) < MaxFields {
			out.Fields = append(out.Fields, f)
		}
	}
	if v.Table != nil && len(v.Table.Columns) > 0 && len(v.Table.Rows) > 0 {
		columns := v.Table.Columns[:min(len(v.Table.Columns), MaxColumns)]
		rows := v.Table.Rows[:min(len(v.Table.Rows), MaxRows)]
		t := &Table{Columns: cells(columns, len(columns)), Left: max(v.Table.Left, 0) + len(v.Table.Rows) - len(rows)}
		for _, row := range rows {
			t.Rows = append(t.Rows, cells(row, len(columns)))
		}
		out.Table = t
	}
	if v.Image != nil && *v.Image >= 0 {
		n := *v.Image
		out.Image = &n
	}
	return out
}

// Empty reports whether there is nothing to show except the result's own images.
func (v View) Empty() bool {
	return v.Title == "" && v.Text == "" && len(v.Fields) == 0 && v.Table == nil
}

// Decode decodes a view stored with a result. ok is false if raw is not one.
func Decode(raw json.RawMessage) (v View, ok bool) {
	if len(raw) == 0 || len(raw) > maxRaw || json.Unmarshal(raw, &v) != nil {
		return View{}, false
	}
	v = v.Bounded()
	return v, !v.Empty()
}

// IsAddress reports whether a text is a web address that may be linked.
func IsAddress(text string) bool {
	if len(text) > MaxURL || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("<>\"`|\\^{}()[]", r) }) {
		return false
	}
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.User == nil
}

// cells returns n cells of a row, each on one line.
func cells(row []string, n int) []string {
	out := make([]string, n)
	for i := range out {
		if i < len(row) {
			out[i] = line(row[i], MaxCell)
		}
	}
	return out
}

func line(text string, limit int) string { return clip(strings.Join(strings.Fields(text), " "), limit) }

func clip(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	for i := range text {
		if limit--; limit == 0 {
			return text[:i] + "…"
		}
	}
	return text
}

// Renderer is a renderer that an admin set for a tool.
type Renderer struct {
	Tool     string    `json:"tool"`
	Document string    `json:"document"`
	Updated  time.Time `json:"updated"`
}
