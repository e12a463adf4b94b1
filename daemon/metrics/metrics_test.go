package metrics

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"nize/daemon/api"
	"nize/llm"
	"nize/mcp"
	"nize/store"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func testMetrics(state State, err error) *Metrics {
	return New(Options{State: func(context.Context) (State, error) { return state, err }, Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler)})
}

// full is a state in which each series has a value.
var full = State{Status: api.Status{
	Version: "1.2.3", Servers: []api.Health{{Name: "tracker", State: "ready", ToolCount: 3, Held: 1, Restarts: 2}, {Name: "files", State: "unreachable"}},
	Bots: []api.BotState{{Name: "slack", State: "connected"}, {Name: "discord", State: "failed"}}, Pending: 2, Running: 1, Queues: []api.Queue{{Name: "writer", Depth: 4}},
	Process: api.ProcessStatus{Children: 2, ChildProcesses: []api.ChildProcess{{ResidentBytes: 5}, {ResidentBytes: 6}}},
}, IndexTools: 2, Commits: 7, CommitTime: 1500 * time.Millisecond}

// fakes of what the counting stands around.
type (
	fakeCalls struct {
		mcp.CallStore
		c   store.Call
		err error
	}
	fakeHook   struct{ mcp.Hook }
	fakeLedger struct{ llm.Ledger }
	fakeModel  struct{ err error }
)

func (f *fakeCalls) Begin(context.Context, store.Caller, store.Call) error { return f.err }
func (f *fakeCalls) Record(store.Caller, store.Call)                       {}
func (f *fakeCalls) GetCall(context.Context, string) (store.Call, error)   { return f.c, nil }
func (f *fakeCalls) Finish(context.Context, store.Caller, string, store.Outcome) (store.Call, error) {
	return f.c, f.err
}
func (f *fakeCalls) Decide(context.Context, store.Caller, string, store.Decision) (store.Call, error) {
	return f.c, f.err
}
func (fakeHook) After(context.Context, *mcp.Invocation, *store.Result) error { return nil }
func (fakeLedger) SettleSpend(context.Context, store.Caller, store.Spend) ([]store.BudgetState, error) {
	return nil, nil
}
func (f fakeModel) Generate(context.Context, llm.Request, func(llm.Delta)) (llm.Reply, error) {
	return llm.Reply{}, f.err
}

// secrets are what no series may have.
var person = store.Caller{User: "user-canary", Name: "name-canary", Token: "token-canary", Identity: "identity-canary", Address: "address-canary", Surface: store.OnMCP}

