package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/mcp/mcptest"
	"nize/store"
)

// exact holds what every decoder between here and there could spoil.
const exact = `{"content":[{"type":"hologram","beam":[1,2.50]},{"type":"text","text":"<b>&"}],"structuredContent":{"id":9007199254740993,"big":12345678901234567890,"x":1.10},"unheard":{"of":null}}`

var echo = mcptest.Tool{Name: "echo", Description: "says it again"}

// wires runs a test over each transport. The fake is built again for each.
func wires(t *testing.T, opt mcptest.Options, f func(t *testing.T, b *bench, m *mcptest.Server, cfg store.Server)) {
	kinds := map[string]func(*mcptest.Server) store.Server{
		"stdio":          stdio,
		"http stateful":  func(m *mcptest.Server) store.Server { return remote(m.HTTP()) },
		"http stateless": func(m *mcptest.Server) store.Server { return remote(m.HTTP()) },
		"http json":      func(m *mcptest.Server) store.Server { return remote(m.HTTP()) },
	}
	for name, record := range kinds {
		t.Run(name, func(t *testing.T) {
			o := opt
			o.Stateless = name == "http stateless"
			o.JSON = name == "http json"
			b := newBench(t, nil)
			m := mcptest.New(t, o)
			f(t, b, m, record(m))
		})
	}
}

func TestCallGoesThroughVerbatim(t *testing.T) {
	t.Parallel()
	opt := mcptest.Options{Tools: []mcptest.Tool{echo, {Name: "exact", Result: json.RawMessage(exact)}}}
	wires(t, opt, func(t *testing.T, b *bench, m *mcptest.Server, cfg store.Server) {
		b.register(cfg)
		args := `{"a":9007199254740993,"b":"é\u0001<>&","c":1.10}`
		b.good(cfg.Name+":echo", args, args)
		res, err := b.run(t.Context(), cfg.Name+":exact", `{}`)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(res.Raw), exact); diff != "" {
			t.Errorf("result (-got +want):\n%s", diff)
		}
		if got := m.Calls("exact"); got != 1 {
			t.Errorf("it ran %d times, want 1", got)
		}
	})
}

func TestOlderSSE(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	m := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{echo}})
	cfg := store.Server{Name: "old", Transport: store.SSE, URL: m.SSE()}
	b.register(cfg)
	b.good("old:echo", `{"n":9007199254740993}`, `{"n":9007199254740993}`)
	m.SetTool(mcptest.Tool{Name: "more"})
	eventually(t, "the new tool", func() bool { _, err := b.db.GetTool(t.Context(), "old:more"); return err == nil })
}

func TestOlderSSEKeepsToItsHost(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	m := mcptest.New(t, mcptest.Options{})
	url := m.Handle(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "event: endpoint\ndata: http://elsewhere.invalid/take\n\n")
	}))
	b.put(store.Server{Name: "old", Transport: store.SSE, URL: url})
	_, err := b.Sync(t.Context(), admin, "old")
	if err == nil || !strings.Contains(err.Error(), "another host") {
		t.Fatalf("error %v, want one about another host", err)
	}
}

func TestConcurrentCalls(t *testing.T) {
	t.Parallel()
	wires(t, mcptest.Options{Tools: []mcptest.Tool{echo}}, func(t *testing.T, b *bench, m *mcptest.Server, cfg store.Server) {
		b.register(cfg)
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				args := fmt.Sprintf(`{"i":%d}`, i)
				res, err := b.run(t.Context(), cfg.Name+":echo", args)
				if err != nil || res.Text() != args {
					t.Errorf("call %d: %v, %v", i, res.Text(), err)
				}
			})
		}
		wg.Wait()
		if got := m.Calls("echo"); got != 100 {
			t.Errorf("it ran %d times, want 100", got)
		}
	})
}

func TestProgress(t *testing.T) {
	t.Parallel()
	opt := mcptest.Options{Tools: []mcptest.Tool{{Name: "slow", Fault: mcptest.Progress}}}
	wires(t, opt, func(t *testing.T, b *bench, _ *mcptest.Server, cfg store.Server) {
		b.register(cfg)
		var mu sync.Mutex
		var got []string
		_, err := b.Run(t.Context(), member, b.call(cfg.Name+":slow", `{}`), func(done, total float64, msg string) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, fmt.Sprint(done, "/", total, " ", msg))
		})
		if err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		defer mu.Unlock()
		if diff := cmp.Diff(got, []string{"1/3 step 1", "2/3 step 2", "3/3 step 3"}); diff != "" {
			t.Errorf("progress (-got +want):\n%s", diff)
		}
	})
}

func TestServerThatAsksIsTold(t *testing.T) {
	t.Parallel()
	opt := mcptest.Options{Tools: []mcptest.Tool{{Name: "ask", Fault: mcptest.Ask}}}
	wires(t, opt, func(t *testing.T, b *bench, _ *mcptest.Server, cfg store.Server) {
		b.register(cfg)
		res, err := b.run(t.Context(), cfg.Name+":ask", `{}`)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(res.Text(), "does not offer elicitation/create") {
			t.Errorf("the server heard %s", res.Text())
		}
	})
}

