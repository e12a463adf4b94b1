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
	text = ""
	remark := store.Message{ID: "t/2", Kind: store.TextMessage, Text: "Half\n\n[Cut.]", Remark: "[Cut.]", Final: true}
	if err := turn.show(remark, tell); err != nil || text != "Half" {
		t.Errorf("told %q, %v", text, err)
	}
	said := store.Turn{Role: store.FromUser, Text: "Hi"}
	limited := store.Turn{N: 1, Role: store.FromNize, Text: "I stopped using tools after 2 steps, the limit for one turn.", Finish: store.FinishSteps}
	answered := []store.Turn{said, {N: 1, Role: store.FromModel, Text: "Hello"}}
	for name, c := range map[string]struct {
		view   api.ThreadView
		failed string
		status string // "" goes on
		finish string
	}{
		"it works":             {api.ThreadView{Thread: store.Thread{Open: true}, Turns: []store.Turn{said}}, "", "", ""},
		"an earlier one":       {api.ThreadView{Thread: store.Thread{Open: true}, Cards: []store.Card{{Call: "01"}}}, "", "", ""},
		"it waits":             {api.ThreadView{Thread: store.Thread{Open: true}, Cards: []store.Card{{Call: "03"}}}, "", "requires_approval", ""},
		"it broke off":         {api.ThreadView{Thread: store.Thread{Open: true}, Turns: []store.Turn{said}}, "no model", "failed", ""},
		"it answered":          {api.ThreadView{Turns: answered}, "", "completed", "stop"},
		"it was stopped":       {api.ThreadView{Turns: append(answered, said, store.Turn{Role: store.FromNize, Text: "Stopped.", Final: true})}, "", "failed", ""},
		"at the step limit":    {api.ThreadView{Turns: []store.Turn{said, limited, {N: 2, Role: store.FromModel, Text: "So far"}}}, "", "max_steps", "stop"},
		"a limit before":       {api.ThreadView{Turns: []store.Turn{said, limited, {N: 2, Role: store.FromModel, Text: "So far"}, said, {N: 4, Role: store.FromModel, Text: "Done"}}}, "", "completed", "stop"},
		"limit, no answer":     {api.ThreadView{Turns: []store.Turn{said, limited, {N: 2, Role: store.FromNize, Text: "Stopped.", Final: true}}}, "", "failed", ""},
		"a second, unanswered": {api.ThreadView{Turns: append(answered, said)}, "", "failed", ""},
		"it is cut":            {api.ThreadView{Turns: []store.Turn{said, {N: 1, Role: store.FromModel, Text: "Hel", Finish: store.FinishCut, Said: store.FinishRemark(store.FinishCut)}}}, "", "completed", "cut"},
	} {
		turn.idle, turn.failed = true, c.failed
		a, done := turn.answer(c.view, "02")
		if done != (c.status != "") || done && a.Status != c.status || a.Finish != c.finish {
			t.Errorf("%s: %v, %q, %q", name, done, a.Status, a.Finish)
		}
		if warned := a.Finish == store.FinishCut || a.Status == "max_steps"; done && a.Status != "failed" && warned != (len(a.Warnings) == 1) {
			t.Errorf("%s: warnings %q", name, a.Warnings)
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
