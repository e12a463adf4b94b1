package view

import (
	"encoding/json"
	"fmt"
	"slices"

	slackgo "github.com/slack-go/slack"

	"nize/bots"
	"nize/bots/phrases"
	"nize/bots/slack/incoming"
	"nize/store"
)

const FormView = "form"

// Filling is carried by the dialog: its command, the channel ("" is the Home), and the
// initial values of its fields, so that only changes are applied.
type Filling struct {
	Command string            `json:"command"`
	Channel string            `json:"channel"`
	Thread  string            `json:"thread,omitempty"`
	Was     map[string]string `json:"was"`
}

// FormModal returns the dialog.
func FormModal(form bots.Form, f Filling, w phrases.Catalogue) (slackgo.ModalViewRequest, error) {
	var blocks []slackgo.Block
	if form.About != "" {
		blocks = append(blocks, slackgo.NewSectionBlock(PlainText(Clip(form.About, MaxSection)), nil, nil))
	}
	f.Was = map[string]string{}
	for _, field := range form.Fields {
		f.Was[field.Name] = field.Mark(fieldLimits)
		blocks = append(blocks, fieldBlock(field))
	}
	view := Modal(form.Title, w.Say(phrases.ButtonClose), blocks...)
	view.Submit = PlainText(Clip(w.Say(phrases.ButtonSave), MaxTitle))
	view.CallbackID = FormView + ":" + f.Command
	metadata, err := json.Marshal(f)
	if err == nil && len(metadata) > MaxMetadata {
		err = fmt.Errorf("%w form: its metadata is too long", store.ErrInvalid)
	}
	view.PrivateMetadata = string(metadata)
	return view, err
}

// fieldLimits are Slack's limits.
var fieldLimits = bots.FieldLimits{Options: MaxOptions, Option: maxOption, Input: maxInput}

// fieldBlock returns the input for a field.
func fieldBlock(f bots.Field) slackgo.Block {
	var hint *slackgo.TextBlockObject
	if f.Hint != "" {
		hint = PlainText(Clip(f.Hint, maxHint))
	}
	block := slackgo.NewInputBlock("field-"+f.Name, PlainText(Clip(f.Label, maxPlaceholder)), hint, fieldInput(f))
	block.Optional = true
	return block
}

func fieldInput(f bots.Field) slackgo.BlockElement {
	if !f.Chooses(fieldLimits) {
		text := slackgo.NewPlainTextInputBlockElement(nil, "value").WithMaxLength(maxInput)
		text.InitialValue, text.Multiline = f.Written(fieldLimits), f.Long
		return text
	}
	var options, chosen []*slackgo.OptionBlockObject
	for _, o := range f.Options {
		option := slackgo.NewOptionBlockObject(o.Value, PlainText(Clip(bots.Escape(o.Label), maxOption)), nil)
		options = append(options, option)
		if slices.Contains(f.Value, o.Value) {
			chosen = append(chosen, option)
		}
	}
	if f.Many {
		s := slackgo.NewOptionsMultiSelectBlockElement(slackgo.MultiOptTypeStatic, nil, "value", options...)
		s.InitialOptions = chosen
		return s
	}
	s := slackgo.NewOptionsSelectBlockElement(slackgo.OptTypeStatic, nil, "value", options...)
	if len(chosen) > 0 {
		s.InitialOption = chosen[0]
	}
	return s
}

// ReadFilling decodes the state that a command's dialog carries.
func ReadFilling(i incoming.Interaction) (f Filling, ok bool) {
	ok = len(i.View.PrivateMetadata) <= MaxMetadata && json.Unmarshal([]byte(i.View.PrivateMetadata), &f) == nil &&
		(f.Channel == "" || incoming.IDForm.MatchString(f.Channel)) && (f.Thread == "" || incoming.StampForm.MatchString(f.Thread))
	return f, ok
}

// Changed returns the fields whose values differ from the initial ones.
func (f Filling) Changed(i incoming.Interaction) map[string][]string {
	values := map[string][]string{}
	for name, was := range f.Was {
		given, ok := i.View.State.Values["field-"+name]["value"]
		if !ok {
			continue
		}
		if now := incoming.Values(given); bots.MarkOf(now) != was {
			values[name] = now
		}
	}
	return values
}
