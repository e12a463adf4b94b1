package slack

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

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

// TestEditNoObject: what is no JSON object is said in the dialog, which keeps what
// was typed, in the reader's language and not in Go's.
func TestEditNoObject(t *testing.T) {
	metadata, err := json.Marshal(editing{Call: store.NewID(testNow)})
	if err != nil {
		t.Fatal(err)
	}
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
			var i interaction
			i.View.Metadata = string(metadata)
			i.View.State.Values = inputs{"json": {"value": {Value: &text}}}
			_, _, wrong, err := (&live{}).edited(t.Context(), i, phrases.For(locale))
			if said := wrong["json"]; err != nil || !strings.Contains(said, want[n]) || strings.Contains(said, "Go value") {
				t.Errorf("%s in %s: %q, %v; want %q", text, locale, said, err, want[n])
			}
		}
	}
}

// oneCall is a store of which one call is asked.
type oneCall struct {
	bots.Calls
	call store.Call
}

func (o oneCall) GetCall(context.Context, string) (store.Call, error) { return o.call, nil }

// TestMisfit: what the tool does not take is said below the field that it is
// about, in the reader's language.
func TestMisfit(t *testing.T) {
	var asked string
	l := &live{b: &Bot{o: Options{Calls: oneCall{call: store.Call{Server: "box", Tool: "run"}}, Fits: func(tool string, args json.RawMessage) error {
		asked = tool
		switch string(args) {
		case `{"n":1}`:
			return nil
		case `{"n":2}`:
			return &store.CallError{Code: store.CodeInvalid, Message: "arguments don't fit box:run: /n must be at least 3, received 2; /m must be at least 3, received 2"}
		}
		return &store.CallError{Code: store.CodeInvalid, Message: "arguments don't fit box:run: " + strings.Repeat("/deep/n must be at least 3, received 2; ", 50)}
	}}}}
	for _, row := range []struct {
		fields             []string
		args, locale, want string
		at                 string
	}{
		{[]string{"json"}, `{"n":1}`, "en", "", ""},
		{[]string{"json"}, `{"n":2}`, "en", "/n must be at least 3", "json"},
		{[]string{"field-k", "field-m", "field-n"}, `{"n":2}`, "zh-Hans", "不得小于 3", "field-n"},
		{[]string{"field-k", "field-z"}, `{}`, "en", "/deep/n must be", "field-k"},
	} {
		var i interaction
		i.View.State.Values = inputs{}
		for _, f := range row.fields {
			i.View.State.Values[f] = nil
		}
		wrong := l.misfit(t.Context(), editing{}, i, json.RawMessage(row.args), phrases.For(row.locale))
		if said := wrong[row.at]; asked != "box:run" || !strings.Contains(said, row.want) || utf8.RuneCountInString(said) > maxWrong || (len(wrong) > 0) != (row.at != "") {
			t.Errorf("%s of %v: %v", row.args, row.fields, wrong)
		}
	}
}
