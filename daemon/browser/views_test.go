package browser

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"nize/bots"
	"nize/bots/web"
	"nize/store"
)

// callsOf is a store of calls.
type callsOf map[string]store.Call

func (cs callsOf) GetCall(_ context.Context, id string) (store.Call, error) {
	c, ok := cs[id]
	switch {
	case id == "down":
		return c, errors.New("the disk is gone")
	case !ok:
		return c, store.ErrNotFound
	}
	return c, nil
}

// TestReturned: what a call returned is shown to its requester, and to nobody else who
// reads the conversation.
func TestReturned(t *testing.T) {
	const point = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	result := &store.Result{Raw: json.RawMessage(`{"content":[{"type":"image","mimeType":"image/png","data":"` + point + `"}]}`), View: json.RawMessage(`{"title":"Seen"}`)}
	calls := callsOf{"c": {ID: "c", By: "ann", Result: result}, "plain": {ID: "plain", By: "ann", Result: &store.Result{Raw: json.RawMessage(`{}`)}}}
	for _, test := range []struct {
		call, reader string
		title        string
		pictures     int
	}{{"c", "ann", "Seen", 1}, {"c", "ben", "", 0}, {"plain", "ann", "", 0}, {"gone", "ann", "", 0}} {
		m, err := returned(t.Context(), calls, store.Caller{User: test.reader}, web.Message{Message: store.Message{Kind: store.ImagesMessage}, Call: test.call}, bots.Reader{})
		title := ""
		if m.Rendered != nil {
			title = m.Rendered.Title
		}
		if err != nil || title != test.title || m.Pictures != test.pictures {
			t.Errorf("%s reads of call %s: %q and %d pictures, %v", test.reader, test.call, title, m.Pictures, err)
		}
	}
	if _, err := returned(t.Context(), calls, store.Caller{User: "ann"}, web.Message{Message: store.Message{Kind: store.ImagesMessage}, Call: "down"}, bots.Reader{}); err == nil {
		t.Error("an outage is no result that is gone")
	}
}
