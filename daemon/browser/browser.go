// Package browser serves the chat page (bots/web), its operations and its event stream.
//
// Its operations are those of the control API that a person's page may use, on behalf of
// the session's user. A page can't reach an operation that [Browser.mount] doesn't list,
// even if the user is an admin. The operations for admins are in admin.go: status,
// accepting definitions, providers and model names.
//
// A request that changes something must come from nize's own page, be JSON (or a file), and
// carry the session's cookie. An error is {"error":{"type","message"}}; on the type
// signed_out the page asks the person to sign in.
package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"mime"
	"net/http"
	"regexp"
	"time"

	"nize/bots"
	"nize/bots/web"
	"nize/daemon/api"
	"nize/daemon/chatclient"
	"nize/daemon/control"
	"nize/daemon/failure"
	"nize/daemon/limit"
	"nize/daemon/mux"
	"nize/store"
	"nize/store/outage"
)

// Limits of a page's requests.
const (
	maxRequests = 300 // per minute and session
	maxBody     = 1 << 20
)

// Options are a Browser's dependencies.
type Options struct {
	Platform      *web.Platform
	Conversations *control.Conversations
	Approvals     *control.Approvals
	Agents        *control.Agents
	Models        *control.Models
	Providers     *control.Providers
	Servers       *control.Servers
	Tools         *control.Tools
	Chat          *chatclient.Client // the models and servers that people may see
	Bots          *bots.Registry     // for conversations of other surfaces
	Store         interface {
		GetThread(ctx context.Context, id string) (store.Thread, error)
		StartThread(ctx context.Context, by store.Caller, t store.Thread, q store.ThreadQuota) error
		Turns(ctx context.Context, thread string) ([]store.Turn, error)
		Append(ctx context.Context, by store.Caller, t store.Turn, open bool) error
		ListThreads(ctx context.Context, user string, limit int) ([]store.Thread, error)
		turnReader
		GetCall(ctx context.Context, id string) (store.Call, error)
		Events(ctx context.Context, q store.EventQuery) ([]store.Event, error)
		store.Files
		Pending(ctx context.Context) ([]store.Item, error)
	}
	// Schema returns a tool's input schema, as its server wrote it.
	Schema func(ctx context.Context, tool string) (json.RawMessage, error)
	Places
	Config store.Config
	// Person returns the user who is signed in to the browser that sent a request. Any
	// error other than an outage means that there is none.
	Person func(*http.Request) (store.Caller, error)
	// Origin returns the origin at which a request's client reaches nize; "" if sign-in is
	// not allowed there.
	Origin func(*http.Request) string
	// Widgets returns the origin of views, with * for their server; "" if they have none.
	Widgets func() string
	// Watch calls cancel when the caller loses the right to continue.
	Watch func(ctx context.Context, by store.Caller, cancel context.CancelFunc) (leave func())
	// Speak returns the translator for the language that a request asks for.
	Speak func(locale string) mux.Speaker
	// Closing ends when streams must end.
	Closing context.Context
	Views   Views
	Links   Links
	Now     func() time.Time
	Log     *slog.Logger
}

// Browser serves the page.
type Browser struct {
	Options
	assets  *web.Assets
	asked   limit.Limit // requests, by session
	streams limit.Streams
}

// New returns a Browser.
func New(opt Options) *Browser {
	b := &Browser{Options: opt, assets: web.NewAssets(), asked: limit.Limit{Most: maxRequests, Per: time.Minute}}
	b.streams.Quota = func() store.Quota { return store.QuotaOf(b.Config, "limits.user.streams", "limits.streams") }
	return b
}

// shells are the paths of the page.
var shells = []string{"/app/{$}", "/app/c/{thread}", "/app/approvals", "/app/usage", "/app/servers", "/app/settings"}

