package bolt

import (
	"testing"

	"nize/store"
)

// What was stored before texts had formats is read as it stands, and a text that
// is stored now comes back with its arguments.
func TestStoredTexts(t *testing.T) {
	c, err := decodeCallHead([]byte(`{"id":"1","runs_as":"the shared credential K","warnings":["odd 100 %"],"reason":"edited"}`))
	if err != nil || c.RunsAs.String() != "the shared credential K" || c.Warnings[0].String() != "odd 100 %" || c.Reason != store.Textf("edited") {
		t.Errorf("got %+v, %v", c, err)
	}
	turn, err := decodeTurn([]byte(`{"role":"notice","text":"Stopped."}`))
	if err != nil || turn.Said != store.Textf("Stopped.") {
		t.Errorf("got %+v, %v", turn, err)
	}
	c = store.Call{ID: "2", RunsAs: store.Textf("the shared credential %s", "K"), Warnings: []store.Text{store.Plain("odd")}, Reason: store.Textf("denied by %s", "Ann")}
	b, err := encodeCallHead(c)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := decodeCallHead(b); err != nil || got.RunsAs != c.RunsAs || got.Reason != c.Reason || got.Warnings[0] != c.Warnings[0] {
		t.Errorf("%s came back as %+v, %v", b, got, err)
	}
	said := store.Turn{Role: store.FromTool, Text: "The call was refused.", Said: store.Textf("its caller left"), Ended: store.Refused}
	if b, err = encodeTurn(said); err != nil {
		t.Fatal(err)
	}
	if got, err := decodeTurn(b); err != nil || got.Said != said.Said || got.Ended != said.Ended || got.Text != said.Text {
		t.Errorf("%s came back as %+v, %v", b, got, err)
	}
}
