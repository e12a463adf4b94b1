package hooks

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"nize/mcp"
	"nize/mcp/upstream/process"
	"nize/store"
	"nize/store/database/databasetest"
	"nize/store/hooks"
)

var root = store.Caller{User: "root", Name: "Root", Role: store.Admin, Surface: store.OnCLI}

func newSet(t *testing.T) (*Set, *time.Time) {
	t.Helper()
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	db := databasetest.Open(t)
	return &Set{Store: db, Events: db, Now: func() time.Time { return now }, Spawn: process.SpawnDirect}, &now
}

func add(t *testing.T, s *Set, h hooks.Hook) hooks.Hook {
	t.Helper()
	h.Enabled = true
	if err := h.Check(); err != nil {
		t.Fatal(err)
	}
	if err := s.Check(h); err != nil {
		t.Fatal(err)
	}
	h, err := s.Store.PutHook(t.Context(), root, h, 10)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	return h
}

func call(user, tool, args string) *mcp.Invocation {
	return &mcp.Invocation{Point: mcp.AroundCall, By: store.Caller{User: user, Surface: store.OnMCP}, Tool: tool, Args: json.RawMessage(args), Call: &store.Call{ID: "c"}}
}

// The order is global, server, user, user and server, each by priority.
func TestOrder(t *testing.T) {
	s, _ := newSet(t)
	for _, h := range []hooks.Hook{
		{Name: "h6", Scope: hooks.UserServer, ScopeID: "mia/box", Priority: -5}, {Name: "h5", Scope: hooks.User, ScopeID: "mia", Priority: 7},
		{Name: "h3", Scope: hooks.Server, ScopeID: "box", Priority: 1}, {Name: "h4", Scope: hooks.Server, ScopeID: "box", Priority: 2},
		{Name: "h2", Priority: 100}, {Name: "h1", Priority: 9}, {Name: "other", Scope: hooks.Server, ScopeID: "bo"}, {Name: "another", Scope: hooks.User, ScopeID: "ann"},
		{Name: "tool", Tool: "box:y"}, {Name: "meta", Tool: "nize:*"},
	} {
		h.Type = hooks.Audit
		add(t, s, h)
	}
	var got []string
	for _, h := range s.For(call("mia", "box:x", "{}")) {
		got = append(got, h.Ref().Name)
	}
	if strings.Join(got, " ") != "h1 h2 h3 h4 h5 h6" {
		t.Errorf("got %v", got)
	}
	got = nil
	for _, h := range s.For(&mcp.Invocation{Point: mcp.AroundMeta, Tool: mcp.Execute}) {
		got = append(got, h.Ref().Name)
	}
	if strings.Join(got, " ") != "meta h1 h2" {
		t.Errorf("around execute_tool: %v", got)
	}
}

// A revision stays as it was, whatever became of its hook.
func TestRevisions(t *testing.T) {
	s, _ := newSet(t)
	h := add(t, s, hooks.Hook{Name: "a", Type: hooks.Access, Config: json.RawMessage(`{"deny":["box:x"]}`)})
	was := h.Ref()
	h.Config = json.RawMessage(`{}`)
	next := add(t, s, h)
	if next.Revision != 2 || next.ID != h.ID {
		t.Errorf("got %+v", next)
	}
	if _, err := s.Store.PutHook(t.Context(), root, h, 10); !errors.Is(err, store.ErrConflict) {
		t.Errorf("an old revision was changed: %v", err)
	}
	h.Revision = 0
	if _, err := s.Store.PutHook(t.Context(), root, h, 10); !errors.Is(err, store.ErrExists) {
		t.Errorf("a second of that name: %v", err)
	}
	if err := s.Store.DeleteHook(t.Context(), root, "", "a"); err != nil {
		t.Fatal(err)
	}
	if err := s.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	r, err := s.At(t.Context(), was)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Before(t.Context(), call("mia", "box:x", "{}")); !errors.Is(err, store.ErrRefused) {
		t.Errorf("got %v", err)
	}
}

