package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	hook "nize/daemon/hooks"
	"nize/mcp"
	"nize/mcp/index"
	"nize/store"
	"nize/store/database"
	"nize/store/database/databasetest"
	"nize/store/hooks"
	"nize/store/outage"
)

// runner is the upstream in these tests. It counts runs and echoes the arguments. hold, if
// set, blocks a call until it is closed.
type runner struct {
	runs atomic.Int64
	hold chan struct{}
	fail error
	raw  json.RawMessage
	last atomic.Pointer[string]                                          // the arguments of the last run
	act  func(ctx context.Context, c *store.Call) (*store.Result, error) // replaces the default behavior below
}

func (r *runner) Run(ctx context.Context, _ store.Caller, c *store.Call, progress store.ProgressFunc) (*store.Result, error) {
	args := string(c.Args)
	r.last.Store(&args)
	r.runs.Add(1)
	if r.act != nil {
		return r.act(ctx, c)
	}
	if progress != nil {
		progress(1, 2, "half way")
	}
	if r.hold != nil {
		select {
		case <-r.hold:
		case <-ctx.Done():
			return nil, &store.CallError{Code: store.CodeCancelled, Message: store.Plain("cancelled")}
		}
	}
	if r.fail != nil {
		return nil, r.fail
	}
	if r.raw != nil {
		return &store.Result{Raw: r.raw}, nil
	}
	return &store.Result{Raw: json.RawMessage(fmt.Sprintf(`{"content":[{"type":"text","text":"ran"}],"structuredContent":{"args":%s}}`, c.Args))}, nil
}

// settings are those of the fixture; the worker reads them while a test changes them.
type settings struct {
	mu   sync.Mutex
	says store.Defaults
}

func (s *settings) set(key, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.says == nil {
		s.says = store.Defaults{}
	}
	s.says[key] = value
}

func (s *settings) Get(user, key string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.says.Get(user, key)
}

type fixture struct {
	t       *testing.T
	db      *database.DB
	index   *index.Index
	gateway *mcp.Gateway
	runner  *runner
	config  *settings
	channel channel
	hooks   *hook.Set    // configured ones
	extra   []mcp.Hook   // built-in hooks, inside the others
	counted atomic.Int64 // number of rejected calls
	ahead   atomic.Int64 // how far the gateway's clock is ahead, in nanoseconds
	root    store.Caller // an admin in a chat
	member  store.Caller
	path    string
	stop    func()

	away    *databasetest.Away
	without func(what string, do func() error) error // wraps database operations; nil calls them directly
}

func (h *fixture) ask(what string, do func() error) error {
	if h.without == nil {
		return do()
	}
	return h.without(what, do)
}

// calls and users are stores that can simulate a database outage.
type calls struct {
	*database.DB
	h *fixture
}

func (c calls) Begin(ctx context.Context, by store.Caller, call store.Call) error {
	return c.h.ask("begin", func() error { return c.DB.Begin(ctx, by, call) })
}

func (c calls) Start(ctx context.Context, id, owner string) (call store.Call, err error) {
	err = c.h.ask("start", func() (err error) {
		call, err = c.DB.Start(ctx, id, owner)
		return err
	})
	return call, err
}

func (c calls) Finish(ctx context.Context, by store.Caller, id string, o store.Outcome) (call store.Call, err error) {
	err = c.h.ask("finish", func() (err error) {
		call, err = c.DB.Finish(ctx, by, id, o)
		return err
	})
	return call, err
}

type users struct {
	*database.DB
	h *fixture
}

func (u users) GetUser(ctx context.Context, id string) (user store.User, err error) {
	err = u.h.ask("user", func() (err error) {
		user, err = u.DB.GetUser(ctx, id)
		return err
	})
	return user, err
}

var yes = true

// newFixture is a gateway over a real database with the server "box", whose tool
// look only reads and write changes something, and its worker running.
func newFixture(t *testing.T, change func(*store.Server)) *fixture {
	t.Helper()
	h := &fixture{t: t, runner: &runner{}, config: &settings{}, path: t.TempDir()}
	h.open("first")
	ctx := t.Context()
	u, err := h.db.EnsureUser(ctx, "local:0", "root", store.Admin)
	if err != nil {
		t.Fatal(err)
	}
	m, err := h.db.EnsureUser(ctx, "local:7", "mia", store.Member)
	if err != nil {
		t.Fatal(err)
	}
	h.root = store.Caller{User: u.ID, Name: u.Name, Role: u.Role, Surface: store.OnTerminal}
	h.member = store.Caller{User: m.ID, Name: m.Name, Role: m.Role, Surface: store.OnTerminal}
	s := store.Server{Name: "box", Transport: store.Stdio, Command: "/bin/box", TrustAnnotations: true, Visibility: []string{"all"}}
	if change != nil {
		change(&s)
	}
	if _, err := h.db.PutServer(ctx, h.root, s, 0); err != nil {
		t.Fatal(err)
	}
	h.putTools("pin-1")
	h.run()
	return h
}

