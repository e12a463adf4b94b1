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
	cfg          store.Server // what it was dialed with, and edits that need no new session
	owner        string
	gate         Gate
	views        knownViews // nil for a server that is only probed
	instructions string
	version      string // of the protocol
	unsure       bool   // it may speak a newer one: the probe for it met trouble
	serverInfo   string
	title        string            // what the server calls itself
	about        string            // what it says of itself besides its instructions
	document     *openapi.Document // as it was when an OpenAPI server was dialed
	prompts      bool              // it says that it has some
	resources    bool
	since        time.Time

	notices     atomic.Uint64 // how often the list was said to have changed, or could not be read
	listedAt    atomic.Uint64 // notices when the list that is known began
	changed     chan struct{} // 1: wakes the keeper, however many came
	checkWanted chan struct{} // 1: a call timed out; the keeper looks whether the server still answers
	inflight    atomic.Int32  // calls in flight
	listing     chan struct{} // 1: held while listing
	tools       atomic.Pointer[catalog]
	standing    atomic.Pointer[wire.HTTPConn] // takes questions that come over the standing stream; nil elsewhere
}

// PID is that of the process that it ends in; 0 over HTTP.
func (s *session) PID() int {
	if c := s.Child(); c != nil {
		return c.PID()
	}
	return 0
}

// speaksOlder reports whether the server has shown that it speaks only the older HTTP
// wire.
func (s *session) speaksOlder() bool {
	return s.config().Transport == store.HTTP && s.version < wire.VersionModern && !s.unsure
}

// catalog is one whole list of a server's tools. It never changes.
type catalog struct {
	list   []listed // nil once it was compared with the store
	synced bool     // it was compared with the store, which has the definitions now
	byName map[string]offer
	at     time.Time     // when it was complete
	took   time.Duration // the whole list
	cost   time.Duration // of that, without the wait for the server; and of storing it
	warns  []string
	warned int      // how many there were; the first are in warns
	kept   []string // kinds of features whose list could not be read: they stay as they are
}

// listed is one tool as the server described it.
type listed struct {
	tool     store.Tool // State and Accepted are not set
	findings []string
}

// offer is what a call needs to know of a listed tool.
type offer struct {
	pin      string
	refused  error // by the schema gate
	bindings []wire.Binding
	// definition is the _meta of an OpenAPI operation: the request that it stands for,
	// which must be the one of the pin.
	definition json.RawMessage
	asTask     bool // it can only be called as a task (2025-11-25)
}

// dropDefinitions has the session keep no more of the list than calls need: every
// session with a server would hold all of its definitions. One that came
// meanwhile stays. Storing them cost so much.
func (s *session) dropDefinitions(c *catalog, cost time.Duration) {
	brief := *c
	brief.list, brief.synced = nil, true
	brief.cost += cost
	s.tools.CompareAndSwap(c, &brief)
}

