package mcp_test

import (
	"encoding/json"
	"errors"
	"testing"

	"nize/mcp"
	"nize/store"
)

// A turn whose author was demoted or disabled after writing it runs with the author's
// current rights.
func TestTurnsOutliveRights(t *testing.T) {
	h := newFixture(t, func(s *store.Server) { s.Visibility = nil })
	ada, err := h.db.EnsureUser(t.Context(), "local:9", "ada", store.Admin)
	if err != nil {
		t.Fatal(err)
	}
	by := store.Caller{User: ada.ID, Name: ada.Name, Role: ada.Role, Surface: store.OnTerminal}
	look := store.Request{Tool: "box:look", Args: json.RawMessage(`{"what":"x"}`)}
	if c, err := h.gateway.Call(t.Context(), by, look); err != nil || c.State != store.Done {
		t.Fatalf("an admin's call: %+v, %v", c, err)
	}
	ada.Role = store.Member
	if err := h.db.PutUser(t.Context(), h.root, ada); err != nil {
		t.Fatal(err)
	}
	if _, err := h.gateway.Call(t.Context(), by, look); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("lowered: %v, want not found", err)
	}
	end := func(what string) {
		t.Helper()
		var refused *store.CallError
		if _, err := h.gateway.Call(t.Context(), by, look); !errors.As(err, &refused) || refused.Code != store.CodeRefused {
			t.Errorf("%s: %v, want refused", what, err)
		}
		if r, err := h.gateway.Meta(t.Context(), by, store.Scope{}, store.ToolCall{Name: mcp.Discover, Args: `{"query":"look"}`}); err != nil || r.Error == nil || r.Error.Code != store.CodeRefused {
			t.Errorf("%s, searching: %+v, %v, want refused", what, r, err)
		}
	}
	ada.State = store.Disabled
	if err := h.db.PutUser(t.Context(), h.root, ada); err != nil {
		t.Fatal(err)
	}
	end("disabled")
	if err := h.db.RemoveUser(t.Context(), h.root, ada.ID); err != nil {
		t.Fatal(err)
	}
	end("removed")
}
