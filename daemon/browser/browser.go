// Package browser serves the chat page (bots/web) and what it asks for: the
// operations of the control API that a person's page may reach, for the person of
// the session, and the stream of what happens. Whatever is not in [Browser.mount]
// can't be reached from a page, by admins neither. What admins alone reach is in
// admin.go: how servers are, accepting definitions, providers and names of models.
//
// A request that changes something comes from nize's own page or is refused, is
// JSON (or a file), and carries the session's cookie. An error is {"error":{"type","message"}};
// the type signed_out makes the page ask its person to sign in.
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
	"nize/daemon/limit"
	"nize/daemon/mux"
	"nize/store"
	"nize/store/outage"
)

// Limits of what a page asks.
const (
	maxRequests = 300 // a minute and session
	maxBody     = 1 << 20
)

// Options are what a Browser needs.
type Options struct {
	Platform      *web.Platform
	Conversations *control.Conversations
	Approvals     *control.Approvals
	Agents        *control.Agents
	Models        *control.Models
	Providers     *control.Providers
	Servers       *control.Servers
	Tools         *control.Tools
	Chat          *chatclient.Client // what of models and servers people are told
	Bots          *bots.Registry     // where conversations of other surfaces are held
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
	// Schema is what a tool takes, as its server wrote it.
	Schema func(ctx context.Context, tool string) (json.RawMessage, error)
	Places
	Config store.Config
	// Person is who is signed in where a request comes from; an error that is no outage
	// says that nobody is.
	Person func(*http.Request) (store.Caller, error)
	// Origin is the address under which a request's client knows nize; "" where
	// nobody may sign in.
	Origin func(*http.Request) string
	// Widgets is the origin of views, with * for their server; "" where they have none.
	Widgets func() string
	// Watch ends by cancel what its caller may not go on with.
	Watch func(ctx context.Context, by store.Caller, cancel context.CancelFunc) (leave func())
	// Speak is who prints in a language that a request asks for.
	Speak func(locale string) mux.Speaker
	// Closing ends when streams must.
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

// New returns one.
func New(opt Options) *Browser {
	b := &Browser{Options: opt, assets: web.NewAssets(), asked: limit.Limit{Most: maxRequests, Per: time.Minute}}
	b.streams.Quota = func() store.Quota { return store.QuotaOf(b.Config, "limits.user.streams", "limits.streams") }
	return b
}

// shells are the addresses of the page.
var shells = []string{"/app/{$}", "/app/c/{thread}", "/app/approvals", "/app/usage", "/app/servers", "/app/settings"}

// Handler serves everything below /app/, and what links in chats lead to. While web.enabled is off, nothing is there.
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

// Serves says whether there is a page where a request comes from: it is switched on,
// and its people could sign in.
func (b *Browser) Serves(r *http.Request) bool {
	return store.GetBool(b.Config, "", "web.enabled") && b.Origin(r) != ""
}

// nextCookie is where the page says to which address of its own it wants to come
// back from signing in. Anybody on this host may have set it, so it leads nowhere
// else.
const nextCookie = "nize-next"

// Landing is where a browser goes that has signed in just now: to the page, where
// there is one.
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

// operations serves /app/v1/.
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

// Operations lists what a page may reach below /app, but for its stream of events.
func (b *Browser) Operations() []mux.Mounted {
	m := mux.New(http.NewServeMux(), mux.Options{})
	b.mount(m)
	return m.Mounted()
}

// mount is the list of what a page may reach.
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
	signedOut   = "signed_out"
	notOurs     = "cross_origin"
	notJSON     = "not_json"
	rateLimited = "rate_limited"
)

var statuses = map[string]int{signedOut: http.StatusUnauthorized, notOurs: http.StatusForbidden, notJSON: http.StatusUnsupportedMediaType}

// filePath is where files are put, which are no JSON.
var filePath = regexp.MustCompile(`^/v1/chat/(threads/[^/]+/)?files$`)

// foreign refuses what another site's page could have made a browser send, and what
// no page of nize's sends.
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
		want = "application/octet-stream" // no form of another site can say so
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != want {
		return &api.Error{Code: notJSON, Message: "the body must be " + want}
	}
	return nil
}

// Session returns who is signed in to the browser that sends a request for another
// part of the HTTP API, by the rules of the page: what changes something must come
// from it. A request without a session is an error of no kind of its own.
func (b *Browser) Session(r *http.Request) (by store.Caller, err error) {
	if by, err = b.Person(r); err != nil {
		return by, err
	}
	if e := b.foreign(r); e != nil {
		return store.Caller{}, &api.Error{Code: foreignCodes[e.Code], Message: e.Message}
	}
	return b.caller(r)
}

// foreignCodes are the codes of the HTTP API for those that only a page gets.
var foreignCodes = map[string]string{notOurs: "refused", notJSON: "invalid"}

// person is who is signed in.
func (b *Browser) person(r *http.Request) (store.Caller, error) {
	by, err := b.Person(r)
	if err != nil && !outage.Is(err) {
		err = &api.Error{Code: signedOut, Message: "sign in first"}
	}
	return by, err
}

// caller is the person of the session, on the page.
func (b *Browser) caller(r *http.Request) (store.Caller, error) {
	by, err := b.person(r)
	if err != nil {
		return by, err
	}
	if !b.asked.Take(by.Token, b.Now()) {
		return by, &api.Error{Code: rateLimited, Message: fmt.Sprintf("more than %d requests in a minute", maxRequests)}
	}
	r.Header.Set(sessionHeader, by.Token)
	by.Surface, by.Token = store.OnWeb, "" // a call belongs to its turn, not to the session in which it was asked for
	return by, nil
}

// answer is a response that may say more about an error.
type answer struct {
	http.ResponseWriter
	request *http.Request
	// card is the one that a decision was about, as it stands; nil for other requests.
	card func(*http.Request) *Card
}

func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// fail writes an error.
func fail(w http.ResponseWriter, e *api.Error) {
	status := e.Status()
	if s := statuses[e.Code]; s != 0 {
		status = s
	}
	type problem struct {
		Type    string           `json:"type"`
		Message string           `json:"message"`
		Fields  []api.FieldError `json:"fields,omitempty"`
	}
	out := struct {
		Error problem `json:"error"`
		Card  *Card   `json:"card,omitempty"`
	}{Error: problem{e.Code, e.Message, e.Fields}}
	if a, ok := w.(*answer); ok && (status == http.StatusConflict || status == http.StatusGone) {
		out.Card = a.card(a.request)
	}
	body, _ := json.Marshal(out) // strings and a card, whose arguments are canonical
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // the browser has left: nothing to do
}
