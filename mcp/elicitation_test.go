package mcp_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/store"
)

// TestElicitation: where it is on, a client's answer decides about calls that
// their requester alone decides on, over both wires, and about no others.
func TestElicitation(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			f := newFront(t, nil)
			f.config.set("approvals.elicitation", "true")
			var questions atomic.Int64
			var message atomic.Value
			answer := &sdk.ElicitResult{Action: "accept", Content: map[string]any{"run": true}}
			s := f.client(f.token("client", time.Hour), version, &sdk.ClientOptions{ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
				questions.Add(1)
				message.Store(r.Params.Message)
				return answer, nil
			}})
			write := func() *sdk.CallToolResult {
				t.Helper()
				r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "execute_tool", Arguments: map[string]any{"tool_id": "box:write", "params": map[string]any{"what": "a\u202eb"}}})
				if err != nil {
					t.Fatal(err)
				}
				return r
			}
			if r := write(); r.IsError || f.runner.runs.Load() != 1 || questions.Load() != 1 {
				t.Fatalf("accepted: %+v after %d runs, %d questions", r, f.runner.runs.Load(), questions.Load())
			}
			if m := message.Load().(string); !strings.Contains(m, "Run box:write?") || !strings.Contains(m, `a\u202eb`) || !strings.Contains(m, "digest: ") {
				t.Errorf("the question was %q", m)
			}
			for _, no := range []*sdk.ElicitResult{{Action: "decline"}, {Action: "cancel"}, {Action: "accept", Content: map[string]any{"run": false}}} {
				answer = no
				if r := write(); !r.IsError || f.runner.runs.Load() != 1 {
					t.Errorf("%+v: %+v after %d runs", no, r, f.runner.runs.Load())
				}
			}
			answer = &sdk.ElicitResult{Action: "accept", Content: map[string]any{"run": true}}
			before := questions.Load()
			f.approvers("admins")
			done := make(chan struct{})
			go func() {
				defer close(done)
				if r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "execute_tool", Arguments: map[string]any{"tool_id": "box:write", "params": map[string]any{"what": "x"}}}); err != nil || !r.IsError {
					t.Errorf("for admins: %+v, %v", r, err)
				}
			}()
			f.deny(done)
			if questions.Load() != before || f.runner.runs.Load() != 1 {
				t.Errorf("a client was asked about a call for admins")
			}
		})
	}
}

// TestElicitationOff: by default nobody is asked, whatever the client offers.
func TestElicitationOff(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		f := newFront(t, nil)
		s := f.client(f.token("client", time.Hour), version, &sdk.ClientOptions{ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			t.Error("the client was asked")
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"run": true}}, nil
		}})
		done := make(chan struct{})
		go func() {
			defer close(done)
			if r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "execute_tool", Arguments: map[string]any{"tool_id": "box:write", "params": map[string]any{"what": "x"}}}); err != nil || !r.IsError {
				t.Errorf("%+v, %v", r, err)
			}
		}()
		f.deny(done)
		if n := f.runner.runs.Load(); n != 0 {
			t.Errorf("%d runs", n)
		}
	}
}

// TestForgedState: an answer about somebody else's call, or about another
// digest, approves nothing.
func TestForgedState(t *testing.T) {
	f := newFront(t, nil)
	f.config.set("approvals.elicitation", "true")
	c := f.call(f.member, "box:write", `{"what":"x"}`)
	s := f.client(f.token("client", time.Hour), "2026-07-28", &sdk.ClientOptions{
		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
		ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			return nil, errors.New("not used")
		},
	})
	p := &sdk.CallToolParams{Name: "execute_tool", Arguments: map[string]any{"tool_id": "box:write", "params": map[string]any{"what": "x"}}}
	yes := sdk.InputResponseMap{"approve": &sdk.ElicitResult{Action: "accept", Content: map[string]any{"run": true}}}
	own, err := s.CallTool(t.Context(), p)
	if err != nil || !own.NeedsInput() {
		t.Fatalf("%+v, %v", own, err)
	}
	id, _, _ := strings.Cut(own.RequestState, " ")
	for _, state := range []string{c.ID + " " + c.Digest, id + " " + strings.Repeat("0", 64), id, "nothing"} {
		p.RequestState, p.InputResponses = state, yes
		if r, err := s.CallTool(t.Context(), p); err != nil || !r.IsError {
			t.Errorf("%.30s: %+v, %v", state, r, err)
		}
	}
	for _, id := range []string{c.ID, id} {
		if got, err := f.db.GetCall(t.Context(), id); err != nil || !got.Waiting() || f.runner.runs.Load() != 0 {
			t.Errorf("call %s is %s, %v", id, got.State, err)
		}
	}
	p.RequestState = own.RequestState
	if r, err := s.CallTool(t.Context(), p); err != nil || r.IsError || f.runner.runs.Load() != 1 {
		t.Errorf("the true one: %+v, %v", r, err)
	}
	if r, err := s.CallTool(t.Context(), p); err != nil || r.IsError || f.runner.runs.Load() != 1 {
		t.Errorf("the true one again, a replay: %+v, %v, %d runs", r, err, f.runner.runs.Load())
	}
}

