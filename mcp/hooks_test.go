package mcp_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"nize/mcp"
	"nize/store"
	"nize/store/hooks"
)

// spy is a hook that records its runs and can misbehave.
type spy struct {
	name          string
	log           *spyLog
	before, after func(ctx context.Context) error
	limit         atomic.Int64
}

type spyLog struct {
	mu  sync.Mutex
	did []string
}

func (l *spyLog) add(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.did = append(l.did, what)
}

// take returns the entries since the last take.
func (l *spyLog) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	did := strings.Join(l.did, " ")
	l.did = nil
	return did
}

func (s *spy) Ref() store.HookRef { return store.HookRef{ID: s.name} }

func (s *spy) Limit() time.Duration { return cmp.Or(time.Duration(s.limit.Load()), time.Minute) }

func (s *spy) Before(ctx context.Context, inv *mcp.Invocation) error {
	return s.run(ctx, inv, "<", s.before)
}

func (s *spy) After(ctx context.Context, inv *mcp.Invocation, _ *store.Result) error {
	return s.run(ctx, inv, ">", s.after)
}

func (s *spy) run(ctx context.Context, inv *mcp.Invocation, sign string, f func(context.Context) error) error {
	if inv.Point != mcp.AroundCall {
		return nil
	}
	s.log.add(sign + s.name)
	if f == nil {
		return nil
	}
	return f(ctx)
}

// TestHooksAround: after-hooks run in exactly the reverse order, for exactly those hooks
// whose before-hook succeeded, regardless of the outcome of the call. A hook that panics,
// fails or exceeds its time affects only that call.
func TestHooksAround(t *testing.T) {
	h := newFixture(t, nil)
	h.stop()
	log := &spyLog{}
	a, b, c := &spy{name: "a", log: log}, &spy{name: "b", log: log}, &spy{name: "c", log: log}
	h.extra = []mcp.Hook{a, b, c}
	h.open("second")
	h.run()
	panics := func(context.Context) error { panic("at the worst moment") }
	// Only the slow hook has a short limit, because a busy machine may need more time for
	// the others.
	shorten := func(context.Context) error { b.limit.Store(int64(50 * time.Millisecond)); return nil }
	slow := func(ctx context.Context) error { <-ctx.Done(); b.limit.Store(0); return nil }
	fails := func(context.Context) error { return errors.New("broken") }
	denies := func(context.Context) error {
		return &store.CallError{Code: store.CodeRefused, Message: store.Plain("not today")}
	}
	for _, test := range []struct {
		name          string
		before, after func(context.Context) error // of b
		fail          error                       // of the tool
		want, says    string
		runs          int64
	}{
		{"all is well", nil, nil, nil, "<a <b <c >c >b >a", "", 1},
		{"the tool fails", nil, nil, &store.CallError{Code: store.CodeTimeout, Message: store.Plain("too late")}, "<a <b <c >c >b >a", "too late", 1},
		{"before denies", denies, nil, nil, "<a <b >a", "not today", 0},
		{"before panics", panics, nil, nil, "<a <b >a", "hook b failed", 0},
		{"before is slow", slow, nil, nil, "<a <b >a", "hook b failed", 0},
		{"before fails", fails, nil, nil, "<a <b >a", "hook b failed", 0},
		{"after denies", nil, denies, nil, "<a <b <c >c >b >a", "not today", 1},
		{"after panics", nil, panics, nil, "<a <b <c >c >b >a", "hook b failed: the tool ran, and its result is withheld", 1},
		{"after is slow", nil, slow, nil, "<a <b <c >c >b >a", "hook b failed: the tool ran, and its result is withheld", 1},
		{"after panics over a failure", nil, panics, &store.CallError{Code: store.CodeTimeout, Message: store.Plain("too late")}, "<a <b <c >c >b >a", "hook b failed", 1},
	} {
		for _, tool := range []string{"box:look", "box:write"} {
			b.before, b.after, h.runner.fail = test.before, test.after, test.fail
			switch test.name {
			case "before is slow":
				a.before = shorten
			case "after is slow":
				c.before = shorten
			}
			runs := h.runner.runs.Load()
			got := h.call(h.root, tool, `{"what":"x"}`)
			if got.State == store.Pending {
				if _, err := h.press(h.root, got, store.Approve); err != nil {
					t.Fatal(err)
				}
				got = h.wait(got.ID)
			}
			if did := log.take(); did != test.want || h.runner.runs.Load()-runs != test.runs {
				t.Errorf("%s, %s: %s, %d runs; want %s", test.name, tool, did, h.runner.runs.Load()-runs, test.want)
			}
			said := ""
			if got.Result != nil && got.Result.Error != nil {
				said = got.Result.Error.Message.String()
			}
			if said != test.says || test.says != "" && got.Result.Raw != nil {
				t.Errorf("%s, %s: %q and %s; want %q", test.name, tool, said, got.Result.Raw, test.says)
			}
			if i := slices.IndexFunc(got.Hooks, func(r store.HookRef) bool { return r.ID == "b" }); strings.HasPrefix(said, "hook b failed") && (i < 0 || cmp.Or(got.Hooks[i].Before, got.Hooks[i].After) != "failed") {
				t.Errorf("%s, %s: the record has %+v", test.name, tool, got.Hooks)
			}
			a.before, b.before, b.after, c.before, h.runner.fail = nil, nil, nil, nil, nil
			log.take()
			if next := h.call(h.root, "box:look", `{"what":"y"}`); next.State != store.Done {
				t.Fatalf("%s: the next call is %s", test.name, next.State)
			}
			log.take()
		}
	}
}

