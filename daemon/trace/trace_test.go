package trace

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"nize/bots"
	"nize/llm"
	"nize/mcp"
	"nize/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var by = store.Caller{User: "user-canary", Name: "name-canary", Token: "token-canary", Surface: store.OnSlack}

// collector answers with its statuses in turn, the last of them for ever.
type collector struct {
	mu       sync.Mutex
	statuses []int
	asked    int
	spans    []spanJSON
	header   http.Header
	whole    string // of the last request
	at       []time.Time
}

func (c *collector) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	status := 200
	if len(c.statuses) > 0 {
		status = c.statuses[min(c.asked, len(c.statuses)-1)]
	}
	c.asked++
	c.at = append(c.at, time.Now())
	c.header, c.whole = r.Header, r.URL.String()+" "+string(body)
	if status == 0 {
		return nil, errors.New("connection refused")
	}
	var d document
	if status == 200 && json.Unmarshal(body, &d) == nil {
		c.spans = append(c.spans, d.ResourceSpans[0].ScopeSpans[0].Spans...)
	}
	return &http.Response{StatusCode: status, Header: http.Header{"Retry-After": {"3"}}, Body: io.NopCloser(strings.NewReader("{}"))}, nil
}

// running is a tracer that sends to c until the test's bubble stops it.
func running(t *testing.T, c *collector) (tr *Tracer, stop func()) {
	t.Helper()
	tr = New(Options{Transport: c, Version: "1.2.3", Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err := tr.Send("http://collector:4318/", "api-key=a%20b, x=y"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := tr.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	return tr, func() { cancel(); wg.Wait() }
}

type (
	fakeAgent struct{ work func(ctx context.Context) }
	fakeTools struct {
		llm.Tools
		call func(ctx context.Context) *store.Call
	}
	fakeRunner func(ctx context.Context) (*store.Result, error)
	fakeModel  struct{ err error }
	fakeCalls  struct{ mcp.CallStore }
)

func (f fakeAgent) Say(context.Context, store.Caller, store.Inbound) (store.Turn, error) {
	return store.Turn{}, nil
}
func (f fakeAgent) Work(ctx context.Context, _ string, _ func(store.Progress)) error {
	f.work(ctx)
	return nil
}
func (f fakeTools) Call(ctx context.Context, _ store.Caller, _ store.Request) (*store.Call, error) {
	return f.call(ctx), nil
}
func (f fakeTools) Meta(context.Context, store.Caller, store.Scope, store.ToolCall) (*store.Result, error) {
	return &store.Result{Error: &store.CallError{Code: store.CodeNotFound, Message: store.Plain("message-canary")}}, nil
}
func (f fakeRunner) Run(ctx context.Context, _ store.Caller, _ *store.Call, _ store.ProgressFunc) (*store.Result, error) {
	return f(ctx)
}
func (f fakeModel) Generate(context.Context, llm.Request, func(llm.Delta)) (llm.Reply, error) {
	return llm.Reply{Text: "reply-canary", Usage: llm.Usage{Prompt: 10, Completion: 3}}, f.err
}
func (fakeCalls) Begin(context.Context, store.Caller, store.Call) error { return nil }

var (
	_ bots.Agent = fakeAgent{}
	_ mcp.Runner = fakeRunner(nil)
)

// tree writes spans as lines of name, kind, fault and attributes, each below its
// parent.
func tree(spans []spanJSON) string {
	var out strings.Builder
	var write func(parent, indent string)
	write = func(parent, indent string) {
		for _, s := range spans {
			if s.Parent != parent {
				continue
			}
			out.WriteString(indent + s.Name)
			for _, a := range s.Attributes {
				switch {
				case a.Value.Text != nil:
					out.WriteString(" " + a.Key + "=" + *a.Value.Text)
				default:
					out.WriteString(" " + a.Key + "=" + *a.Value.Number)
				}
			}
			out.WriteString("\n")
			write(s.SpanID, indent+"  ")
		}
	}
	write("", "")
	return out.String()
}

// TestTurn: a message, the model, a call that waits for a person, its run in
// another context after the yes, and the next stretch of the turn are one trace.
func TestTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(collector)
		tr, stop := running(t, c)
		ctx := t.Context()
		waiting := store.Call{ID: "call1", Server: "tracker", Tool: "create", State: store.Pending, Surface: store.OnSlack, Args: []byte(`"args-canary"`)}
		gateway := tr.Calls(fakeCalls{})
		tools := tr.Tools(fakeTools{call: func(ctx context.Context) *store.Call {
			if err := gateway.Begin(ctx, by, waiting); err != nil {
				t.Error(err)
			}
			return &waiting
		}})
		traceparent := ""
		runner := tr.Runner(fakeRunner(func(ctx context.Context) (*store.Result, error) {
			traceparent = tr.Traceparent(ctx)
			return &store.Result{IsError: true, Raw: []byte(`"result-canary"`)}, nil
		}))
		model := tr.Model("gemini", fakeModel{})
		failing := tr.Model("openai", fakeModel{&llm.ProviderError{Provider: "x", Fault: llm.FaultBusy, Message: "message-canary"}})
		stretch := 0
		agent := tr.Agent(fakeAgent{func(ctx context.Context) {
			switch stretch++; stretch {
			case 1:
				_, _ = model.Generate(ctx, llm.Request{Model: "pro", System: "system-canary"}, nil) // the double's
				_, _ = tools.Meta(ctx, by, store.Scope{}, store.ToolCall{Name: "made up\n canary"}) // as above
				_, _ = tools.Call(ctx, by, store.Request{Tool: "tracker:create", Args: []byte(`"args-canary"`)})
			case 2: // there is nothing to do
			case 3:
				_, _ = failing.Generate(ctx, llm.Request{Model: "pro"}, nil)
			}
		}})
		if _, err := agent.Say(ctx, by, store.Inbound{Thread: "thread1", Text: "text-canary", By: by}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		for range 2 {
			if err := agent.Work(ctx, "thread1", nil); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Hour) // a person says yes
		if _, err := runner.Run(ctx, by, &waiting, nil); err != nil {
			t.Fatal(err)
		}
		if err := agent.Work(ctx, "thread1", nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * gatherTime)
		stop()
		want := `message slack nize.surface=slack gen_ai.conversation.id=thread1
  invoke_agent gen_ai.operation.name=invoke_agent gen_ai.conversation.id=thread1
    chat pro gen_ai.operation.name=chat gen_ai.provider.name=gcp.gemini gen_ai.request.model=pro gen_ai.usage.input_tokens=10 gen_ai.usage.output_tokens=3
    execute_tool _other gen_ai.operation.name=execute_tool gen_ai.tool.name=_other error.type=not_found
    execute_tool tracker:create gen_ai.operation.name=execute_tool gen_ai.tool.name=tracker:create gen_ai.tool.call.id=call1 nize.call.state=pending
      tools/call create mcp.method.name=tools/call gen_ai.operation.name=execute_tool gen_ai.tool.name=create gen_ai.tool.call.id=call1 nize.server=tracker nize.surface=slack error.type=tool_error
  invoke_agent gen_ai.operation.name=invoke_agent gen_ai.conversation.id=thread1
    chat pro gen_ai.operation.name=chat gen_ai.provider.name=openai gen_ai.request.model=pro gen_ai.usage.input_tokens=10 gen_ai.usage.output_tokens=3 error.type=busy
`
		if diff := cmp.Diff(tree(c.spans), want); diff != "" {
			t.Errorf("spans (-got +want):\n%s", diff)
		}
		traces := map[string]bool{}
		for _, s := range c.spans {
			traces[s.TraceID] = true
			if s.Name == "tools/call create" && (traceparent != "00-"+s.TraceID+"-"+s.SpanID+"-01" || s.Kind != client || s.Status.Code != statusError) {
				t.Errorf("the upstream was told %q of %+v", traceparent, s)
			}
			if s.Start > s.End || len(s.Start) != 18 {
				t.Errorf("%s from %s to %s", s.Name, s.Start, s.End)
			}
		}
		if len(traces) != 1 {
			t.Errorf("%d traces", len(traces))
		}
		if strings.Contains(c.whole, "canary") {
			t.Errorf("a text, an argument or a person is in the spans: %s", c.whole)
		}
		if !strings.HasPrefix(c.whole, "http://collector:4318/v1/traces ") || c.header.Get("Api-Key") != "a b" || c.header.Get("X") != "y" || c.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s with %v", c.whole, c.header)
		}
	})
}