func TestCancellationPassesThrough(t *testing.T) {
	t.Parallel()
	wires(t, mcptest.Options{Tools: []mcptest.Tool{{Name: "hang", Fault: mcptest.Hang}, echo}}, func(t *testing.T, b *bench, m *mcptest.Server, cfg store.Server) {
		b.register(cfg)
		ctx, cancel := context.WithCancel(t.Context())
		stop := make(chan error, 1)
		c := b.call(cfg.Name+":hang", `{}`)
		go func() {
			_, err := b.Run(ctx, member, c, nil)
			stop <- err
		}()
		eventually(t, "the call", func() bool { return m.Calls("hang") == 1 })
		cancel()
		fails(t, <-stop, store.CodeCancelled) // a timeout, if it had waited for the server
		b.good(cfg.Name+":echo", `{}`, `{}`)  // the session is as good as before
		if st := b.Status()[0]; st.Restarts != 0 {
			t.Errorf("%d restarts, want 0", st.Restarts)
		}
	})
}

func TestTimeouts(t *testing.T) {
	t.Parallel()
	yes := true
	opt := mcptest.Options{Tools: []mcptest.Tool{
		{Name: "write", Fault: mcptest.Hang},
		{Name: "read", Fault: mcptest.Hang, Annotations: &sdk.ToolAnnotations{ReadOnlyHint: yes}},
	}}
	wires(t, opt, func(t *testing.T, b *bench, m *mcptest.Server, cfg store.Server) {
		cfg.Timeout = store.Duration(200 * time.Millisecond)
		cfg.TrustAnnotations = true
		b.register(cfg)
		b.late(cfg.Name+":write", "the outcome is unknown")
		_, err := b.run(t.Context(), cfg.Name+":read", `{}`)
		fails(t, err, store.CodeTimeout)
	})
}

func TestSlowTrickleEndsAtTheDeadline(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	m := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{{Name: "drip", Fault: mcptest.Trickle}}})
	cfg := remote(m.HTTP())
	cfg.Timeout = store.Duration(300 * time.Millisecond)
	b.register(cfg)
	b.late("far:drip") // it drips for ever
}

func TestConcurrencyIsBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	begun, release := make(chan struct{}, 10), make(chan struct{})
	m := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{{Name: "wait", Do: func(context.Context, json.RawMessage) json.RawMessage {
		begun <- struct{}{}
		<-release
		return nil
	}}}})
	cfg := remote(m.HTTP())
	cfg.MaxConcurrency = 2
	b.register(cfg)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() { b.run(t.Context(), "far:wait", `{}`) })
	}
	<-begun
	<-begun
	over := make(chan struct{})
	close(over)
	_, err := b.run(expired{t.Context(), over}, "far:wait", `{}`)
	fails(t, err, store.CodeTimeout, "all 2 of its concurrent calls")
	close(release)
	wg.Wait()
	if got := m.Calls("wait"); got != 2 {
		t.Errorf("it ran %d times, want 2", got)
	}
}

func TestUnknownServerAndDisabled(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	_, err := b.Run(t.Context(), member, &store.Call{Server: "nobody", Tool: "x", Pin: "p"}, nil)
	fails(t, err, store.CodeNotFound)

	m := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{echo}})
	cfg := remote(m.HTTP())
	b.register(cfg)
	c := b.call("far:echo", `{}`)
	cfg.Disabled = true
	b.put(cfg)
	if _, err := b.Sync(t.Context(), admin, "far"); err != nil {
		t.Fatal(err)
	}
	if got := b.Status()[0].State; got != Disabled {
		t.Errorf("state %s, want disabled", got)
	}
	if b.told["far"] != nil {
		t.Errorf("OnTools still has %v", b.told["far"])
	}
	_, err = b.Run(t.Context(), member, c, nil)
	fails(t, err, store.CodeUnavailable, "disabled")

	cfg.Disabled = false
	b.register(cfg)
	if len(b.told["far"]) != 1 {
		t.Errorf("OnTools has %v after enabling", b.told["far"])
	}
	b.good("far:echo", `{}`, `{}`)

	if err := b.db.DeleteServer(t.Context(), admin, "far"); err != nil {
		t.Fatal(err)
	}
	diff, err := b.Sync(t.Context(), admin, "far")
	if err != nil || !slices.Equal(diff.Removed, []string{"far:echo"}) {
		t.Errorf("removal: %v, %v", diff, err)
	}
	_, err = b.Run(t.Context(), member, c, nil)
	fails(t, err, store.CodeNotFound)
}

func TestStartConnectsEverything(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	m := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{echo}})
	url := m.HTTP()
	for i := range 40 {
		s := remote(url)
		s.Name = fmt.Sprint("s", i)
		b.put(s)
	}
	b.put(store.Server{Name: "dead", Transport: store.HTTP, URL: "http://127.0.0.1:1/mcp"})
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "40 connected and one down", func() bool {
		up, down := 0, 0
		for _, st := range b.Status() {
			switch st.State {
			case Connected:
				up++
			case Down:
				down++
			}
		}
		return up == 40 && down == 1
	})
}

func BenchmarkRunHTTP(b *testing.B) {
	for _, bare := range []bool{true, false} {
		b.Run(map[bool]string{true: "bare", false: "run"}[bare], func(b *testing.B) { benchmarkHTTP(b, bare) })
	}
}
