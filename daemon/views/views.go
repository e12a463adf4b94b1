// Package views opens the views of tools' results for pages, and handles the views'
// requests.
//
// A view is opened for a call that is running or has a result, for a person who may read it
// ([Views.Open]). It is read at that moment, from nize's own tools, from an extension or
// from the tool's server, with the viewer's credential. If that fails there is no view, and
// the page shows the plain result. The page gets a ticket, with which its frame fetches the
// HTML once ([Views.Serve]), under a policy that allows no network access except what an
// admin accepted, and no navigation. The frame has no origin, or one that only its server
// has ([Options.Widgets]), at a host that serves nothing but frames.
//
// Chats show results as text, by the renderer of their tool (renderers.go), with a link to the
// view (links.go).
package views

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"nize/daemon/api"
	"nize/daemon/limit"
	"nize/daemon/module"
	"nize/daemon/mux"
	"nize/mcp/policy"
	"nize/mcp/view"
	"nize/store"
	"nize/store/kv"
	"nize/store/toolschema"
)

const ticketTime = 60 * time.Second

// Options are the dependencies of Views. All are required.
type Options struct {
	// Calls returns calls as visible to a person.
	Calls interface {
		GetCall(ctx context.Context, by store.Caller, req api.CallRequest) (store.Call, error)
	}
	Tools interface {
		Get(id string) (*policy.Tool, bool)
		ToolIDs(ctx context.Context) ([]string, error)
	}
	Rights interface {
		// Listed returns the tools of a call's server that a view of the call may see.
		Listed(ctx context.Context, by store.Caller, c store.Call) ([]*policy.Tool, error)
		// Usable returns why a person may not use a tool where a call was made, nil if they
		// may.
		Usable(ctx context.Context, by store.Caller, c store.Call) error
	}
	// Gateway calls tools, and Resources reads listed resources, as calls.
	Gateway interface {
		// CallByParams takes the arguments from the params of a tools/call.
		CallByParams(ctx context.Context, by store.Caller, req store.Request, params json.RawMessage) (*store.Call, error)
	}
	Resources interface {
		Read(ctx context.Context, by store.Caller, req store.Request) (*store.Call, error)
	}
	// Resource reads a resource of the server of a call's tool, whose pin must be the
	// accepted one, with the viewer's credential.
	Resource func(ctx context.Context, by store.Caller, c store.Call, uri string) (json.RawMessage, error)
	// Template returns the view of a native tool, "" if it has none.
	Template func(name string) string
	// Kept stores views' contexts for the model, which are sent with the viewer's next
	// message, and views' states, which are restored when they are opened again.
	Kept interface {
		PutViewContext(ctx context.Context, thread string, told store.ViewContext) error
		PutViewState(ctx context.Context, thread, call, user string, state json.RawMessage) error
		GetViewState(ctx context.Context, call, user string) (json.RawMessage, error)
	}
	// Widgets returns the origin of views, with * for their server; "" if they have none.
	Widgets func() string
	Events  interface {
		AddEvent(by store.Caller, e store.Event)
	}
	// PublicURL returns the address at which browsers anywhere can reach nize, "" if there
	// is none.
	PublicURL func() string
	DB        kv.DB // opened with [Buckets]
	Store     linkStore
	Renderers *view.Renderers
	Config    store.Config // limits.user.views, limits.views
	Now       func() time.Time
	Log       *slog.Logger
}

// Views are safe for concurrent use.
type Views struct {
	Options
	Links *Links

	called limit.Limit // tool calls of views, by person and call
	noted  limit.Limit // requests of views, by person, call and method

	mu      sync.Mutex // guards the fields below
	tickets map[string]page
	held    uint64                     // number of tickets so far, for ordering
	open    map[string]map[string]bool // running and pending calls of views, by person and call
}

// page is what a ticket gives access to.
type page struct {
	html    []byte
	nonce   string
	domains view.Domains
	page    string            // origin of the page that embeds the frame
	host    string            // first label of the view's host, "" if it has none
	source  [sha256.Size]byte // of the HTML as it was read
	expires time.Time
	holder  string // to whose quota it counts
	n       uint64 // its number
}

