package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"nize/llm"
	"nize/llm/llmtest"
	"nize/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	ann = store.Caller{User: "U-ann", Name: "Ann", Role: store.Member, Surface: store.OnTerminal}
	bob = store.Caller{User: "U-bob", Name: "Bob", Role: store.Member, Surface: store.OnTerminal}
)

// memory is a double of the store for what the agent needs.
type memory struct {
	mu     sync.Mutex
	now    time.Time
	thread store.Thread
	turns  []store.Turn
	calls  map[string]store.Call
	order  []string // of calls
	spends []store.Spend
	// reserved is the number of reserving calls, budget the result of Reserve, crossed the
	// result of Settle.
	reserved int
	budget   error
	crossed  []store.BudgetState
	agents   []store.Agent
	appends  int
	// failAppend makes the append with that number fail before it is stored, lostAck after.
	failAppend, lostAck int
	// before is called, without the lock, before an append is checked.
	before func(store.Turn)
}

func newMemory() *memory {
	return &memory{
		now: time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC), calls: make(map[string]store.Call),
		thread: store.Thread{ID: "T1", User: ann.User, Zone: "Europe/Berlin", Locale: "de-DE"}, failAppend: -1, lostAck: -1,
	}
}

var errDisk = errors.New("disk trouble")

func (m *memory) Now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = m.now.Add(time.Millisecond)
	return m.now
}

func (m *memory) GetThread(_ context.Context, id string) (store.Thread, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if id != m.thread.ID {
		return store.Thread{}, store.ErrNotFound
	}
	return m.thread, nil
}

func (m *memory) Append(ctx context.Context, _ store.Caller, t store.Turn, open bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if m.before != nil {
		m.before(t)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.appends
	m.appends++
	if n == m.failAppend {
		return errDisk
	}
	if t.N < len(m.turns) {
		return fmt.Errorf("turn %d: %w", t.N, store.ErrExists)
	}
	if t.N != len(m.turns) {
		return fmt.Errorf("turn %d leaves a gap", t.N)
	}
	m.turns, m.thread.Open = append(m.turns, t), open
	if n == m.lostAck {
		return errDisk
	}
	return nil
}

func (m *memory) Turns(ctx context.Context, _ string) ([]store.Turn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.turns), ctx.Err()
}

func (m *memory) GetCall(_ context.Context, id string) (store.Call, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, ok := m.calls[id]
	if !ok {
		return c, store.ErrNotFound
	}
	return c, nil
}

func (m *memory) ListCalls(_ context.Context, q store.CallQuery) ([]store.Call, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []store.Call
	for _, id := range slices.Backward(m.order) {
		if c := m.calls[id]; c.Thread == q.Thread {
			out = append(out, c)
		}
	}
	return out, nil
}

func (m *memory) put(c store.Call) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.calls[c.ID]; !ok {
		m.order = append(m.order, c.ID)
	}
	m.calls[c.ID] = c
}

// create stores a call if its id is new, in one step like the store: a caller that gets
// false finds the other call.
func (m *memory) create(c store.Call) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.calls[c.ID]; ok {
		return false
	}
	m.order, m.calls[c.ID] = append(m.order, c.ID), c
	return true
}

// finish ends a call, like the gateway after a press.
func (m *memory) finish(id string, s store.State, text string) {
	now := m.Now()
	c, _ := m.GetCall(context.Background(), id)
	c.State, c.Finished = s, now
	if text != "" {
		c.Result = textResult(text)
	}
	m.put(c)
}

func (m *memory) Reserve(_ context.Context, _ store.Caller, r store.Reservation) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reserved++
	return m.budget
}

func (m *memory) Release(context.Context, string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reserved--
	return nil
}

func (m *memory) SettleSpend(_ context.Context, _ store.Caller, s store.Spend) ([]store.BudgetState, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.spends = append(m.spends, s)
	m.reserved--
	return m.crossed, nil
}

func (m *memory) GetAgent(_ context.Context, id string) (store.Agent, error) {
	for _, a := range m.agents {
		if a.ID == id {
			return a, nil
		}
	}
	return store.Agent{}, store.ErrNotFound
}

func (m *memory) ListAgents(context.Context) ([]store.Agent, error) { return m.agents, nil }

func textResult(text string) *store.Result {
	raw, err := json.Marshal(map[string]any{"content": []map[string]string{{"type": "text", "text": text}}})
	if err != nil {
		panic(err)
	}
	return &store.Result{Raw: raw}
}

// gateway is a double of the gateway: tools whose names begin with "ask" wait for approval,
// "no" is refused, and all others answer with their name; the answer of "mine" is private.
type gateway struct {
	m    *memory
	mu   sync.Mutex
	runs []string // tool and arguments of every execution
	by   []string // requesters
	meta func(fn store.ToolCall) (*store.Result, error)
	slow func(ctx context.Context, tool string) // called before a call runs
	fail error                                  // error of the next call
}

func (g *gateway) Functions(context.Context, store.Caller, store.Scope) ([]store.Function, error) {
	return []store.Function{{Name: "discover_tools"}, {Name: "get_tool_schema"}, {Name: "execute_tool"}}, nil
}

func (g *gateway) Meta(_ context.Context, _ store.Caller, _ store.Scope, fn store.ToolCall) (*store.Result, error) {
	if err := g.failed(); err != nil {
		return nil, err
	}
	if g.meta != nil {
		return g.meta(fn)
	}
	return textResult("meta " + fn.Name), nil
}

func (g *gateway) failed() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	err := g.fail
	g.fail = nil
	return err
}

