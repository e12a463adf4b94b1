package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/store"
)

// TestLeavesAsAnotherComes: a requester who joins a call at the moment its last waiter
// leaves keeps the call.
func TestLeavesAsAnotherComes(t *testing.T) {
	h := newFixture(t, nil)
	by := h.onMCP()
	type end struct {
		call *store.Call
		err  error
	}
	for round := range 100 {
		req := store.Request{Tool: "box:write", Args: json.RawMessage(fmt.Sprintf(`{"what":"%d"}`, round))}
		stay := func(ctx context.Context) (waits chan struct{}, ended chan end) {
			waits, ended = make(chan struct{}, 100), make(chan end, 1)
			go func() {
				c, err := h.gateway.Execute(ctx, by, req, func(_, _ float64, _ string) { waits <- struct{}{} })
				ended <- end{c, err}
			}()
			return waits, ended
		}
		ctx, leave := context.WithCancel(t.Context())
		waits, first := stay(ctx)
		<-waits
		go leave()
		waits, second := stay(t.Context())
		<-first
		select {
		case <-waits:
		case e := <-second:
			t.Fatalf("round %d: who came is told %+v, %v", round, e.call, e.err)
		}
		waiting, err := h.db.ListCalls(t.Context(), store.CallQuery{Waiting: true})
		if err != nil || len(waiting) != 1 {
			e := <-second
			t.Fatalf("round %d: %d calls wait, %v; who came is told %+v, %v", round, len(waiting), err, e.call, e.err)
		}
		if _, err := h.press(h.member, &waiting[0], store.Approve); err != nil {
			t.Fatal(err)
		}
		if e := <-second; e.err != nil || e.call.State != store.Done {
			t.Fatalf("round %d: who came is told %+v, %v", round, e.call, e.err)
		}
	}
}

// TestAskedAndAnotherLeaves: if two clients are asked about the same call, an error from
// one does not affect the other.
func TestAskedAndAnotherLeaves(t *testing.T) {
	f := newFront(t, nil)
	f.config.set("approvals.elicitation", "true")
	token := f.token("client", time.Hour)
	askedBoth, gone := make(chan struct{}), make(chan struct{})
	client := func(answer func() (*sdk.ElicitResult, error)) *sdk.ClientSession {
		return f.client(token, "2025-11-25", &sdk.ClientOptions{ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			return answer()
		}})
	}
	p := &sdk.CallToolParams{Name: "execute_tool", Arguments: map[string]any{"tool_id": "box:write", "params": map[string]any{"what": "x"}}}
	wedged := client(func() (*sdk.ElicitResult, error) {
		<-askedBoth
		return nil, errors.New("nobody looks at this screen")
	})
	well := client(func() (*sdk.ElicitResult, error) {
		close(askedBoth)
		<-gone
		return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"run": true}}, nil
	})
	go func() {
		defer close(gone)
		if r, err := wedged.CallTool(t.Context(), p); err == nil && !r.IsError {
			t.Errorf("the one that gave an error is told %+v", r)
		}
	}()
	r, err := well.CallTool(t.Context(), p)
	if err != nil || r.IsError || f.runner.runs.Load() != 1 {
		t.Errorf("the other is told %+v, %v after %d runs", r, err, f.runner.runs.Load())
	}
}

// TestJoinsNoVoidCall: a client that repeats a call after its tool changed is asked about
// the call in its current form.
func TestJoinsNoVoidCall(t *testing.T) {
	h := newFixture(t, nil)
	by := h.onMCP()
	ask := func() *store.Call {
		t.Helper()
		c, err := h.gateway.Call(t.Context(), by, store.Request{Tool: "box:write", Args: json.RawMessage(`{"what":"x"}`)})
		if err != nil || !c.Waiting() {
			t.Fatalf("%+v, %v", c, err)
		}
		return c
	}
	first := ask()
	if again := ask(); again.ID != first.ID {
		t.Fatal("the same call was not joined")
	}
	h.putTools("pin-2")
	second := ask()
	if second.ID == first.ID || second.Pin != "pin-2" {
		t.Fatalf("after its definition changed the client waits for %+v", second)
	}
	if _, err := h.press(h.member, second, store.Approve); err != nil {
		t.Error(err)
	}
	if c := h.wait(second.ID); c.State != store.Done {
		t.Errorf("it is %s", c.State)
	}
	if _, err := h.press(h.member, first, store.Approve); !errors.Is(err, store.ErrRefused) {
		t.Errorf("the void one: %v", err)
	}
}
