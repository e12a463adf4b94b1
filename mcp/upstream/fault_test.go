package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/mcp/mcptest"
	"nize/store"
)

// readOnly are the annotations of a read-only tool.
var readOnly = &sdk.ToolAnnotations{ReadOnlyHint: true}

// TestFaultInACall tests faults of a server during a call that changes something: the
// caller gets a readable error, the tool has run once, and the next call works.
func TestFaultInACall(t *testing.T) {
	t.Parallel()
	cases := []struct {
		fault      mcptest.Fault
		wires      string
		code       store.Code
		words      string
		ranExactly int
	}{
		{mcptest.Die, "stdio http", store.CodeUnknown, "the outcome is unknown", 1},
		{mcptest.BigLine, "stdio", store.CodeUnknown, "over 8 MiB", 1},
		{mcptest.BigLine, "http", store.CodeTool, "over 8 MiB", 1},
		{mcptest.BigBody, "http", store.CodeTool, "over 8 MiB", 1},
		{mcptest.HTML, "http", store.CodeUnknown, `"text/html" instead of JSON`, 1},
		{mcptest.Broken, "http", store.CodeUnknown, "not a JSON-RPC message", 1},
	}
	for _, c := range cases {
		for _, kind := range strings.Fields(c.wires) {
			t.Run(string(c.fault)+" "+kind, func(t *testing.T) {
				b := newBench(t, nil)
				m := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{{Name: "bad", Fault: c.fault}, echo}})
				var cfg store.Server
				if kind == "stdio" {
					cfg = stdio(m)
				} else {
					cfg = remote(m.HTTP())
				}
				b.register(cfg)
				_, err := b.run(t.Context(), cfg.Name+":bad", `{}`)
				fails(t, err, c.code, c.words)
				if got := m.Calls("bad"); got != c.ranExactly {
					t.Errorf("it ran %d times, want %d", got, c.ranExactly)
				}
				b.good(cfg.Name+":echo", `{"a":1}`, `{"a":1}`)
			})
		}
	}
}

func TestRepeatableCallIsRetriedOnce(t *testing.T) {
	t.Parallel()
	for _, trusted := range []bool{true, false} {
		b := newBench(t, nil)
		m := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{{Name: "look", Fault: mcptest.Die, Annotations: readOnly}}})
		cfg := stdio(m)
		cfg.TrustAnnotations = trusted
		b.register(cfg)
		_, err := b.run(t.Context(), "child:look", `{}`)
		want, code := 1, store.CodeUnknown
		if trusted {
			want, code = 2, store.CodeUnavailable
		}
		fails(t, err, code)
		if got := m.Calls("look"); got != want {
			t.Errorf("trusted %v: it ran %d times, want %d", trusted, got, want)
		}
	}
}

// It runs alone because it counts the allocations of the whole process.
func TestHugeBodyTakesNoMemory(t *testing.T) {
	b := newBench(t, nil)
	m := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{{Name: "huge", Fault: mcptest.BigBody}}})
	b.register(remote(m.HTTP()))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := b.run(t.Context(), "far:huge", `{}`)
	fails(t, err, store.CodeTool)
	runtime.ReadMemStats(&after)
	if got := (after.TotalAlloc - before.TotalAlloc) >> 20; got > 100 {
		t.Errorf("%d MiB were allocated for an answer that is refused at 8", got)
	}
}

func TestNoiseOnStandardOutput(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	m := mcptest.New(t, mcptest.Options{Fault: mcptest.Noise, Tools: []mcptest.Tool{
		{Name: "noisy", Fault: mcptest.Noise}, {Name: "flood", Fault: mcptest.Flood}, echo}})
	b.register(stdio(m))
	b.good("child:noisy", `{"a":1}`, `{"a":1}`)
	if want := `wrote a line that is not JSON to standard output: \"Starting server...\"`; !strings.Contains(strings.ReplaceAll(b.log.String(), `\\\"`, `\"`), want) {
		t.Errorf("the log lacks %q:\n%s", want, b.log)
	}
	if got := b.Status()[0].Restarts; got != 0 {
		t.Errorf("%d restarts, want 0", got)
	}
	_, err := b.run(t.Context(), "child:flood", `{}`)
	fails(t, err, store.CodeUnknown, "not JSON to standard output", "it must log to standard error")
	b.good("child:echo", `{}`, `{}`)
}