// An MCP client's own span is the parent, unless the client says that it is not
// recorded: then nothing below it is, and the upstream hears so.
func TestClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(collector)
		tr, stop := running(t, c)
		const head = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-"
		ctx, end := tr.MetaTool(t.Context(), "execute_tool", head+"01")
		if _, err := tr.Runner(fakeRunner(func(context.Context) (*store.Result, error) { return &store.Result{}, nil })).Run(ctx, by, &store.Call{Tool: "look"}, nil); err != nil {
			t.Fatal(err)
		}
		end(true)
		ctx, end = tr.MetaTool(t.Context(), "execute_tool", head+"00")
		if got := tr.Traceparent(ctx); got != head+"00" {
			t.Errorf("not recorded: %q", got)
		}
		end(false)
		stop()
		if len(c.spans) != 2 || c.spans[1].TraceID != "0af7651916cd43dd8448eb211c80319c" || c.spans[1].Parent != "b7ad6b7169203331" || c.spans[1].Kind != server || c.spans[0].Parent != c.spans[1].SpanID {
			t.Errorf("%+v", c.spans)
		}
	})
}

func TestCollectorFails(t *testing.T) {
	for name, test := range map[string]struct {
		statuses []int
		sent     bool
		asked    int
		took     time.Duration
	}{
		"busy, then well":    {[]int{503, 429, 200}, true, 3, 6 * time.Second}, // as it asks: 3 s each
		"down, then well":    {[]int{0, 0, 200}, true, 3, 3 * time.Second},
		"does not want them": {[]int{400}, false, 1, 0},
		"moved":              {[]int{307}, false, 1, 0},
		"down":               {[]int{0}, false, mostTries, 15 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := &collector{statuses: test.statuses}
			tr, stop := running(t, c)
			_, s := tr.start(t.Context(), internal, "x", "")
			s.end("")
			time.Sleep(time.Minute)
			synctest.Wait()
			if (len(c.spans) == 1) != test.sent || c.asked != test.asked || c.at[len(c.at)-1].Sub(c.at[0]) != test.took {
				t.Errorf("%s: %d spans after %d requests in %v", name, len(c.spans), c.asked, c.at[len(c.at)-1].Sub(c.at[0]))
			}
			stop()
		})
	}
}

