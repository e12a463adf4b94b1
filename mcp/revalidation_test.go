package mcp_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"nize/store"
)

// TestChangedSinceTheCard: a call runs exactly as shown, or not at all.
func TestChangedSinceTheCard(t *testing.T) {
	for name, change := range map[string]func(*fixture, *store.Call){
		"the definition": func(h *fixture, _ *store.Call) { h.putTools("pin-2") },
		"the approvers":  func(h *fixture, _ *store.Call) { h.approvers("requester,admins") },
		"the credential": func(h *fixture, _ *store.Call) {
			h.change(func(s *store.Server) { s.Env = map[string]store.Value{"K": {SecretKey: "K"}} })
		},
		"the sharing":      func(h *fixture, _ *store.Call) { h.change(func(s *store.Server) { s.Visibility = nil }) },
		"the server's off": func(h *fixture, _ *store.Call) { h.change(func(s *store.Server) { s.Disabled = true }) },
		"a standing no": func(h *fixture, c *store.Call) {
			if err := h.db.PutGrant(h.t.Context(), h.root, store.Grant{User: h.root.User, Scope: store.ForEveryone, Tool: c.ToolID(), Deny: true}); err != nil {
				h.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newFixture(t, nil)
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

// TestSwappedArguments: a call does not run if its stored arguments were changed after the
// card was shown.
func TestSwappedArguments(t *testing.T) {
	h := newFixture(t, nil)
	c := h.call(h.member, "box:write", `{"what":"x"}`)
	forged := *c
	forged.ID, forged.Args = store.NewID(time.Now()), json.RawMessage(`{"what":"everything"}`)
	if err := h.db.Begin(t.Context(), h.member, forged); err != nil { // with the digest of the other call
		t.Fatal(err)
	}
	if _, err := h.press(h.member, &forged, store.Approve); !errors.Is(err, store.ErrRefused) {
		t.Errorf("pressed: %v", err)
	}
	if got := h.wait(forged.ID); got.State != store.Refused || h.runner.runs.Load() != 0 {
		t.Errorf("%s after %d runs", got.State, h.runner.runs.Load())
	}
}

// TestToken: a call that was proposed with a token runs with the token's scopes, and not
// after the token was revoked.
func TestToken(t *testing.T) {
	h := newFixture(t, nil)
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

// TestCardNames: up to five people are named, followed by the number of the others.
func TestCardNames(t *testing.T) {
	h := newFixture(t, nil)
	var who []string
	for i := range 7 {
		who = append(who, "user:"+h.person(fmt.Sprintf("p%d", i)).User)
	}
	h.approvers(strings.Join(who, ",") + ",admins")
	c := h.call(h.member, "box:write", `{"what":"x"}`)
	card, err := h.gateway.Card(t.Context(), c.ID)
	if err != nil || card.Who().String() != "admins (root), p0, p1, p2, p3, p4 and 2 more" {
		t.Errorf("%q, %v", card.Who(), err)
	}
	people, err := h.gateway.Policy.OtherApprovers(t.Context(), *c)
	if err != nil || len(people) != 8 { // the first five of them who can be reached
		t.Errorf("%d could get the card, %v", len(people), err)
	}
	if got := c.Expires.Sub(c.Created); got != 24*time.Hour {
		t.Errorf("it waits %s for others", got)
	}
}

// warnOf stands for the scan of arguments.
func warnOf(text string) []store.Text {
	if strings.HasPrefix(text, "odd ") {
		return []store.Text{store.Plain(text)}
	}
	if strings.Contains(text, "\u0430") {
		return []store.Text{store.Plain("it holds a letter that looks like another")}
	}
	return nil
}

// TestWarnings: warnings about the arguments are on the card once, and are repeated for
// edited arguments.
func TestWarnings(t *testing.T) {
	h := newFixture(t, nil)
	for n, want := range map[int]int{20: 20, 21: 21, 50: 21} { // the last one says that there are more
		var texts []string
		for i := range n {
			texts = append(texts, fmt.Sprintf("odd %d", i))
		}
		args, _ := json.Marshal(map[string]any{"what": "x", "more": texts})
		c := h.call(h.member, "box:write", string(args))
		if len(c.Warnings) != want || (n > 20) != strings.Contains(c.Warnings[len(c.Warnings)-1].String(), "there is more") {
			t.Errorf("of %d: %q", n, c.Warnings)
		}
	}
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

// TestLacking: policies with too few people who could press are reported.
func TestLacking(t *testing.T) {
	h := newFixture(t, nil)
	ann, bob := h.person("ann"), h.person("bob")
	h.group("ops", ann, bob)
	for policy, want := range map[string]int{"": 0, "2 of group:ops": 0, "3 of group:ops": 1, "requester": 0, "2 of admins": 1, "channel": 0} {
		h.approvers(policy)
		if got, err := h.gateway.Policy.UndecidablePolicies(t.Context()); err != nil || len(got) != want {
			t.Errorf("%q: %q, %v", policy, got, err)
		}
	}
	h.approvers("")
	h.config.set("approvals.approvers", "user:nobody")
	if got, err := h.gateway.Policy.UndecidablePolicies(t.Context()); err != nil || !slices.Equal(got, []string{""}) {
		t.Errorf("the setting: %q, %v", got, err)
	}
	h.config.set("approvals.approvers", "")
	h.editChannel(func(c *store.Channel) { c.Approvers = "3 of group:ops" })
	if got, err := h.gateway.Policy.UndecidablePolicies(t.Context()); err != nil || !slices.Equal(got, []string{"slack:T1:C1"}) {
		t.Errorf("the channel: %q, %v", got, err)
	}
}
