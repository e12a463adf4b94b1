package view

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	slackgo "github.com/slack-go/slack"

	"nize/bots"
	"nize/bots/phrases"
	"nize/bots/slack/incoming"
	"nize/store"
)

const (
	EditView   = "edit"
	PageAction = "page"
)

// maxWrong is the maximum length of a message about a field: Slack documents no limit, and
// nobody reads more than a few lines below a field.
const maxWrong = 300 // in characters

// editLimits are the limits of an edit dialog; with more than 20 inputs, JSON is edited.
var editLimits = bots.EditLimits{Fields: 20, Options: MaxOptions, Option: maxOption, Input: maxInput}

// Editing is carried by the dialog.
type Editing struct {
	Call    string `json:"call"`
	Head    string `json:"head"`           // beginning of the digest of the edited call
	Form    string `json:"form,omitempty"` // beginning of the digest of the form's schema; "" is JSON
	Channel string `json:"channel,omitempty"`
	Thread  string `json:"thread,omitempty"`
}

// EditModal returns the dialog for a call: its form, its JSON, or why neither fits.
func EditModal(card store.Card, raw json.RawMessage, e Editing, w phrases.Catalogue) slackgo.ModalViewRequest {
	edit, words := bots.EditCall(card, raw, editLimits), bots.WordsOfForm(card, w)
	if edit.TooLong {
		text := w.Say(phrases.CardTooLong, strconv.Itoa(len(card.Args)))
		return Modal(words.Title, w.Say(phrases.ButtonClose), slackgo.NewSectionBlock(PlainText(text), nil, nil))
	}
	blocks := []slackgo.Block{slackgo.NewSectionBlock(PlainText(Clip(words.Hint, MaxSection)), nil, nil)}
	for _, f := range edit.Fields {
		blocks = append(blocks, formField(f, w))
	}
	if e.Form = edit.Form; e.Form == "" {
		input := slackgo.NewPlainTextInputBlockElement(nil, "value").WithMultiline(true).WithInitialValue(edit.JSON).WithMaxLength(maxInput)
		blocks = append(blocks, slackgo.NewInputBlock(bots.EditedJSON, PlainText(words.JSON), nil, input))
	}
	view := Modal(words.Title, w.Say(phrases.ButtonClose), blocks...)
	view.Submit = PlainText(Clip(words.Send, MaxTitle))
	view.CallbackID = EditView
	metadata, _ := json.Marshal(e) // encoding strings can't fail
	view.PrivateMetadata = string(metadata)
	return view
}

// formField returns the input for one argument.
func formField(f bots.EditField, w phrases.Catalogue) slackgo.Block {
	label := PlainText(Clip(bots.Escape(f.Label), maxPlaceholder))
	var hint *slackgo.TextBlockObject
	about := bots.Escape(f.About)
	if f.List {
		about = strings.TrimSpace(Clip(about, maxPlaceholder-30) + " " + w.Say(phrases.EditLines))
	}
	if about != "" {
		hint = PlainText(Clip(about, maxPlaceholder))
	}
	var element slackgo.BlockElement
	if f.Options != nil {
		var options []*slackgo.OptionBlockObject
		for n, text := range f.Options {
			options = append(options, slackgo.NewOptionBlockObject(strconv.Itoa(n), PlainText(Clip(bots.Escape(text), maxOption)), nil))
		}
		var chosen *slackgo.OptionBlockObject
		if f.Chosen >= 0 {
			chosen = options[f.Chosen]
		}
		switch {
		case f.Many:
			s := slackgo.NewOptionsMultiSelectBlockElement(slackgo.MultiOptTypeStatic, nil, "value", options...)
			for _, n := range f.Several {
				s.InitialOptions = append(s.InitialOptions, options[n])
			}
			element = s
		case f.Toggle: // a box that is ticked or not could not be left as it is
			s := slackgo.NewRadioButtonsBlockElement("value", options...)
			s.InitialOption = chosen
			element = s
		default:
			s := slackgo.NewOptionsSelectBlockElement(slackgo.OptTypeStatic, nil, "value", options...)
			s.InitialOption = chosen
			element = s
		}
	} else {
		text := slackgo.NewPlainTextInputBlockElement(nil, "value").WithMaxLength(maxInput)
		text.Multiline, text.InitialValue = f.Long, f.Value
		element = text
	}
	block := slackgo.NewInputBlock("field-"+f.Name, label, hint, element)
	block.Optional = !f.Required
	return block
}

// ReadEditing decodes the state that an edit dialog carries.
func ReadEditing(i incoming.Interaction) (e Editing, ok bool) {
	ok = len(i.View.PrivateMetadata) <= MaxMetadata && json.Unmarshal([]byte(i.View.PrivateMetadata), &e) == nil && store.ValidID(e.Call)
	return e, ok
}

// Edited reads a submitted dialog and returns the new arguments, or the mistakes by block.
func (e Editing) Edited(i incoming.Interaction, card store.Card, raw json.RawMessage, w phrases.Catalogue) (args json.RawMessage, wrong map[string]string, err error) {
	block := func(name string) string {
		if e.Form == "" {
			return name
		}
		return "field-" + name
	}
	args, fields, err := bots.ReadEdit(card, raw, e.Form, editLimits, func(name string) ([]string, bool) {
		f, given := i.View.State.Values[block(name)]["value"]
		if f.Type == "multi_static_select" {
			return incoming.Values(f), given
		}
		return []string{incoming.Typed(f)}, given
	}, w)
	wrong = map[string]string{}
	for name, text := range fields {
		wrong[block(name)] = text
	}
	return args, wrong, err
}

// MisfitBeside returns the error in the arguments beside the first field that it is about.
func MisfitBeside(i incoming.Interaction, err error, w phrases.Catalogue) map[string]string {
	said, first := err.Error(), len(err.Error())
	blocks := slices.Sorted(maps.Keys(i.View.State.Values))
	if len(blocks) == 0 {
		return nil
	}
	block := blocks[0]
	for _, b := range blocks {
		if at := strings.Index(said, "/"+strings.TrimPrefix(b, "field-")+" "); at >= 0 && at < first {
			block, first = b, at
		}
	}
	return map[string]string{block: Clip(bots.Escape(w.Problem(err)), maxWrong)}
}
