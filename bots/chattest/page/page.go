// Package page is a small chat client in the browser for a fake platform. `nizectl dev
// slack` and `nizectl dev discord` serve it, so that a developer can act as Ann, Ben or a
// guest without an account.
//
// # How it works
//
// The page requests the state as one user sees it, and the request waits for the next
// change. An action of a person is one POST, answered when the app has acknowledged it.
// page.js does all drawing; it creates text nodes and never interprets data as markup. It
// draws Slack's blocks: another platform converts its messages to those.
//
// # Access
//
// A user of the page may be an admin of the nized behind it, so it is only for the person
// who started it. Every request carries a key that is only in the printed URL's fragment,
// which no server or log sees. Only loopback host names are accepted, and requests from
// other sites' pages are refused.
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

// Platform is what the page shows: slacktest/page and discordtest/page implement it.
type Platform interface {
	Handler() http.Handler // the platform's own handler
	Changed() <-chan struct{}
	Revision() int
	// Picture returns the platform as a user sees it, in a channel and a thread of it.
	Picture(user, channel, thread string) Picture
	// Do carries out a person's action. They see the error.
	Do(ctx context.Context, d Deed) (Done, error)
	// Content returns a file by its id.
	Content(id string) ([]byte, bool)
}

// Page serves a platform.
type Page struct {
	Platform Platform
	Key      string // the fragment of the URL; must not be empty

	draft atomic.Value // a string: see Suggest
}

// Suggest puts a line into the composer until a message is sent.
func (p *Page) Suggest(line string) { p.draft.Store(line) }

// Handler returns the handler of the page and of the platform behind it.
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
		_, _ = w.Write(theme.Base) // an error means that the browser is gone
	})
	mux.Handle("/", p.Platform.Handler())
	return guard(mux)
}

// policy allows the page to load its own files, make requests to its own origin, show
// pictures from there, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// guard refuses other host names, against DNS rebinding, and requests made by other sites'
// pages.
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

// known passes requests with the key to next.
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

// isImage reports whether the page shows a file as a picture.
func isImage(content []byte) bool {
	return slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, http.DetectContentType(content))
}

// image serves a picture of a block or a message.
func (p *Page) image(w http.ResponseWriter, r *http.Request) {
	content, ok := p.Platform.Content(r.PathValue("id"))
	if !ok || !isImage(content) {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", http.DetectContentType(content))
	_, _ = w.Write(content) // an error means that the browser is gone
}

// keyed returns a handler that answers requests with the key in JSON.
func (p *Page) keyed(h func(*http.Request) (any, error)) http.Handler {
	return p.known(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, err := h(r)
		w.Header().Set("Content-Type", "application/json")
		if err != nil {
			answer = problem{Error: ownPrefix.ReplaceAllString(err.Error(), "")}
		}
		_ = json.NewEncoder(w).Encode(answer) // an error means that the browser is gone
	}))
}

// ownPrefix matches the prefix of the doubles' errors.
var ownPrefix = regexp.MustCompile(`^[a-z]+test: `)

type problem struct {
	Error string `json:"error"`
}

// Address returns the URL for the person if the page is served at url.
func (p *Page) Address(url string) string { return fmt.Sprintf("%s/#%s", url, p.Key) }
