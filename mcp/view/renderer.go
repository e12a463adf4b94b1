package view

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

// MaxRenderer is the maximum size of a renderer in bytes.
const MaxRenderer = 64 << 10

// maxData limits the structuredContent that is rendered, and the strings in it that are
// compared with a link.
const (
	maxData      = 1 << 20
	maxAddresses = 10_000
)

// Renderer is a parsed renderer: it formats a tool's result as an extension or an admin defines.
// It is immutable.
//
// A renderer is a JSON document whose texts are templates (text/template) over the
// structuredContent of the result. The functions tool and args return the name of the
// call's tool and its arguments.
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
// The output is a [display.View], which is stored with the result; each platform draws it.
// A value can't change the structure, whatever it contains: the document is parsed first,
// and its texts are filled in afterwards. A link is used only if the result contains
// exactly this URL. Templates are limited in time, repetition and size; if one fails, the
// result is left unchanged.
type Renderer struct {
	title, link, text *template.Template
	fields            []column
	rows              []string // the path of the table's rows
	columns           []column
	image             *int
}

// column is a name with the value below or beside it.
type column struct{ name, value *template.Template }

// document is the JSON form of a renderer.
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

// ParseRenderer parses a renderer. Its errors name the field.
func ParseRenderer(raw []byte) (*Renderer, error) {
	if len(raw) > MaxRenderer {
		return nil, fmt.Errorf("it is over %d KiB", MaxRenderer>>10)
	}
	var doc document
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&doc); err != nil {
		return nil, syntax(raw, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is text after its end")
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
		return nil, errors.New("link: it needs a title")
	case doc.Image != nil && *doc.Image < 0:
		return nil, errors.New("image: it is 0 for none, or which of the result's images is shown, from 1")
	case doc.Title == "" && doc.Text == "" && len(r.fields)+len(r.columns) == 0:
		return nil, errors.New("it shows nothing: give it a title, text, fields or a table")
	}
	return &r, nil
}

// syntax returns the position of a syntax error, or the field with a wrong value.
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

// Call is the call to show: the tool, its arguments and its result.
type Call struct {
	Tool   string // server:tool
	Args   json.RawMessage
	Result json.RawMessage
}

// Render returns the view of a result. It returns nil if the result has no
// structuredContent, or the view would be empty.
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

// numbers parses a document and keeps integers exact within their range.
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

// at returns the items at a path.
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

// holds reports whether a document contains a string equal to text.
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

// Renderers holds all renderers of the daemon. It is safe for concurrent use.
type Renderers struct {
	Log *slog.Logger
	Now func() time.Time

	mu     sync.RWMutex
	of     map[string]*Renderer // extensions' renderers, by tool
	chosen map[string]*Renderer // admins' renderers, by tool; they take precedence
}

// Put sets an extension's renderer for its tool; nil removes it.
func (s *Renderers) Put(tool string, r *Renderer) { s.put(&s.of, tool, r) }

// Choose sets an admin's renderer for a tool; nil removes it.
func (s *Renderers) Choose(tool string, r *Renderer) { s.put(&s.chosen, tool, r) }

func (s *Renderers) put(of *map[string]*Renderer, tool string, r *Renderer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if *of == nil {
		*of = map[string]*Renderer{}
	}
	if (*of)[tool] = r; r == nil {
		delete(*of, tool)
	}
}

// View returns a call's result as shown by the renderer of its tool, or nil if there is
// none.
func (s *Renderers) View(c *store.Call, r *store.Result) json.RawMessage {
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
		return nil // unreachable: only strings and numbers
	}
	return raw
}
