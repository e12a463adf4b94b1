package mcp_test

import (
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

	"nize/store"
	"nize/store/hooks"
)

// asker returns a fixture with a source that everybody may use.
func asker(t *testing.T) (*fixture, store.Caller) {
	h := newFixture(t, nil)
	if _, err := h.db.PutServer(t.Context(), h.root, store.Server{Name: "agent-x", Transport: store.External, Visibility: []string{"all"}}, 0); err != nil {
		t.Fatal(err)
	}
	if err := h.gateway.Catalog.Refresh(t.Context(), "agent-x"); err != nil {
		t.Fatal(err)
	}
	return h, h.member
}

func shell(command string) store.AskRequest {
	args, _ := json.Marshal(map[string]string{"command": command})
	return store.AskRequest{Source: "agent-x", Tool: "Bash", Args: args, Ask: store.Ask{Session: "s1", Cwd: "/srv"}}
}

func (h *fixture) asks(by store.Caller, req store.AskRequest) *store.Call {
	h.t.Helper()
	c, err := h.gateway.Ask(h.t.Context(), by, req)
	if err != nil {
		h.t.Fatal(err)
	}
	return c
}

// TestAskIsDecidedAndNeverRuns: an ask ends with its decision and is never executed.
func TestAskIsDecidedAndNeverRuns(t *testing.T) {
	h, by := asker(t)
	for verb, want := range map[store.Verb]store.State{store.Approve: store.Approved, store.Deny: store.Refused, store.Cancel: store.Cancelled} {
		c := h.asks(by, shell("make deploy"))
		if !c.Waiting() || c.Digest == "" {
			t.Fatalf("it is %s", c.State)
		}
		found := make(chan *store.Call, 1)
		go func() {
			c, err := h.gateway.FindAsk(context.WithoutCancel(t.Context()), by, c.ID, time.Hour)
			if err != nil {
				t.Error(err)
			}
			found <- c
		}()
		if _, err := h.press(by, c, verb); err != nil {
			t.Fatal(err)
		}
		if got := <-found; got == nil || got.State != want || !got.Started.IsZero() || got.Result != nil && want == store.Approved {
			t.Errorf("%s: %+v", verb, got)
		}
		if _, err := h.press(by, c, store.Approve); !errors.Is(err, store.ErrDecided) {
			t.Errorf("a second press: %v", err)
		}
		if _, err := h.db.Start(t.Context(), c.ID, "x"); err == nil {
			t.Error("it was started")
		}
	}
	if n := h.runner.runs.Load(); n != 0 {
		t.Errorf("%d asks ran", n)
	}
}

// TestAskedToolsAreNoTools: the tools named in asks can't be found, listed or called, not
// even by an admin.
func TestAskedToolsAreNoTools(t *testing.T) {
	h, by := asker(t)
	h.asks(by, shell("make deploy"))
	for _, who := range []store.Caller{by, h.root} {
		if c, err := h.gateway.Call(t.Context(), who, store.Request{Tool: "agent-x:Bash", Args: json.RawMessage(`{"command":"x"}`)}); err == nil {
			t.Errorf("%s called it: %s", who.Name, c.State)
		}
	}
	ids, err := h.gateway.Catalog.ToolIDs(t.Context())
	if err != nil || strings.Contains(strings.Join(ids, " "), "agent-x") {
		t.Errorf("%v, %v", ids, err)
	}
	for _, req := range []store.AskRequest{
		{Source: "box", Tool: "write", Args: json.RawMessage(`{"what":"x"}`)}, // a tool that nize itself runs
		{Source: "nobody", Tool: "Bash"}, {Source: "agent-x"}, {Source: "agent-x", Tool: "a b"}, {Source: "agent-x", Tool: "prompt:x"},
		{Source: "agent-x", Tool: "Bash", Args: json.RawMessage(`[1]`)}, {Source: "agent-x", Tool: "Bash", Args: json.RawMessage(`{`)},
		{Source: "agent-x", Tool: "Bash", Expires: -1}, {Source: "agent-x", Tool: "Bash", Ask: store.Ask{Cwd: strings.Repeat("x", store.MaxAskText+1)}},
	} {
		if c, err := h.gateway.Ask(t.Context(), by, req); err == nil {
			t.Errorf("%+v: %s", req, c.State)
		}
	}
}

