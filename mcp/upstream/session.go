package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"nize/mcp/feature"
	"nize/mcp/upstream/openapi"
	"nize/mcp/upstream/wire"
	"nize/mcp/view"
	"nize/store"
)

// session is one connection to one server for one credential owner.
type session struct {
	wire.Conn
	cfgMu        sync.Mutex
	cfg          store.Server // the record of the dial, with later edits that need no new session
	owner        string
	gate         Gate
	views        knownViews // nil for a server that is only probed
	instructions string
	version      string // protocol version
	unsure       bool   // the server may support a newer version: the probe for it failed for another reason
	serverInfo   string
	title        string            // the server's own title
	about        string            // the server's description of itself, besides its instructions
	document     *openapi.Document // an OpenAPI server's document at the time of the dial
	prompts      bool              // the server declares prompts
	resources    bool
	since        time.Time

	notices     atomic.Uint64 // counts change notifications, and lists that could not be read
	listedAt    atomic.Uint64 // value of notices at the start of the current list
	changed     chan struct{} // capacity 1: wakes the keeper
	checkWanted chan struct{} // capacity 1: a call timed out; the keeper checks whether the server still responds
	inflight    atomic.Int32  // calls in flight
	listing     chan struct{} // capacity 1: held while listing
	tools       atomic.Pointer[catalog]
	standing    atomic.Pointer[wire.HTTPConn] // gets the questions that arrive on the standing stream; nil for other transports
}

// PID returns the PID of the session's process, or 0 over HTTP.
func (s *session) PID() int {
	if c := s.Child(); c != nil {
		return c.PID()
	}
	return 0
}

// speaksOlder reports whether the server is known to support only the older HTTP protocol.
func (s *session) speaksOlder() bool {
	return s.config().Transport == store.HTTP && s.version < wire.VersionModern && !s.unsure
}

// catalog is one complete list of a server's tools. It is immutable.
type catalog struct {
	list   []listed // nil once it was compared with the store
	synced bool     // it was compared with the store, which now has the definitions
	byName map[string]offer
	at     time.Time     // when it was complete
	took   time.Duration // duration of the whole list
	cost   time.Duration // the part of it without the waits for the server, plus the time to store it
	warns  []string
	warned int      // total number of warnings; warns has the first ones
	kept   []string // kinds of features whose list could not be read: their stored features stay unchanged
}

// listed is one tool as the server described it.
type listed struct {
	tool     store.Tool // State and Accepted are not set
	findings []string
}

// offer is the part of a listed tool that a call needs.
type offer struct {
	pin      string
	refused  error // the schema gate's refusal
	bindings []wire.Binding
	// definition is the _meta of an OpenAPI operation: the HTTP request that it maps to,
	// which must match the pin.
	definition json.RawMessage
	asTask     bool // it can only be called as a task (2025-11-25)
}

// dropDefinitions reduces the session's list to the fields that calls need, since otherwise
// every session with a server would hold all of its definitions. It keeps a list that has
// replaced c in the meantime. cost is the time that storing the list took.
func (s *session) dropDefinitions(c *catalog, cost time.Duration) {
	brief := *c
	brief.list, brief.synced = nil, true
	brief.cost += cost
	s.tools.CompareAndSwap(c, &brief)
}

// markChanged records a notification that the server's list changed.
func (s *session) markChanged() {
	s.notices.Add(1)
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// isOutdated reports whether the server has a newer list than the current one. It stays
// true until the new list is complete, and calls in the meantime wait for it.
func (s *session) isOutdated() bool { return s.listedAt.Load() != s.notices.Load() }

// askForCheck requests that the keeper checks whether the server still responds.
func (s *session) askForCheck() {
	select {
	case s.checkWanted <- struct{}{}:
	default:
	}
}

// list reads all tools again.
func (s *session) list(ctx context.Context) error { return s.listAnew(ctx, false) }

// listAnew is list. views makes a personal session read the tools' views, too, which a
// shared session always does.
func (s *session) listAnew(ctx context.Context, views bool) error {
	select {
	case s.listing <- struct{}{}:
	case <-ctx.Done():
		return &wire.Fault{Reach: wire.Never, Err: ctx.Err()}
	}
	defer func() { <-s.listing }()
	return s.listLocked(ctx, views)
}

// relist reads the tools again if the server has notified a change. It does so at most once
// per settleTime, however many notifications arrive, and less often if a list is expensive.
func (s *session) relist(ctx context.Context) error {
	select {
	case s.listing <- struct{}{}:
	case <-ctx.Done():
		return &wire.Fault{Reach: wire.Never, Err: ctx.Err()}
	}
	defer func() { <-s.listing }()
	if !s.isOutdated() {
		return nil // another goroutine was first
	}
	if last := s.tools.Load(); last != nil {
		timer := time.NewTimer(max(settleTime, min(listShare*last.cost, 10*time.Second)) - time.Since(last.at))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return &wire.Fault{Reach: wire.Never, Err: ctx.Err()}
		case <-s.Done():
			return &wire.Fault{Reach: wire.Never, Drop: true, Err: s.Cause()}
		}
	}
	return s.listLocked(ctx, false)
}

