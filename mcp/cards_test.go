package mcp_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nize/store"
)

// TestCards: a list has the cards that are returned for each call alone, whatever they have in
// common.
func TestCards(t *testing.T) {
	h := newFixture(t, nil)
	ann, bob := h.person("ann"), h.person("bob")
	h.group("ops", ann, bob, h.member)
	h.channel.set([]string{h.member.User, ann.User}, []string{ann.User})
	in := h.thread("in")
	for i, policy := range []string{"requester", "admins", "channel-admins", "2 of group:ops not requester", "admins", "user:" + bob.User} {
		h.approvers(policy)
		for _, by := range []store.Caller{h.member, h.root} {
			h.callIn(in, by, fmt.Sprintf(`{"what":"%d"}`, i))
			if _, err := h.gateway.Call(t.Context(), by, store.Request{Tool: "box:write", Args: json.RawMessage(fmt.Sprintf(`{"what":"alone %d"}`, i))}); err != nil {
				t.Fatal(policy, err)
			}
		}
	}
	ctx := t.Context()
	waiting, err := h.db.ListWaiting(ctx)
	if err != nil || len(waiting) < 16 {
		t.Fatal(len(waiting), err)
	}
	var ids []string
	var want []store.Card
	for _, c := range waiting {
		card, err := h.gateway.Card(ctx, c.ID)
		if err != nil {
			t.Fatal(err)
		}
		ids, want = append(ids, c.ID), append(want, card)
	}
	calls, err := h.db.GetWaiting(ctx, append(ids, "unknown"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := h.gateway.Cards(ctx, calls)
	if err != nil {
		t.Fatal(err)
	}
	text := cmp.Comparer(func(a, b store.Text) bool { return a.String() == b.String() })
	if d := cmp.Diff(want, got, text); d != "" {
		t.Error(d)
	}
}