// TestStandingAnswersForAsks: a pattern covers one plain command, not others with the same
// prefix. An admin's own hook does not count as the admin's approval.
func TestStandingAnswersForAsks(t *testing.T) {
	h, by := asker(t)
	if c := h.asks(h.root, shell("make deploy")); !c.Waiting() {
		t.Errorf("what an admin's program asks is %s", c.State)
	}
	gr, err := h.gateway.Policy.AddGrant(t.Context(), by, store.Grant{Tool: "agent-x:Bash", Pattern: json.RawMessage(`{"command":"git status*"}`)})
	if err != nil {
		t.Fatal(err)
	}
	if c := h.asks(by, shell("git status --short")); c.State != store.Approved || c.Ask.Grant != gr.ID {
		t.Errorf("%s, by %q", c.State, c.Ask.Grant)
	}
	for _, line := range []string{"git status; rm -rf .", "git status && rm x", "git status $(rm x)", "git status > x", "git status | sh", "git status\nrm x", "git stat"} {
		if c := h.asks(by, shell(line)); !c.Waiting() {
			t.Errorf("%q is %s", line, c.State)
		} else if _, err := h.press(by, c, store.Cancel); err != nil {
			t.Fatal(err)
		}
	}
	if c := h.asks(h.root, shell("git status")); !c.Waiting() {
		t.Errorf("another person's answer counted: %s", c.State)
	}
	if _, err := h.gateway.Policy.AddGrant(t.Context(), by, store.Grant{Tool: "agent-x:Bash", Deny: true}); err != nil {
		t.Fatal(err)
	}
	if c := h.asks(by, shell("git status")); c.State != store.Refused {
		t.Errorf("after a standing no it is %s", c.State)
	}
	h.config.set("approvals.mode", "none")
	if c := h.asks(h.root, shell("ls")); c.State != store.Approved || c.Ask.Grant != "" {
		t.Errorf("in the mode none it is %s", c.State)
	}
}

// TestAskKeys: the same key by the same caller refers to the same ask, also with concurrent
// requests and after a restart. It never refers to another caller's ask or to one with
// different content.
func TestAskKeys(t *testing.T) {
	h, by := asker(t)
	req := shell("make deploy")
	req.Key = "step-1"
	var all sync.WaitGroup
	ids := make([]string, 8)
	for i := range ids {
		all.Go(func() {
			c, err := h.gateway.Ask(t.Context(), by, req)
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = c.ID
		})
	}
	all.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("%v", ids)
		}
	}
	other := h.asks(h.root, req)
	if other.ID == ids[0] {
		t.Error("somebody else got it")
	}
	changed := shell("make destroy")
	changed.Key = req.Key
	if _, err := h.gateway.Ask(t.Context(), by, changed); !errors.Is(err, store.ErrConflict) {
		t.Errorf("another ask under the same key: %v", err)
	}
	h.stop()
	h.open("second")
	h.run()
	if c := h.asks(by, req); c.ID != ids[0] {
		t.Errorf("after a restart it is %s", c.ID)
	}
	if _, err := h.gateway.FindAsk(t.Context(), h.root, ids[0], 0); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("an admin finds another's ask as if it were theirs: %v", err)
	}
	if c, err := h.gateway.CancelAsk(t.Context(), by, ids[0]); err != nil || c.State != store.Cancelled {
		t.Errorf("%+v, %v", c, err)
	}
	if c := h.asks(by, req); c.State != store.Cancelled {
		t.Errorf("asked again under its key it is %s", c.State)
	}
}

