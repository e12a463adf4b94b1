package chatclient

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"nize/daemon/api"
	"nize/store"
)

// TestTurn: what a turn shows becomes deltas that make the whole text, and its end
// is told from a pause.
func TestTurn(t *testing.T) {
	var turn turn
	var text string
	tell := func(name string, data any) error {
		if name == "text.delta" {
			d := data.(textDelta)
			if d.Again {
				text = ""
			}
			text += d.Delta
		}
		return nil
	}
	for _, whole := range []string{"The an", "The answer", "The answer", "Another"} {
		if err := turn.show(store.Message{ID: "t/1", Kind: store.TextMessage, Text: whole}, tell); err != nil || text != whole {
			t.Errorf("told %q of %q, %v", text, whole, err)
		}
	}
	said := store.Turn{Role: store.FromUser, Text: "Hi"}
	answered := []store.Turn{said, {N: 1, Role: store.FromModel, Text: "Hello"}}
	for name, c := range map[string]struct {
		view   api.ThreadView
		failed string
		status string // "" goes on
	}{
		"it works":       {api.ThreadView{Thread: store.Thread{Open: true}, Turns: []store.Turn{said}}, "", ""},
		"an earlier one": {api.ThreadView{Thread: store.Thread{Open: true}, Cards: []store.Card{{Call: "01"}}}, "", ""},
		"it waits":       {api.ThreadView{Thread: store.Thread{Open: true}, Cards: []store.Card{{Call: "03"}}}, "", "requires_approval"},
		"it broke off":   {api.ThreadView{Thread: store.Thread{Open: true}, Turns: []store.Turn{said}}, "no model", "failed"},
		"it answered":    {api.ThreadView{Turns: answered}, "", "completed"},
		"it was stopped": {api.ThreadView{Turns: append(answered, said, store.Turn{Role: store.FromNize, Text: "Stopped.", Final: true})}, "", "failed"},
	} {
		turn.idle, turn.failed = true, c.failed
		a, done := turn.answer(c.view, "02")
		if done != (c.status != "") || done && a.Status != c.status {
			t.Errorf("%s: %v, %q", name, done, a.Status)
		}
	}
}

// FuzzDecode: whatever a client sends, it is read or refused as its mistake.
func FuzzDecode(f *testing.F) {
	for _, body := range []string{`{"message":"Hi","servers":["a"],"stream":true}`, `{"mesage":1}`, `{"message":"a"}{}`, `[]`, ``, "{\"message\":\"\xff\"}"} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		r := httptest.NewRequest("POST", "/api/chat", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		var req api.ChatRequest
		if err := decode(r, &req); err != nil && !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%q: %v", body, err)
		}
	})
}