func TestWedgedStandardInput(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	m := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{{Name: "wedge", Fault: mcptest.Wedge}, echo}})
	cfg := stdio(m)
	cfg.Timeout = store.Duration(300 * time.Millisecond)
	b.register(cfg)
	b.late("child:wedge")
	large, err := json.Marshal(map[string]string{"x": strings.Repeat("y", 300<<10)})
	if err != nil {
		t.Fatal(err)
	}
	// Nothing reads the pipe now. Callers stop at their own deadline without waiting for
	// the writer's, after which the process is killed and restarted.
	for range 3 {
		_, err := b.run(t.Context(), "child:echo", string(large))
		if err == nil {
			t.Fatal("a call into a wedged pipe succeeded")
		}
		if strings.Contains(err.Error(), "stopped reading") {
			t.Errorf("a caller waited for the writer's deadline: %v", err)
		}
	}
	eventually(t, "a new process", func() bool {
		res, err := b.run(t.Context(), "child:echo", `{}`)
		return err == nil && res.Text() == `{}`
	})
	if !strings.Contains(b.log.String(), "stopped reading its standard input") {
		t.Errorf("the log does not say why:\n%s", b.log)
	}
}

func TestOneBadAnswerDoesNotKillTheServer(t *testing.T) {
	t.Parallel()
	for fault, code := range map[mcptest.Fault]store.Code{
		mcptest.ServerError: store.CodeUnknown,
		mcptest.Unavailable: store.CodeUnknown,
		mcptest.TooMany:     store.CodeRateLimited,
	} {
		t.Run(string(fault), func(t *testing.T) {
			b := newBench(t, nil)
			m := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{echo}})
			b.register(remote(m.HTTP()))
			m.SetFault(fault, 1)
			_, err := b.run(t.Context(), "far:echo", `{}`)
			fails(t, err, code)
			b.good("far:echo", `{"a":1}`, `{"a":1}`)
			if got := m.Calls("echo"); got != 1 {
				t.Errorf("it ran %d times, want 1", got)
			}
		})
	}
}

func TestRedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	thief := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{echo}})
	m := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{echo}, Target: thief.HTTP()})
	cfg := remote(m.HTTP())
	cfg.Headers = map[string]store.Value{"X-Api-Key": {Text: "k-123"}}
	b.register(cfg)
	m.SetFault(mcptest.Redirect, -1)
	_, err := b.run(t.Context(), "far:echo", `{}`)
	fails(t, err, store.CodeUnavailable, "redirects are not followed")
	b.Restart(t.Context(), "far") //nolint:errcheck // it must fail, see below
	if got := thief.Headers(); len(got) != 0 {
		t.Errorf("the target of the redirect saw %v", got)
	}
}

func TestHTTPServerComesBack(t *testing.T) {
	t.Parallel()
	for name, opt := range map[string]mcptest.Options{
		"stateful":  {},
		"stateless": {Stateless: true},
		"json":      {JSON: true},
	} {
		t.Run(name, func(t *testing.T) {
			opt.Tools = []mcptest.Tool{echo}
			b := newBench(t, nil)
			m := mcptest.New(t, opt)
			b.register(remote(m.HTTP()))
			b.good("far:echo", `{}`, `{}`)
			m.Stop()
			// The outcome of a call sent just before the connection broke is unknown; later
			// calls were certainly not sent.
			eventually(t, "word that it is down", func() bool {
				_, err := b.run(t.Context(), "far:echo", `{}`)
				var ce *store.CallError
				return errors.As(err, &ce) && ce.Code == store.CodeUnavailable
			})
			m.HTTP()
			begin := time.Now()
			eventually(t, "a call that works", func() bool {
				_, err := b.run(t.Context(), "far:echo", `{}`)
				return err == nil
			})
			t.Logf("back after %s", time.Since(begin))
		})
	}
}

func TestHTTPServerRestartsBetweenTwoCalls(t *testing.T) {
	t.Parallel()
	for _, stateless := range []bool{false, true} {
		b := newBench(t, nil)
		m := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{echo}, Stateless: stateless})
		b.register(remote(m.HTTP()))
		b.good("far:echo", `{}`, `{}`)
		m.Stop()
		m.HTTP() // it does not know earlier sessions
		eventually(t, "a call that works", func() bool {
			_, err := b.run(t.Context(), "far:echo", `{}`)
			return err == nil
		})
		if got := m.Calls("echo"); got != 2 {
			t.Errorf("stateless %v: it ran %d times, want 2", stateless, got)
		}
		// list_changed notifications are received again, too.
		m.SetTool(mcptest.Tool{Name: "later"})
		eventually(t, "the new tool", func() bool { _, err := b.db.GetTool(t.Context(), "far:later"); return err == nil })
	}
}

