// Package renderer shows what a tool returned in the form that its
// extension gave: a JSON document whose texts are templates (text/template) over
// the structuredContent of the result. The functions tool and args return the name
// of the call's tool and its arguments.
//
//	{
//	  "title": "Weather in {{.city}}",
//	  "link": "{{.url}}",
//	  "text": "{{.summary}} (asked for: {{args.place}})",
//	  "fields": [{"name": "Temperature", "value": "{{number 1 .degrees}} °C"}],
//	  "table": {"rows": "days", "columns": [{"name": "Day", "value": "{{.day}}"}]},
//	  "image": 1
//	}
//
// What comes out is a [display.View], which is stored with the result; each platform
// draws it. A value can't become a part of the form, whatever it holds: the document
// is read first, and its texts are filled in afterwards. A link is one only if the
// very same address stands in the result. What a template may do is bounded in time,
// repetition and size; one that fails leaves the result as it was.
package renderer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"text/template"
	"time"

	"nize/store"
	"nize/store/display"
)

// MaxFile bounds a renderer in bytes.
const MaxFile = 64 << 10

// maxData bounds the structuredContent that is rendered, and the addresses of it that
// are looked at.
const (
	maxData      = 1 << 20
	maxAddresses = 10_000
)

// Renderer is one that was read. It never changes.
type Renderer struct {
	title, link, text *template.Template
	fields            []column
	rows              []string // the path of the table's rows
	columns           []column
	image             *int
}

// column is a name with what is written below or beside it.
type column struct{ name, value *template.Template }

// document is a renderer as it is written.
type document struct {
	Title  string  `json:"title"`
	Link   string  `json:"link"`
	Text   string  `json:"text"`
	Fields []field `json:"fields"`
	Table  *struct {
		Rows    string  `json:"rows"`
		Columns []field `json:"columns"`
	} `json:"table"`
	Image *int `json:"image"`
}

type field struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Parse reads a renderer. An error names the field.
func Parse(raw []byte) (*Renderer, error) {
	if len(raw) > MaxFile {
		return nil, fmt.Errorf("it is over %d KiB", MaxFile>>10)
	}
	var doc document
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&doc); err != nil {
		return nil, syntax(raw, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows its end")
	}
	var r Renderer
	var bad error
	read := func(name, text string) *template.Template {
		t, err := compile(text)
		if err != nil && bad == nil {
			bad = fmt.Errorf("%s: %w", name, err)
		}
		return t
	}
	r.title, r.link, r.text, r.image = read("title", doc.Title), read("link", doc.Link), read("text", doc.Text), doc.Image
	for i, f := range doc.Fields {
		at := fmt.Sprintf("fields[%d].", i)
		r.fields = append(r.fields, column{read(at+"name", f.Name), read(at+"value", f.Value)})
	}
	if doc.Table != nil {
		r.rows = strings.Split(doc.Table.Rows, ".")
		for i, f := range doc.Table.Columns {
			at := fmt.Sprintf("table.columns[%d].", i)
			r.columns = append(r.columns, column{read(at+"name", f.Name), read(at+"value", f.Value)})
		}
	}
	switch {
	case bad != nil:
		return nil, bad
	case len(r.fields) > display.MaxFields:
		return nil, fmt.Errorf("fields: there are more than %d", display.MaxFields)
	case doc.Table != nil && doc.Table.Rows == "":
		return nil, errors.New("table.rows: it must name where the rows stand in structuredContent")
	case doc.Table != nil && (len(r.columns) == 0 || len(r.columns) > display.MaxColumns):
		return nil, fmt.Errorf("table.columns: there must be 1 to %d", display.MaxColumns)
	case doc.Link != "" && doc.Title == "":
		return nil, errors.New("link: it is where the title leads, and there is no title")
	case doc.Image != nil && *doc.Image < 0:
		return nil, errors.New("image: it is 0 for none, or which of the result's images is shown, from 1")
	case doc.Title == "" && doc.Text == "" && len(r.fields)+len(r.columns) == 0:
		return nil, errors.New("it shows nothing: give it a title, text, fields or a table")
	}
	return &r, nil
}

// syntax says where a document is none, or which field is not as it must be.
func syntax(raw []byte, err error) error {
	var bad *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &bad):
		return fmt.Errorf("line %d: %w", 1+bytes.Count(raw[:min(int(bad.Offset), len(raw))], []byte("\n")), bad)
	case errors.As(err, &kind) && kind.Field != "":
		return fmt.Errorf("%s: it can't be a JSON %s", kind.Field, kind.Value)
	case errors.As(err, &kind):
		return errors.New("it must be an object")
	}
	return errors.New(strings.TrimPrefix(err.Error(), "json: "))
}

// Call is what is shown: which tool was called with what, and what it returned.
type Call struct {
	Tool   string // server:tool
	Args   json.RawMessage
	Result json.RawMessage
}

