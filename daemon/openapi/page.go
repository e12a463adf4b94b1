package openapi

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// ServeHTTP sends the document.
func (d *Document) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	body, err := json.Marshal(d)
	if err != nil { // an example that is no JSON: a mistake of the code
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", jsonType)
	w.Header().Set("Cache-Control", "no-cache")
	_, _ = w.Write(append(body, '\n')) // the client has left: nothing to do
}

//go:embed page.css
var style string

// Page serves a page that shows the document. It has no script and asks nobody
// for anything.
func (d *Document) Page() http.Handler {
	page := d.page()
	sum := sha256.Sum256([]byte(style))
	policy := fmt.Sprintf("default-src 'none'; style-src 'sha256-%s'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'", base64.StdEncoding.EncodeToString(sum[:]))
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Security-Policy", policy)
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-cache")
		_, _ = w.Write([]byte(page)) // the client has left: nothing to do
	})
}

// writer writes HTML; what is given to it as a value is text.
type writer struct{ strings.Builder }

// put writes a format of our own whose values are text.
func (w *writer) put(format string, values ...any) {
	for i, v := range values {
		values[i] = html.EscapeString(fmt.Sprint(v))
	}
	fmt.Fprintf(w, format+"\n", values...)
}

func (d *Document) page() string {
	w := new(writer)
	w.put(`<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>%s %s: HTTP API</title>`, d.Info.Title, d.Info.Version)
	w.WriteString("<style>" + style + "</style></head><body>\n")
	w.put(`<a class="skip" href="#main">to the operations</a><header><h1>%s <small>%s</small></h1><p>%s</p><p>For programs: <a href="/openapi.json">openapi.json</a>, OpenAPI %s.</p></header>`, d.Info.Title, d.Info.Version, d.Info.Description, d.OpenAPI)
	w.put(`<nav aria-label="operations"><ul>`)
	for _, r := range d.routes {
		w.put(`<li><a href="#%s"><b class="%s">%s</b> <code>%s</code></a></li>`, r.ID, strings.ToLower(r.Method), r.Method, r.Path)
	}
	w.put(`<li><a href="#schemas">What is sent and answered</a></li></ul></nav><main id="main"><section id="who"><h2>Who asks</h2><dl>`)
	for _, name := range slices.Sorted(maps.Keys(d.Components.Schemes)) {
		s := d.Components.Schemes[name]
		form := s.Name + ": …"
		if s.Scheme != "" {
			form = "Authorization: Bearer …"
		}
		w.put(`<dt id="scheme-%s"><code>%s</code></dt><dd>%s</dd>`, name, form, s.Description)
	}
	w.put(`</dl></section>`)
	for _, r := range d.routes {
		d.section(w, r)
	}
	w.put(`<section id="schemas"><h2>What is sent and answered</h2>`)
	for _, name := range slices.Sorted(maps.Keys(d.Components.Schemas)) {
		w.put(`<details id="schema-%s"><summary><code>%s</code></summary>`, name, name)
		schema(w, d.Components.Schemas[name])
		w.put(`</details>`)
	}
	w.put(`</section></main></body></html>`)
	return w.String()
}