// TestPersonalRevisions: in the place of a person's revision that is no longer kept, the
// hook runs as it is now, or nothing if it is gone. An admin's that is gone is an error.
func TestPersonalRevisions(t *testing.T) {
	s, _ := newSet(t)
	rule := func(action string) json.RawMessage {
		return json.RawMessage(`{"rules":[{"pointer":"/x","action":"` + action + `"}]}`)
	}
	h := add(t, s, hooks.Hook{Name: "a", Owner: "mia", Scope: hooks.User, ScopeID: "mia", Type: hooks.Sanitizer, Config: rule("strip")})
	first := h.Ref()
	if !first.Personal {
		t.Fatalf("it is called %+v", first)
	}
	at := func() (string, error) {
		t.Helper()
		r, err := s.At(t.Context(), first)
		if err != nil {
			t.Fatal(err)
		}
		inv := call("mia", "box:x", `{"x":1}`)
		err = r.Before(t.Context(), inv)
		return string(inv.Args), err
	}
	for range hooks.MaxRevisions - 1 {
		h.Config = rule("forbid")
		h = add(t, s, h)
	}
	if got, err := at(); got != "{}" || err != nil {
		t.Errorf("its own revision makes %s, %v", got, err)
	}
	h = add(t, s, h)
	if _, err := at(); err == nil {
		t.Error("the hook as it is now did not run")
	}
	if err := s.Store.DeleteHook(t.Context(), root, "mia", "a"); err != nil {
		t.Fatal(err)
	}
	if err := s.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := at(); got != `{"x":1}` || err != nil {
		t.Errorf("a removed one makes %s, %v", got, err)
	}
	first.Personal = false
	if _, err := s.At(t.Context(), first); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("as an admin's: %v", err)
	}
}

func TestRateLimit(t *testing.T) {
	s, now := newSet(t)
	add(t, s, hooks.Hook{Name: "few", Type: "rate_limit", Config: json.RawMessage(`{"calls":2,"per":"1m","by":["user"]}`)})
	ask := func(user string) string {
		inv := call(user, "box:x", "{}")
		err := s.For(inv)[0].Before(t.Context(), inv)
		var said *store.CallError
		if errors.As(err, &said) {
			return string(said.Code) + ": " + said.Error()
		}
		return "ok"
	}
	for i, want := range []string{"ok", "ok", "rate_limited: hook few allows at most 2 per 1m; try again in 1m"} {
		if got := ask("mia"); got != want {
			t.Errorf("%d: %s", i, got)
		}
	}
	if got := ask("ann"); got != "ok" {
		t.Errorf("somebody else: %s", got)
	}
	*now = now.Add(time.Minute)
	if got := ask("mia"); got != "ok" {
		t.Errorf("a minute later: %s", got)
	}
	inv := &mcp.Invocation{Point: mcp.AroundMeta, Tool: mcp.Execute, By: store.Caller{User: "ann"}}
	for range 5 {
		if err := s.For(inv)[0].Before(t.Context(), inv); err != nil {
			t.Errorf("a use of execute_tool counts: %v", err)
		}
	}
}