func (g *gateway) Call(ctx context.Context, by store.Caller, req store.Request) (*store.Call, error) {
	if err := g.failed(); err != nil {
		return nil, err
	}
	server, tool, _ := strings.Cut(req.Tool, ":")
	if tool == "unknown" {
		return nil, &store.CallError{Code: store.CodeNotFound, Message: store.Plain("tool s:unknown not found; did you mean s:known?")}
	}
	c := store.Call{ID: req.ID, Server: server, Tool: tool, Args: req.Args, Thread: req.Thread, By: by.User, State: store.Running, Created: g.m.Now(), Why: req.Why, Asked: store.Asked{InPrivateTurn: req.InPrivateTurn}, Private: req.InPrivateTurn || tool == "mine"}
	switch {
	case tool == "no":
		c.State, c.Reason = store.Refused, store.Plain("policy says no")
	case strings.HasPrefix(tool, "ask"):
		c.State = store.Pending
	}
	if !g.m.create(c) {
		return nil, fmt.Errorf("call %s: %w", req.ID, store.ErrExists)
	}
	g.mu.Lock()
	g.by = append(g.by, by.User)
	g.mu.Unlock()
	if c.State != store.Running {
		return &c, nil
	}
	if g.slow != nil {
		g.slow(ctx, tool)
	}
	g.mu.Lock()
	g.runs = append(g.runs, req.Tool+string(req.Args))
	g.mu.Unlock()
	g.m.finish(c.ID, store.Done, "ran "+tool)
	c, _ = g.m.GetCall(ctx, c.ID)
	return &c, nil
}

func (g *gateway) Decide(ctx context.Context, by store.Caller, id string, d store.Decision) (*store.Call, error) {
	c, err := g.m.GetCall(ctx, id)
	if err != nil {
		return nil, err
	}
	if !c.Waiting() {
		return &c, store.ErrDecided
	}
	c.Decisions, c.Reason = append(c.Decisions, d), d.Reason
	g.m.put(c)
	g.m.finish(id, store.Cancelled, "")
	c, _ = g.m.GetCall(ctx, id)
	return &c, nil
}

// models offers a scripted model as fake/m.
type models struct {
	llm.Model
	m *memory
}

func (m models) Generate(ctx context.Context, name string, req llm.Request, delta func(llm.Delta)) (llm.Reply, error) {
	meter := llm.Meter{Ledger: m.m, Config: store.Defaults{}, Now: m.m.Now}
	return meter.Generate(ctx, llm.Target{Provider: store.Provider{Name: "fake", Kind: "openai-compatible"}, Model: "m"}, m.Model, req, delta)
}

// bench is an agent with its doubles.
type bench struct {
	*llm.Agent
	t       *testing.T
	m       *memory
	g       *gateway
	script  *llmtest.Script
	config  store.Defaults
	events  []store.Event
	direct  []llm.DirectTool
	domains []string

	mu   sync.Mutex
	told []store.Progress
}

func newBench(t *testing.T, steps ...llmtest.Step) *bench {
	m := newMemory()
	b := &bench{t: t, m: m, g: &gateway{m: m}, script: llmtest.New(t, steps...), config: store.Defaults{}}
	b.Agent = b.agent()
	return b
}

// agent returns another agent on the same store, as after a restart.
func (b *bench) agent() *llm.Agent {
	return llm.New(llm.Deps{
		Threads: b.m, Calls: b.m, Agents: b.m, Config: b.config, Tools: b.g,
		Models: models{b.script, b.m}, Now: b.m.Now, Log: slog.New(slog.DiscardHandler),
		Direct:  func(context.Context, store.Caller, store.Scope) ([]llm.DirectTool, error) { return b.direct, nil },
		Domains: func(context.Context, store.Caller, store.Scope) ([]string, error) { return b.domains, nil },
		AddEvent: func(_ store.Caller, e store.Event) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.events = append(b.events, e)
		},
	})
}

func (b *bench) tell(p store.Progress) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.told = append(b.told, p)
}

func (b *bench) say(by store.Caller, text string) store.Turn {
	b.t.Helper()
	t, err := b.Say(b.t.Context(), by, store.Inbound{Key: "key " + text, Thread: "T1", By: by, Text: text})
	if err != nil {
		b.t.Fatal(err)
	}
	return t
}

func (b *bench) work() {
	b.t.Helper()
	if err := b.Work(b.t.Context(), "T1", b.tell); err != nil {
		b.t.Fatal(err)
	}
}

// talk returns the thread as lines, for comparison.
func (b *bench) talk() []string {
	var out []string
	turns, _ := b.m.Turns(context.Background(), "T1")
	for _, t := range turns {
		line := string(t.Role) + ": " + t.Text
		if t.In != "" {
			line = "  " + string(t.As) + ": " + t.Text
		}
		if t.Role == store.FromModel && t.Said != (store.Text{}) {
			line += " {" + t.Finish + " " + t.Said.String() + "}"
		}
		for _, c := range t.Calls {
			line += " [" + c.Name + " " + c.Args + "]"
		}
		if t.Final {
			line += " (final)"
		}
		out = append(out, line)
	}
	return out
}

// kinds returns the kinds of the reported progress, without text.
func (b *bench) kinds() []string {
	var out []string
	for _, p := range b.told {
		switch p.Kind {
		case "text":
		case "tool":
			out = append(out, "tool "+p.Tool.Name+" "+string(p.Tool.State))
		case "call":
			out = append(out, "call "+string(p.Call.State))
		default:
			out = append(out, p.Kind)
		}
	}
	return out
}

func (b *bench) pendingCall() store.Call {
	b.t.Helper()
	calls, _ := b.m.ListCalls(b.t.Context(), store.CallQuery{Thread: "T1"})
	for _, c := range calls {
		if c.Waiting() {
			return c
		}
	}
	b.t.Fatal("no call waits")
	return store.Call{}
}
