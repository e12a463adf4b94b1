package view

import (
	"slices"
	"strings"
	"testing"

	slackgo "github.com/slack-go/slack"

	"nize/bots"
	"nize/bots/phrases"
	"nize/bots/slack/incoming"
	"nize/bots/slack/slacktest"
)

// sampleForm is a form whose lists fit into Slack's and don't.
func sampleForm() bots.Form {
	var many []bots.Option
	for range MaxOptions + 1 {
		many = append(many, bots.Option{Value: "x", Label: "x"})
	}
	two := []bots.Option{{Value: "a", Label: strings.Repeat("a", 200)}, {Value: "b", Label: "b\u202e"}}
	return bots.Form{Title: strings.Repeat("t", 40), About: "about", Fields: []bots.Field{
		{Name: "one", Label: "one", Value: []string{"b"}, Options: two},
		{Name: "gone", Label: "gone", Value: []string{"z"}, Options: two, Hint: strings.Repeat("h", 3000)},
		{Name: "some", Label: "some", Value: []string{"b", "a", "z"}, Options: two, Many: true},
		{Name: "many", Label: "many", Value: []string{"p", "q"}, Options: many, Many: true},
		{Name: "text", Label: "text", Value: []string{strings.Repeat("v", 4000)}},
	}}
}

// filledIn is what Slack sends in for a dialog that nobody touched.
func filledIn(f bots.Form, metadata, callback string) incoming.Interaction {
	var i incoming.Interaction
	i.View.PrivateMetadata, i.View.CallbackID = metadata, callback
	i.View.State.Values = map[string]map[string]incoming.Action{}
	for _, one := range f.Fields {
		var got incoming.Action
		switch shown := one.Shown(fieldLimits); {
		case len(shown) == 0:
		case one.Chooses(fieldLimits) && one.Many:
			slices.Reverse(shown) // in whatever order
			for _, v := range shown {
				got.SelectedOptions = append(got.SelectedOptions, slackgo.OptionBlockObject{Value: v})
			}
		case one.Chooses(fieldLimits):
			got.SelectedOption.Value = shown[0]
		default:
			got.Value = shown[0]
		}
		i.View.State.Values["field-"+one.Name] = map[string]incoming.Action{"value": got}
	}
	return i
}

// What nobody touched is no change, also where the list was too long for
// Slack's, a value is none of its options, or a text was cut.
func TestFormUntouched(t *testing.T) {
	view, err := FormModal(sampleForm(), Filling{Command: "set", Channel: slacktest.General}, phrases.For(""))
	if err != nil {
		t.Fatal(err)
	}
	i := filledIn(sampleForm(), view.PrivateMetadata, view.CallbackID)
	f, ok := ReadFilling(i)
	if values := f.Changed(i); !ok || len(values) != 0 {
		t.Errorf("%v, %v", values, ok)
	}
	text := "other"
	i.View.State.Values["field-text"]["value"] = incoming.Action{Value: text}
	i.View.State.Values["field-some"]["value"] = incoming.Action{}
	i.View.State.Values["field-hidden"] = map[string]incoming.Action{"value": {Value: text}} // was not asked
	values := f.Changed(i)
	if len(values) != 2 || values["text"][0] != text || len(values["some"]) != 0 || f.Channel != slacktest.General {
		t.Errorf("%v at %s", values, f.Channel)
	}
}