// Handler serves everything below /app/, and the links in chats. If web.enabled is off, it
// returns 404.
func (b *Browser) Handler() http.Handler {
	on := http.NewServeMux()
	for _, path := range shells {
		on.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) { b.assets.Shell(w, r, b.frames(r), http.StatusOK) })
	}
	on.HandleFunc("GET /app/assets/{hash}/{file...}", b.assets.File)
	on.HandleFunc("GET /app/phrases/{lang}", b.assets.Phrases)
	on.HandleFunc("GET "+framePath+"{ticket}", func(w http.ResponseWriter, r *http.Request) { b.Views.Serve(w, r, r.PathValue("ticket"), "") })
	on.HandleFunc("GET /w/{link}", b.link)
	on.Handle("POST /w/{link}/frame", b.linkOperations())
	on.Handle("/app/v1/", b.operations())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !b.Serves(r) {
			http.NotFound(w, r)
			return
		}
		on.ServeHTTP(w, r)
	})
}

// Serves reports whether the page is available to a request's client: it is enabled, and
// sign-in is allowed at that origin.
func (b *Browser) Serves(r *http.Request) bool {
	return store.GetBool(b.Config, "", "web.enabled") && b.Origin(r) != ""
}

// nextCookie holds the page's path to return to after signing in. Any site on this host
// could have set it, so no other redirect is accepted.
const nextCookie = "nize-next"

// Landing returns the path to which a browser is redirected after signing in: the page, if
// it is available.
func (b *Browser) Landing(w http.ResponseWriter, r *http.Request) string {
	if !b.Serves(r) {
		return "/login"
	}
	next, err := r.Cookie(nextCookie)
	if err != nil {
		return "/app/"
	}
	http.SetCookie(w, &http.Cookie{Name: nextCookie, Path: "/", MaxAge: -1})
	if plainPath.MatchString(next.Value) {
		return next.Value
	}
	return "/app/"
}

var plainPath = regexp.MustCompile(`^/app/(c/[0-9A-Z]{26}|approvals|usage|servers|settings)?$|^/w/[0-9A-Za-z._-]{1,200}$`)

// operations returns the handler of /app/v1/.
func (b *Browser) operations() http.Handler {
	on := http.NewServeMux()
	watch := func(ctx context.Context, by store.Caller, cancel context.CancelFunc) (func(), error) {
		return b.Watch(ctx, by, cancel), nil
	}
	m := mux.New(on, mux.Options{Caller: b.caller, Speak: b.Speak, Fail: fail, Listen: watch, Closing: b.Closing, Log: b.Log})
	b.mount(m)
	b.Views.Mount(m)
	on.HandleFunc("GET /v1/events", b.events)
	on.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		fail(w, &api.Error{Code: "not_found", Message: "there is nothing at this address"})
	})
	return http.StripPrefix("/app", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		most := int64(maxBody)
		if filePath.MatchString(r.URL.Path) {
			most = store.MaxFile
		}
		r.Body = http.MaxBytesReader(w, r.Body, most)
		if e := b.foreign(r); e != nil {
			fail(w, e)
			return
		}
		r.Header.Set(pageHeader, b.Origin(r))
		on.ServeHTTP(&answer{ResponseWriter: w, request: r, card: b.tooLate}, r)
	}))
}

// Operations returns what a page may reach below /app, except its event stream.
func (b *Browser) Operations() []mux.Mounted {
	m := mux.New(http.NewServeMux(), mux.Options{})
	b.mount(m)
	return m.Mounted()
}

// mount lists the operations that a page may reach.
func (b *Browser) mount(m *mux.Mux) {
	mux.Handle(m, whoAmI, b.whoAmI)
	mux.Handle(m, listConversations, b.list)
	mux.Handle(m, api.StartConversation, b.Conversations.Start)
	mux.Handle(m, showConversation, b.show)
	mux.Handle(m, changeConversation, b.change)
	mux.Handle(m, api.ForgetConversation, b.forget)
	mux.Handle(m, shareAnswer, b.share)
	mux.Handle(m, branchConversation, b.branch)
	mux.Handle(m, listStarters, b.starters)
	mux.HandleUpload(m, checkFile, b.checkFile)
	mux.Handle(m, findConversation, b.find)
	mux.Handle(m, listAgents, b.listAgents)
	mux.Handle(m, listModels, b.listModels)
	mux.Handle(m, listServers, b.Chat.ListServers)
	mux.Handle(m, api.SearchTools, b.Tools.Search)
	mux.Handle(m, sendMessage, b.send)
	mux.HandleUpload(m, addFile, b.addFile)
	mux.Handle(m, showFile, b.showFile)
	mux.Handle(m, api.StopTurn, b.Conversations.Stop)
	mux.Handle(m, listApprovals, b.listApprovals)
	mux.Handle(m, listDecided, b.listDecided)
	mux.Handle(m, getApproval, b.getApproval)
	mux.Handle(m, decideCall, b.decide)
	mux.Handle(m, getCall, b.getCall)
	mux.HandleDownload(m, getResult, b.getResult)
	places{b}.mount(m)
	admin{b}.mount(m)
}