// TestAccessAtThePress: a hook on access that was added while a call waited applies to both
// its requester and its approver.
func TestAccessAtThePress(t *testing.T) {
	h := newFixture(t, nil)
	bob, eve := h.person("bob"), h.person("eve")
	h.group("ops", bob, eve)
	h.approvers("group:ops")
	deny := json.RawMessage(`{"deny":["box:write"]}`)
	ask := func() *store.Call {
		t.Helper()
		c := h.call(h.member, "box:write", `{"what":"x"}`)
		if c.State != store.Pending {
			t.Fatalf("the call is %s: %s", c.State, c.Reason)
		}
		return c
	}
	first := ask()
	h.hook(hooks.Hook{Name: "no-bob", Type: hooks.Access, Scope: hooks.User, ScopeID: bob.User, Config: deny})
	if _, err := h.press(bob, first, store.Approve); !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), "hook no-bob does not allow box:write") {
		t.Errorf("bob's yes: %v", err)
	}
	if n := h.refusals(first.ID); n != 1 {
		t.Errorf("%d refused presses in the audit", n)
	}
	if _, err := h.press(eve, first, store.Approve); err != nil {
		t.Errorf("eve's yes: %v", err)
	}
	if c := h.wait(first.ID); c.State != store.Done {
		t.Errorf("the call is %s: %s", c.State, c.Reason)
	}
	second := ask()
	if _, err := h.press(bob, second, store.Deny); err != nil {
		t.Errorf("bob's no: %v", err)
	}
	third, runs := ask(), h.runner.runs.Load()
	h.hook(hooks.Hook{Name: "no-write", Type: hooks.Access, Tool: "box:*", Config: deny})
	if _, err := h.press(eve, third, store.Approve); !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), "hook no-write does not allow box:write") {
		t.Errorf("eve's yes under a new hook: %v", err)
	}
	if c := h.wait(third.ID); c.State != store.Refused || h.runner.runs.Load() != runs {
		t.Errorf("the call is %s, %d runs", c.State, h.runner.runs.Load()-runs)
	}
}