// listLocked is listAnew. s.listing must be held.
func (s *session) listLocked(ctx context.Context, views bool) error {
	caller := ctx
	ctx, cancel := context.WithTimeoutCause(ctx, listTime, fmt.Errorf("no complete list within %s", listTime))
	defer cancel()
	notices := s.notices.Load()
	c, err := s.fetchTools(ctx, views)
	if err != nil {
		s.notices.Add(1)
		switch {
		case caller.Err() != nil: // the caller left, which is no fault of the server
			err = &wire.Fault{Reach: wire.Never, Err: caller.Err()}
		case ctx.Err() != nil:
			cause := context.Cause(ctx)
			if said := wire.AsFault(err).Said; said != "" {
				cause = fmt.Errorf("%w; meanwhile it wrote %s to standard output", cause, said)
			}
			err = &wire.Fault{Reach: wire.Never, Drop: true, Err: cause}
		}
		f := *wire.AsFault(err)
		f.Reach = wire.Never // the call that may wait for this list was never sent
		f.Err = fmt.Errorf("listing its tools: %w", f.Err)
		return &f
	}
	s.tools.Store(c)
	s.listedAt.Store(notices)
	return nil
}

// fetchTools reads the complete list of the server. A list that exceeds the limits is cut
// with a warning, and its first part is used.
func (s *session) fetchTools(ctx context.Context, views bool) (*catalog, error) {
	begin := time.Now()
	c := &catalog{byName: map[string]offer{}}
	if err := s.fetchPages(ctx, c, wire.MethodList, "tools", s.addTool); err != nil {
		return nil, err
	}
	if err := s.fetchFeatures(ctx, c); err != nil {
		return nil, err
	}
	if err := s.pinViews(ctx, c, views || s.owner == ""); err != nil {
		return nil, err
	}
	c.at = time.Now()
	c.took = c.at.Sub(begin)
	return c, nil
}

// fetchPages reads one list page by page.
func (s *session) fetchPages(ctx context.Context, c *catalog, method, member string, add func(*catalog, json.RawMessage)) error {
	seen := map[string]bool{}
	size, had, cursor := 0, len(c.list), ""
	for page := 1; ; page++ {
		raw, err := s.Call(ctx, &wire.Request{Method: method, Cursor: cursor})
		if err != nil {
			var rpc *wire.RPCError
			if errors.As(err, &rpc) && rpc.Code == wire.CodeMethodNotFound && page == 1 {
				return nil // a server without such a list
			}
			return err
		}
		came := time.Now()
		var got map[string]json.RawMessage
		var items []json.RawMessage
		var next string
		err = json.Unmarshal(raw, &got)
		if err == nil && got[member] != nil {
			err = json.Unmarshal(got[member], &items)
		}
		if err == nil && got["nextCursor"] != nil {
			err = json.Unmarshal(got["nextCursor"], &next)
		}
		if err != nil {
			return &wire.Fault{Reach: wire.Answered, Err: fmt.Errorf("an invalid list: %w", err)}
		}
		for _, t := range items {
			if len(c.list)-had == maxTools {
				break
			}
			add(c, t)
		}
		c.cost += time.Since(came)
		cursor = next
		size += len(raw)
		switch {
		case cursor == "":
		case len(c.list)-had >= maxTools:
			c.warn(fmt.Sprintf("it lists more than %d %s; the rest is left out", maxTools, member))
			cursor = ""
		case page >= maxPages:
			c.warn(fmt.Sprintf("its list has more than %d pages; the rest is left out", maxPages))
			cursor = ""
		case size > wire.MaxMessage:
			c.warn(fmt.Sprintf("its list is over %d MiB; the rest is left out", wire.MaxMessage>>20))
			cursor = ""
		case seen[cursor]:
			c.warn("its list repeats a cursor; it ends there")
			cursor = ""
		}
		if cursor == "" {
			return nil
		}
		seen[cursor] = true
	}
}

// maxWarnings is how many warnings about one list are kept, which could have one per tool.
const maxWarnings = 10

func (c *catalog) warn(what string) {
	switch c.warned++; {
	case c.warned < maxWarnings:
		c.warns = append(c.warns, what)
	case c.warned == maxWarnings:
		c.warns = append(c.warns, what+"; what else is wrong with its list is left out")
	}
}

