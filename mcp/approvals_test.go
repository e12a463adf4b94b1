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
)

// channel is who is in the channel C1 of these tests, as a platform would say.
type channel struct {
	mu              sync.Mutex
	members, admins []string
	broken          bool
}

func (c *channel) set(members, admins []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.members, c.admins = members, admins
}

func (c *channel) Member(_ context.Context, at store.Address, user string) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken {
		return true, errors.New("the platform does not answer")
	}
	return at.Channel == "C1" && slices.Contains(c.members, user), nil
}

func (c *channel) Admins(_ context.Context, at store.Address) ([]string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken || at.Channel != "C1" {
		return c.admins, errors.New("the platform does not answer")
	}
	return c.admins, nil
}

// person adds somebody who can press.
func (h *house) person(name string) store.Caller {
	h.t.Helper()
	u, err := h.db.EnsureUser(h.t.Context(), "local:"+name, name, store.Member)
	if err != nil {
		h.t.Fatal(err)
	}
	return store.Caller{User: u.ID, Name: name, Role: u.Role, Surface: store.OnTerminal}
}

func (h *house) group(name string, members ...store.Caller) {
	h.t.Helper()
	g := store.Group{Name: name}
	for _, m := range members {
		g.Members = append(g.Members, m.User)
	}
	if _, err := h.db.AddGroup(h.t.Context(), h.root, g); err != nil {
		h.t.Fatal(err)
	}
}

// approvers sets who may approve calls of the server.
func (h *house) approvers(p string) {
	h.t.Helper()
	h.change(func(s *store.Server) { s.Approvers = store.Policy(p) })
}

func (h *house) change(change func(*store.Server)) {
	h.t.Helper()
	s, err := h.db.GetServer(h.t.Context(), "box")
	if err != nil {
		h.t.Fatal(err)
	}
	change(&s)
	if _, err := h.db.PutServer(h.t.Context(), h.root, s, s.Revision); err != nil {
		h.t.Fatal(err)
	}
	if err := h.gateway.Refresh(h.t.Context(), "box"); err != nil {
		h.t.Fatal(err)
	}
}

// thread is a conversation in the channel C1.
func (h *house) thread(id string) string {
	h.t.Helper()
	th := store.Thread{ID: id, User: h.member.User, Address: store.Address{Surface: store.OnSlack, Team: "T1", Channel: "C1", Thread: id}}
	if err := h.db.PutThread(h.t.Context(), h.root, th); err != nil {
		h.t.Fatal(err)
	}
	return id
}

func (h *house) callIn(thread string, by store.Caller, args string) *store.Call {
	h.t.Helper()
	c, err := h.gateway.Call(h.t.Context(), by, store.Request{Tool: "box:write", Args: json.RawMessage(args), Thread: thread, Step: thread + "/1"})
	if err != nil {
		h.t.Fatal(err)
	}
	return c
}

func (h *house) press(by store.Caller, c *store.Call, verb store.Verb) (*store.Call, error) {
	return h.gateway.Decide(h.t.Context(), by, c.ID, store.Decision{Verb: verb, Digest: c.Digest})
}

