package openapi

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"html/template"
	"net/http"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"nize/daemon/failure"
)

// ServeHTTP sends the document.
func (d *Document) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	body, err := json.Marshal(d)
	if err != nil { // an example that is not JSON: a programming error
		failure.Internal(w)
		return
	}
	w.Header().Set("Content-Type", jsonType)
	w.Header().Set("Cache-Control", "no-cache")
	_, _ = w.Write(append(body, '\n')) // the client has disconnected
}

//go:embed page.html
var page string

//go:embed page.css
var style string

// Page serves a page that shows the document. It has no scripts and loads nothing.
func (d *Document) Page() http.Handler {
	show := template.Must(template.New("").Funcs(template.FuncMap{
		"style":     func() template.CSS { return template.CSS(style) }, // a constant of this package
		"name":      func(ref string) string { return ref[strings.LastIndexByte(ref, '/')+1:] },
		"optional":  func(s *jsonschema.Schema, name string) bool { return !slices.Contains(s.Required, name) },
		"operation": func(r Route) *operation { return d.Paths[r.Path][strings.ToLower(r.Method)] },
		"indent": func(text string) (string, error) {
			var b bytes.Buffer
			err := json.Indent(&b, []byte(text), "", "  ")
			return b.String(), err
		},
	}).Parse(page))
	sum := sha256.Sum256([]byte(style))
	policy := "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		var b bytes.Buffer
		if err := show.ExecuteTemplate(&b, "page", d); err != nil {
			failure.Internal(w)
			return
		}
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Security-Policy", policy)
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-cache")
		_, _ = w.Write(b.Bytes()) // the client has disconnected
	})
}

// Header describes for the page where the credential is sent.
func (s Scheme) Header() string {
	if s.Scheme == "bearer" {
		return "Authorization: Bearer"
	}
	return s.Name
}