// addTool adds one tool of a page, after the gate's check and with its pin.
func (s *session) addTool(c *catalog, raw json.RawMessage) {
	var t struct {
		Name        string          `json:"name"`
		Title       optionalText    `json:"title"`
		Description optionalText    `json:"description"`
		Input       json.RawMessage `json:"inputSchema"`
		Output      json.RawMessage `json:"outputSchema"`
		Annotations json.RawMessage `json:"annotations"`
		Meta        json.RawMessage `json:"_meta"`
		Icons       json.RawMessage `json:"icons"`
		Execution   json.RawMessage `json:"execution"`
	}
	if err := json.Unmarshal(raw, &t); err != nil {
		c.warn(fmt.Sprintf("an invalid tool is left out: %v", err))
		return
	}
	_, twice := c.byName[t.Name]
	switch {
	case t.Name == "" || len(t.Name) > 256 || !utf8.ValidString(t.Name):
		c.warn(fmt.Sprintf("a tool with the name %q is left out: names have 1 to 256 bytes", store.Clip(t.Name, 40)))
		return
	case !feature.IsTool(t.Name):
		c.warn(fmt.Sprintf("a tool with the name %q is left out: such names are of prompts and resources", store.Clip(t.Name, 40)))
		return
	case twice:
		c.warn(fmt.Sprintf("a second tool with the name %q is left out", t.Name))
		return
	case !allowed(s.config(), t.Name, t.Meta):
		return
	}
	if nullToNil(t.Input) == nil {
		t.Input = json.RawMessage(`{"type":"object"}`)
	}
	l := listed{tool: store.Tool{Server: s.config().Name, Name: t.Name, Title: string(t.Title), Description: string(t.Description),
		InputSchema: t.Input, OutputSchema: nullToNil(t.Output), Meta: view.Pinned(nullToNil(t.Meta), view.Domains{}), Icons: icons(t.Icons), Annotations: annotations(t.Annotations)}}
	o := offer{refused: s.gate.Check(l.tool), asTask: s.version == wire.VersionLegacy && requiresTask(t.Execution)}
	if o.refused == nil {
		o.bindings, o.refused = wire.BindingsOf(t.Input)
	}
	o.pin, l.findings = s.gate.Pin(s.config(), s.instructions, l.tool)
	l.tool.Pin = o.pin
	if s.config().Transport == store.OpenAPI {
		o.definition = l.tool.Meta
	}
	c.byName[t.Name] = o
	c.list = append(c.list, l)
}

// requiresTask reports whether a tool declares that it runs only as a task.
func requiresTask(execution json.RawMessage) bool {
	var e struct {
		Tasks string `json:"taskSupport"`
	}
	return json.Unmarshal(execution, &e) == nil && e.Tasks == "required"
}

// optionalText is a string; a JSON value of another type counts as absent.
type optionalText string

func (t *optionalText) UnmarshalJSON(raw []byte) error {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		*t = optionalText(s)
	}
	return nil
}

func nullToNil(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// maxIcons is the maximum total size of one tool's icons, which every client that lists it
// by name receives.
const maxIcons = 16 << 10

// icons returns the icons that a client can load safely: inline images, and URLs whose
// server is authenticated by TLS. If one icon of the list is bad, it drops all of them.
func icons(raw json.RawMessage) json.RawMessage {
	var list []struct {
		Source string `json:"src"`
	}
	if len(raw) == 0 || len(raw) > maxIcons || json.Unmarshal(raw, &list) != nil || len(list) == 0 {
		return nil
	}
	for _, i := range list {
		if !strings.HasPrefix(i.Source, "https://") && !strings.HasPrefix(i.Source, "data:image/") {
			return nil
		}
	}
	return raw
}

// annotations reads the annotations that have the right type; others count as absent.
func annotations(raw json.RawMessage) store.Annotations {
	var a store.Annotations
	var claims map[string]json.RawMessage
	if json.Unmarshal(raw, &claims) != nil {
		return a
	}
	flag := func(name string) *bool {
		var b *bool
		if json.Unmarshal(claims[name], &b) != nil {
			return nil
		}
		return b
	}
	if json.Unmarshal(claims["title"], &a.Title) != nil {
		a.Title = ""
	}
	a.ReadOnly, a.Destructive = flag("readOnlyHint"), flag("destructiveHint")
	a.Idempotent, a.OpenWorld = flag("idempotentHint"), flag("openWorldHint")
	return a
}

// storedTool is the stored state of a tool.
type storedTool struct {
	state      store.ToolState
	accepted   string // the accepted pin
	repeatable bool   // its server declares that running it twice is harmless
	view       *view.Claims
}

func newStoredTool(t store.Tool) storedTool {
	yes := func(b *bool) bool { return b != nil && *b }
	return storedTool{t.State, t.Accepted, yes(t.Annotations.ReadOnly) || yes(t.Annotations.Idempotent), view.Of(t.Meta)}
}

// setConfig applies an edit of the record that needs no new session. It is called while the
// server is syncing, before the list that uses it.
func (s *session) setConfig(cfg store.Server) {
	s.cfgMu.Lock()
	defer s.cfgMu.Unlock()
	s.cfg = cfg
}

func (s *session) config() store.Server {
	s.cfgMu.Lock()
	defer s.cfgMu.Unlock()
	return s.cfg
}