func TestSanitizer(t *testing.T) {
	for _, test := range []struct{ rule, args, want string }{
		{`{"pointer":"/a","action":"strip"}`, `{"a":1,"b":9007199254740993}`, `{"b":9007199254740993}`},
		{`{"pointer":"/a","action":"strip","pattern":"^x"}`, `{"a":"yx"}`, `{"a":"yx"}`},
		{`{"pointer":"/a/1/c~1d","action":"strip"}`, `{"a":[0,{"c/d":1,"e":2}]}`, `{"a":[0,{"e":2}]}`},
		{`{"pointer":"/a","action":"default","value":{"n":1.50}}`, `{"b":"<"}`, `{"a":{"n":1.50},"b":"<"}`},
		{`{"pointer":"/a","action":"default","value":2}`, `{"a":null}`, `{"a":null}`},
		{`{"pointer":"/a/b","action":"default","value":2}`, `{}`, `{}`},
		{`{"pointer":"/a","action":"redact"}`, `{"a":[1]}`, `{"a":"[redacted]"}`},
		{`{"pointer":"/a","action":"redact","pattern":"\\d+","value":"#"}`, `{"a":"call 555 or 9"}`, `{"a":"call # or #"}`},
		{`{"pointer":"/a","action":"forbid","pattern":"drop"}`, `{"a":"drop it"}`, "invalid_arguments: hook h forbids /a"},
		{`{"pointer":"/a","action":"forbid"}`, `{"b":1}`, `{"b":1}`},
		{`{"pointer":"/a","action":"forbid","pattern":"1"}`, `{"a":1}`, `{"a":1}`},
	} {
		s, _ := newSet(t)
		add(t, s, hooks.Hook{Name: "h", Type: hooks.Sanitizer, Config: json.RawMessage(`{"rules":[` + test.rule + `]}`)})
		inv := call("mia", "box:x", test.args)
		err := s.For(inv)[0].Before(t.Context(), inv)
		got := string(inv.Args)
		var said *store.CallError
		if errors.As(err, &said) {
			got = string(said.Code) + ": " + said.Error()
		} else if err != nil {
			t.Error(err)
		}
		if got != test.want {
			t.Errorf("%s of %s: got %s, want %s", test.rule, test.args, got, test.want)
		}
	}
}

func TestRedaction(t *testing.T) {
	s, _ := newSet(t)
	add(t, s, hooks.Hook{Name: "h", Type: hooks.Redaction})
	const key = "sk-ant-api03-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	picture := strings.Repeat("AKIAIOSFODNN7EXAMPLE", 20)
	raw := `{ "content":[{"type":"text","text":"key ` + key + ` \"ok\""},{"type":"image","data":"` + picture + `"}],"structuredContent":{"n":9007199254740993,"password":"hunter2","creds":{"token":{"a":"deep"}},"x":["plain"]}}`
	res := &store.Result{Raw: json.RawMessage(raw), Shown: json.RawMessage(raw)}
	inv := call("mia", "box:x", "{}")
	if err := s.For(inv)[0].After(t.Context(), inv, res); err != nil {
		t.Fatal(err)
	}
	got := string(res.Passed())
	for _, gone := range []string{key, "hunter2", "deep"} {
		if strings.Contains(got, gone) {
			t.Errorf("%s is still there: %s", gone, got)
		}
	}
	for _, stays := range []string{`{ "content"`, picture, "9007199254740993", "plain", `\"ok\"`} {
		if !strings.Contains(got, stays) {
			t.Errorf("%s is gone: %s", stays, got)
		}
	}
	if !json.Valid(res.Raw) {
		t.Errorf("not valid: %s", got)
	}
}

