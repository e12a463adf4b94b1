package view

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"nize/bots/phrases"
	"nize/bots/slack/incoming"
	"nize/store"
)

// TestEditOfAnotherForm: a form that was opened before the tool changed is not
// read by the new one, where its second choice is another.
func TestEditOfAnotherForm(t *testing.T) {
	before := json.RawMessage(`{"properties":{"where":{"type":"string","enum":["staging","test"]}}}`)
	after := json.RawMessage(`{"properties":{"where":{"type":"string","enum":["staging","production"]}}}`)
	card := store.Card{Call: store.NewID(testNow), Tool: "box:deploy", Args: json.RawMessage(`{"where":"staging"}`), Digest: Digest(nil)}
	view := EditModal(card, before, Editing{Call: card.Call, Head: card.Digest[:16]}, phrases.For(""))
	var i incoming.Interaction
	i.View.PrivateMetadata = view.PrivateMetadata
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
		e, ok := ReadEditing(i)
		if !ok {
			t.Fatal("the dialog is not read")
		}
		args, wrong, err := e.Edited(i, card, test.schema, phrases.For(""))
		if string(args) != test.want || len(wrong) > 0 || !errors.Is(err, test.err) {
			t.Errorf("with %s: %s, %v, %v", test.schema, args, wrong, err)
		}
	}
}

// TestEditNoObject: what is no JSON object is said in the dialog, which keeps what
// was typed, in the reader's language and not in Go's.
func TestEditNoObject(t *testing.T) {
	for text, want := range map[string][2]string{
		`[]`:              {"want a JSON object", "应为 JSON 对象"},
		`null`:            {"want a JSON object", "应为 JSON 对象"},
		`{"a":`:           {"unexpected end", "内容不完整"},
		`{“a”: 1}`:        {"straight", "直引号"},
		`{"a": ’b’}`:      {"straight", "直引号"},
		`{"a": "“b”" 1}`:  {"after object key:value pair", "不是 JSON"},
		`{"a": "b"} more`: {"after top-level value", "不是 JSON"},
	} {
		for n, locale := range []string{"en", "zh-Hans"} {
			var i incoming.Interaction
			i.View.State.Values = incoming.Inputs{"json": {"value": {Value: text}}}
			_, wrong, _ := Editing{}.Edited(i, store.Card{}, nil, phrases.For(locale))
			if said := wrong["json"]; !strings.Contains(said, want[n]) || strings.Contains(said, "Go value") {
				t.Errorf("%s in %s: %q; want %q", text, locale, said, want[n])
			}
		}
	}
}