// Render makes the view of a result: nil if it has no structuredContent, or nothing
// comes of it.
func (r *Renderer) Render(c Call, now func() time.Time) (*display.View, error) {
	var result struct {
		Content []struct {
			URI string `json:"uri"`
		} `json:"content"`
		Structured json.RawMessage `json:"structuredContent"`
		IsError    bool            `json:"isError"`
	}
	if json.Unmarshal(c.Result, &result) != nil || len(result.Structured) == 0 || len(result.Structured) > maxData || result.IsError {
		return nil, nil
	}
	data, err := numbers(result.Structured)
	if err != nil || data == nil {
		return nil, err
	}
	work := &run{tool: c.Tool, args: map[string]any{}, left: maxSteps, ends: now().Add(maxTime), now: now}
	if len(c.Args) > 0 && len(c.Args) <= maxData {
		args, err := numbers(c.Args)
		if err != nil {
			return nil, err
		}
		if object, ok := args.(map[string]any); ok {
			work.args = object
		}
	}
	var bad error
	write := func(t *template.Template, data any) string {
		if bad != nil {
			return ""
		}
		text, err := work.execute(t, data)
		bad = err
		return text
	}
	v := display.View{Title: write(r.title, data), Text: write(r.text, data), Image: r.image}
	if link := strings.TrimSpace(write(r.link, data)); link != "" {
		left := maxAddresses
		stands := holds(data, link, &left)
		for _, c := range result.Content {
			stands = stands || c.URI == link
		}
		if stands {
			v.Link = link
		}
	}
	for _, f := range r.fields {
		v.Fields = append(v.Fields, display.Field{Name: write(f.name, data), Value: write(f.value, data)})
	}
	if rows := at(data, r.rows); len(rows) > 0 {
		t := &display.Table{Left: max(0, len(rows)-display.MaxRows)}
		for _, c := range r.columns {
			t.Columns = append(t.Columns, write(c.name, data))
		}
		for _, row := range rows[:min(len(rows), display.MaxRows)] {
			var cells []string
			for _, c := range r.columns {
				cells = append(cells, write(c.value, row))
			}
			t.Rows = append(t.Rows, cells)
		}
		v.Table = t
	}
	if bad != nil {
		return nil, bad
	}
	if v = v.Bounded(); v.Empty() {
		return nil, nil
	}
	return &v, nil
}

// numbers reads a document with whole numbers as such, as far as they go.
func numbers(raw json.RawMessage) (any, error) {
	var data any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&data); err != nil {
		return nil, fmt.Errorf("reading what is shown: %w", err)
	}
	return number(data), nil
}

func number(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return n
		}
		if f, err := v.Float64(); err == nil {
			return f
		}
		return v.String()
	case map[string]any:
		for k := range v {
			v[k] = number(v[k])
		}
	case []any:
		for i := range v {
			v[i] = number(v[i])
		}
	}
	return v
}

// at are the items at a path.
func at(data any, path []string) []any {
	for _, key := range path {
		object, ok := data.(map[string]any)
		if !ok {
			return nil
		}
		data = object[key]
	}
	list, _ := data.([]any)
	return list
}

// holds says whether a text stands in a document, as the whole of a string.
func holds(v any, text string, left *int) bool {
	if *left--; *left < 0 {
		return false
	}
	switch v := v.(type) {
	case string:
		return v == text
	case map[string]any:
		for _, item := range v {
			if holds(item, text, left) {
				return true
			}
		}
	case []any:
		for _, item := range v {
			if holds(item, text, left) {
				return true
			}
		}
	}
	return false
}

// Set are the renderers of the house. It is safe for concurrent use.
type Set struct {
	Log *slog.Logger
	Now func() time.Time

	mu     sync.RWMutex
	of     map[string]*Renderer // of extensions, by tool
	chosen map[string]*Renderer // by admins, who stand before those
}

// Put sets the renderer that an extension has for its tool; nil takes it away.
func (s *Set) Put(tool string, r *Renderer) { s.put(&s.of, tool, r) }

// Choose sets the renderer that an admin wants for a tool; nil takes it away.
func (s *Set) Choose(tool string, r *Renderer) { s.put(&s.chosen, tool, r) }

func (s *Set) put(of *map[string]*Renderer, tool string, r *Renderer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if *of == nil {
		*of = map[string]*Renderer{}
	}
	if (*of)[tool] = r; r == nil {
		delete(*of, tool)
	}
}

// View is the result of a call as the renderer of its tool shows it; nil where there
// is none.
func (s *Set) View(c *store.Call, r *store.Result) json.RawMessage {
	tool := c.ToolID()
	s.mu.RLock()
	with := cmp.Or(s.chosen[tool], s.of[tool])
	s.mu.RUnlock()
	if with == nil || r == nil || r.Error != nil || r.IsError {
		return nil
	}
	v, err := with.Render(Call{tool, c.Args, r.Raw}, s.Now)
	if err != nil {
		s.Log.Warn("a renderer failed; its result is shown as text", "tool", tool, "err", store.Line(err.Error()))
	}
	if v == nil {
		return nil
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nil // texts and numbers
	}
	return raw
}