// Buckets are the buckets of views.
var Buckets = []kv.Bucket{
	{Name: renderers.Bucket, Key: "tool", Value: "JSON"},
	{Name: linkKeys, Key: "keys", Value: "JSON list: keys that sign links, newest first", Sealed: true},
}

const linkKeys = "link_keys"

// New returns a Views.
func New(opt Options) *Views {
	v := &Views{Options: opt, tickets: map[string]page{}, called: limit.Limit{Most: maxCalls, Per: time.Minute}, noted: limit.Limit{Most: maxNoted, Per: time.Minute}, open: map[string]map[string]bool{}}
	v.Links = newLinks(v)
	return v
}

// Module returns the module.
func (v *Views) Module() module.Module {
	return module.Module{Name: "views", Buckets: Buckets, Settings: Settings, Operations: v.mount}
}

func (v *Views) mount(m *mux.Mux) {
	mux.Handle(m, api.GetRenderer, v.GetRenderer)
	mux.Handle(m, api.PutRenderer, v.PutRenderer)
	mux.Handle(m, api.RemoveRenderer, v.RemoveRenderer)
}

// Has reports whether calls of a tool have a view.
func (v *Views) Has(tool string) bool {
	t, ok := v.Tools.Get(tool)
	return ok && t.State == store.ToolAccepted && t.Pin == t.Accepted && (t.Server != policy.NativeServer && t.View().URI != "" || t.Server == policy.NativeServer && v.Template(t.Name) != "")
}

// Shows reports whether a call of a tool in that state has a view to open. A server's view
// may also show a running call and its errors, and remains if the outcome is lost; a
// template shows only structured results.
func (v *Views) Shows(tool string, state store.State) bool {
	server, _, _ := store.SplitToolID(tool)
	shown := []store.State{store.Done, store.Running, store.Failed, store.Lost}
	if server == policy.NativeServer {
		shown = shown[:1]
	}
	return slices.Contains(shown, state) && v.Has(tool)
}

// Mount adds the operations for pages.
func (v *Views) Mount(m *mux.Mux) {
	mux.Handle(m, Open, v.Open)
	mux.Handle(m, Ask, v.Ask)
	mux.Handle(m, Outcome, v.Outcome)
}

// Open is the operation that opens the view of a call.
var Open = api.Op[OpenRequest, Frame]{Method: "POST", Path: "/v1/frames", Summary: "open the view of a call"}

// OpenRequest names the call, and describes its reader's display.
type OpenRequest struct {
	Call   string `json:"call"`
	Theme  string `json:"theme,omitempty"`  // dark; anything else is light
	Locale string `json:"locale,omitempty"` // a BCP 47 tag; "" is what the browser accepts
	Accept string `header:"Accept-Language" json:"-"`
	Page   string `header:"Nize-Page" json:"-"` // origin of the requesting page
}