// What an external hook may answer; everything else is its failure, and the
// process group of a slow one is gone.
func TestExec(t *testing.T) {
	for script, want := range map[string]string{
		`cat >/dev/null; echo '{"decision":"allow"}'`:                     "ok {}",
		`echo '{"decision":"deny","reason":"no"}'`:                        "refused: no",
		`echo '{"decision":"change","arguments":{"b":9007199254740993}}'`: `ok {"b":9007199254740993}`,
		`echo '{"decision":"change"}'`:                                    "failed",
		`echo '{"decision":"change","arguments":[1]}'`:                    "failed",
		`echo '{"decision":"Allow"}'`:                                     "failed",
		`echo '{"decision":"allow"} and more'`:                            "failed",
		`echo '{"decision":"allow"}'; exit 1`:                             "failed",
		`sleep 60`:                                                        "failed",
		`sleep 60 & echo '{"decision":"allow"}'`:                          "ok {}",
		`head -c 20000000 /dev/zero`:                                      "failed",
		`[ "$(env | grep -cv '^PATH=\|^LANG=\|^PWD=\|^_=\|^SHLVL=\|^OLDPWD=')" = 0 ] && echo '{"decision":"allow"}'`: "ok {}",
	} {
		t.Run(script, func(t *testing.T) {
			t.Setenv("SECRET_OF_THE_DAEMON", "x")
			s, _ := newSet(t)
			limit := "1m" // a busy machine has time for what ends by itself
			if script == "sleep 60" {
				limit = "1s"
			}
			config, err := json.Marshal(map[string]any{"command": []string{"/bin/sh", "-c", script}, "timeout": limit})
			if err != nil {
				t.Fatal(err)
			}
			add(t, s, hooks.Hook{Name: "h", Type: hooks.Exec, Config: config})
			inv := call("mia", "box:x", "{}")
			h := s.For(inv)[0]
			ctx, cancel := context.WithTimeout(t.Context(), h.(mcp.LimitedHook).Limit())
			defer cancel()
			err = h.Before(ctx, inv)
			var said *store.CallError
			got := "ok " + string(inv.Args)
			if errors.As(err, &said) {
				got = string(said.Code) + ": " + said.Error()
			} else if err != nil {
				got = "failed"
			}
			if got != want {
				t.Errorf("got %s (%v), want %s", got, err, want)
			}
		})
	}
}

// What can't work is refused when it is stored.
func TestConfigs(t *testing.T) {
	s, _ := newSet(t)
	for _, bad := range []hooks.Hook{
		{Type: hooks.RateLimit}, {Type: hooks.RateLimit, Config: json.RawMessage(`{"calls":1,"per":"1m","by":["team"]}`)}, {Type: hooks.RateLimit, Config: json.RawMessage(`{"calls":1,"per":"-1s"}`)},
		{Type: hooks.Exec}, {Type: hooks.Exec, Config: json.RawMessage(`{"command":["x"],"timeout":"1h"}`)}, {Type: hooks.Exec, Config: json.RawMessage(`{"command":["x"],"shell":1}`)},
		{Type: hooks.Webhook, Config: json.RawMessage(`{"url":"ftp://x"}`)}, {Type: hooks.Webhook, Config: json.RawMessage(`{"url":"http://x"}`), Secret: store.NewSecret("hunter2")},
		{Type: hooks.Sanitizer}, {Type: hooks.Sanitizer, Config: json.RawMessage(`{"rules":[{"pointer":"x","action":"strip"}]}`)}, {Type: hooks.Sanitizer, Config: json.RawMessage(`{"rules":[{"pointer":"/x","action":"strip","pattern":"("}]}`)}, {Type: hooks.Sanitizer, Config: json.RawMessage(`{"rules":[null]}`)},
		{Type: hooks.Truncation}, {Type: hooks.Truncation, Config: json.RawMessage(`{"bytes":3}`)}, {Type: hooks.Audit, Config: json.RawMessage(`{"x":1}`)}, {Type: "shell"},
	} {
		bad.Name = "h"
		err := bad.Check()
		if err == nil {
			err = s.Check(bad)
		}
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s %s: %v", bad.Type, bad.Config, err)
		}
	}
}

func FuzzRedaction(f *testing.F) {
	f.Add(`{"a":["b",{"token":"x"}],"c":"\u0041\\\""}`)
	f.Fuzz(func(t *testing.T, doc string) {
		s := &Set{Now: time.Now}
		r, err := s.Try(t.Context(), hooks.Hook{Name: "h", Type: hooks.Redaction, Config: json.RawMessage("{}")}, call("a", "b:c", "{}"), json.RawMessage(doc))
		if err != nil || len(r) != 2 {
			t.Fatal(r, err)
		}
		if json.Valid([]byte(doc)) && r[1].Decision != "failed" && !json.Valid(r[1].Result) {
			t.Errorf("%s became %s", doc, r[1].Result)
		}
	})
}
