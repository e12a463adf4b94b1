// Package pages renders nized's pages for browsers: one layout, three languages, and strict
// security headers.
//
// A package that serves pages has its own texts and the body of its pages, in
// html/template; this package adds the head and the foot. The headers forbid all content
// that nized did not write.
//
// No page needs a script. A page that takes a secret from the fragment of its URL, which no
// server and no log sees, has a few lines of script that put it into the form; without
// scripts the person pastes it.
package pages

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"nize/bots/phrases"
	"nize/daemon/failure"
	"nize/store"
)

//go:embed shell.html
var shell string

//go:embed shell.css
var style string

// fragment copies the URL's fragment into the field that takes it and removes it from the
// URL, so that it isn't in the browser's history. A form with data-show is submitted
// immediately, with its field show: it requests the page that describes the secret, without
// using the secret up. The current page is hidden meanwhile.
const fragment = `(()=>{const take=()=>{const h=location.hash.slice(1),f=document.querySelector("[data-fragment]");if(!h||!f)return;f.value=h;history.replaceState(null,"",location.pathname+location.search);const s=f.form.querySelector("[data-show]");if(s){s.disabled=false;document.body.hidden=true;f.form.submit()}};take();addEventListener("hashchange",take)})()`

// Template is the body of some pages.
type Template struct{ in map[string]*template.Template }

// languages are the languages of pages, as values of lang.
var languages = []string{"en", "zh-Hans", "zh-Hant"}

// New parses the body of pages, which prints a [store.Text] with {{say .}}. It panics if
// the template is invalid.
func New(middle string) *Template {
	t := &Template{map[string]*template.Template{}}
	for _, lang := range languages {
		say := phrases.For(lang).Text
		t.in[lang] = template.Must(template.Must(template.New("shell").Funcs(template.FuncMap{"say": say}).Parse(shell)).New("middle").Parse(middle))
	}
	return t
}

// Page is one page.
type Page struct {
	Title store.Text
	// Next is the URL to which the browser is redirected after a number of seconds.
	Next  string
	After int
	// Fragment is true if a field with data-fragment takes the URL's fragment.
	Fragment bool
	Data     any // for the body
}

// Write writes a page in the requester's language.
func (t *Template) Write(w http.ResponseWriter, r *http.Request, status int, p Page) {
	lang := Language(r)
	view := struct {
		Page
		Lang, Refresh string
		Style         template.CSS
		Script        template.JS
	}{Page: p, Lang: lang, Style: template.CSS(style)} // a constant of this package
	if p.Next != "" {
		view.Refresh = strconv.Itoa(p.After) + ";url=" + p.Next
	}
	policy := "default-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'; style-src 'sha256-" + digest(style) + "'"
	if p.Fragment {
		view.Script = fragment
		policy += "; script-src 'sha256-" + digest(fragment) + "'"
	}
	var b bytes.Buffer
	if err := t.in[lang].ExecuteTemplate(&b, "shell", view); err != nil {
		failure.Internal(w)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "same-origin") // with no-referrer, browsers send forms with Origin: null
	h.Set("Cache-Control", "no-store")
	h.Set("Vary", "Accept-Language, Cookie")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // the client has disconnected
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// Language returns the language of a page: the browser's most preferred one that nize
// supports.
func Language(r *http.Request) string {
	type wish struct {
		tag string
		q   float64
	}
	var asked []wish
	for item := range strings.SplitSeq(r.Header.Get("Accept-Language"), ",") {
		tag, rest, _ := strings.Cut(strings.TrimSpace(item), ";")
		q := 1.0
		if text, ok := strings.CutPrefix(strings.TrimSpace(rest), "q="); ok {
			q, _ = strconv.ParseFloat(text, 64)
		}
		asked = append(asked, wish{strings.ToLower(tag), q})
	}
	slices.SortStableFunc(asked, func(a, b wish) int { return cmp.Compare(b.q, a.q) })
	for _, a := range asked {
		switch {
		case a.q <= 0:
		case a.tag == "en" || strings.HasPrefix(a.tag, "en-"):
			return "en"
		case a.tag == "zh" || strings.HasPrefix(a.tag, "zh-"):
			for _, traditional := range []string{"zh-hant", "zh-tw", "zh-hk", "zh-mo"} {
				if strings.HasPrefix(a.tag, traditional) {
					return "zh-Hant"
				}
			}
			return "zh-Hans"
		}
	}
	return "en"
}