// markChanged notes that the server says its list has changed.
func (s *session) markChanged() {
	s.notices.Add(1)
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// isOutdated says that there is a newer list than the one that is known. It holds
// until that one is complete: what is called meanwhile waits for it.
func (s *session) isOutdated() bool { return s.listedAt.Load() != s.notices.Load() }

// askForCheck asks the keeper to look whether the server still answers.
func (s *session) askForCheck() {
	select {
	case s.checkWanted <- struct{}{}:
	default:
	}
}

// list reads all tools again.
func (s *session) list(ctx context.Context) error { return s.listAnew(ctx, false) }

// listAnew is list; views says whether a person's session reads the tools' views, too,
// as a shared one does.
func (s *session) listAnew(ctx context.Context, views bool) error {
	select {
	case s.listing <- struct{}{}:
	case <-ctx.Done():
		return &wire.Fault{Reach: wire.Never, Err: ctx.Err()}
	}
	defer func() { <-s.listing }()
	return s.listLocked(ctx, views)
}

// relist reads the tools again if the server said that they changed, at most
// once in settleTime however often it says so, and more seldom if that is dear.
func (s *session) relist(ctx context.Context) error {
	select {
	case s.listing <- struct{}{}:
	case <-ctx.Done():
		return &wire.Fault{Reach: wire.Never, Err: ctx.Err()}
	}
	defer func() { <-s.listing }()
	if !s.isOutdated() {
		return nil // somebody was first
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

// listLocked needs s.listing.
func (s *session) listLocked(ctx context.Context, views bool) error {
	caller := ctx
	ctx, cancel := context.WithTimeoutCause(ctx, listTime, fmt.Errorf("no complete list within %s", listTime))
	defer cancel()
	notices := s.notices.Load()
	c, err := s.fetchTools(ctx, views)
	if err != nil {
		s.notices.Add(1)
		switch {
		case caller.Err() != nil: // who asked has left: that says nothing of the server
			err = &wire.Fault{Reach: wire.Never, Err: caller.Err()}
		case ctx.Err() != nil:
			cause := context.Cause(ctx)
			if said := wire.AsFault(err).Said; said != "" {
				cause = fmt.Errorf("%w; meanwhile it wrote %s to standard output", cause, said)
			}
			err = &wire.Fault{Reach: wire.Never, Drop: true, Err: cause}
		}
		f := *wire.AsFault(err)
		f.Reach = wire.Never // of the tool that somebody may wait for
		f.Err = fmt.Errorf("listing its tools: %w", f.Err)
		return &f
	}
	s.tools.Store(c)
	s.listedAt.Store(notices)
	return nil
}

// fetchTools reads everything that the server lists. A list that does not end is
// cut at the bounds, with a warning: what came is good.
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

// fetchPages reads one list page after page.
func (s *session) fetchPages(ctx context.Context, c *catalog, method, member string, add func(*catalog, json.RawMessage)) error {
	seen := map[string]bool{}
	size, had, cursor := 0, len(c.list), ""
	for page := 1; ; page++ {
		raw, err := s.Call(ctx, &wire.Request{Method: method, Cursor: cursor})
		if err != nil {
			var rpc *wire.RPCError
			if errors.As(err, &rpc) && rpc.Code == wire.CodeMethodNotFound && page == 1 {
				return nil // a server without any
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
			return &wire.Fault{Reach: wire.Answered, Err: fmt.Errorf("a list that is not one: %w", err)}
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

// maxWarnings is how many are told of one list, which can earn one for each tool.
const maxWarnings = 10

func (c *catalog) warn(what string) {
	switch c.warned++; {
	case c.warned < maxWarnings:
		c.warns = append(c.warns, what)
	case c.warned == maxWarnings:
		c.warns = append(c.warns, what+"; what else is wrong with its list is left out")
	}
}

// addTool adds one tool of a page, gated and pinned.
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
		c.warn(fmt.Sprintf("a tool that is not one is left out: %v", err))
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

// requiresTask reports whether a tool says that it runs as a task alone.
func requiresTask(execution json.RawMessage) bool {
	var e struct {
		Tasks string `json:"taskSupport"`
	}
	return json.Unmarshal(execution, &e) == nil && e.Tasks == "required"
}

// optionalText is a text; a value of another type counts as not said.
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

// maxIcons is what the icons of one tool may take: every client that lists it
// by name gets them.
const maxIcons = 16 << 10

// icons keeps those that a client may load without harm to anybody: pictures in
// themselves, or from a server that proves its name. What else there is is left
// out with a list of one bad icon.
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

// annotations reads the claims that have the right type; a wrong one counts as
// not said.
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

// storedTool is how a tool stands in the store.
type storedTool struct {
	state      store.ToolState
	accepted   string // the pin
	repeatable bool   // its server says that running it twice does no harm
	view       *view.Claims
}

func newStoredTool(t store.Tool) storedTool {
	yes := func(b *bool) bool { return b != nil && *b }
	return storedTool{t.State, t.Accepted, yes(t.Annotations.ReadOnly) || yes(t.Annotations.Idempotent), view.Of(t.Meta)}
}

// setConfig takes over what an edit of the record changed without a new session.
// It is called while the server is syncing, before the list that uses it.
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
