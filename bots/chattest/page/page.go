// Package page is a small chat client in the browser for a fake platform. `nizectl dev slack`
// and `nizectl dev discord` serve it, so that a developer can be Ann, Ben or a guest without an
// account anywhere.
//
// # How it works
//
// The page asks for the state as one user sees it and waits there for the next
// change; what a person does is one POST, answered when the app has
// acknowledged it. All drawing is in page.js, which makes text nodes and never
// markup of what it was given. It draws blocks as Slack has them: another
// platform tells what stands there in those.
//
// # Who may use it
//
// Whoever acts on the page may be an admin of the nized behind it. So it is
// for the one who started it: every request carries a key that only the
// printed address holds, as its fragment, which no server and no log sees. The
// names of the loopback are the only hosts, and other sites' pages are
// refused.
package page

import (
	"context"
	"crypto/subtle"
	"embed"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"

	"nize/bots/theme"
)

//go:embed index.html page.js page.css
var files embed.FS

// Platform is what the page shows: slacktest/page and discordtest/page.
type Platform interface {
	Handler() http.Handler // of the platform itself
	Changed() <-chan struct{}
	Revision() int
	// Picture is the platform as a user sees it, in a channel and a thread of it.
	Picture(user, channel, thread string) Picture
	// Do does what a person did. The error is for them to read.
	Do(ctx context.Context, d Deed) (Done, error)
	// Content is a file by its id.
	Content(id string) ([]byte, bool)
}

// Page serves a platform.
type Page struct {
	Platform Platform
	Key      string // what the fragment of the address holds; must not be empty

	draft atomic.Value // a string: see Suggest
}

// Suggest puts a line into the composer, until somebody has sent it.
func (p *Page) Suggest(line string) { p.draft.Store(line) }

// Handler is the page, and the platform behind it.
func (p *Page) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /dev/state", p.keyed(p.state))
	mux.Handle("POST /dev/act", p.keyed(p.act))
	mux.Handle("GET /dev/file/{id}", p.known(http.HandlerFunc(p.image)))
	static := http.FileServerFS(files)
	for _, name := range []string{"/{$}", "/page.js", "/page.css"} {
		mux.Handle("GET "+name, static)
	}
	mux.HandleFunc("GET /base.css", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/css; charset=utf-8")
		_, _ = w.Write(theme.Base) // the browser has left: nothing to do
	})
	mux.Handle("/", p.Platform.Handler())
	return guard(mux)
}

// policy lets the page load its own files, talk to its own origin, show
// pictures that it got there, and do nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// guard refuses other hosts, against rebound names, and requests that another
// site's page makes.
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		ip := net.ParseIP(strings.Trim(host, "[]"))
		if host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			http.Error(w, "this page is for the loopback only", http.StatusForbidden)
			return
		}
		site := r.Header.Get("Sec-Fetch-Site")
		origin := r.Header.Get("Origin")
		if origin != "" && origin != "http://"+r.Host || site != "" && site != "same-origin" && site != "none" {
			http.Error(w, "another site's page may not do this", http.StatusForbidden)
			return
		}
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// known is a handler for who knows the key.
func (p *Page) known(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given := r.Header.Get("X-Key")
		if p.Key == "" || subtle.ConstantTimeCompare([]byte(given), []byte(p.Key)) != 1 {
			http.Error(w, "open the address that nizectl printed: it ends in a key", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isImage says whether the page shows a file as a picture.
func isImage(content []byte) bool {
	return slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, http.DetectContentType(content))
}

// image serves a picture that blocks show, or that goes with a message.
func (p *Page) image(w http.ResponseWriter, r *http.Request) {
	content, ok := p.Platform.Content(r.PathValue("id"))
	if !ok || !isImage(content) {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", http.DetectContentType(content))
	_, _ = w.Write(content) // the browser is gone
}

// keyed answers who knows the key with JSON.
func (p *Page) keyed(h func(*http.Request) (any, error)) http.Handler {
	return p.known(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, err := h(r)
		w.Header().Set("Content-Type", "application/json")
		if err != nil {
			answer = problem{Error: ownPrefix.ReplaceAllString(err.Error(), "")}
		}
		_ = json.NewEncoder(w).Encode(answer) // the browser is gone
	}))
}

// ownPrefix is what errors of the doubles begin with.
var ownPrefix = regexp.MustCompile(`^[a-z]+test: `)

type problem struct {
	Error string `json:"error"`
}

// Address is what the person opens, where the page is served at url.
func (p *Page) Address(url string) string { return fmt.Sprintf("%s/#%s", url, p.Key) }
