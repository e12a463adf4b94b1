package mcp_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"nize/store"
)

// channel lists the members of channel C1 for these tests, like a platform.
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

// breaks sets whether the platform stops answering.
func (c *channel) breaks(yes bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken = yes
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

// person adds a user who can press buttons.
func (h *fixture) person(name string) store.Caller {
	h.t.Helper()
	u, err := h.db.EnsureUser(h.t.Context(), "local:"+name, name, store.Member)
	if err != nil {
		h.t.Fatal(err)
	}
	return store.Caller{User: u.ID, Name: name, Role: u.Role, Surface: store.OnTerminal}
}

func (h *fixture) group(name string, members ...store.Caller) {
	h.t.Helper()
	g := store.Group{Name: name}
	for _, m := range members {
		g.Members = append(g.Members, m.User)
	}
	if _, err := h.db.AddGroup(h.t.Context(), h.root, g); err != nil {
		h.t.Fatal(err)
	}
}

// approvers sets the approval policy of the server.
func (h *fixture) approvers(p string) {
	h.t.Helper()
	h.change(func(s *store.Server) { s.Approvers = store.Policy(p) })
}

func (h *fixture) change(change func(*store.Server)) {
	h.t.Helper()
	s, err := h.db.GetServer(h.t.Context(), "box")
	if err != nil {
		h.t.Fatal(err)
	}
	change(&s)
	if _, err := h.db.PutServer(h.t.Context(), h.root, s, s.Revision); err != nil {
		h.t.Fatal(err)
	}
	if err := h.gateway.Catalog.Refresh(h.t.Context(), "box"); err != nil {
		h.t.Fatal(err)
	}
}

// thread is a conversation in the channel C1.
func (h *fixture) thread(id string) string {
	h.t.Helper()
	th := store.Thread{ID: id, User: h.member.User, Address: store.Address{Surface: store.OnSlack, Team: "T1", Channel: "C1", Thread: id}}
	if err := h.db.PutThread(h.t.Context(), h.root, th); err != nil {
		h.t.Fatal(err)
	}
	return id
}

func (h *fixture) callIn(thread string, by store.Caller, args string) *store.Call {
	h.t.Helper()
	c, err := h.gateway.Call(h.t.Context(), by, store.Request{Tool: "box:write", Args: json.RawMessage(args), Thread: thread, Step: thread + "/1"})
	if err != nil {
		h.t.Fatal(err)
	}
	return c
}

func (h *fixture) press(by store.Caller, c *store.Call, verb store.Verb) (*store.Call, error) {
	return h.gateway.Decide(h.t.Context(), by, c.ID, store.Decision{Verb: verb, Digest: c.Digest})
}

// refusals counts the audited presses that had no effect.
func (h *fixture) refusals(call string) int {
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
	h := newFixture(t, nil)
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

// TestFailsClosed: a press is refused if the platform does not answer, or if the person was
// disabled or removed from the group in the meantime.
func TestFailsClosed(t *testing.T) {
	h := newFixture(t, nil)
	ann, bob := h.person("ann"), h.person("bob")
	h.group("ops", ann)
	h.channel.set([]string{ann.User, bob.User}, []string{bob.User})
	h.thread("in")
	h.approvers("channel,group:ops")
	c := h.callIn("in", h.member, `{"what":"x"}`)
	h.channel.breaks(true)
	if _, err := h.press(bob, c, store.Approve); err == nil {
		t.Error("pressed while the platform did not answer")
	}
	if _, err := h.db.EditGroup(t.Context(), h.root, "ops", nil, []string{ann.User}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.press(ann, c, store.Approve); err == nil {
		t.Error("pressed after leaving the group")
	}
	h.channel.breaks(false)
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

// TestNobodyCould: a call without possible approvers is refused at once, with that reason.
func TestNobodyCould(t *testing.T) {
	h := newFixture(t, nil)
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
		if (c.State == store.Refused) != refused || refused && !strings.Contains(c.Reason.String(), "can approve it now") {
			t.Errorf("%s: %s (%s)", policy, c.State, c.Reason)
		}
	}
	h.approvers("")
	token := store.Caller{User: named.ID, Name: "tok", Role: store.Member, Surface: store.OnMCP}
	if c := h.call(token, "box:write", `{"what":"x"}`); c.State != store.Pending || c.Policy != store.ByAdmins {
		t.Errorf("somebody with tokens only: %s, %s decides", c.State, c.Policy)
	}
}

// TestApproversInBrowsers: a person with a browser session counts as reachable until the
// session ends; calls that already waited for admins go on waiting.
func TestApproversInBrowsers(t *testing.T) {
	h := newFixture(t, nil)
	u, err := h.db.AddUser(t.Context(), h.root, store.User{Name: "zoe", Role: store.Member, Identities: []string{store.NamedIdentity + "zoe"}})
	if err != nil {
		t.Fatal(err)
	}
	zoe := store.Caller{User: u.ID, Name: "zoe", Role: store.Member, Surface: store.OnWeb}
	before := h.call(zoe, "box:write", `{"what":"x"}`)
	if before.Policy != store.ByAdmins {
		t.Fatalf("of who is signed in nowhere %s decides", before.Policy)
	}
	signIn := func(audience string) {
		t.Helper()
		now := time.Now()
		if _, err := h.db.CreateToken(t.Context(), zoe, store.Token{User: u.ID, Name: audience, Hash: sha256.Sum256([]byte(audience)), Audience: audience, Created: now, Expires: now.Add(time.Hour)}, false); err != nil {
			t.Fatal(err)
		}
	}
	signIn(store.ForMCP)
	if c := h.call(zoe, "box:write", `{"what":"x"}`); c.Policy != store.ByAdmins {
		t.Errorf("with a bearer token %s decides", c.Policy)
	}
	signIn(store.ForWeb)
	c := h.call(zoe, "box:write", `{"what":"y"}`)
	if c.State != store.Pending || c.Policy != store.ByRequester {
		t.Fatalf("in a browser: %s, %s decides", c.State, c.Policy)
	}
	if _, err := h.press(zoe, c, store.Approve); err != nil {
		t.Errorf("her own yes: %v", err)
	}
	if _, err := h.press(h.root, before, store.Approve); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*store.Call{c, before} {
		if now := h.wait(c.ID); now.State != store.Done {
			t.Errorf("%s: %s (%s)", c.Args, now.State, now.Reason)
		}
	}
	h.approvers("user:" + u.ID)
	waits := h.call(h.member, "box:write", `{"what":"z"}`)
	if waits.State != store.Pending {
		t.Fatalf("she is named: %s (%s)", waits.State, waits.Reason)
	}
	if _, err := h.db.RevokeTokens(t.Context(), h.root, u.ID, ""); err != nil {
		t.Fatal(err)
	}
	if c := h.wait(waits.ID); c.State != store.Refused {
		t.Errorf("signed out she could still press: %s", c.State)
	}
}

// TestFourEyes: many concurrent presses by three people lead to one execution, after
// approvals by two different people. Every other press is in the audit trail.
func TestFourEyes(t *testing.T) {
	h := newFixture(t, nil)
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
	if err != nil || card.Who().String() != "2 different people of: group ops; not mia, who asked" || !slices.Equal(card.Yes, []string{"ann"}) || card.Always {
		t.Errorf("card %+v, %q, %v", card, card.Who(), err)
	}
	h.stop() // a restart between the two approvals
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
	h := newFixture(t, nil)
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

// TestVoidVote: the approval of a person who is no longer eligible does not count.
func TestVoteDecidesNothing(t *testing.T) {
	h := newFixture(t, nil)
	ann, bob := h.person("ann"), h.person("bob")
	h.group("ops", ann, bob)
	h.approvers("2 of group:ops")
	decided := func(c *store.Call, state store.State, by string) {
		t.Helper()
		card, err := h.gateway.Card(t.Context(), c.ID)
		if err != nil || card.State != state || card.DecidedBy != by {
			t.Errorf("the card says %s, decided by %q, %v; want %s by %q", card.State, card.DecidedBy, err, state, by)
		}
	}
	c := h.call(h.member, "box:write", `{"what":"x"}`)
	if _, err := h.press(ann, c, store.Approve); err != nil {
		t.Fatal(err)
	}
	decided(c, store.Pending, "")
	next, err := h.gateway.Decide(t.Context(), bob, c.ID, store.Decision{Verb: store.Edit, Digest: c.Digest, Args: []byte(`{"what":"y"}`)})
	if err != nil {
		t.Fatal(err)
	}
	decided(c, store.Cancelled, "")
	if _, err := h.press(ann, next, store.Deny); err != nil {
		t.Fatal(err)
	}
	decided(next, store.Refused, "ann")
	c = h.call(h.member, "box:write", `{"what":"z"}`)
	if _, err := h.press(ann, c, store.Approve); err != nil {
		t.Fatal(err)
	}
	h.disable(h.member)
	decided(c, store.Cancelled, "")
}

// TestVoteDenied: a single denial by an eligible approver ends the call.
func TestVoteDenied(t *testing.T) {
	h := newFixture(t, nil)
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

// TestApproverJoined: an approver can still press after their account was joined with
// another one, also for a call that already waited and where a file names them by their
// earlier ID, which a join does not change.
func TestApproverJoined(t *testing.T) {
	for _, of := range []string{"server", "file"} {
		t.Run(of, func(t *testing.T) {
			h := newFixture(t, nil)
			ctx := t.Context()
			ann, bob := h.person("ann"), h.person("bob")
			h.thread("in")
			if of == "server" {
				h.approvers("user:" + ann.User)
			} else {
				h.config.set("approvals.approvers", "user:"+ann.User)
			}
			waits := h.callIn("in", h.member, `{"what":"x"}`)
			if waits.State != store.Pending {
				t.Fatalf("the call is %s: %s", waits.State, waits.Reason)
			}
			_, hash := store.NewCode()
			if _, err := h.db.PutLink(ctx, ann, ann.User, hash); err != nil {
				t.Fatal(err)
			}
			if _, err := h.db.Join(ctx, bob, hash, ""); err != nil {
				t.Fatal(err)
			}
			for _, c := range []*store.Call{waits, h.callIn("in", h.member, `{"what":"y"}`)} {
				if got, err := h.press(bob, c, store.Approve); err != nil {
					t.Errorf("%s: %+v, %v", c.Args, got, err)
				}
			}
		})
	}
}
