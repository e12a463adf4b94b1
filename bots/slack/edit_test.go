package slack

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"nize/bots"
	"nize/bots/phrases"
	"nize/store"
)

// oneCard is an approver of which the card alone is asked.
type oneCard struct {
	bots.Approver
	card store.Card
}

func (o oneCard) Card(context.Context, string) (store.Card, error) { return o.card, nil }

// TestEditOfAnotherForm: a form that was opened before the tool changed is not
// read by the new one, where its second choice is another.
func TestEditOfAnotherForm(t *testing.T) {
	before := json.RawMessage(`{"properties":{"where":{"type":"string","enum":["staging","test"]}}}`)
	after := json.RawMessage(`{"properties":{"where":{"type":"string","enum":["staging","production"]}}}`)
	card := store.Card{Call: store.NewID(testNow), Tool: "box:deploy", Args: json.RawMessage(`{"where":"staging"}`), Digest: sum(nil)}
	view := editModal(card, before, editing{Call: card.Call, Head: card.Digest[:digestChars]}, phrases.For(""))
	var i interaction
	i.View.Metadata = view.PrivateMetadata
	state, err := json.Marshal(map[string]any{"field-where": map[string]any{"value": map[string]any{"selected_option": map[string]any{"value": "1"}}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(state, &i.View.State.Values); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		schema json.RawMessage
		want   string
		err    error
	}{{before, `{"where":"test"}`, nil}, {after, "", store.ErrConflict}} {
		l := &live{b: &Bot{o: Options{Approver: oneCard{card: card}, Schema: func(context.Context, string) (json.RawMessage, error) { return test.schema, nil }}}}
		_, args, wrong, err := l.edited(t.Context(), i, phrases.For(""))
		if string(args) != test.want || len(wrong) > 0 || !errors.Is(err, test.err) {
			t.Errorf("with %s: %s, %v, %v", test.schema, args, wrong, err)
		}
	}
}
