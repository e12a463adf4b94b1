package offline_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"nize/llm"
	"nize/llm/offline"
	"nize/store"
	"nize/store/database"
	"nize/store/database/databasetest"
)

// fakeTools is a gateway with one tool that always needs approval.
type fakeTools struct{ db *database.DB }

func (d fakeTools) Functions(context.Context, store.Caller, store.Scope) ([]store.Function, error) {
	return []store.Function{{Name: "discover_tools"}, {Name: "get_tool_schema"}, {Name: "execute_tool"}}, nil
}

func (d fakeTools) Meta(_ context.Context, _ store.Caller, _ store.Scope, fn store.ToolCall) (*store.Result, error) {
	text := `{"tools":[{"tool_id":"box:roll","description":"Rolls dice.","score":0.8}]}`
	if fn.Name == "get_tool_schema" {
		text = `{"tool_id":"box:roll","name":"roll","description":"Rolls dice.","input_schema":{"type":"object","properties":{"dice":{"type":"string"}},"required":["dice"]},"needs_approval":true}`
	}
	return &store.Result{Raw: fmt.Appendf(nil, `{"content":[{"type":"text","text":%q}]}`, text)}, nil
}

func (d fakeTools) Call(ctx context.Context, by store.Caller, req store.Request) (*store.Call, error) {
	c := store.Call{ID: req.ID, Server: "box", Tool: "roll", Args: req.Args, Thread: req.Thread, By: by.User, State: store.Pending,
		Pin: "p", Created: time.Now(), Expires: time.Now().Add(time.Hour), Surface: by.Surface}
	c.Digest = c.ComputeDigest()
	return &c, d.db.Begin(ctx, by, c)
}

func (d fakeTools) Decide(ctx context.Context, by store.Caller, id string, dec store.Decision) (*store.Call, error) {
	c, err := d.db.Decide(ctx, by, id, dec)
	return &c, err
}

// The planner behind the agent, on the real store: a proposal, an approval, a result, and
// after another proposal a refusal.
func TestPlannerBehindAgent(t *testing.T) {
	ctx := t.Context()
	db := databasetest.Open(t)
	ann, err := db.EnsureUser(ctx, "local:1000", "Ann", store.Member)
	if err != nil {
		t.Fatal(err)
	}
	by := store.Caller{User: ann.ID, Name: ann.Name, Role: ann.Role, Surface: store.OnTerminal}
	thread := store.Thread{ID: store.NewID(time.Now()), User: ann.ID, Created: time.Now()}
	if err := db.PutThread(ctx, by, thread); err != nil {
		t.Fatal(err)
	}
	router := &llm.Router{Store: db, Open: func(store.Provider) (llm.Model, error) { return offline.New(nil), nil }, Meter: &llm.Meter{Ledger: db, Prices: db, Config: store.Defaults{}}}
	agent := llm.New(llm.Deps{Threads: db, Calls: db, Agents: db, Config: store.Defaults{}, Tools: fakeTools{db}, Models: router})

	var mu sync.Mutex
	var calls []store.Call
	var text string
	talk := func(message string) {
		t.Helper()
		if message != "" {
			if _, err := agent.Say(ctx, by, store.Inbound{Key: message, Thread: thread.ID, By: by, Text: message}); err != nil {
				t.Fatal(err)
			}
		}
		text = ""
		err := agent.Work(ctx, thread.ID, func(p store.Progress) {
			mu.Lock()
			defer mu.Unlock()
			text += p.Delta
			if p.Kind == "call" && p.Call.State == store.Pending {
				calls = append(calls, *p.Call)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}

	talk("roll 2d6")
	if len(calls) != 1 || string(calls[0].Args) != `{"dice":"2d6"}` || !strings.Contains(text, "needs a yes") {
		t.Fatalf("calls %+v, said %q", calls, text)
	}
	c := calls[0]
	if _, err := db.Decide(ctx, by, c.ID, store.Decision{Verb: store.Approve, By: by.User, At: time.Now(), Digest: c.Digest}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Start(ctx, c.ID, "me"); err != nil {
		t.Fatal(err)
	}
	done := store.Outcome{State: store.Done, Result: &store.Result{Raw: []byte(`{"content":[{"type":"text","text":"2d6 = 7"}]}`)}}
	if _, err := db.Finish(ctx, by, c.ID, done); err != nil {
		t.Fatal(err)
	}
	talk("")
	if !strings.Contains(text, "2d6 = 7") || !strings.Contains(text, "not a language model") {
		t.Errorf("said %q", text)
	}
	talk("roll 3d8")
	c = calls[len(calls)-1]
	if _, err := db.Decide(ctx, by, c.ID, store.Decision{Verb: store.Deny, By: by.User, At: time.Now(), Digest: c.Digest}); err != nil {
		t.Fatal(err)
	}
	talk("")
	if !strings.Contains(text, "refused") || strings.Contains(text, "not a language model") {
		t.Errorf("said %q", text)
	}
	if open, err := db.Open(ctx); err != nil || len(open) != 0 {
		t.Errorf("open threads %v, %v", open, err)
	}
	rows, err := db.Usage(ctx, store.UsageQuery{By: "model"})
	if err != nil || len(rows.Rows) != 1 || !strings.Contains(rows.Rows[0].Key, "planner") || rows.Rows[0].Unpriced != 0 {
		t.Errorf("usage %+v, %v", rows, err)
	}
}