func (h *fixture) putTools(pin string) {
	h.t.Helper()
	schema := json.RawMessage(`{"type":"object","properties":{"what":{"type":"string"},"n":{"type":"integer"}},"required":["what"]}`)
	tools := []store.Tool{
		{Server: "box", Name: "look", Description: "Look at something.", InputSchema: schema, Annotations: store.Annotations{ReadOnly: &yes}, State: store.ToolAccepted, Pin: pin, Accepted: pin},
		{Server: "box", Name: "write", Description: "Write something down.", InputSchema: schema, State: store.ToolAccepted, Pin: pin, Accepted: pin},
	}
	if _, err := h.db.PutTools(h.t.Context(), h.root, "box", tools); err != nil {
		h.t.Fatal(err)
	}
	s, err := h.db.GetServer(h.t.Context(), "box")
	if err != nil {
		h.t.Fatal(err)
	}
	if err := h.index.Replace(h.t.Context(), s.Normal(), tools); err != nil {
		h.t.Fatal(err)
	}
	if err := h.gateway.Catalog.Refresh(h.t.Context(), "box"); err != nil {
		h.t.Fatal(err)
	}
}

// newFixture returns a gateway with a running worker over a real database. Its server "box"
// has a read-only tool, look, and one that changes something, write.
type listed struct{ store.Groups }

func (l listed) StillInGroup(ctx context.Context, name, user string) (bool, error) {
	return l.InGroup(ctx, name, user)
}

func (listed) StillAdmin(context.Context, string) (bool, error) { return true, nil }

func (l listed) InGroup(ctx context.Context, name, user string) (bool, error) {
	names, err := l.GroupsOf(ctx, user)
	return slices.Contains(names, name), err
}

// open opens the database and makes a gateway; owner names the daemon.
func (h *fixture) open(owner string) {
	h.t.Helper()
	h.db, h.away = databasetest.OpenAway(h.t, h.path)
	log := slog.New(slog.DiscardHandler)
	if h.index == nil {
		h.index = index.New(index.Options{Log: log})
		h.t.Cleanup(h.index.Close)
	}
	h.hooks = &hook.Set{Store: h.db, Events: h.db, Now: time.Now}
	h.gateway = mcp.New(mcp.Options{
		Budgets: h.db, Configured: h.hooks,
		Calls: calls{h.db, h}, Tools: h.db, Policy: users{h.db, h}, Learned: h.db, Feed: h.db, Groups: listed{h.db}, Index: h.index, Runner: h.runner, Config: h.config, Channels: &h.channel, Warn: warnOf, Log: log, Owner: owner,
		Rejected: func(store.Caller, store.Code) { h.counted.Add(1) },
		Now:      func() time.Time { return time.Now().Add(time.Duration(h.ahead.Load())) },
		Hooks: append([]mcp.Hook{
			hook.Audit{Events: h.db, Log: log, Now: time.Now}, hook.Access{},
			hook.Truncate{Bytes: func() int { return store.GetInt(h.config, "", "results.max_bytes") }, Items: 100},
		}, h.extra...),
	})
	h.stop = func() { h.db.Close() }
	h.t.Cleanup(func() { h.stop() })
}

// run starts the worker; stop ends it and closes the database.
func (h *fixture) run() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	g, db := h.gateway, h.db
	go func() { done <- g.Run(ctx) }()
	var once sync.Once
	h.stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				h.t.Errorf("worker: %v", err)
			}
			if err := db.Close(); err != nil {
				h.t.Errorf("closing: %v", err)
			}
		})
	}
}

func (h *fixture) call(by store.Caller, tool, args string) *store.Call {
	h.t.Helper()
	c, err := h.gateway.Call(h.t.Context(), by, store.Request{ID: store.NewID(time.Now()), Tool: tool, Args: json.RawMessage(args)})
	if err != nil {
		h.t.Fatalf("calling %s: %v", tool, err)
	}
	return c
}

func (h *fixture) wait(id string) *store.Call {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), time.Minute)
	defer cancel()
	var c *store.Call
	err := outage.Await(ctx, func() (err error) { // who is told of one asks again
		c, err = h.gateway.Wait(ctx, id)
		return err
	})
	if err != nil {
		h.t.Fatalf("waiting for %s: %v", id, err)
	}
	return c
}

// hook adds a configured hook.
func (h *fixture) hook(record hooks.Hook) {
	h.t.Helper()
	record.Enabled = true
	if _, err := h.hooks.Store.PutHook(h.t.Context(), h.root, record, 10); err != nil {
		h.t.Fatal(err)
	}
	if err := h.hooks.Reload(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
}

// putTool makes box serve one tool of that input schema, which only reads if its
// name is look.
func (h *fixture) putTool(name, schema string) {
	h.t.Helper()
	tool := store.Tool{Server: "box", Name: name, Description: "It has a schema.", InputSchema: json.RawMessage(schema), State: store.ToolAccepted, Pin: "pin " + schema, Accepted: "pin " + schema}
	if name == "look" {
		tool.Annotations.ReadOnly = &yes
	}
	if _, err := h.db.PutTools(h.t.Context(), h.root, "box", []store.Tool{tool}); err != nil {
		h.t.Fatal(err)
	}
	if err := h.gateway.Catalog.Refresh(h.t.Context(), "box"); err != nil {
		h.t.Fatal(err)
	}
}

func marshal(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
