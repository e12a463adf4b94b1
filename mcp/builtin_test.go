package mcp_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"nize/store"
)

// TestReadResultAsksTheRules: a stored result can be read under the current rules for its
// tool: also with another token, but not after a standing denial.
func TestReadResultAsksTheRules(t *testing.T) {
	h := newFixture(t, nil)
	h.runner.raw = json.RawMessage(`{"content":[{"type":"text","text":"the balance is 42"}]}`)
	c := h.call(h.member, "box:look", `{"what":"a"}`)
	if err := h.db.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	read := func(scopes ...string) *store.Call {
		by := h.member
		by.Scopes = scopes
		return h.call(by, "nize:read_result", `{"call":"`+c.ID+`"}`)
	}
	if got := read("tools:box:look"); got.State != store.Done || !strings.Contains(got.Result.Text(), "balance") {
		t.Errorf("with a token for the tool: %+v", got)
	}
	if got := read("tools:shut:*"); got.State != store.Failed || strings.Contains(got.Result.Text(), "balance") {
		t.Errorf("with a token for others: %s, %s", got.State, got.Result.Text())
	}
	if err := h.db.PutGrant(t.Context(), h.member, store.Grant{ID: store.NewID(time.Now()), User: h.member.User, Tool: "box:look", Deny: true}); err != nil {
		t.Fatal(err)
	}
	if got := read(); got.State != store.Failed || strings.Contains(got.Result.Text(), "balance") {
		t.Errorf("after a standing no: %s, %s", got.State, got.Result.Text())
	}
}
