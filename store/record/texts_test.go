package record

import (
	"encoding/json"
	"testing"

	"nize/store"
)

// What was stored before texts had formats is read as it stands, and a text that
// is stored now comes back with its arguments.
func TestStoredTexts(t *testing.T) {
	call := readJSON[Call](t, []byte(`{"id":"1","runs_as":"the shared credential K","warnings":["odd 100 %"],"reason":"edited"}`)).Value()
	if call.RunsAs.String() != "the shared credential K" || call.Warnings[0].String() != "odd 100 %" || call.Reason != store.Textf("edited") {
		t.Errorf("got %+v", call)
	}
	turn := readJSON[Turn](t, []byte(`{"role":"notice","text":"Stopped."}`)).Value()
	if turn.Said != store.Textf("Stopped.") {
		t.Errorf("got %+v", turn)
	}
	old := store.Turn{Role: store.FromModel, Text: "Once\n\n[The answer broke off here.]", Said: store.Textf("[The answer broke off here.]")}
	if got := readJSON[Turn](t, writeJSON(t, OfTurn(old))).Value(); got.Said != old.Said || got.Text != "Once" {
		t.Errorf("got %+v", got)
	}
	call = store.Call{ID: "2", RunsAs: store.Textf("the shared credential %s", "K"), Warnings: []store.Text{store.Plain("odd")}, Reason: store.Textf("denied by %s", "Ann")}
	if got := readJSON[Call](t, writeJSON(t, OfCall(call))).Value(); got.RunsAs != call.RunsAs || got.Reason != call.Reason || got.Warnings[0] != call.Warnings[0] {
		t.Errorf("got %+v", got)
	}
	turn = store.Turn{Role: store.FromTool, Text: "The call was refused.", Said: store.Textf("its caller left"), Ended: store.Refused}
	if got := readJSON[Turn](t, writeJSON(t, OfTurn(turn))).Value(); got.Said != turn.Said || got.Ended != turn.Ended || got.Text != turn.Text {
		t.Errorf("got %+v", got)
	}
	incident := store.Incident{Title: store.Textf("Server %s is down", "box"), Text: store.Plain("it ended")}
	if got := readJSON[Incident](t, writeJSON(t, OfIncident(incident))).Value(); got.Title != incident.Title || got.Text != incident.Text {
		t.Errorf("got %+v", got)
	}
}

func writeJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func readJSON[T any](t *testing.T, b []byte) (v T) {
	t.Helper()
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	return v
}
