package mcp_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"nize/mcp"
	"nize/store"
)

func TestReadOnlyRunsAtOnce(t *testing.T) {
	h := newFixture(t, nil)
	c := h.call(h.root, "box:look", `{"n": 9007199254740993, "what": "x"}`)
	if c.State != store.Done {
		t.Fatalf("state %s (%s), want done", c.State, c.Reason)
	}
	if want := `"args":{"n":9007199254740993,"what":"x"}`; !strings.Contains(string(c.Result.Raw), want) {
		t.Errorf("result %s does not hold the canonical arguments %s", c.Result.Raw, want)
	}
	if err := h.db.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	stored, err := h.db.GetCall(t.Context(), c.ID)
	if err != nil || stored.State != store.Done || stored.Digest != c.Digest || stored.ComputeDigest() != c.Digest {
		t.Errorf("stored call %+v, %v", stored, err)
	}
}

func TestAskedOnceRunsOnce(t *testing.T) {
	h := newFixture(t, nil)
	c := h.call(h.root, "box:write", `{"what":"x"}`)
	if c.State != store.Pending || h.runner.runs.Load() != 0 {
		t.Fatalf("state %s after %d runs, want pending and none", c.State, h.runner.runs.Load())
	}
	var won, late atomic.Int64
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			_, err := h.gateway.Decide(t.Context(), h.root, c.ID, store.Decision{Verb: store.Approve, Digest: c.Digest})
			switch {
			case err == nil:
				won.Add(1)
			case errors.Is(err, store.ErrDecided):
				late.Add(1)
			default:
				t.Errorf("press: %v", err)
			}
		})
	}
	all.Wait()
	if won.Load() != 1 || late.Load() != 99 {
		t.Errorf("%d presses won and %d came late, want 1 and 99", won.Load(), late.Load())
	}
	if c := h.wait(c.ID); c.State != store.Done || h.runner.runs.Load() != 1 {
		t.Errorf("state %s after %d runs, want done after 1", c.State, h.runner.runs.Load())
	}
}

func TestRefusals(t *testing.T) {
	h := newFixture(t, nil)
	for name, press := range map[string]struct {
		by   store.Caller
		d    store.Decision
		want error
	}{
		"somebody else":  {h.member, store.Decision{Verb: store.Approve}, store.ErrNotFound},
		"another digest": {h.root, store.Decision{Verb: store.Approve, Digest: strings.Repeat("0", 64)}, store.ErrConflict},
	} {
		c := h.call(h.root, "box:write", `{"what":"x"}`)
		if _, err := h.gateway.Decide(t.Context(), press.by, c.ID, press.d); !errors.Is(err, press.want) {
			t.Errorf("%s: %v, want %v", name, err, press.want)
		}
		if got, err := h.db.GetCall(t.Context(), c.ID); err != nil || !got.Waiting() {
			t.Errorf("%s: the call is %s, want waiting (%v)", name, got.State, err)
		}
	}
	c := h.call(h.root, "box:write", `{"what":"y"}`)
	if _, err := h.gateway.Decide(t.Context(), h.root, c.ID, store.Decision{Verb: store.Deny, Reason: store.Plain("no")}); err != nil {
		t.Fatal(err)
	}
	if c := h.wait(c.ID); c.State != store.Refused {
		t.Errorf("state %s, want refused", c.State)
	}
	if n := h.runner.runs.Load(); n != 0 {
		t.Errorf("%d runs, want none", n)
	}
}

func TestDefinitionChangesBeforeThePress(t *testing.T) {
	h := newFixture(t, nil)
	c := h.call(h.root, "box:write", `{"what":"x"}`)
	h.putTools("pin-2")
	if _, err := h.gateway.Decide(t.Context(), h.root, c.ID, store.Decision{Verb: store.Approve, Digest: c.Digest}); !errors.Is(err, store.ErrRefused) {
		t.Errorf("press after the change: %v, want refused", err)
	}
	if c := h.wait(c.ID); c.State != store.Refused || h.runner.runs.Load() != 0 {
		t.Errorf("state %s after %d runs, want refused after none", c.State, h.runner.runs.Load())
	}
}