// TestExecuteDeniedAtThePress: a hook on execute_tool applies only to calls requested
// through it, and not to the approver, who does not use it.
func TestExecuteDeniedAtThePress(t *testing.T) {
	h := newFixture(t, nil)
	bob := h.person("bob")
	h.group("ops", bob)
	h.approvers("group:ops")
	var calls []*store.Call
	for _, byMeta := range []bool{true, true, false} {
		c, err := h.gateway.Call(t.Context(), h.member, store.Request{Tool: "box:write", Args: json.RawMessage(`{"what":"x"}`), Asked: store.Asked{ByMeta: byMeta}})
		if err != nil || c.State != store.Pending {
			t.Fatalf("the call is %+v, %v", c, err)
		}
		calls = append(calls, c)
	}
	deny := json.RawMessage(`{"deny":["nize:execute_tool"]}`)
	h.hook(hooks.Hook{Name: "no-bob", Type: hooks.Access, Scope: hooks.User, ScopeID: bob.User, Tool: "nize:*", Config: deny})
	if _, err := h.press(bob, calls[0], store.Approve); err != nil {
		t.Errorf("bob's yes: %v", err)
	}
	if c := h.wait(calls[0].ID); c.State != store.Done {
		t.Errorf("the first call is %s: %s", c.State, c.Reason)
	}
	runs := h.runner.runs.Load()
	h.hook(hooks.Hook{Name: "no-mia", Type: hooks.Access, Scope: hooks.User, ScopeID: h.member.User, Tool: "nize:*", Config: deny})
	if _, err := h.press(bob, calls[1], store.Approve); !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), "hook no-mia does not allow nize:execute_tool") {
		t.Errorf("bob's yes under the hook: %v", err)
	}
	if c := h.wait(calls[1].ID); c.State != store.Refused || h.runner.runs.Load() != runs {
		t.Errorf("it is %s, %d runs", c.State, h.runner.runs.Load()-runs)
	}
	if _, err := h.press(bob, calls[2], store.Approve); err != nil {
		t.Errorf("of what was called by its name: %v", err)
	}
	if c := h.wait(calls[2].ID); c.State != store.Done {
		t.Errorf("it is %s: %s", c.State, c.Reason)
	}
}

// TestExecuteHooksSeeEdits: hooks on execute_tool also check edited arguments, and see the
// end of a call that replaced another one.
func TestExecuteHooksSeeEdits(t *testing.T) {
	h := newFixture(t, nil)
	h.hook(hooks.Hook{Name: "clean", Type: hooks.Sanitizer, Tool: "nize:execute_tool", Config: json.RawMessage(`{"rules":[{"pointer":"/params/what","pattern":"^rm","action":"forbid"}]}`)})
	c, err := h.gateway.Call(t.Context(), h.root, store.Request{Tool: "box:write", Args: json.RawMessage(`{"what":"x"}`), Asked: store.Asked{ByMeta: true}})
	if err != nil || c.State != store.Pending {
		t.Fatalf("the call is %+v, %v", c, err)
	}
	edit := func(args string) (*store.Call, error) {
		return h.gateway.Decide(t.Context(), h.root, c.ID, store.Decision{Verb: store.Edit, Digest: c.Digest, Args: json.RawMessage(args)})
	}
	if next, err := edit(`{"what":"rm -rf"}`); err == nil || !strings.Contains(err.Error(), "hook clean forbids /params/what") {
		t.Errorf("it was edited to %+v, %v", next, err)
	}
	if old, err := h.db.GetCall(t.Context(), c.ID); err != nil || !old.Waiting() || h.runner.runs.Load() != 0 {
		t.Fatalf("it is %s, %v", old.State, err)
	}
	next, err := edit(`{"what":"y"}`)
	if err != nil {
		t.Fatal(err)
	}
	if next = h.wait(next.ID); next.State != store.Done || len(next.Hooks) == 0 || !next.Hooks[0].Meta || next.Hooks[0].Name != "clean" {
		t.Errorf("it is %s with %+v", next.State, next.Hooks)
	}
}

