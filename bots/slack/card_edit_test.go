package slack

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"nize/bots"
	"nize/bots/phrases"
	"nize/bots/slack/incoming"
	"nize/bots/slack/view"
	"nize/store"
)

// oneCall is a store with one call.
type oneCall struct {
	bots.Calls
	call store.Call
}

func (o oneCall) GetCall(context.Context, string) (store.Call, error) { return o.call, nil }

// TestMisfit: an argument that the tool rejects is reported below its field, in the
// reader's language.
func TestMisfit(t *testing.T) {
	t.Parallel()
	var asked string
	k := &cardPresses{Presses: &bots.Presses{Calls: oneCall{call: store.Call{Server: "box", Tool: "run"}}}, fits: func(c store.Call, args json.RawMessage) error {
		asked = c.ToolID()
		switch string(args) {
		case `{"n":1}`:
			return nil
		case `{"n":2}`:
			low := func(at string) store.Text {
				return store.Textf("%s %v", at, store.Textf("%s, received %s", store.Textf("must be at least %s", "3"), "2"))
			}
			return &store.CallError{Code: store.CodeInvalid, Message: store.Textf("arguments don't fit %s: %s", "box:run", store.Textf("%s; %s", low("/n"), low("/m")))}
		}
		return &store.CallError{Code: store.CodeInvalid, Message: store.Plain("arguments don't fit box:run: " + strings.Repeat("/deep/n must be at least 3, received 2; ", 50))}
	}}
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
		var i incoming.Interaction
		i.View.State.Values = incoming.Inputs{}
		for _, f := range row.fields {
			i.View.State.Values[f] = nil
		}
		wrong := k.misfit(t.Context(), view.Editing{}, i, json.RawMessage(row.args), phrases.For(row.locale))
		if said := wrong[row.at]; asked != "box:run" || !strings.Contains(said, row.want) || utf8.RuneCountInString(said) > 300 || (len(wrong) > 0) != (row.at != "") {
			t.Errorf("%s of %v: %v", row.args, row.fields, wrong)
		}
	}
}