func TestStreamIsResumed(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	m := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{{Name: "polled", Fault: mcptest.Polled}}})
	b.register(remote(m.HTTP()))
	b.good("far:polled", `{}`, "resumed")
	if got := m.Calls("polled"); got != 1 {
		t.Errorf("it ran %d times, want 1", got)
	}
}

func TestEndlessLists(t *testing.T) {
	t.Parallel()
	for fault, want := range map[mcptest.Fault]int{mcptest.Pages: maxPages, mcptest.SameCursor: 1, mcptest.Twice: 1} {
		for _, kind := range []string{"stdio", "http"} {
			t.Run(string(fault)+" "+kind, func(t *testing.T) {
				b := newBench(t, nil)
				m := mcptest.New(t, mcptest.Options{Fault: fault, Tools: []mcptest.Tool{echo}})
				cfg := stdio(m)
				if kind == "http" {
					cfg = remote(m.HTTP())
				}
				diff := b.register(cfg)
				if len(diff.Added) != want {
					t.Errorf("%d tools, want %d", len(diff.Added), want)
				}
				if !strings.Contains(b.log.String(), "left out") && !strings.Contains(b.log.String(), "it ends there") {
					t.Errorf("the log has no warning:\n%s", b.log)
				}
				if fault == mcptest.Twice && b.tool(cfg.Name+":twin").Description != "first" {
					t.Error("the second of two twins won")
				}
			})
		}
	}
}

// It runs alone because it counts the allocations of the whole process.
func TestListChangedStorm(t *testing.T) {
	b := newBench(t, nil)
	m := mcptest.New(t, mcptest.Options{Fault: mcptest.Storm, Tools: []mcptest.Tool{echo}})
	b.register(stdio(m))
	s, _ := b.findServer("child")
	sess := s.currentSession("")
	var mem runtime.MemStats
	// There is a pause between any two list requests, regardless of notifications.
	last := sess.tools.Load().at
	for range 2 {
		next := last
		eventually(t, "another list", func() bool { next = sess.tools.Load().at; return next.After(last) })
		if took := next.Sub(last); took < settleTime {
			t.Errorf("two lists within %s", took)
		}
		last = next
	}
	runtime.ReadMemStats(&mem)
	if got := mem.HeapAlloc >> 20; got > 200 {
		t.Errorf("the heap is at %d MiB", got)
	}
}

func TestChildThatFlapsIsNotSpawnedAllTheTime(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	m := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{{Name: "die", Fault: mcptest.Die}}})
	b.register(stdio(m))
	held := 0
	begin := time.Now()
	for held == 0 || time.Since(begin) < 1500*time.Millisecond {
		_, err := b.run(t.Context(), "child:die", `{}`)
		if err != nil && strings.Contains(err.Error(), "keeps failing") {
			held++
		}
		if got := m.Calls("die"); got > 8 {
			t.Fatalf("it was started %d times in %s, and %d callers were told to wait", got, time.Since(begin), held)
		}
	}
}

func TestDeadAndDeafChildren(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	m := mcptest.New(t, mcptest.Options{Fault: mcptest.Dead})
	b.put(stdio(m))
	_, err := b.Sync(t.Context(), admin, "child")
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "cannot open the database") {
		t.Errorf("error %v, want its exit status and its last words", err)
	}
	eventually(t, "the logs", func() bool { return strings.Contains(string(b.Logs("child")), "cannot open the database") })

	deaf := mcptest.New(t, mcptest.Options{Fault: mcptest.Deaf})
	cfg := stdio(deaf)
	cfg.Name = "deaf"
	b.put(cfg)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := b.Sync(ctx, admin, "deaf"); err == nil || ctx.Err() == nil {
		t.Errorf("error %v, the caller's time is over: %v", err, ctx.Err() != nil)
	}
}

func TestAnotherServerDoesNotNotice(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	bad := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{{Name: "hang", Fault: mcptest.Hang}}})
	good := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{echo}})
	cfg := remote(bad.HTTP())
	cfg.Name, cfg.MaxConcurrency = "bad", 100
	b.register(cfg)
	b.register(remote(good.HTTP()))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	for range 100 {
		go func() { b.run(ctx, "bad:hang", `{}`); done <- struct{}{} }()
	}
	eventually(t, "100 hanging calls", func() bool { return bad.Calls("hang") == 100 })
	for range 20 { // the other hundred end with cancel, and not before
		b.good("far:echo", `{}`, `{}`)
	}
	cancel()
	for range 100 {
		<-done
	}
}