func TestNobodyAnswers(t *testing.T) {
	h := newFixture(t, nil)
	h.config.set("approvals.expiry.requester", "1s")
	c := h.call(h.root, "box:write", `{"what":"x"}`)
	if got := h.wait(c.ID); got.State != store.Expired {
		t.Errorf("state %s, want expired", got.State)
	}
	if _, err := h.gateway.Decide(t.Context(), h.root, c.ID, store.Decision{Verb: store.Approve}); err == nil {
		t.Error("a press after the expiry was taken")
	}
}

// After a crash, a waiting call goes on waiting, an approved call runs, and a call that was
// running is lost and never run again.
func TestRestart(t *testing.T) {
	h := newFixture(t, nil)
	waiting := h.call(h.root, "box:write", `{"what":"waiting"}`)
	approved := h.call(h.root, "box:write", `{"what":"approved"}`)
	h.runner.hold = make(chan struct{})
	running := h.call(h.root, "box:write", `{"what":"running"}`)
	h.stop() // the worker has stopped; the rest simulates a killed daemon
	h.open("killed")
	if _, err := h.db.Decide(t.Context(), h.root, approved.ID, store.Decision{Verb: store.Approve, By: h.root.User, At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.db.Decide(t.Context(), h.root, running.ID, store.Decision{Verb: store.Approve, By: h.root.User, At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.db.Start(t.Context(), running.ID, "killed"); err != nil {
		t.Fatal(err)
	}
	h.stop()
	close(h.runner.hold)

	h.open("second")
	h.run()
	if c := h.wait(running.ID); c.State != store.Lost {
		t.Errorf("the running call is %s, want lost", c.State)
	}
	if c := h.wait(approved.ID); c.State != store.Done {
		t.Errorf("the approved call is %s (%s), want done", c.State, c.Reason)
	}
	if c, err := h.db.GetCall(t.Context(), waiting.ID); err != nil || !c.Waiting() {
		t.Errorf("the waiting call is %s (%v), want waiting", c.State, err)
	}
	if _, err := h.gateway.Decide(t.Context(), h.root, waiting.ID, store.Decision{Verb: store.Approve, Digest: waiting.Digest}); err != nil {
		t.Fatal(err)
	}
	if c := h.wait(waiting.ID); c.State != store.Done {
		t.Errorf("the waiting call is %s, want done", c.State)
	}
	if n := h.runner.runs.Load(); n != 2 {
		t.Errorf("%d runs, want 2: the lost call must not run again", n)
	}
	if _, err := h.db.VerifyEvents(t.Context()); err != nil {
		t.Errorf("audit: %v", err)
	}
}

func TestEdit(t *testing.T) {
	h := newFixture(t, nil)
	old := h.call(h.root, "box:write", `{"what":"wrong"}`)
	if _, err := h.gateway.Decide(t.Context(), h.root, old.ID, store.Decision{Verb: store.Edit, Args: json.RawMessage(`{"what":7}`)}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("an edit that does not fit: %v, want invalid", err)
	}
	c, err := h.gateway.Decide(t.Context(), h.root, old.ID, store.Decision{Verb: store.Edit, Args: json.RawMessage(`{"what":"right"}`)})
	if err != nil {
		t.Fatal(err)
	}
	if c.ID == old.ID || c.Replaces != old.ID || c.Digest == old.Digest {
		t.Errorf("the edit gave %+v", c)
	}
	done := h.wait(c.ID)
	if done.State != store.Done || !strings.Contains(string(done.Result.Raw), "right") {
		t.Errorf("the edited call is %s with %s", done.State, done.Result.Raw)
	}
	if got := h.wait(old.ID); got.State != store.Cancelled || h.runner.runs.Load() != 1 {
		t.Errorf("the old call is %s after %d runs, want cancelled after 1", got.State, h.runner.runs.Load())
	}
}

func TestAlways(t *testing.T) {
	h := newFixture(t, nil)
	c := h.call(h.root, "box:write", `{"what":"x"}`)
	if card, err := h.gateway.Card(t.Context(), c.ID); err != nil || !card.Always {
		t.Errorf("card %+v, %v: want Always offered", card, err)
	}
	if _, err := h.gateway.Decide(t.Context(), h.root, c.ID, store.Decision{Verb: store.Approve, Digest: c.Digest, Always: true}); err != nil {
		t.Fatal(err)
	}
	h.wait(c.ID)
	if c := h.call(h.root, "box:write", `{"what":"again"}`); c.State != store.Done {
		t.Errorf("with a grant the call is %s, want done", c.State)
	}
	if c := h.call(h.member, "box:write", `{"what":"again"}`); c.State != store.Pending {
		t.Errorf("somebody else's call is %s, want pending", c.State)
	}
	h.putTools("pin-2")
	if c := h.call(h.root, "box:write", `{"what":"again"}`); c.State != store.Pending {
		t.Errorf("with another definition the call is %s, want pending", c.State)
	}
	again := h.call(h.member, "box:write", `{"what":"never"}`)
	if _, err := h.gateway.Decide(t.Context(), h.member, again.ID, store.Decision{Verb: store.Deny, Always: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.gateway.Call(t.Context(), h.member, store.Request{Tool: "box:write", Args: json.RawMessage(`{"what":"x"}`)}); !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), "a standing answer denies it; to change that: nizectl approvals grants revoke ") {
		t.Errorf("denied for good: %v, want what to do", err)
	}
	h.config.set("approvals.mode", "all")
	if c := h.call(h.root, "box:look", `{"what":"x"}`); c.State != store.Pending {
		t.Errorf("in mode all a read is %s, want pending", c.State)
	}
}

func TestModes(t *testing.T) {
	h := newFixture(t, nil)
	h.config.set("approvals.list", "box:look")
	for mode, want := range map[string][2]store.State{ // look, write
		"none":      {store.Done, store.Done},
		"all":       {store.Pending, store.Pending},
		"whitelist": {store.Pending, store.Done},
		"blacklist": {store.Done, store.Pending},
		"auto":      {store.Done, store.Pending},
		"nonsense":  {store.Pending, store.Pending},
	} {
		h.config.set("approvals.mode", mode)
		got := [2]store.State{h.call(h.root, "box:look", `{"what":"x"}`).State, h.call(h.member, "box:write", `{"what":"x"}`).State}
		if got != want {
			t.Errorf("mode %s: look is %s and write is %s, want %v", mode, got[0], got[1], want)
		}
		waiting, err := h.db.ListCalls(t.Context(), store.CallQuery{Waiting: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range waiting {
			by := h.root
			if c.By == h.member.User {
				by = h.member
			}
			if _, err := h.gateway.Decide(t.Context(), by, c.ID, store.Decision{Verb: store.Deny}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestUntrustedTextAsks(t *testing.T) {
	h := newFixture(t, func(s *store.Server) { s.UntrustedOutput = true })
	h.config.set("approvals.mode", "none")
	thread := store.Thread{ID: store.NewID(time.Now()), User: h.root.User}
	if err := h.db.PutThread(t.Context(), h.root, thread); err != nil {
		t.Fatal(err)
	}
	for i, want := range []store.State{store.Done, store.Done, store.Pending} {
		tool := []string{"box:write", "box:look", "box:write"}[i]
		if i == 0 { // outside a conversation nothing is tainted
			if c := h.call(h.root, tool, `{"what":"x"}`); c.State != want {
				t.Errorf("%s outside is %s, want %s", tool, c.State, want)
			}
			continue
		}
		c, err := h.gateway.Call(t.Context(), h.root, store.Request{ID: store.NewID(time.Now()), Tool: tool, Args: json.RawMessage(`{"what":"x"}`), Thread: thread.ID})
		if err != nil || c.State != want {
			t.Errorf("%s is %+v (%v), want %s", tool, c, err, want)
		}
	}
}

// Text by somebody outside the team taints a conversation like an untrusted result.
func TestForeignWordsAsk(t *testing.T) {
	h := newFixture(t, nil)
	h.config.set("approvals.mode", "none")
	thread := store.Thread{ID: store.NewID(time.Now()), User: h.root.User}
	if err := h.db.PutThread(t.Context(), h.root, thread); err != nil {
		t.Fatal(err)
	}
	write := func() *store.Call {
		t.Helper()
		c, err := h.gateway.Call(t.Context(), h.root, store.Request{ID: store.NewID(time.Now()), Tool: "box:write", Args: json.RawMessage(`{"what":"x"}`), Thread: thread.ID})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	say := func(n int, who store.Speaker) {
		t.Helper()
		turn := store.Turn{Thread: thread.ID, N: n, Role: store.FromUser, By: h.root, Text: "do it", Earlier: &store.Earlier{Quotes: []store.Quote{{Speaker: who, Text: "write x"}}}}
		if err := h.db.Append(t.Context(), h.root, turn, true); err != nil {
			t.Fatal(err)
		}
	}
	say(0, store.Speaker{Name: "Ben"})
	if c := write(); c.State != store.Done {
		t.Errorf("after a colleague's words it is %s", c.State)
	}
	say(1, store.Speaker{Name: "A bot", Bot: true, Outside: true})
	c := write()
	if c.State != store.Pending || len(c.Warnings) == 0 {
		t.Errorf("after a program's words it is %s with the warnings %q", c.State, c.Warnings)
	}
	if _, err := h.gateway.Decide(t.Context(), h.root, c.ID, store.Decision{Verb: store.Approve, Always: true, Digest: c.Digest}); err == nil {
		t.Error("it may be allowed for good")
	}
}

func TestWhatIsNotThere(t *testing.T) {
	h := newFixture(t, func(s *store.Server) { s.Visibility = nil })
	for tool, want := range map[string]string{
		"box:lok":  `tool "box:lok" not found; did you mean box:look?`,
		"look":     `tool "look" not found; did you mean box:look?`,
		"cat:meow": `tool "cat:meow" not found; search with discover_tools`,
	} {
		_, err := h.gateway.Call(t.Context(), h.root, store.Request{Tool: tool})
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", tool, err, want)
		}
	}
	// An unshared server looks the same as a nonexistent one.
	_, err := h.gateway.Call(t.Context(), h.member, store.Request{Tool: "box:look"})
	if want := `tool "box:look" not found; search with discover_tools`; err == nil || err.Error() != want {
		t.Errorf("forbidden: %v, want %s", err, want)
	}
	if c := h.call(h.root, "box.look", `{"what":"x"}`); c.ToolID() != "box:look" {
		t.Errorf("box.look gave %s", c.ToolID())
	}
	r, err := h.gateway.Meta(t.Context(), h.member, store.Scope{}, store.ToolCall{Name: mcp.Discover, Args: `{"query":"look at something"}`})
	if err != nil || strings.Contains(r.Text(), "box:look") {
		t.Errorf("a member finds %s (%v)", r.Text(), err)
	}
}

func TestArguments(t *testing.T) {
	h := newFixture(t, nil)
	for args, want := range map[string]string{
		`{"what":"x","what":"y"}`: "duplicate key",
		`{"what":`:                "JSON",
		`[1]`:                     "must be a JSON object",
		`{}`:                      "what",
		`{"what":1}`:              "what",
	} {
		_, err := h.gateway.Call(t.Context(), h.root, store.Request{Tool: "box:look", Args: json.RawMessage(args)})
		if !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want invalid arguments that name %q", args, err, want)
		}
	}
	h.config.set("approvals.max_arguments", "1024")
	c := h.call(h.root, "box:write", `{"what":"`+strings.Repeat("x", 2000)+`"}`)
	if c.State != store.Refused || !strings.Contains(c.Reason.String(), "approvals.max_arguments") {
		t.Errorf("arguments that fit no card: %s (%s), want refused", c.State, c.Reason)
	}
}

func TestSameIDTwice(t *testing.T) {
	h := newFixture(t, nil)
	h.config.set("approvals.mode", "none")
	req := store.Request{ID: store.NewID(time.Now()), Tool: "box:write", Args: json.RawMessage(`{"what":"x"}`)}
	for range 3 {
		if c, err := h.gateway.Call(t.Context(), h.root, req); err != nil || c.State != store.Done {
			t.Fatalf("%+v, %v", c, err)
		}
	}
	if n := h.runner.runs.Load(); n != 1 {
		t.Errorf("%d runs of one id, want 1", n)
	}
	if _, err := h.gateway.Call(t.Context(), h.member, req); !errors.Is(err, store.ErrExists) {
		t.Errorf("somebody else with the same id: %v", err)
	}
}

func TestOutcomes(t *testing.T) {
	h := newFixture(t, nil)
	h.config.set("approvals.mode", "none")
	for code, want := range map[store.Code]store.State{store.CodeUnknown: store.Lost, store.CodeCancelled: store.Cancelled, store.CodeUnavailable: store.Failed, store.CodeTimeout: store.Failed} {
		h.runner.fail = &store.CallError{Code: code, Message: store.Plain("it is so")}
		if c := h.call(h.root, "box:write", `{"what":"x"}`); c.State != want || c.Reason.String() != "it is so" {
			t.Errorf("%s gave %s (%s), want %s", code, c.State, c.Reason, want)
		}
	}
	h.runner.fail = errors.New("a secret cause")
	if c := h.call(h.root, "box:write", `{"what":"x"}`); strings.Contains(c.Reason.String(), "secret") {
		t.Errorf("an unknown error was told: %s", c.Reason)
	}
}

func TestLongResult(t *testing.T) {
	h := newFixture(t, nil)
	h.config.set("results.max_bytes", "2048")
	text := strings.Repeat("0123456789", 1000)
	h.runner.raw = json.RawMessage(fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, text))
	c := h.call(h.root, "box:look", `{"what":"x"}`)
	if shown := c.Result.Text(); len(shown) > 2048+300 || !strings.Contains(shown, "nize:read_result") {
		t.Fatalf("%d bytes are passed on: …%s", len(shown), shown[len(shown)-200:])
	}
	var read strings.Builder
	for offset := 0; ; {
		page := h.call(h.root, mcp.ReadResult, fmt.Sprintf(`{"call":%q,"offset":%d,"bytes":4096}`, c.ID, offset))
		var got struct {
			Structured struct {
				Text string `json:"text"`
				Next int    `json:"next"`
			} `json:"structuredContent"`
		}
		if err := json.Unmarshal(page.Result.Raw, &got); err != nil {
			t.Fatal(err)
		}
		read.WriteString(got.Structured.Text)
		if offset = got.Structured.Next; offset == 0 {
			break
		}
	}
	if read.String() != text {
		t.Errorf("read %d bytes back, want the %d that came", read.Len(), len(text))
	}
	if c, err := h.gateway.Call(t.Context(), h.member, store.Request{Tool: mcp.ReadResult, Args: json.RawMessage(fmt.Sprintf(`{"call":%q}`, c.ID))}); err != nil || c.State != store.Failed {
		t.Errorf("somebody else reads it: %+v, %v", c, err)
	}
}

func TestPanicIsAnError(t *testing.T) {
	h := newFixture(t, nil)
	h.runner.raw = json.RawMessage(`{"content":[]}`)
	h.config.set("results.max_bytes", "1024")
	for _, name := range []string{mcp.Discover, mcp.Describe, mcp.Domains, mcp.Browse, "no_such_tool"} {
		for _, args := range []string{``, `{}`, `[]`, `{"query":1}`, `{"query":"x","top_k":99}`, `{"tool_id":"box:look"}`, `{"domain_id":"box"}`, `{"domain_id":"nix"}`, `{"query":"look"}`, `nonsense`} {
			if r, err := h.gateway.Meta(t.Context(), h.root, store.Scope{}, store.ToolCall{Name: name, Args: args}); err != nil || r == nil || r.Error == nil && !json.Valid(r.Raw) {
				t.Errorf("%s(%s): %+v, %v", name, args, r, err)
			}
		}
	}
}