// section shows an operation.
func (d *Document) section(w *writer, r Route) {
	op := d.Paths[r.Path][strings.ToLower(r.Method)]
	w.put(`<section id="%s"><h2><b class="%s">%s</b> <code>%s</code></h2><p>%s.</p>`, r.ID, strings.ToLower(r.Method), r.Method, r.Path, op.Summary)
	for part := range strings.SplitSeq(op.Description, "\n\n") {
		items := strings.Split(strings.TrimPrefix(part, "- "), "\n- ")
		switch {
		case part == "":
		case !strings.HasPrefix(part, "- "):
			w.put(`<p>%s</p>`, part)
		default:
			w.put(`<ul>`)
			for _, item := range items {
				w.put(`<li>%s</li>`, item)
			}
			w.put(`</ul>`)
		}
	}
	w.put(`<p>Asked with `)
	for i, s := range op.Security {
		if i > 0 {
			w.put(` or `)
		}
		for j, name := range slices.Sorted(maps.Keys(s)) {
			if j > 0 {
				w.put(` and `)
			}
			w.put(`<a href="#who">%s</a>`, name)
		}
	}
	w.put(`.</p>`)
	if len(op.Parameters) > 0 {
		w.put(`<h3>Parameters</h3><dl>`)
		for _, p := range op.Parameters {
			w.put(`<dt><code>%s</code> <small>in the %s</small></dt><dd>%s</dd>`, p.Name, p.In, p.Description)
		}
		w.put(`</dl>`)
	}
	if op.Body != nil {
		w.put(`<h3>Body</h3><p>`)
		kind(w, op.Body.Content[jsonType].Schema)
		w.put(`</p>`)
		for _, e := range r.Examples {
			w.put(`<details><summary>Example: %s</summary><pre tabindex="0">%s</pre></details>`, e.Summary, indented(e.Value))
		}
	}
	w.put(`<h3>Answers</h3><dl>`)
	for _, status := range slices.Sorted(maps.Keys(op.Responses)) {
		answer := op.Responses[status]
		w.put(`<dt><code>%s</code></dt><dd>%s`, status, answer.Description)
		for _, form := range slices.Sorted(maps.Keys(answer.Content)) {
			s := answer.Content[form].Schema
			if s.ContentSchema != nil {
				s = s.ContentSchema
			}
			w.put(`<br><small>%s</small> `, form)
			kind(w, s)
		}
		w.put(`</dd>`)
	}
	w.put(`</dl></section>`)
}

func indented(text string) string {
	var v any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return text
	}
	out, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return text
	}
	return string(out)
}

// schema shows what a schema allows.
func schema(w *writer, s *jsonschema.Schema) {
	if s.Description != "" {
		w.put(`<p>%s</p>`, s.Description)
	}
	if len(s.OneOf) > 0 {
		w.put(`<p>one of</p><ul>`)
		for _, one := range s.OneOf {
			w.put(`<li>`)
			if name := one.Properties["event"]; name != nil {
				w.put(`<code>%s</code>: %s`, *name.Const, one.Description)
				schema(w, one.Properties["data"])
			} else {
				kind(w, one)
			}
			w.put(`</li>`)
		}
		w.put(`</ul>`)
		return
	}
	w.put(`<dl>`)
	for _, name := range s.PropertyOrder {
		p := s.Properties[name]
		w.put(`<dt><code>%s</code> `, name)
		kind(w, p)
		if !slices.Contains(s.Required, name) {
			w.put(` <small>optional</small>`)
		}
		w.put(`</dt><dd>%s</dd>`, p.Description)
	}
	w.put(`</dl>`)
}

// kind names a schema in a few words.
func kind(w *writer, s *jsonschema.Schema) {
	choices := slices.Concat(s.OneOf, s.AnyOf)
	switch {
	case s.Ref != "":
		name := strings.TrimPrefix(s.Ref, "#/components/schemas/")
		w.put(`<a href="#schema-%s">%s</a>`, name, name)
	case s.Const != nil:
		w.put(`<code>"%s"</code>`, *s.Const)
	case len(s.Enum) > 0:
		for i, v := range s.Enum {
			if i > 0 {
				w.put(` or `)
			}
			w.put(`<code>"%s"</code>`, v)
		}
	case s.Items != nil:
		w.put(`list of `)
		kind(w, s.Items)
	case s.AdditionalProperties != nil && s.Properties == nil:
		w.put(`object of `)
		kind(w, s.AdditionalProperties)
	case len(choices) > 0:
		for i, one := range choices {
			if i > 0 {
				w.put(` or `)
			}
			kind(w, one)
		}
	case s.Properties != nil:
		w.put(`{`)
		for _, name := range s.PropertyOrder {
			w.put(` <code>%s</code>: `, name)
			kind(w, s.Properties[name])
		}
		w.put(` }`)
	default:
		w.put(`<small>%s</small>`, strings.TrimSpace(s.Type+" "+s.Format))
	}
}