// Frame is an opened view: the ticket of its frame, and the data for it.
type Frame struct {
	Ticket    string          `json:"ticket"`
	Origin    string          `json:"origin,omitempty"` // of the view, if it has one
	Server    string          `json:"server"`
	Tool      Tool            `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Result    json.RawMessage `json:"result,omitempty"` // none while the call is running
	Granted   view.Granted    `json:"granted"`
}

// Tool is the description of the tool for its view.
type Tool struct {
	Name        string          `json:"name"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

func toolOf(t *policy.Tool) Tool {
	return Tool{Name: t.Name, Title: t.Title, Description: t.Description, InputSchema: toolschema.Listed(t.InputSchema)}
}

// hostOf returns the first label of the host of a server's views.
func hostOf(server string) string {
	sum := sha256.Sum256([]byte(server))
	return hex.EncodeToString(sum[:16])
}

// errNoView returns the error if there is no view, for whatever reason: the reader has the
// plain result, and the log has the reason.
func errNoView(tool string) error {
	return fmt.Errorf("a view of %s: %w", tool, store.ErrNotFound)
}

// Open opens the view of a call whose result the caller may read.
func (v *Views) Open(ctx context.Context, by store.Caller, req OpenRequest) (none Frame, err error) {
	c, tool, err := v.callOf(ctx, by, req.Call)
	if err != nil {
		return none, err
	}
	return v.openAs(ctx, by, by, c, tool, req)
}

// OpenFor opens the view of a call for a person who got a link from its requester. It shows
// what the requester may see now. by is the viewer.
func (v *Views) OpenFor(ctx context.Context, by, requester store.Caller, req OpenRequest) (none Frame, err error) {
	c, tool, err := v.callOf(ctx, requester, req.Call)
	if err != nil {
		return none, err
	}
	return v.openAs(ctx, by, requester, c, tool, req)
}

// openAs opens the view of requester's call for by.
func (v *Views) openAs(ctx context.Context, by, requester store.Caller, c store.Call, tool *policy.Tool, req OpenRequest) (none Frame, err error) {
	p, err := v.read(ctx, by, requester, c, tool, req)
	if err != nil {
		v.Log.Warn("a view is left out", "tool", c.ToolID(), "call", c.ID, "err", err)
		return none, errNoView(c.ToolID())
	}
	f := Frame{
		Server: c.Server, Arguments: c.Args,
		Tool:    toolOf(tool),
		Granted: p.domains.Grant(),
	}
	if c.State.Final() {
		f.Result = resultOf(c)
	}
	p.page = req.Page
	if at := v.Widgets(); at != "" {
		p.host = hostOf(c.Server)
		f.Origin = strings.Replace(at, "*", p.host, 1)
	}
	if p.holder = by.User; p.holder == store.System.User { // if opened by a link, it counts to its requester, so that a link can't use up others' quotas
		p.holder = "link " + requester.User
	}
	if f.Ticket, err = v.hold(p); err != nil {
		return none, err
	}
	v.event(by, c, "view.open", map[string]string{"sha256": hex.EncodeToString(p.source[:])})
	return f, nil
}

// callOf returns a running or finished call that the caller may read, and its current tool,
// if the caller may use that. A call that has not started has nothing to show; the caller
// may try again later.
func (v *Views) callOf(ctx context.Context, by store.Caller, id string) (c store.Call, t *policy.Tool, err error) {
	c, t, err = v.requested(ctx, by, id)
	switch {
	case err != nil:
	case c.State == store.Planned || c.State == store.Pending:
		err = fmt.Errorf("a view of %s before it runs: %w", c.ToolID(), store.ErrConflict)
	case !v.Shows(c.ToolID(), c.State) || c.State.Final() && (c.Result == nil || len(c.Result.Passed()) == 0):
		err = errNoView(c.ToolID())
	}
	return c, t, err
}

// requested returns one of the caller's own calls, in any state, and its tool.
func (v *Views) requested(ctx context.Context, by store.Caller, id string) (c store.Call, t *policy.Tool, err error) {
	if c, err = v.Calls.GetCall(ctx, by, api.CallRequest{ID: id}); err != nil {
		return c, nil, err
	}
	if c.By != by.User || !v.Has(c.ToolID()) {
		return c, nil, errNoView(c.ToolID())
	}
	if err := v.Rights.Usable(ctx, by, c); err != nil {
		return c, nil, err
	}
	t, ok := v.Tools.Get(c.ToolID())
	if !ok {
		return c, nil, errNoView(c.ToolID())
	}
	return c, t, nil
}

// resultOf returns a call's result in MCP's form, an empty one if there is none yet.
func resultOf(c store.Call) json.RawMessage {
	var object map[string]json.RawMessage
	if c.Result != nil && json.Unmarshal(c.Result.Passed(), &object) == nil {
		return c.Result.Passed()
	}
	return json.RawMessage(`{"content":[]}`)
}

// read returns the view of a call, from wherever it is. If it is written for window.openai,
// it is filled in for the call, with the state stored for by.
func (v *Views) read(ctx context.Context, by, requester store.Caller, c store.Call, tool *policy.Tool, req OpenRequest) (p page, err error) {
	var result struct {
		Output   json.RawMessage `json:"structuredContent"`
		Metadata json.RawMessage `json:"_meta"`
	}
	if err := json.Unmarshal(resultOf(c), &result); err != nil {
		return p, err
	}
	g := view.Globals{Theme: "light", Locale: view.Locale(cmp.Or(req.Locale, req.Accept)), Input: c.Args, Output: result.Output, Metadata: result.Metadata}
	if req.Theme == "dark" {
		g.Theme = "dark"
	}
	if g.State, err = v.Kept.GetViewState(ctx, c.ID, by.User); err != nil && !errors.Is(err, store.ErrNotFound) {
		return p, err
	}
	if tool.Server != policy.NativeServer {
		return v.readUpstream(ctx, requester, c, tool, g)
	}
	template := v.Template(tool.Name)
	p.nonce, p.source = random(), sha256.Sum256([]byte(template))
	p.html, err = view.Fill(template, p.nonce, g)
	return p, err
}

// readUpstream reads the view of a server's tool, with the viewer's credential.
func (v *Views) readUpstream(ctx context.Context, by store.Caller, c store.Call, tool *policy.Tool, g view.Globals) (p page, err error) {
	claims := tool.View()
	c.Pin = tool.Accepted
	raw, err := v.Resource(ctx, by, c, claims.URI)
	if err != nil {
		return p, err
	}
	content, err := view.Read(raw, claims)
	if err != nil {
		return p, err
	}
	p.html, p.source, p.domains = content.HTML, sha256.Sum256(content.HTML), content.Granted(claims.Accepted)
	if content.Skybridge {
		p.html, err = view.Fill(string(content.HTML), "", g)
	}
	return p, err
}

// random returns an unguessable name of 32 random bytes.
func random() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // it never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

// hold stores a page under a new ticket.
func (v *Views) hold(p page) (ticket string, err error) {
	ticket = random()
	v.mu.Lock()
	defer v.mu.Unlock()
	now := v.Now() // read the clock under the lock: a page stored meanwhile would look like a clock set back
	p.expires = now.Add(ticketTime)
	maps.DeleteFunc(v.tickets, func(_ string, o page) bool {
		return !now.Before(o.expires) || o.expires.Sub(now) > ticketTime // the second condition: the clock was set back
	})
	held := slices.SortedFunc(maps.Keys(v.tickets), func(a, b string) int { return cmp.Compare(v.tickets[a].n, v.tickets[b].n) })
	list := make([]store.Kept, len(held))
	for i, t := range held {
		list[i] = store.Kept{Owner: v.tickets[t].holder, Size: int64(len(v.tickets[t].html))}
	}
	drop, err := store.QuotaOf(v.Config, "limits.user.views", "limits.views").MakeRoom(list, p.holder, int64(len(p.html)))
	if err != nil {
		return "", &store.CallError{Code: store.CodeRateLimited, Retryable: true, Message: store.Textf("too many views are being opened; try again in a minute: %s", store.TextOf(err))}
	}
	for _, i := range drop {
		delete(v.tickets, held[i])
	}
	v.held++
	p.n = v.held
	v.tickets[ticket] = p
	return ticket, nil
}

// Serve serves a frame at the host of its server's views, "" for nize's own: once per
// ticket.
func (v *Views) Serve(w http.ResponseWriter, r *http.Request, ticket, host string) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	if dest := r.Header.Get("Sec-Fetch-Dest"); dest != "" && dest != "iframe" {
		http.NotFound(w, r) // the ticket stays valid
		return
	}
	v.mu.Lock()
	p, ok := v.tickets[ticket]
	ok = ok && p.host == host
	if ok {
		delete(v.tickets, ticket)
	}
	v.mu.Unlock()
	if !ok || !v.Now().Before(p.expires) {
		http.NotFound(w, r)
		return
	}
	h.Set("Content-Security-Policy", view.Policy(p.page, p.host != "", p.nonce, p.domains))
	h.Set("Connection-Allowlist", view.Allowlist(p.domains))
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	_, _ = w.Write(view.Seal(p.html, p.nonce, p.domains)) // the browser has disconnected
}

// event records an event of a call's view.
func (v *Views) event(by store.Caller, c store.Call, kind string, data any) {
	raw, err := json.Marshal(data)
	if err != nil {
		v.Log.Error("encoding the event of a view", "err", err)
	}
	v.Events.AddEvent(by, store.Event{Kind: kind, Subject: c.ID, Tool: c.ToolID(), Data: raw})
}
