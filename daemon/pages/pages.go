// Package pages is the shell of the pages that people see in a browser: one
// look, three languages, light and dark, and headers that let nothing in that
// nized did not write. A room has its own words and the middle of its pages, in
// html/template; the shell puts head and foot around.
//
// No page needs a script. One that takes a secret from behind the # of its
// address, where no server and no log sees it, has a few lines that put it into
// the form; without scripts a person pastes it there.
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
	"nize/store"
)

//go:embed shell.html
var shell string

//go:embed shell.css
var style string

// fragment fills the field that asks for it with what stands behind the #, and
// takes it out of the address, so that it is in no history. A form with data-show is
// sent at once, with its field show: it asks for the page that says what the secret
// is for, and uses nothing up. The page that it leaves is not seen meanwhile.
const fragment = `(()=>{const take=()=>{const h=location.hash.slice(1),f=document.querySelector("[data-fragment]");if(!h||!f)return;f.value=h;history.replaceState(null,"",location.pathname+location.search);const s=f.form.querySelector("[data-show]");if(s){s.disabled=false;document.body.hidden=true;f.form.submit()}};take();addEventListener("hashchange",take)})()`

// Template is the middle of some pages.
type Template struct{ in map[string]*template.Template }

// languages are what a page is written in, by the value of its lang.
var languages = []string{"en", "zh-Hans", "zh-Hant"}

// New parses the middle of pages, which prints a [store.Text] with {{say .}}. It
// panics on a mistake.
func New(middle string) *Template {
	t := &Template{map[string]*template.Template{}}
	for _, lang := range languages {
		say := phrases.For(lang).Text
		t.in[lang] = template.Must(template.Must(template.New("shell").Funcs(template.FuncMap{"say": say}).Parse(shell)).New("middle").Parse(middle))
	}
	return t
}

// Page is one of them.
type Page struct {
	Title store.Text
	// Next is where the browser goes by itself after so many seconds.
	Next  string
	After int
	// Fragment says that a field with data-fragment takes what stands behind #.
	Fragment bool
	Data     any // of the middle
}

// Write answers with a page in the language of who asks.
func (t *Template) Write(w http.ResponseWriter, r *http.Request, status int, p Page) {
	lang := Language(r)
	view := struct {
		Page
		Lang, Refresh string
		Style         template.CSS
		Script        template.JS
	}{Page: p, Lang: lang, Style: template.CSS(style)} // it was written here
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
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "same-origin") // with no-referrer a form would come with Origin: null
	h.Set("Cache-Control", "no-store")
	h.Set("Vary", "Accept-Language, Cookie")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // the client has left: nothing to do
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// Language is the language of a page: the best of what the browser asks for that
// nize speaks.
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