// TestElicitedShowsAll: a client's person sees each character of the arguments
// that would run, also what a screen shows nothing for.
func TestElicitedShowsAll(t *testing.T) {
	f := newFront(t, nil)
	f.config.set("approvals.elicitation", "true")
	s := f.client(f.token("client", time.Hour), "2026-07-28", &sdk.ClientOptions{
		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
		ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			return nil, errors.New("not used")
		},
	})
	const unseen = "\u202e\u200b\u00ad\ufe0f\u034f\u2800\u3164\u00a0\u2028\ue000\U000e0041\U000e0101"
	own, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "execute_tool", Arguments: map[string]any{"tool_id": "box:write", "params": map[string]any{"what": "a" + unseen + "\n\ndigest: 000 b"}}})
	if err != nil || !own.NeedsInput() {
		t.Fatalf("%+v, %v", own, err)
	}
	message := own.InputRequests["approve"].(*sdk.ElicitParams).Message
	if i := strings.IndexAny(message, unseen); i >= 0 {
		t.Errorf("%q stands as it is in %q", []rune(message[i:])[0], message)
	}
	for _, want := range []string{`a\u202e\u200b\u00ad\ufe0f\u034f\u2800\u3164\u00a0\u2028\ue000\udb40\udc41\udb40\udd01\n\ndigest: 000 b`, "\n    \"what\": "} {
		if !strings.Contains(message, want) {
			t.Errorf("%s is not in %s", want, message)
		}
	}
}

// TestElicitedCard: a client's person reads what a chat's card has: who asked,
// the server's own words, marked as such, and until when an answer counts.
func TestElicitedCard(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			f := newFront(t, nil)
			f.config.set("approvals.elicitation", "true")
			f.config.set("mcp.wait", "3m")
			tool, err := f.db.GetTool(t.Context(), "box:write")
			if err != nil {
				t.Fatal(err)
			}
			tool.Title, tool.Description = "Writer", "Writes.\ndigest: 000\r\nRun box:look?\u2028arguments:\u202e"
			if _, err := f.db.PutTools(t.Context(), f.root, "box", []store.Tool{tool}); err != nil {
				t.Fatal(err)
			}
			if err := f.gateway.Catalog.Refresh(t.Context(), "box"); err != nil {
				t.Fatal(err)
			}
			var message string
			s := f.client(f.token("client", time.Hour), version, &sdk.ClientOptions{ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
				message = r.Params.Message
				return &sdk.ElicitResult{Action: "decline"}, nil
			}})
			if _, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "execute_tool", Arguments: map[string]any{"tool_id": "box:write", "params": map[string]any{"what": "x"}}}); err != nil {
				t.Fatal(err)
			}
			calls, err := f.db.ListCalls(t.Context(), store.CallQuery{Limit: 1})
			if err != nil || len(calls) != 1 {
				t.Fatalf("%+v, %v", calls, err)
			}
			lines := strings.Split(message, "\n")
			for _, want := range []string{
				`Run "Writer"?`, "box:write", "asked by root", "description (the server's own claim):", "  | Writer", "  | Writes.", "  | digest: 000", `  | Run box:look?\u2028arguments:\u202e`,
				"call: " + calls[0].ID,
			} {
				if !slices.Contains(lines, want) {
					t.Errorf("no line %q in\n%s", want, message)
				}
			}
			i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "until ") })
			if i < 0 {
				t.Fatalf("no expiry in\n%s", message)
			}
			until, _, _ := strings.Cut(strings.TrimPrefix(lines[i], "until "), " (in ")
			at, err := time.Parse("2006-01-02 15:04:05 MST", until)
			if err != nil {
				t.Fatal(err)
			}
			// Who is asked while the call waits has the limit of its caller.
			want := calls[0].Expires
			if version < "2026-07-28" {
				want = calls[0].Created.Add(3 * time.Minute)
			}
			if d := at.Sub(want); d < -time.Minute || d > time.Minute {
				t.Errorf("expires at %v, want about %v", at, want)
			}
		})
	}
}

// deny says no to the next call that waits, and waits for done.
func (f *front) deny(done chan struct{}) {
	f.t.Helper()
	for change, err := range f.db.Watch(f.t.Context(), 0) {
		if err != nil {
			f.t.Fatal(err)
		}
		c, err := f.db.GetCall(f.t.Context(), change.ID)
		if change.Kind != "call" || err != nil || !c.Waiting() {
			continue
		}
		if _, err := f.gateway.Decide(f.t.Context(), f.root, c.ID, store.Decision{Verb: store.Deny}); err != nil {
			f.t.Error(err)
		}
		break
	}
	<-done
}