// TestEditedAsk: the waiting asker receives the arguments that were approved.
func TestEditedAsk(t *testing.T) {
	h, by := asker(t)
	c := h.asks(by, shell("rm -rf build"))
	if _, err := h.gateway.Decide(t.Context(), by, c.ID, store.Decision{Verb: store.Edit, Digest: c.Digest, Args: json.RawMessage(`{"command":"rm -rf build/tmp"}`)}); err != nil {
		t.Fatal(err)
	}
	got, err := h.gateway.FindAsk(t.Context(), by, c.ID, 0)
	if err != nil || got.State != store.Approved || string(got.Args) != `{"command":"rm -rf build/tmp"}` {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestAskHooks: admins' hooks run before an ask. They can change its arguments and refuse
// it.
func TestAskHooks(t *testing.T) {
	h, by := asker(t)
	h.hook(hooks.Hook{Name: "no-shell", Type: hooks.Access, Tool: "agent-x:*", Config: json.RawMessage(`{"deny":["agent-x:Bash"]}`)})
	c, err := h.gateway.Ask(t.Context(), by, shell("rm x"))
	if err == nil && c.State != store.Refused {
		t.Errorf("%s", c.State)
	}
}

// TestDisabledSource: an ask is never approved once its source is disabled or no longer
// shared, even if the ask already waited.
func TestDisabledSource(t *testing.T) {
	h, by := asker(t)
	c := h.asks(by, shell("make deploy"))
	s, err := h.db.GetServer(t.Context(), "agent-x")
	if err != nil {
		t.Fatal(err)
	}
	s.Visibility = nil
	if _, err := h.db.PutServer(t.Context(), h.root, s, s.Revision); err != nil {
		t.Fatal(err)
	}
	if err := h.gateway.Catalog.Refresh(t.Context(), "agent-x"); err != nil {
		t.Fatal(err)
	}
	if got, err := h.press(by, c, store.Approve); err == nil || got != nil && got.State == store.Approved {
		t.Errorf("%+v, %v", got, err)
	}
	if c, err := h.gateway.Ask(t.Context(), by, shell("ls")); err == nil {
		t.Errorf("asked by one who may not: %s", c.State)
	}
}

// TestNobodyWaitsForAnothersRecord: other people's calls and asks can be recorded while one
// person's record is being written or their hook runs.
func TestNobodyWaitsForAnothersRecord(t *testing.T) {
	h, by := asker(t)
	keyed := func(key string) store.AskRequest {
		req := shell("make " + key)
		req.Key = key
		return req
	}
	entered, leave, begun := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var others atomic.Bool
	h.without = func(what string, do func() error) error {
		if what == "begin" && others.CompareAndSwap(false, true) {
			close(entered)
			<-leave
		}
		return do()
	}
	slow := make(chan error, 1)
	go func() {
		_, err := h.gateway.Ask(context.WithoutCancel(t.Context()), h.root, keyed("slow"))
		slow <- err
	}()
	<-entered
	go func() {
		defer close(begun)
		if c := h.asks(by, keyed("quick")); !c.Waiting() {
			t.Errorf("an ask: %s", c.State)
		}
		program := by
		program.Surface = store.OnMCP // allowed to send the same call again
		c, err := h.gateway.Call(context.WithoutCancel(t.Context()), program, store.Request{Tool: "box:write", Args: json.RawMessage(`{"what":"x"}`)})
		if err != nil || !c.Waiting() {
			t.Errorf("a call: %+v, %v", c, err)
		}
	}()
	select {
	case <-begun:
	case <-time.After(time.Minute): // a lock can't be cancelled by a context
		t.Error("others wait for the record of somebody's ask")
	}
	close(leave)
	<-begun
	if err := <-slow; err != nil {
		t.Error(err)
	}
}

// TestWaitingTogether: concurrent calls of many people never exceed the total limit of
// waiting calls.
func TestWaitingTogether(t *testing.T) {
	h, _ := asker(t)
	const most = 3
	h.config.set("approvals.max_waiting", "3")
	var asking sync.WaitGroup
	for i := range 12 {
		u, err := h.db.EnsureUser(t.Context(), "local:1"+string(rune('a'+i)), "p"+string(rune('a'+i)), store.Member)
		if err != nil {
			t.Fatal(err)
		}
		by := store.Caller{User: u.ID, Name: u.Name, Role: u.Role, Surface: store.OnTerminal}
		asking.Go(func() {
			if _, err := h.gateway.Call(context.WithoutCancel(t.Context()), by, store.Request{Tool: "box:write", Args: json.RawMessage(`{"what":"x"}`)}); err != nil {
				t.Error(err)
			}
		})
	}
	asking.Wait()
	if _, n, err := h.db.CountWaiting(t.Context(), ""); err != nil || n == 0 || n > most {
		t.Errorf("%d wait, %v", n, err)
	}
}

// TestSessionAnswers: an answer for the session of an ask covers only that session and
// expires by itself. The card proposes patterns and shows the past calls that each would
// have covered.
func TestSessionAnswers(t *testing.T) {
	h, by := asker(t)
	for range 2 {
		if _, err := h.press(by, h.asks(by, shell("git status --short")), store.Cancel); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.press(by, h.asks(by, shell("git push")), store.Cancel); err != nil {
		t.Fatal(err)
	}
	c := h.asks(by, shell("git status"))
	card, err := h.gateway.Card(t.Context(), c.ID)
	if err != nil || !card.Asked || !card.Here {
		t.Fatalf("%+v, %v", card, err)
	}
	var proposed []string
	for _, p := range card.Patterns {
		proposed = append(proposed, fmt.Sprintf("%s %d/%d %s", p.Line, p.Covered, p.Of, p.Risk))
	}
	want := []string{"git status 1/4 ", "git status* 3/4 ", "git * 4/4 also push, and hooks of the repository"}
	if !slices.Equal(proposed, want) {
		t.Errorf("proposed %q, want %q", proposed, want)
	}
	if _, err := h.gateway.Decide(t.Context(), by, c.ID, store.Decision{Verb: store.Approve, Digest: c.Digest, Always: true, For: store.ForConversation, Pattern: card.Patterns[1].Args}); err != nil {
		t.Fatal(err)
	}
	if c := h.asks(by, shell("git status --long")); c.State != store.Approved || c.Ask.Grant == "" {
		t.Errorf("in the session it is %s", c.State)
	}
	for name, ask := range map[string]func() (store.Caller, store.AskRequest){
		"another command": func() (store.Caller, store.AskRequest) { return by, shell("git push") },
		"another session": func() (store.Caller, store.AskRequest) {
			req := shell("git status")
			req.Session = "s2"
			return by, req
		},
		"no session": func() (store.Caller, store.AskRequest) {
			req := shell("git status")
			req.Session = ""
			return by, req
		},
		"another token": func() (store.Caller, store.AskRequest) {
			other := by
			other.Token = store.NewID(time.Now())
			return other, shell("git status")
		},
		"another person": func() (store.Caller, store.AskRequest) { return h.root, shell("git status") },
	} {
		who, req := ask()
		if c := h.asks(who, req); !c.Waiting() {
			t.Errorf("%s: it is %s", name, c.State)
		}
	}
	grants, err := h.db.ListGrants(t.Context(), store.ConversationGrants(c.Step))
	if err != nil || len(grants) != 1 || grants[0].Expires.IsZero() {
		t.Errorf("%+v, %v", grants, err)
	}
}

// TestRepositoryAnswers: an answer for a repository covers only steps that the asker
// reports as inside it.
func TestRepositoryAnswers(t *testing.T) {
	h, by := asker(t)
	in := func(repository, line string) store.AskRequest {
		req := shell(line)
		req.Repository, req.Cwd, req.Host = repository, repository, "build-7"
		return req
	}
	for _, req := range []store.AskRequest{in("/srv/web", "make test"), in("/srv/web", "make -C /srv/api"), in("/srv/api", "make"), shell("make")} {
		if _, err := h.press(by, h.asks(by, req), store.Cancel); err != nil {
			t.Fatal(err)
		}
	}
	c := h.asks(by, in("/srv/web", "make"))
	card, err := h.gateway.Card(t.Context(), c.ID)
	if err != nil {
		t.Fatal(err)
	}
	var proposed []string
	for _, p := range card.Patterns {
		proposed = append(proposed, fmt.Sprintf("%s %s:%s %d/%d %s", p.Line, p.Host, p.Repository, p.Covered, p.Of, p.Risk))
	}
	want := []string{"make : 3/5 ", "make* build-7:/srv/web 2/5 runs what the files of the directory say"}
	if !slices.Equal(proposed, want) {
		t.Fatalf("proposed %q, want %q", proposed, want)
	}
	decide := func(c *store.Call, d store.Decision) error {
		d.Verb, d.Digest, d.Always = store.Approve, c.Digest, true
		_, err := h.gateway.Decide(t.Context(), by, c.ID, d)
		return err
	}
	other := h.asks(by, shell("make x"))
	for name, d := range map[string]store.Decision{
		"a call in no repository":           {Here: true},
		"a pattern and the line":            {Line: true, Pattern: json.RawMessage(`{"command":"make*"}`)},
		"a pattern that doesn't fit it all": {Pattern: json.RawMessage(`{"command":"go*"}`)},
	} {
		if err := decide(other, d); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := decide(c, store.Decision{Pattern: card.Patterns[1].Args, Here: true}); err != nil {
		t.Fatal(err)
	}
	if err := decide(h.asks(by, in("/srv/db", "go vet")), store.Decision{Line: true}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		req     store.AskRequest
		allowed bool
	}{
		{in("/srv/web", "make"), true}, {in("/srv/web", "make deploy"), true}, {in("/srv/db", "go vet"), true}, {shell("go vet"), true},
		{in("/srv/api", "make"), false}, {shell("make"), false}, {in("/srv/web", "make -C /srv/api"), false}, {in("/srv/web", "cd /srv/api && make"), false}, {in("/srv/web", "make SHELL=x"), false}, {in("/srv/db", "go vet ./x"), false},
	} {
		if got := h.asks(by, c.req); (got.State == store.Approved) != c.allowed {
			t.Errorf("%s in %q is %s", c.req.Args, c.req.Repository, got.State)
		}
	}
	for name, gr := range map[string]store.Grant{
		"for a tool that nize runs":    {Tool: "box:write", Repository: "/srv/web"},
		"for a machine alone":          {Tool: c.ToolID(), Host: "build-7"},
		"a no":                         {Tool: c.ToolID(), Repository: "/srv/web", Deny: true},
		"for one with too long a name": {Tool: c.ToolID(), Repository: "/" + strings.Repeat("x", store.MaxAskText)},
	} {
		if _, err := h.gateway.Policy.AddGrant(t.Context(), by, gr); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestStrangersPressOnAnAsk: only eligible approvers can decide an ask, with any verb.
// Every other press is in the audit trail.
func TestStrangersPressOnAnAsk(t *testing.T) {
	h, by := asker(t)
	c := h.asks(by, shell("make deploy"))
	stranger := h.person("eve")
	decisions := []store.Decision{
		{Verb: store.Approve, Digest: c.Digest}, {Verb: store.RunAll, Digest: c.Digest}, {Verb: store.Deny, Digest: c.Digest}, {Verb: store.Cancel},
		{Verb: store.Edit, Digest: c.Digest, Args: json.RawMessage(`{"command":"make destroy"}`)},
		{Verb: store.Approve, Digest: c.Digest, Always: true, For: store.ForConversation}, {Verb: store.Approve, Digest: c.Digest, Always: true, For: store.ForEveryone},
	}
	for _, d := range decisions {
		if got, err := h.gateway.Decide(t.Context(), stranger, c.ID, d); err == nil {
			t.Errorf("%s of a stranger's: %s", d.Verb, got.State)
		}
	}
	if got, err := h.gateway.FindAsk(t.Context(), by, c.ID, 0); err != nil || !got.Waiting() {
		t.Errorf("%+v, %v", got, err)
	}
	if n := h.refusals(c.ID); n == 0 {
		t.Error("no press is in the trail")
	}
	if _, err := h.gateway.FindAsk(t.Context(), stranger, c.ID, 0); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a stranger sees it: %v", err)
	}
	if _, err := h.gateway.CancelAsk(t.Context(), stranger, c.ID); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a stranger withdraws it: %v", err)
	}
}

// TestFourEyesForAsks: an ask of a source that requires two people needs approvals by two
// different people other than the requester, also across a restart. One denial ends it.
func TestFourEyesForAsks(t *testing.T) {
	h, by := asker(t)
	ann, bob, eve := h.person("ann"), h.person("bob"), h.person("eve")
	h.group("ops", ann, bob, by)
	s, err := h.db.GetServer(t.Context(), "agent-x")
	if err != nil {
		t.Fatal(err)
	}
	s.Approvers = "2 of group:ops not requester"
	if _, err := h.db.PutServer(t.Context(), h.root, s, s.Revision); err != nil {
		t.Fatal(err)
	}
	if err := h.gateway.Catalog.Refresh(t.Context(), "agent-x"); err != nil {
		t.Fatal(err)
	}
	c := h.asks(by, shell("make deploy"))
	for name, who := range map[string]store.Caller{"who asked": by, "a stranger": eve} {
		if _, err := h.press(who, c, store.Approve); !errors.Is(err, store.ErrRefused) && !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the yes of %s: %v", name, err)
		}
	}
	if _, err := h.gateway.Decide(t.Context(), ann, c.ID, store.Decision{Verb: store.Approve, Digest: c.Digest, Always: true, For: store.ForConversation}); err == nil {
		t.Error("one of two gave a standing answer")
	}
	if got, err := h.press(ann, c, store.Approve); err != nil || !got.Waiting() {
		t.Fatalf("the first yes: %+v, %v", got, err)
	}
	if _, err := h.press(ann, c, store.Approve); !errors.Is(err, store.ErrDecided) {
		t.Errorf("the same person's second yes: %v", err)
	}
	h.stop()
	h.open("second")
	h.run()
	if got, err := h.gateway.FindAsk(t.Context(), by, c.ID, 0); err != nil || !got.Waiting() {
		t.Fatalf("after one yes: %+v, %v", got, err)
	}
	if got, err := h.press(bob, c, store.Approve); err != nil || got.State != store.Approved || len(got.Yes()) != 2 {
		t.Errorf("the second yes: %+v, %v", got, err)
	}

	c = h.asks(by, shell("make clean"))
	if _, err := h.press(ann, c, store.Approve); err != nil {
		t.Fatal(err)
	}
	if got, err := h.press(bob, c, store.Deny); err != nil || got.State != store.Refused {
		t.Errorf("one yes and one no: %+v, %v", got, err)
	}
	if n := h.runner.runs.Load(); n != 0 {
		t.Errorf("%d asks ran", n)
	}
}

// TestAsksAreNoUsage: an ask never counts as an execution in the usage figures, unlike a
// call of the same person.
func TestAsksAreNoUsage(t *testing.T) {
	h, by := asker(t)
	for verb, want := range map[store.Verb]store.State{store.Approve: store.Approved, store.Deny: store.Refused, store.Cancel: store.Cancelled} {
		if c, err := h.press(by, h.asks(by, shell("make deploy")), verb); err != nil || c.State != want {
			t.Fatalf("%s: %+v, %v", verb, c, err)
		}
	}
	for tool, want := range map[string]store.State{"Allowed": store.Approved, "Forbidden": store.Refused} {
		if _, err := h.gateway.Policy.AddGrant(t.Context(), by, store.Grant{Tool: "agent-x:" + tool, Deny: want == store.Refused}); err != nil {
			t.Fatal(err)
		}
		req := shell("make deploy")
		req.Tool = tool
		if c := h.asks(by, req); c.State != want {
			t.Fatalf("%s: %s", tool, c.State)
		}
	}
	h.call(by, "box:look", `{"what":"x"}`)
	if err := h.db.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	report, err := h.db.Usage(t.Context(), store.UsageQuery{By: "tool"})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Rows) != 1 || report.Rows[0].Key != "box:look" || report.Total.Calls != 1 {
		t.Errorf("%+v", report.Rows)
	}
}