// What nobody takes is bounded, and a stop does not wait for it.
func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &collector{statuses: []int{0}}
		tr, stop := running(t, c)
		for range 3 * mostQueue {
			_, s := tr.start(t.Context(), internal, "x", "")
			s.end("")
		}
		if len(tr.queue.spans) != mostQueue || tr.queue.lost != 2*mostQueue {
			t.Errorf("%d wait, %d are lost", len(tr.queue.spans), tr.queue.lost)
		}
		for i := range 3 * mostParents {
			_, s := tr.start(t.Context(), internal, "x", "")
			tr.threads.put(string(rune(i)), s)
		}
		if n := len(tr.threads.at); n > mostParents || n != len(tr.threads.order) {
			t.Errorf("%d parents are remembered", n)
		}
		began := time.Now()
		stop()
		if took := time.Since(began); took > lastTime {
			t.Errorf("a stop took %v", took)
		}
	})
}

// What is left when nized stops is sent.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(collector)
		tr, stop := running(t, c)
		for range 2*mostBatch + 1 {
			_, s := tr.start(t.Context(), internal, "x", "")
			s.end("")
		}
		stop()
		if len(c.spans) != 2*mostBatch+1 || c.asked != 3 {
			t.Errorf("%d spans in %d requests", len(c.spans), c.asked)
		}
	})
}

func TestEndpoint(t *testing.T) {
	tr := New(Options{})
	for _, bad := range []string{"collector:4318", "ftp://x", "http://", "http://user:pw@x", "http://x?a=b", "http://x#y"} {
		if tr.Send(bad, "") == nil || tr.on() {
			t.Errorf("%s is taken", bad)
		}
	}
	if err := tr.Send("http://x", "canary"); err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("headers: %v", err)
	}
	if err := tr.Send("http://x", ""); err != nil || !tr.on() {
		t.Errorf("%v", err)
	}
	if err := tr.Send("", ""); err != nil || tr.on() {
		t.Errorf("off: %v", err)
	}
}

func FuzzTraceparent(f *testing.F) {
	const good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, s := range []string{good, good + "-x", "01" + good[2:] + "-x", "ff" + good[2:], strings.ToUpper(good), "00-" + strings.Repeat("0", 32) + good[35:], good[:54], ""} {
		f.Add(s)
	}
	tr := New(Options{Now: time.Now})
	if err := tr.Send("http://x", ""); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := parseTraceparent(text)
		if s == nil {
			if text == good {
				t.Error("a good one is none")
			}
			return
		}
		again := tr.Traceparent(within(t.Context(), s))
		if again[3:52] != text[3:52] || parseTraceparent(again) == nil || s.trace == [16]byte{} || s.id == [8]byte{} {
			t.Errorf("%q is %q", text, again)
		}
	})
}

// off are the seams of a tracer that is off.
func off() func() {
	tr := New(Options{Now: time.Now})
	ctx, result, call := context.Background(), &store.Result{}, &store.Call{Server: "s", Tool: "t"}
	runner := tr.Runner(fakeRunner(func(context.Context) (*store.Result, error) { return result, nil }))
	return func() {
		below, end := tr.MetaTool(ctx, "execute_tool", "")
		_, _ = runner.Run(below, by, call, nil) // the double's
		if tr.Traceparent(below) != "" {
			panic("it is on")
		}
		end(false)
	}
}

// TestOff: without an endpoint a call takes no memory for its trace.
func TestOff(t *testing.T) {
	if n := testing.AllocsPerRun(100, off()); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkOff(b *testing.B) {
	f := off()
	b.ReportAllocs()
	for b.Loop() {
		f()
	}
}

func BenchmarkOn(b *testing.B) {
	tr := New(Options{Now: time.Now})
	if err := tr.Send("http://x", ""); err != nil {
		b.Fatal(err)
	}
	call, result := &store.Call{Server: "s", Tool: "t"}, &store.Result{}
	runner := tr.Runner(fakeRunner(func(ctx context.Context) (*store.Result, error) { tr.Traceparent(ctx); return result, nil }))
	b.ReportAllocs()
	for b.Loop() {
		ctx, end := tr.MetaTool(b.Context(), "execute_tool", "")
		_, _ = runner.Run(ctx, by, call, nil) // the double's
		end(false)
		if len(tr.queue.spans) > mostBatch {
			documentOf(tr.queue.take(), "1")
		}
	}
}