// Codes of errors that only a page gets.
const (
	signedOut = "signed_out"
	notOurs   = "cross_origin"
	notJSON   = "not_json"
)

// filePath matches the paths that take files, which are not JSON.
var filePath = regexp.MustCompile(`^/v1/chat/(threads/[^/]+/)?files$`)

// foreign returns an error for a request that another site's page could have made a browser
// send, or that nize's page never sends.
func (b *Browser) foreign(r *http.Request) *api.Error {
	if r.Method == http.MethodGet {
		return nil
	}
	site, origin := r.Header.Get("Sec-Fetch-Site"), r.Header.Get("Origin")
	if site != "same-origin" && (site != "" || origin == "" || origin != b.Origin(r)) {
		return &api.Error{Code: notOurs, Message: "only nize's own page may ask for this"}
	}
	want := "application/json"
	if filePath.MatchString(r.URL.Path) {
		want = "application/octet-stream" // a form of another site can't send this type
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != want {
		return &api.Error{Code: notJSON, Message: "the body must be " + want}
	}
	return nil
}

// Session returns the user who is signed in to the browser that sends a request for another
// part of the HTTP API. The page's rules apply: a request that changes something must come
// from nize's page. If there is no session, it returns Person's error.
func (b *Browser) Session(r *http.Request) (by store.Caller, err error) {
	if by, err = b.Person(r); err != nil {
		return by, err
	}
	if e := b.foreign(r); e != nil {
		return store.Caller{}, &api.Error{Code: foreignCodes[e.Code], Message: e.Message}
	}
	return b.caller(r)
}

// foreignCodes maps a page's error codes to those of the HTTP API.
var foreignCodes = map[string]string{notOurs: "refused", notJSON: "invalid"}

// person returns the signed-in user.
func (b *Browser) person(r *http.Request) (store.Caller, error) {
	by, err := b.Person(r)
	if err != nil && !outage.Is(err) {
		err = &api.Error{Code: signedOut, Message: "sign in first"}
	}
	return by, err
}

// caller returns the session's user, with the page as the surface.
func (b *Browser) caller(r *http.Request) (store.Caller, error) {
	by, err := b.person(r)
	if err != nil {
		return by, err
	}
	if !b.asked.Take(by.Token, b.Now()) {
		return by, &api.Error{Code: "rate_limited", Message: fmt.Sprintf("more than %d requests in a minute", maxRequests)}
	}
	r.Header.Set(sessionHeader, by.Token)
	by.Surface, by.Token = store.OnWeb, "" // a call belongs to its turn, not to the session that requested it
	return by, nil
}

// answer is a response that may add a card to an error.
type answer struct {
	http.ResponseWriter
	request *http.Request
	// card returns the current card of the call that a request decides on; nil for other
	// requests.
	card func(*http.Request) *Card
}

func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// fail writes an error, with the card of the call that was decided on if that came too late.
func fail(w http.ResponseWriter, e *api.Error) {
	type problem struct {
		Type    string           `json:"type"`
		Message string           `json:"message"`
		Fields  []api.FieldError `json:"fields,omitempty"`
	}
	failure.Form{Type: failure.JSON, Body: func(e *api.Error) any {
		out := struct {
			Error problem `json:"error"`
			Card  *Card   `json:"card,omitempty"`
		}{Error: problem{e.Code, e.Message, e.Fields}}
		if a, ok := w.(*answer); ok && (e.Status() == http.StatusConflict || e.Status() == http.StatusGone) {
			out.Card = a.card(a.request)
		}
		return out
	}}.Write(w, e)
}