// refusals counts the presses in the audit trail that changed nothing.
func (h *house) refusals(call string) int {
	h.t.Helper()
	if err := h.db.Flush(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
	events, err := h.db.Events(h.t.Context(), store.EventQuery{Kind: "call.press_refused", Limit: 10_000})
	if err != nil {
		h.t.Fatal(err)
	}
	n := 0
	for _, e := range events {
		if e.Subject == call {
			n++
		}
	}
	return n
}

// TestWhoMayPress: each policy, in a channel and outside one.
func TestWhoMayPress(t *testing.T) {
	h := newHouse(t, nil)
	ann, bob, eve := h.person("ann"), h.person("bob"), h.person("eve")
	h.group("ops", ann, bob)
	h.channel.set([]string{h.member.User, eve.User}, []string{bob.User})
	h.thread("in")
	people := map[string]store.Caller{"requester": h.member, "root": h.root, "ann": ann, "bob": bob, "eve": eve}
	for policy, may := range map[string]string{
		"":                             "requester",
		"requester":                    "requester",
		"admins":                       "root",
		"user:" + ann.User:             "ann",
		"group:ops":                    "ann bob",
		"channel-admins":               "bob",
		"channel":                      "eve requester",
		"channel not requester":        "eve",
		"user:" + ann.User + ",admins": "ann root",
		"requester,group:ops":          "ann bob requester",
	} {
		h.approvers(policy)
		var got []string
		for name, by := range people {
			c := h.callIn("in", h.member, `{"what":"x"}`)
			if c.State != store.Pending {
				t.Fatalf("%s: the call is %s: %s", policy, c.State, c.Reason)
			}
			by.Guest = true
			if _, err := h.press(by, c, store.Approve); err == nil {
				t.Errorf("%s: the guest %s may", policy, name)
			}
			by.Guest, by.Surface = false, store.OnMCP
			if _, err := h.press(by, c, store.Approve); err == nil {
				t.Errorf("%s: %s may over MCP", policy, name)
			}
			by.Surface = store.OnSlack
			if _, err := h.press(by, c, store.Approve); err == nil {
				got = append(got, name)
				h.wait(c.ID)
			} else if !errors.Is(err, store.ErrRefused) && !errors.Is(err, store.ErrNotFound) {
				t.Errorf("%s: %s: %v", policy, name, err)
			} else if c, err := h.press(h.root, c, store.Deny); err != nil || c.State != store.Refused {
				t.Errorf("%s: an admin's no: %v", policy, err)
			}
		}
		slices.Sort(got)
		if strings.Join(got, " ") != may {
			t.Errorf("%q: %q may press, want %q", policy, got, may)
		}
	}
}

// TestFailsClosed: a platform that does not answer is a no, and so is a person
// who was disabled or taken out of the group since.
func TestFailsClosed(t *testing.T) {
	h := newHouse(t, nil)
	ann, bob := h.person("ann"), h.person("bob")
	h.group("ops", ann)
	h.channel.set([]string{ann.User, bob.User}, []string{bob.User})
	h.thread("in")
	h.approvers("channel,group:ops")
	c := h.callIn("in", h.member, `{"what":"x"}`)
	h.channel.broken = true
	if _, err := h.press(bob, c, store.Approve); err == nil {
		t.Error("pressed while the platform did not answer")
	}
	if _, err := h.db.EditGroup(t.Context(), h.root, "ops", nil, []string{ann.User}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.press(ann, c, store.Approve); err == nil {
		t.Error("pressed after leaving the group")
	}
	h.channel.broken = false
	u, err := h.db.GetUser(t.Context(), bob.User)
	if err != nil {
		t.Fatal(err)
	}
	u.State = store.Disabled
	if err := h.db.PutUser(t.Context(), h.root, u); err != nil {
		t.Fatal(err)
	}
	if _, err := h.press(bob, c, store.Approve); err == nil {
		t.Error("pressed though disabled")
	}
	if got, err := h.db.GetCall(t.Context(), c.ID); err != nil || !got.Waiting() || h.runner.runs.Load() != 0 {
		t.Errorf("the call is %s after %d runs, %v", got.State, h.runner.runs.Load(), err)
	}
	if n := h.refusals(c.ID); n != 3 {
		t.Errorf("%d of 3 refusals are in the audit", n)
	}
}

// TestNobodyCould: what nobody could approve is refused at once, saying so.
func TestNobodyCould(t *testing.T) {
	h := newHouse(t, nil)
	ann := h.person("ann")
	h.group("ops", ann, h.member)
	h.group("none")
	named, err := h.db.AddUser(t.Context(), h.root, store.User{Name: "tok", Role: store.Member, Identities: []string{store.NamedIdentity + "tok"}})
	if err != nil {
		t.Fatal(err)
	}
	for policy, refused := range map[string]bool{
		"group:none":                      true,
		"channel":                         true, // outside a channel
		"channel-admins":                  true,
		"user:" + named.ID:                true, // has tokens only
		"2 of group:ops not requester":    true,
		"2 of group:ops":                  false,
		"channel-admins,admins":           false,
		"group:ops not requester":         false,
		"user:" + named.ID + ",requester": false,
	} {
		h.approvers(policy)
		c := h.call(h.member, "box:write", `{"what":"x"}`)
		if (c.State == store.Refused) != refused || refused && !strings.Contains(c.Reason, "could") {
			t.Errorf("%s: %s (%s)", policy, c.State, c.Reason)
		}
	}
	h.approvers("")
	token := store.Caller{User: named.ID, Name: "tok", Role: store.Member, Surface: store.OnMCP}
	if c := h.call(token, "box:write", `{"what":"x"}`); c.State != store.Pending || c.Policy != store.ByAdmins {
		t.Errorf("somebody with tokens only: %s, %s decides", c.State, c.Policy)
	}
}

// TestFourEyes: many presses of three people at once lead to one execution,
// after the yes of two different ones, and each other press is in the audit.
func TestFourEyes(t *testing.T) {
	h := newHouse(t, nil)
	ann, bob, cid := h.person("ann"), h.person("bob"), h.person("cid")
	h.group("ops", ann, bob, cid, h.member)
	h.approvers("2 of group:ops not requester")
	c := h.call(h.member, "box:write", `{"what":"x"}`)
	if _, err := h.press(h.member, c, store.Approve); !errors.Is(err, store.ErrRefused) {
		t.Errorf("the requester's own yes: %v", err)
	}
	if got, err := h.press(ann, c, store.Approve); err != nil || !got.Waiting() || !slices.Equal(got.Yes(), []string{ann.User}) {
		t.Fatalf("the first yes: %+v, %v", got, err)
	}
	if _, err := h.press(ann, c, store.Approve); !errors.Is(err, store.ErrDecided) {
		t.Errorf("the same person's second yes: %v", err)
	}
	card, err := h.gateway.Card(t.Context(), c.ID)
	if err != nil || card.Who() != "2 different people of: group ops; not mia, who asked" || !slices.Equal(card.Yes, []string{"ann"}) || card.Always {
		t.Errorf("card %+v, %q, %v", card, card.Who(), err)
	}
	h.stop() // a restart between the two
	h.open("second")
	h.run()
	var won, late atomic.Int64
	var all sync.WaitGroup
	for i := range 99 {
		by := []store.Caller{ann, bob, cid}[i%3]
		all.Go(func() {
			switch _, err := h.press(by, c, store.Approve); {
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
	if got := h.wait(c.ID); got.State != store.Done || len(got.Yes()) != 2 || h.runner.runs.Load() != 1 {
		t.Errorf("%s after %d runs, with the yes of %d", got.State, h.runner.runs.Load(), len(got.Yes()))
	}
	if won.Load() != 1 || late.Load() != 98 {
		t.Errorf("%d presses won and %d came late", won.Load(), late.Load())
	}
	if n := h.refusals(c.ID); n != 100 { // 98, the requester's, and ann's second
		t.Errorf("%d refusals are in the audit", n)
	}
	if _, err := h.db.VerifyEvents(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestVoidVote: the yes of somebody who may not press any more does not count.
func TestVoidVote(t *testing.T) {
	h := newHouse(t, nil)
	ann, bob, cid := h.person("ann"), h.person("bob"), h.person("cid")
	h.group("ops", ann, bob, cid)
	h.approvers("2 of group:ops")
	c := h.call(h.member, "box:write", `{"what":"x"}`)
	if _, err := h.press(ann, c, store.Approve); err != nil {
		t.Fatal(err)
	}
	if _, err := h.db.EditGroup(t.Context(), h.root, "ops", nil, []string{ann.User}); err != nil {
		t.Fatal(err)
	}
	got, err := h.press(bob, c, store.Approve)
	if err != nil || !got.Waiting() || !slices.Equal(got.Yes(), []string{bob.User}) {
		t.Fatalf("after the second yes: %+v, %v", got, err)
	}
	if _, err := h.press(cid, c, store.Approve); err != nil {
		t.Fatal(err)
	}
	if got := h.wait(c.ID); got.State != store.Done || h.runner.runs.Load() != 1 {
		t.Errorf("%s after %d runs", got.State, h.runner.runs.Load())
	}
}

// TestVoteDenied: one no of those who may press ends it.
func TestVoteDenied(t *testing.T) {
	h := newHouse(t, nil)
	ann, bob := h.person("ann"), h.person("bob")
	h.group("ops", ann, bob)
	h.approvers("2 of group:ops")
	c := h.call(h.member, "box:write", `{"what":"x"}`)
	if _, err := h.press(ann, c, store.Approve); err != nil {
		t.Fatal(err)
	}
	if got, err := h.press(bob, c, store.Deny); err != nil || got.State != store.Refused {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestChangedSinceTheCard: what was shown is what runs, or nothing does.
func TestChangedSinceTheCard(t *testing.T) {
	for name, change := range map[string]func(*house, *store.Call){
		"the definition": func(h *house, _ *store.Call) { h.putTools("pin-2") },
		"the approvers":  func(h *house, _ *store.Call) { h.approvers("requester,admins") },
		"the credential": func(h *house, _ *store.Call) {
			h.change(func(s *store.Server) { s.Env = map[string]store.Value{"K": {SecretKey: "K"}} })
		},
		"the sharing":      func(h *house, _ *store.Call) { h.change(func(s *store.Server) { s.Visibility = nil }) },
		"the server's off": func(h *house, _ *store.Call) { h.change(func(s *store.Server) { s.Disabled = true }) },
		"a standing no": func(h *house, c *store.Call) {
			if err := h.db.PutGrant(h.t.Context(), h.root, store.Grant{User: h.root.User, Scope: store.ForEveryone, Tool: c.ToolID(), Deny: true}); err != nil {
				h.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, nil)
			c := h.call(h.member, "box:write", `{"what":"x"}`)
			change(h, c)
			if _, err := h.press(h.member, c, store.Approve); !errors.Is(err, store.ErrRefused) {
				t.Errorf("pressed: %v", err)
			}
			if got := h.wait(c.ID); got.State != store.Refused || h.runner.runs.Load() != 0 || got.Decisions[0].By != store.System.User {
				t.Errorf("%s after %d runs: %+v", got.State, h.runner.runs.Load(), got.Decisions)
			}
		})
	}
}

// TestSwappedArguments: arguments that were changed in the store under a card
// do not run.
func TestSwappedArguments(t *testing.T) {
	h := newHouse(t, nil)
	c := h.call(h.member, "box:write", `{"what":"x"}`)
	forged := *c
	forged.ID, forged.Args = store.NewID(time.Now()), json.RawMessage(`{"what":"everything"}`)
	if err := h.db.Begin(t.Context(), h.member, forged); err != nil { // with the digest of the other
		t.Fatal(err)
	}
	if _, err := h.press(h.member, &forged, store.Approve); !errors.Is(err, store.ErrRefused) {
		t.Errorf("pressed: %v", err)
	}
	if got := h.wait(forged.ID); got.State != store.Refused || h.runner.runs.Load() != 0 {
		t.Errorf("%s after %d runs", got.State, h.runner.runs.Load())
	}
}

// TestToken: a call that was proposed with a token runs with that token's
// scopes, and not after it was revoked.
func TestToken(t *testing.T) {
	h := newHouse(t, nil)
	token, err := h.db.CreateToken(t.Context(), h.member, store.Token{Name: "t", User: h.member.User, Audience: "mcp", Prefix: "nize_ab", Hash: [32]byte{1}, Expires: time.Now().Add(time.Hour)}, false)
	if err != nil {
		t.Fatal(err)
	}
	by := h.member
	by.Surface, by.Token = store.OnMCP, token.ID
	c := h.call(by, "box:write", `{"what":"x"}`)
	if _, err := h.db.RevokeTokens(t.Context(), h.root, h.member.User, "t"); err != nil {
		t.Fatal(err)
	}
	if _, err := h.press(h.member, c, store.Approve); !errors.Is(err, store.ErrRefused) || h.runner.runs.Load() != 0 {
		t.Errorf("after the token was revoked: %v, %d runs", err, h.runner.runs.Load())
	}
}

// TestPrecedence: the strictest rule wins, in SPEC 11's order.
func TestPrecedence(t *testing.T) {
	h := newHouse(t, nil)
	ctx := t.Context()
	h.group("crew", h.member)
	for _, a := range []store.Agent{
		{ID: "loose", Approval: "none"}, {ID: "strict", Approval: "all"},
		{ID: "shared", Approval: "none", Who: []string{"group:crew"}}, {ID: "plain"},
	} {
		if err := h.db.PutAgent(ctx, h.root, a); err != nil {
			t.Fatal(err)
		}
	}
	for i, c := range []struct {
		mode, list, never string
		server            store.Approval
		by                store.Caller
		agent             string
		request           store.Approval
		tool              string
		asks              bool
	}{
		{mode: "auto", by: h.member, tool: "write", asks: true},
		{mode: "auto", by: h.member, tool: "look"},
		{mode: "none", by: h.member, tool: "write"},
		{mode: "all", by: h.member, tool: "look", asks: true},
		{mode: "all", server: store.ApproveNever, by: h.root, agent: "loose", tool: "look", asks: true},
		{mode: "whitelist", list: "box:write", by: h.member, tool: "look"},
		{mode: "whitelist", list: "box:write", by: h.member, server: store.ApproveNever, tool: "write", asks: true},
		{mode: "blacklist", list: "box:write", by: h.member, tool: "look", asks: true},
		{mode: "blacklist", list: "box:write", by: h.member, tool: "write"},
		{mode: "none", server: store.ApproveAlways, by: h.member, tool: "look", asks: true},
		{mode: "auto", server: store.ApproveNever, by: h.member, tool: "write"},
		{mode: "none", agent: "strict", by: h.root, tool: "look", asks: true},
		{mode: "auto", agent: "loose", by: h.root, tool: "write"},
		{mode: "auto", agent: "loose", by: h.member, tool: "write", asks: true},
		{mode: "auto", agent: "shared", by: h.member, tool: "write"},
		{mode: "auto", agent: "plain", by: h.root, tool: "write", asks: true},
		{mode: "whitelist", list: "box:*", agent: "loose", by: h.root, tool: "write", asks: true},
		{mode: "auto", request: store.ApproveNever, by: h.member, tool: "write", asks: true},
		{mode: "auto", request: store.ApproveNever, never: "true", by: h.member, tool: "write"},
		{mode: "all", request: store.ApproveNever, never: "true", by: h.member, tool: "write", asks: true},
		{mode: "none", request: store.ApproveAlways, by: h.member, tool: "look", asks: true},
	} {
		h.config["approvals.mode"], h.config["approvals.list"], h.config["approvals.allow_request_never"] = c.mode, c.list, c.never
		h.change(func(s *store.Server) { s.Approval = c.server })
		got, err := h.gateway.Call(ctx, c.by, store.Request{Tool: "box:" + c.tool, Args: json.RawMessage(`{"what":"x"}`), Agent: c.agent, Approval: c.request})
		if err != nil {
			t.Fatal(err)
		}
		if (got.State == store.Pending) != c.asks {
			t.Errorf("%d: %+v: the call is %s (%s)", i, c, got.State, got.Reason)
		}
		if got.Waiting() {
			if _, err := h.press(c.by, got, store.Cancel); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestTaint: after untrusted text everything that may change something asks,
// whatever the mode and whatever is always allowed, and nothing is allowed for
// good there.
func TestTaint(t *testing.T) {
	h := newHouse(t, func(s *store.Server) { s.UntrustedOutput = true })
	h.thread("t")
	h.config["approvals.mode"] = "none"
	if _, err := h.gateway.AddGrant(t.Context(), h.member, store.Grant{Tool: "box:write"}); err != nil {
		t.Fatal(err)
	}
	if c := h.callIn("t", h.member, `{"what":"x"}`); c.State != store.Done {
		t.Fatalf("before: %s", c.State)
	}
	c := h.callIn("t", h.member, `{"what":"x"}`)
	if c.State != store.Pending || len(c.Warnings) != 1 {
		t.Fatalf("after: %s, warnings %q", c.State, c.Warnings)
	}
	if card, err := h.gateway.Card(t.Context(), c.ID); err != nil || card.Always {
		t.Errorf("the card offers always: %v", err)
	}
	if _, err := h.gateway.Decide(t.Context(), h.member, c.ID, store.Decision{Verb: store.Approve, Always: true}); !errors.Is(err, store.ErrRefused) {
		t.Errorf("always: %v", err)
	}
}

// TestGrants: a standing yes lifts what auto asks while it fits and holds.
func TestGrants(t *testing.T) {
	h := newHouse(t, nil)
	ctx := t.Context()
	ann := h.person("ann")
	h.channel.set(nil, []string{ann.User})
	h.thread("in")
	asks := func(thread string, by store.Caller, args string) bool {
		c := h.callIn(thread, by, args)
		if c.Waiting() {
			if _, err := h.press(by, c, store.Cancel); err != nil {
				t.Fatal(err)
			}
			return true
		}
		return false
	}
	add := func(by store.Caller, g store.Grant) store.Grant {
		t.Helper()
		g.Tool = "box:write"
		made, err := h.gateway.AddGrant(ctx, by, g)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	end := func(g store.Grant) {
		if err := h.db.DeleteGrant(ctx, h.root, g.ID); err != nil {
			t.Fatal(err)
		}
	}
	g := add(h.member, store.Grant{Pattern: json.RawMessage(`{"what":"note*"}`)})
	for args, want := range map[string]bool{`{"what":"note 1"}`: false, `{"what":"secret"}`: true} {
		if asks("", h.member, args) != want {
			t.Errorf("with a pattern, %s", args)
		}
	}
	if !asks("", ann, `{"what":"note 1"}`) {
		t.Error("mia's answer holds for ann")
	}
	h.config["approvals.grant_destructive"] = "false"
	if !asks("", h.member, `{"what":"note 1"}`) {
		t.Error("a standing yes for a tool that may destroy something")
	}
	delete(h.config, "approvals.grant_destructive")
	h.approvers("admins")
	if !asks("", h.member, `{"what":"note 1"}`) {
		t.Error("a standing yes of somebody who may not approve any more")
	}
	h.approvers("")
	h.putTools("pin-2")
	if !asks("", h.member, `{"what":"note 1"}`) {
		t.Error("a standing yes for another definition")
	}
	end(g)

	g = add(h.root, store.Grant{Scope: store.ForEveryone, Expires: time.Now().Add(time.Hour)})
	if asks("", ann, `{"what":"x"}`) {
		t.Error("everywhere does not hold for ann")
	}
	h.ahead.Store(int64(time.Hour))
	if !asks("", ann, `{"what":"x"}`) {
		t.Error("it holds after its end")
	}
	h.ahead.Store(0)
	end(g)
	h.group("ops", ann, h.member, h.root)
	g = add(h.root, store.Grant{Scope: store.ForEveryone})
	h.approvers("2 of group:ops")
	if !asks("", ann, `{"what":"x"}`) {
		t.Error("one person's standing yes stands in for two")
	}
	h.approvers("")
	end(g)

	c := h.callIn("in", ann, `{"what":"x"}`) // a channel's admin, in the channel
	if _, err := h.gateway.Decide(ctx, ann, c.ID, store.Decision{Verb: store.Approve, Always: true, For: store.ForChannel}); err != nil {
		t.Fatal(err)
	}
	h.wait(c.ID)
	if asks("in", h.member, `{"what":"x"}`) || !asks("", h.member, `{"what":"x"}`) {
		t.Error("a channel's standing yes")
	}
	h.channel.set(nil, nil)
	if !asks("in", h.member, `{"what":"x"}`) {
		t.Error("it holds though its giver no longer administers the channel")
	}
	add(h.root, store.Grant{Scope: store.ForEveryone, Deny: true})
	if _, err := h.gateway.Call(ctx, h.member, store.Request{Tool: "box:write", Args: json.RawMessage(`{"what":"x"}`)}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("denied everywhere: %v", err)
	}
}

// TestGrantsRefused: what would not hold is not stored.
func TestGrantsRefused(t *testing.T) {
	h := newHouse(t, nil)
	ann := h.person("ann")
	h.group("ops", ann, h.member)
	for name, c := range map[string]struct {
		policy string
		by     store.Caller
		g      store.Grant
		want   error
	}{
		"an unknown tool":    {"", h.member, store.Grant{Tool: "box:nothing"}, store.ErrNotFound},
		"everywhere":         {"", h.member, store.Grant{Scope: store.ForEveryone}, store.ErrRefused},
		"no channel":         {"", h.root, store.Grant{Scope: store.ForChannel}, store.ErrInvalid},
		"another scope":      {"", h.root, store.Grant{Scope: "world"}, store.ErrInvalid},
		"the past":           {"", h.member, store.Grant{Expires: time.Now().Add(-time.Hour)}, store.ErrInvalid},
		"no pattern":         {"", h.member, store.Grant{Pattern: json.RawMessage(`[1]`)}, store.ErrInvalid},
		"a no with pattern":  {"", h.member, store.Grant{Deny: true, Pattern: json.RawMessage(`{"what":"x"}`)}, store.ErrInvalid},
		"for admins to say":  {"admins", h.member, store.Grant{}, store.ErrRefused},
		"for two to say":     {"2 of group:ops", h.member, store.Grant{}, store.ErrRefused},
		"not for themselves": {"group:ops not requester", h.member, store.Grant{}, store.ErrRefused},
	} {
		h.approvers(c.policy)
		if c.g.Tool == "" {
			c.g.Tool = "box:write"
		}
		if _, err := h.gateway.AddGrant(t.Context(), c.by, c.g); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if list, err := h.db.ListGrants(t.Context(), ""); err != nil || len(list) != 0 {
		t.Errorf("stored: %+v, %v", list, err)
	}
}

// TestRetry: a call that failed is made anew once, whoever presses how often,
// and the press is the yes of whom may approve.
func TestRetry(t *testing.T) {
	h := newHouse(t, nil)
	ann := h.person("ann")
	h.runner.fail = &store.CallError{Code: store.CodeTool, Message: "no room"}
	c := h.call(h.member, "box:write", `{"what":"x"}`)
	if _, err := h.press(h.member, c, store.Retry); !errors.Is(err, store.ErrDecided) {
		t.Errorf("retrying what waits: %v", err)
	}
	if _, err := h.press(h.member, c, store.Approve); err != nil {
		t.Fatal(err)
	}
	failed := h.wait(c.ID)
	if failed.State != store.Failed {
		t.Fatalf("state %s", failed.State)
	}
	if _, err := h.press(ann, failed, store.Retry); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("somebody else's retry: %v", err)
	}
	if card, err := h.gateway.Card(t.Context(), c.ID); err != nil || card.Redo != store.Retry {
		t.Errorf("the card offers %q, %v", card.Redo, err)
	}
	h.runner.fail = nil
	var made atomic.Pointer[store.Call]
	var won atomic.Int64
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			next, err := h.press(h.member, failed, store.Retry)
			switch {
			case err == nil:
				won.Add(1)
				made.Store(next)
			case !errors.Is(err, store.ErrDecided):
				t.Errorf("retry: %v", err)
			}
		})
	}
	all.Wait()
	if won.Load() != 1 {
		t.Fatalf("%d retries won", won.Load())
	}
	next := h.wait(made.Load().ID)
	if next.State != store.Done || next.Replaces != c.ID || h.runner.runs.Load() != 2 {
		t.Errorf("the new call: %+v after %d runs", next, h.runner.runs.Load())
	}
	old, err := h.db.GetCall(t.Context(), c.ID)
	if err != nil || old.State != store.Failed || old.Successor != next.ID {
		t.Errorf("the old call: %+v, %v", old, err)
	}
}

// TestRetryOfAnother: where the tool is not what it was, or others approve, a
// retry is a question.
func TestRetryAsks(t *testing.T) {
	h := newHouse(t, nil)
	h.runner.fail = &store.CallError{Code: store.CodeTool, Message: "no room"}
	c := h.call(h.member, "box:write", `{"what":"x"}`)
	if _, err := h.press(h.member, c, store.Approve); err != nil {
		t.Fatal(err)
	}
	failed := h.wait(c.ID)
	h.putTools("pin-2")
	next, err := h.press(h.member, failed, store.Retry)
	if err != nil || !next.Waiting() || next.Pin != "pin-2" {
		t.Fatalf("%+v, %v", next, err)
	}
	if n := h.runner.runs.Load(); n != 1 {
		t.Errorf("%d runs", n)
	}
}

// TestAgain: what nobody answered is asked for again, and the requester's own
// press is no yes.
func TestAgain(t *testing.T) {
	h := newHouse(t, nil)
	h.config["approvals.expiry.requester"] = "1s"
	c := h.call(h.member, "box:write", `{"what":"x"}`)
	expired := h.wait(c.ID)
	if expired.State != store.Expired || expired.Reminded.IsZero() {
		t.Fatalf("state %s, reminded %s", expired.State, expired.Reminded)
	}
	h.config["approvals.expiry.requester"] = "15m"
	if _, err := h.press(h.member, expired, store.Retry); !errors.Is(err, store.ErrDecided) {
		t.Errorf("a retry of what never ran: %v", err)
	}
	next, err := h.press(h.member, expired, store.Again)
	if err != nil || !next.Waiting() || next.Replaces != c.ID {
		t.Fatalf("%+v, %v", next, err)
	}
	reminders := 0
	for change, err := range h.db.Watch(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if change.Kind == "reminder" && change.ID == c.ID {
			reminders++
		}
		if change.ID == next.ID {
			break
		}
	}
	if reminders != 1 {
		t.Errorf("%d reminders", reminders)
	}
}

// TestLost: a call whose outcome is unknown is not made anew with a press.
func TestLost(t *testing.T) {
	h := newHouse(t, nil)
	h.runner.fail = &store.CallError{Code: store.CodeUnknown, Message: "the connection broke"}
	c := h.call(h.member, "box:write", `{"what":"x"}`)
	if _, err := h.press(h.member, c, store.Approve); err != nil {
		t.Fatal(err)
	}
	if got := h.wait(c.ID); got.State != store.Lost {
		t.Fatalf("state %s", got.State)
	}
	for _, verb := range []store.Verb{store.Retry, store.Again, store.Approve, store.RunAll} {
		if _, err := h.press(h.member, c, verb); err == nil {
			t.Errorf("%s was taken", verb)
		}
	}
	if n := h.runner.runs.Load(); n != 1 {
		t.Errorf("%d runs", n)
	}
}

// TestRunAll: one press approves the calls of one step that the person may
// approve, and nothing else.
func TestRunAll(t *testing.T) {
	h := newHouse(t, nil)
	h.thread("in")
	var step []*store.Call
	for i := range 3 {
		step = append(step, h.callIn("in", h.member, fmt.Sprintf(`{"what":"%d"}`, i)))
	}
	edited, err := h.gateway.Decide(t.Context(), h.root, h.callIn("in", h.root, `{"what":"root's"}`).ID, store.Decision{Verb: store.Deny})
	if err != nil || edited.State != store.Refused {
		t.Fatal(err)
	}
	roots := h.callIn("in", h.root, `{"what":"root's"}`) // of the same step, but not for mia to approve
	other, err := h.gateway.Call(t.Context(), h.member, store.Request{Tool: "box:write", Args: json.RawMessage(`{"what":"later"}`), Thread: "in", Step: "in/2"})
	if err != nil {
		t.Fatal(err)
	}
	if card, err := h.gateway.Card(t.Context(), step[0].ID); err != nil || card.Together != 3 {
		t.Errorf("%d wait together, %v", card.Together, err)
	}
	if _, err := h.press(h.member, step[0], store.RunAll); err != nil {
		t.Fatal(err)
	}
	for _, c := range step {
		if got := h.wait(c.ID); got.State != store.Done {
			t.Errorf("a call of the step is %s", got.State)
		}
	}
	for _, c := range []*store.Call{roots, other} {
		if got, err := h.db.GetCall(t.Context(), c.ID); err != nil || !got.Waiting() {
			t.Errorf("%s is %s, %v", got.Args, got.State, err)
		}
	}
	if n := h.runner.runs.Load(); n != 3 {
		t.Errorf("%d runs", n)
	}
}

// TestEditVotes: an edit starts the votes anew, with its editor's.
func TestEditVotes(t *testing.T) {
	h := newHouse(t, nil)
	ann, bob := h.person("ann"), h.person("bob")
	h.group("ops", ann, bob)
	h.approvers("2 of group:ops")
	c := h.call(h.member, "box:write", `{"what":"x"}`)
	if _, err := h.press(ann, c, store.Approve); err != nil {
		t.Fatal(err)
	}
	next, err := h.gateway.Decide(t.Context(), h.member, c.ID, store.Decision{Verb: store.Edit, Digest: c.Digest, Args: json.RawMessage(`{"what":"y"}`)})
	if err != nil || !next.Waiting() || len(next.Yes()) != 0 {
		t.Fatalf("the requester's edit: %+v, %v", next, err)
	}
	last, err := h.gateway.Decide(t.Context(), bob, next.ID, store.Decision{Verb: store.Edit, Digest: next.Digest, Args: json.RawMessage(`{"what":"z"}`)})
	if err != nil || !last.Waiting() || !slices.Equal(last.Yes(), []string{bob.User}) {
		t.Fatalf("an approver's edit: %+v, %v", last, err)
	}
	if _, err := h.press(ann, last, store.Approve); err != nil {
		t.Fatal(err)
	}
	if got := h.wait(last.ID); got.State != store.Done || !strings.Contains(string(got.Result.Raw), `"what":"z"`) || h.runner.runs.Load() != 1 {
		t.Errorf("%s after %d runs: %s", got.State, h.runner.runs.Load(), got.Result.Raw)
	}
}

// TestCardNames: up to five people are named, in words of nize's own.
func TestCardNames(t *testing.T) {
	h := newHouse(t, nil)
	var who []string
	for i := range 7 {
		who = append(who, "user:"+h.person(fmt.Sprintf("p%d", i)).User)
	}
	h.approvers(strings.Join(who, ",") + ",admins")
	c := h.call(h.member, "box:write", `{"what":"x"}`)
	card, err := h.gateway.Card(t.Context(), c.ID)
	if err != nil || card.Who() != "admins (root), p0, p1, p2, p3, p4 and 2 more" {
		t.Errorf("%q, %v", card.Who(), err)
	}
	people, err := h.gateway.Approvers(t.Context(), c.ID)
	if err != nil || len(people) != 5 {
		t.Errorf("%d get the card, %v", len(people), err)
	}
	if got := c.Expires.Sub(c.Created); got != 24*time.Hour {
		t.Errorf("it waits %s for others", got)
	}
}

// warnOf stands for the scan of arguments.
func warnOf(text string) []string {
	if strings.Contains(text, "\u0430") {
		return []string{"it holds a letter that looks like another"}
	}
	return nil
}

// TestWarnings: what is to be known of the arguments stands on the card, once,
// and is said anew of edited ones.
func TestWarnings(t *testing.T) {
	h := newHouse(t, nil)
	c := h.call(h.member, "box:write", `{"what":"p\u0430y","more":["p\u0430y"]}`)
	if card, err := h.gateway.Card(t.Context(), c.ID); err != nil || len(card.Warnings) != 1 {
		t.Errorf("warnings %q, %v", card.Warnings, err)
	}
	_, err := h.gateway.Decide(t.Context(), h.root, c.ID, store.Decision{Verb: store.Edit, Args: json.RawMessage(`{"what":"pay"}`)})
	if !errors.Is(err, store.ErrRefused) { // root is no approver of mia's call
		t.Errorf("an admin's edit: %v", err)
	}
	next, err := h.gateway.Decide(t.Context(), h.member, c.ID, store.Decision{Verb: store.Edit, Args: json.RawMessage(`{"what":"pay"}`)})
	if err != nil || len(next.Warnings) != 0 {
		t.Errorf("after the edit: %q, %v", next.Warnings, err)
	}
}

// TestLacking: policies that name too few people who could press are told.
func TestLacking(t *testing.T) {
	h := newHouse(t, nil)
	ann, bob := h.person("ann"), h.person("bob")
	h.group("ops", ann, bob)
	for policy, want := range map[string]int{"": 0, "2 of group:ops": 0, "3 of group:ops": 1, "requester": 0, "2 of admins": 1, "channel": 0} {
		h.approvers(policy)
		if got, err := h.gateway.Lacking(t.Context()); err != nil || len(got) != want {
			t.Errorf("%q: %q, %v", policy, got, err)
		}
	}
	h.approvers("")
	h.config["approvals.approvers"] = "user:nobody"
	if got, err := h.gateway.Lacking(t.Context()); err != nil || !slices.Equal(got, []string{""}) {
		t.Errorf("the setting: %q, %v", got, err)
	}
}