// TestAdminsHooksHaveTheLastWord: after a person's own hook changed the arguments, the
// admin's hooks check them again, so that it can neither add content that they reject nor
// remove content that they added. It applies only to its owner, also around execute_tool.
func TestAdminsHooksHaveTheLastWord(t *testing.T) {
	for _, test := range []struct {
		name, admins, persons string
		args, sent, refused   string
	}{
		{"nothing changed", `{"pointer":"/force","action":"strip"}`, `{"pointer":"/none","action":"strip"}`, `{"what":"x"}`, `{"what":"x"}`, ""},
		{"a person narrows", `{"pointer":"/force","action":"strip"}`, `{"pointer":"/what","action":"redact"}`, `{"what":"x"}`, `{"what":"[redacted]"}`, ""},
		{"a person forbids", `{"pointer":"/force","action":"strip"}`, `{"pointer":"/what","action":"forbid"}`, `{"what":"x"}`, "", "hook own forbids /what"},
		{"what is stripped comes back", `{"pointer":"/force","action":"strip"}`, `{"pointer":"/force","action":"default","value":true}`, `{"what":"x"}`, `{"what":"x"}`, ""},
		{"what is forbidden comes back", `{"pointer":"/env","pattern":"prod","action":"forbid"}`, `{"pointer":"/env","action":"redact","value":"prod"}`, `{"env":"test"}`, "", "hook rule forbids /env"},
		{"what is put in is taken away", `{"pointer":"/limit","action":"default","value":10}`, `{"pointer":"/limit","action":"strip"}`, `{"what":"x"}`, `{"limit":10,"what":"x"}`, ""},
		{"what is redacted is spelled out", `{"pointer":"/mail","pattern":"@corp","action":"redact"}`, `{"pointer":"/mail","pattern":"at","action":"redact","value":"@corp"}`, `{"mail":"a at"}`, `{"mail":"a [redacted]"}`, ""},
	} {
		for _, meta := range []bool{false, true} {
			around, pointer := "box:*", `"pointer":"/`
			if meta {
				around, pointer = "nize:execute_tool", `"pointer":"/params/`
			}
			rules := func(text string) json.RawMessage {
				return json.RawMessage(`{"rules":[` + strings.Replace(text, `"pointer":"/`, pointer, 1) + `]}`)
			}
			t.Run(fmt.Sprint(test.name, " around ", around), func(t *testing.T) {
				h := newFixture(t, nil)
				h.putTool("look", `{"type":"object"}`)
				bob := h.person("bob")
				h.hook(hooks.Hook{Name: "rule", Type: hooks.Sanitizer, Tool: around, Priority: 500, Config: rules(test.admins)})
				h.hook(hooks.Hook{Name: "few", Type: hooks.RateLimit, Tool: "box:*", Config: json.RawMessage(`{"calls":2,"per":"24h","by":["user"]}`)})
				h.hook(hooks.Hook{Name: "own", Owner: h.member.User, Type: hooks.Sanitizer, Scope: hooks.User, ScopeID: h.member.User, Tool: around, Priority: -500, Config: rules(test.persons)})
				call := func(by store.Caller) (*store.Call, error) {
					return h.gateway.Call(t.Context(), by, store.Request{ID: store.NewID(time.Now()), Tool: "box:look", Args: json.RawMessage(test.args), Asked: store.Asked{ByMeta: meta}})
				}
				c, err := call(h.member)
				if test.refused != "" {
					said := fmt.Sprint(err)
					if err == nil {
						said = c.Reason.String()
					}
					if err == nil && c.State != store.Refused || !strings.Contains(strings.Replace(said, "/params", "", 1), test.refused) {
						t.Errorf("the call: %+v, %v", c, err)
					}
					return
				}
				if err != nil || c.State != store.Done || string(c.Args) != test.sent || c.Digest != c.ComputeDigest() {
					t.Fatalf("the call: %+v, %v", c, err)
				}
				var names []string
				for _, ref := range c.Hooks {
					if ref.Name != "" && ref.Name != "few" {
						names = append(names, ref.Name)
					}
				}
				if !slices.Equal(names, []string{"rule", "own"}) {
					t.Errorf("they ran as %v", names)
				}
				if again, err := call(h.member); err != nil || again.State != store.Done {
					t.Errorf("a call counts twice: %v, %v", again, err)
				}
				others, err := call(bob)
				if err != nil || slices.ContainsFunc(others.Hooks, func(ref store.HookRef) bool { return ref.Personal }) {
					t.Errorf("a person's hook stands around another's call: %+v, %v", others, err)
				}
			})
		}
	}
}