// use lets each series have a value.
func use(t *testing.T, m *Metrics) {
	t.Helper()
	ctx := t.Context()
	c := store.Call{ID: "id-canary", By: person.User, ByName: person.Name, Thread: "thread-canary", Args: []byte(`"args-canary"`), Why: "why-canary", Server: "tracker", Tool: "create", Surface: store.OnMCP,
		State: store.Done, Created: now.Add(-time.Minute), Started: now.Add(-2 * time.Second), Finished: now.Add(-time.Second)}
	with := func(change func(*store.Call)) store.Call { o := c; change(&o); return o }
	f := &fakeCalls{}
	calls := m.Calls(f)
	calls.Record(person, c)
	failed := with(func(c *store.Call) {
		c.State, c.Result = store.Failed, &store.Result{Error: &store.CallError{Code: store.CodeTimeout, Message: store.Plain("message-canary")}}
	})
	f.c = failed
	_, err := calls.Finish(ctx, person, c.ID, store.Outcome{})
	refused := with(func(c *store.Call) { c.State, c.Started = store.Refused, time.Time{} })
	err = errors.Join(err, calls.Begin(ctx, person, refused), calls.Begin(ctx, person, with(func(c *store.Call) { c.State = store.Pending })))
	for verb, state := range map[store.Verb]store.State{store.Approve: store.Pending, store.Deny: store.Refused, store.Cancel: store.Cancelled} {
		f.c = with(func(c *store.Call) { c.State, c.Started, c.Approved = state, time.Time{}, now })
		_, one := calls.Decide(ctx, person, c.ID, store.Decision{Verb: verb})
		err = errors.Join(err, one)
	}
	f.c = with(func(c *store.Call) { c.State, c.Started, c.Successor = store.Cancelled, time.Time{}, "next" })
	err = errors.Join(err, calls.Begin(ctx, person, store.Call{State: store.Pending, Replaces: c.ID}))
	f.c, f.err = with(func(c *store.Call) { c.State, c.Started = store.Expired, time.Time{} }), store.ErrExpired
	if _, late := calls.Decide(ctx, person, c.ID, store.Decision{Verb: store.Approve}); !errors.Is(late, store.ErrExpired) {
		t.Fatal(late)
	}
	f.c, f.err = with(func(c *store.Call) { c.State = store.Done }), store.ErrDecided // somebody was first: counted there
	if _, late := calls.Decide(ctx, person, c.ID, store.Decision{Verb: store.Approve}); !errors.Is(late, store.ErrDecided) {
		t.Fatal(late)
	}
	m.Rejected(person, store.CodeNotFound)
	hook := m.MetaTools(fakeHook{})
	for _, tool := range []string{mcp.Discover, "made-up-canary"} {
		err = errors.Join(err, hook.After(ctx, &mcp.Invocation{Point: mcp.AroundMeta, Tool: tool, By: person, Started: now.Add(-time.Millisecond)}, &store.Result{}))
	}
	ledger := m.Ledger(fakeLedger{})
	for _, priced := range []bool{true, false} {
		_, one := ledger.SettleSpend(ctx, person, store.Spend{User: person.User, Thread: "thread-canary", Provider: "p", Model: "m", Prompt: 10, Completion: 5, Cached: 4, Reasoning: 3, MicroUSD: 250, Priced: priced})
		err = errors.Join(err, one)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{nil, &llm.ProviderError{Fault: llm.FaultBusy, Message: "message-canary"}, errors.New("x")} {
		if _, got := m.Model("p", fakeModel{err}).Generate(ctx, llm.Request{Model: "m", System: "system-canary"}, nil); got != err {
			t.Fatal(got)
		}
	}
}

// answer is what a scrape is told.
func answer(t testing.TB, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func TestSeries(t *testing.T) {
	m := testMetrics(full, nil)
	use(t, m)
	text := answer(t, m)
	for line := range strings.SplitSeq(strings.TrimSpace(`
nize_calls_total{outcome="done",server="tracker",surface="mcp",tool="create"} 1
nize_calls_total{outcome="failed",server="tracker",surface="mcp",tool="create"} 1
nize_calls_total{outcome="refused",server="tracker",surface="mcp",tool="create"} 2
nize_calls_total{outcome="cancelled",server="tracker",surface="mcp",tool="create"} 2
nize_calls_total{outcome="expired",server="tracker",surface="mcp",tool="create"} 1
nize_call_duration_seconds_bucket{server="tracker",le="0.5"} 0
nize_call_duration_seconds_bucket{server="tracker",le="1"} 2
nize_call_duration_seconds_sum{server="tracker"} 2
nize_call_errors_total{code="timeout",server="tracker"} 1
nize_calls_rejected_total{code="not_found",surface="mcp"} 1
nize_meta_tool_calls_total{outcome="done",surface="mcp",tool="discover_tools"} 1
nize_meta_tool_calls_total{outcome="done",surface="mcp",tool="_other"} 1
nize_approval_wait_seconds_count{decision="approve"} 1
nize_approval_wait_seconds_count{decision="deny"} 1
nize_approval_wait_seconds_count{decision="cancel"} 1
nize_approval_wait_seconds_count{decision="edit"} 1
nize_approval_wait_seconds_count{decision="expire"} 1
nize_approval_wait_seconds_sum{decision="deny"} 60
nize_model_calls_total{model="m",outcome="done",provider="p"} 1
nize_model_calls_total{model="m",outcome="busy",provider="p"} 1
nize_model_calls_total{model="m",outcome="failed",provider="p"} 1
nize_model_tokens_total{model="m",provider="p",type="prompt"} 20
nize_model_tokens_total{model="m",provider="p",type="reasoning"} 6
nize_model_cost_usd_total{model="m",provider="p"} 0.00025
nize_model_unpriced_calls_total{model="m",provider="p"} 1
nize_build_info{version="1.2.3"} 1
nize_servers{state="ready"} 1
nize_servers{state="unreachable"} 1
nize_servers{state="open"} 0
nize_server_up{server="tracker"} 1
nize_server_up{server="files"} 0
nize_server_restarts_total{server="tracker"} 2
nize_tools{state="accepted"} 2
nize_tools{state="held"} 1
nize_approvals_waiting 2
nize_calls_running 1
nize_queue_depth{queue="writer"} 4
nize_bot_connected{bot="slack"} 1
nize_bot_connected{bot="discord"} 0
nize_child_processes 2
nize_child_processes_resident_bytes 11
nize_index_tools 2
nize_store_commits_total 7
nize_store_commit_seconds_total 1.5`), "\n") {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("no %s", line)
		}
	}
	if strings.Contains(text, "canary") {
		t.Errorf("something of a person, a text or an argument is in there:\n%s", text)
	}
}

// TestLint is what `promtool check metrics` does.
func TestLint(t *testing.T) {
	m := testMetrics(full, nil)
	use(t, m)
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// However many tools there are, the series are bounded, and no call is lost.
func TestManyTools(t *testing.T) {
	m := testMetrics(State{}, nil)
	calls := m.Calls(&fakeCalls{})
	const tools = 12_000
	n := 0
	for i := range tools {
		for _, surface := range []store.Surface{store.OnMCP, store.OnCLI} {
			calls.Record(person, store.Call{Server: fmt.Sprint("server", i/20), Tool: fmt.Sprint("tool", i), Surface: surface, State: store.Done, Started: now, Finished: now})
			n++
		}
	}
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got, others, most := 0.0, 0.0, map[string]int{}
	for _, f := range families {
		most[f.GetName()] = len(f.GetMetric())
		for _, s := range f.GetMetric() {
			if f.GetName() != "nize_calls_total" {
				continue
			}
			got += s.GetCounter().GetValue()
			for _, l := range s.GetLabel() {
				if l.GetName() == "tool" && l.GetValue() == Other {
					others += s.GetCounter().GetValue()
				}
			}
		}
	}
	if got != float64(n) {
		t.Errorf("%v calls of %d are counted", got, n)
	}
	if others == 0 || others > float64(n-mostTools) {
		t.Errorf("%v are counted as %s", others, Other)
	}
	if most["nize_calls_total"] > 2*mostTools+2 || most["nize_call_duration_seconds"] > mostServers+1 {
		t.Errorf("series: %v", most)
	}
	began := time.Now()
	text := answer(t, m)
	t.Logf("%d tools called: %d series of calls, a scrape of %d kB in %v", tools, most["nize_calls_total"], len(text)>>10, time.Since(began))
	if len(text) > 6<<20 {
		t.Errorf("a scrape is %d bytes", len(text))
	}
}

// A state that can't be read leaves the rest.
func TestStateFails(t *testing.T) {
	m := testMetrics(State{}, errors.New("closed"))
	m.Calls(&fakeCalls{}).Record(person, store.Call{Server: "s", Tool: "t", State: store.Done})
	text := answer(t, m)
	if !strings.Contains(text, "nize_calls_total{") || strings.Contains(text, "nize_servers") {
		t.Error(text)
	}
}

// What a server or a model is called can be anything.
func TestLabels(t *testing.T) {
	m := testMetrics(State{}, nil)
	calls := m.Calls(&fakeCalls{})
	for _, name := range []string{"", "a\xffb", "\"}\n#", strings.Repeat("x", 1000), "日本"} {
		calls.Record(person, store.Call{Server: name, Tool: name, State: store.Done})
	}
	for line := range strings.SplitSeq(answer(t, m), "\n") {
		if len(line) > 1000 {
			t.Errorf("a line of %d bytes", len(line))
		}
	}
}

// Counting a call takes no memory.
func TestCountingIsCheap(t *testing.T) {
	m := testMetrics(State{}, nil)
	c := store.Call{Server: "s", Tool: "t", State: store.Done, Surface: store.OnMCP, Started: now, Finished: now}
	m.observeCall(c)
	if n := testing.AllocsPerRun(100, func() { m.observeCall(c) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkCall(b *testing.B) {
	m := New(Options{Now: time.Now})
	c := store.Call{Server: "s", Tool: "t", State: store.Done, Surface: store.OnMCP, Started: now, Finished: now.Add(time.Millisecond)}
	b.ReportAllocs()
	for b.Loop() {
		m.observeCall(c)
	}
}

func BenchmarkScrape(b *testing.B) {
	m := testMetrics(full, nil)
	m.opt.Now = time.Now
	b.ReportAllocs()
	for b.Loop() {
		answer(b, m)
	}
}

// The operator's page has all metrics, and no other.
func TestPage(t *testing.T) {
	m := testMetrics(full, nil)
	use(t, m)
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "nize_") {
			want = append(want, f.GetName())
		}
	}
	table := regexp.MustCompile("(?ms)^## Metrics\n(.*?)^## ").FindStringSubmatch(string(page))
	for row := range strings.SplitSeq(table[1], "\n") {
		if strings.HasPrefix(row, "| `") {
			got = append(got, regexp.MustCompile("nize_[a-z_]+").FindAllString(row, -1)...)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
