package view

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

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

// schema is what is read of a tool's input schema.
type schema struct {
	Properties map[string]property `json:"properties"`
	Required   []string            `json:"required"`
}

type property struct {
	Type        string            `json:"type"`
	Description string            `json:"description"`
	Enum        []json.RawMessage `json:"enum"`
}

// maxWrong is how much is said of what is wrong with a field: Slack names no
// limit, and more than some lines below it is not read.
const maxWrong = 300 // characters

// maxFields is how many inputs a form has; above it JSON is edited.
const maxFields = 20

var fieldName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,100}$`)

// flat reads a schema, and says whether a form can stand for it.
func flat(raw json.RawMessage, args map[string]json.RawMessage) (schema, []string, bool) {
	var s schema
	if len(raw) == 0 || json.Unmarshal(raw, &s) != nil || len(s.Properties) == 0 || len(s.Properties) > maxFields {
		return s, nil, false
	}
	var names []string
	for name, p := range s.Properties {
		if !fieldName.MatchString(name) || !slices.Contains([]string{"string", "number", "integer", "boolean"}, p.Type) || len(p.Enum) > MaxOptions {
			return s, nil, false
		}
		for _, v := range p.Enum {
			if n := utf8.RuneCountInString(plainValue(v)); n == 0 || n > maxOption {
				return s, nil, false
			}
		}
		if v, ok := args[name]; ok && (!scalar(v) || !visible(plainValue(v))) {
			return s, nil, false
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return s, names, true
}

// visible says whether an input shows the text as it is. What it does not fit,
// or what can't be seen in it, such as bidi and zero-width characters, is edited
// as JSON, where it stands as escapes.
func visible(text string) bool {
	for line := range strings.SplitSeq(text, "\n") {
		if bots.Escape(line) != line {
			return false
		}
	}
	return utf8.RuneCountInString(text) <= maxInput
}

func scalar(v json.RawMessage) bool {
	return len(v) > 0 && v[0] != '{' && v[0] != '[' && string(v) != "null"
}

// plainValue is a scalar as a person types it.
func plainValue(v json.RawMessage) string {
	var text string
	if json.Unmarshal(v, &text) == nil {
		return text
	}
	return string(v)
}

// Editing travels in the dialog.
type Editing struct {
	Call    string `json:"call"`
	Head    string `json:"head"`           // of the digest of the call that is edited
	Form    string `json:"form,omitempty"` // head of the digest of the schema whose form it is; "" is JSON
	Channel string `json:"channel,omitempty"`
	Thread  string `json:"thread,omitempty"`
}

// formOf tells the form of one schema from that of another.
func formOf(schema json.RawMessage) string { return Digest(schema)[:DigestChars] }

// EditModal is the dialog for a call: its form, its JSON, or why neither fits.
func EditModal(card store.Card, raw json.RawMessage, e Editing, w phrases.Catalogue) slackgo.ModalViewRequest {
	args := map[string]json.RawMessage{}
	if json.Unmarshal(card.Args, &args) != nil {
		args = map[string]json.RawMessage{}
	}
	pretty, _ := bots.PrettyJSON(card.Args)
	hint := slackgo.NewSectionBlock(PlainText(w.Say(phrases.CardEditHint, bots.Escape(Clip(card.Tool, 200)))), nil, nil)
	s, names, ok := flat(raw, args)
	blocks := []slackgo.Block{hint}
	switch {
	case ok:
		e.Form = formOf(raw)
		for _, name := range names {
			blocks = append(blocks, formField(name, s.Properties[name], args[name], slices.Contains(s.Required, name)))
		}
	case utf8.RuneCountInString(pretty) <= maxInput:
		input := slackgo.NewPlainTextInputBlockElement(nil, "value").WithMultiline(true).WithInitialValue(pretty).WithMaxLength(maxInput)
		blocks = append(blocks, slackgo.NewInputBlock("json", PlainText(w.Say(phrases.CardArgumentsJSON)), nil, input))
	default:
		text := w.Say(phrases.CardTooLong, strconv.Itoa(len(card.Args)))
		return Modal(w.Say(phrases.CardEditTitle), w.Say(phrases.ButtonClose), slackgo.NewSectionBlock(PlainText(text), nil, nil))
	}
	view := Modal(w.Say(phrases.CardEditTitle), w.Say(phrases.ButtonClose), blocks...)
	view.Submit = PlainText(Clip(w.Say(phrases.CardEditRun), MaxTitle))
	view.CallbackID = EditView
	metadata, _ := json.Marshal(e) // strings always encode
	view.PrivateMetadata = string(metadata)
	return view
}

// formField is the input for one argument.
func formField(name string, p property, value json.RawMessage, required bool) slackgo.Block {
	label := PlainText(Clip(bots.Escape(name), maxPlaceholder))
	var hint *slackgo.TextBlockObject
	if p.Description != "" {
		hint = PlainText(Clip(bots.Escape(p.Description), maxPlaceholder))
	}
	choices := p.Enum
	if p.Type == "boolean" {
		choices = []json.RawMessage{json.RawMessage("true"), json.RawMessage("false")}
	}
	var element slackgo.BlockElement
	if len(choices) > 0 {
		var options []*slackgo.OptionBlockObject
		var chosen *slackgo.OptionBlockObject
		for n, v := range choices {
			o := slackgo.NewOptionBlockObject(strconv.Itoa(n), PlainText(Clip(bots.Escape(plainValue(v)), maxOption)), nil)
			options = append(options, o)
			if len(value) > 0 && (v[0] == '"') == (value[0] == '"') && plainValue(v) == plainValue(value) {
				chosen = o
			}
		}
		s := slackgo.NewOptionsSelectBlockElement(slackgo.OptTypeStatic, nil, "value", options...)
		s.InitialOption = chosen
		element = s
	} else {
		text := slackgo.NewPlainTextInputBlockElement(nil, "value").WithMaxLength(maxInput)
		text.Multiline = p.Type == "string"
		if value != nil {
			text.InitialValue = plainValue(value)
		}
		element = text
	}
	block := slackgo.NewInputBlock("field-"+name, label, hint, element)
	block.Optional = !required
	return block
}

// ReadEditing reads what a dialog that edits a call carries.
func ReadEditing(i incoming.Interaction) (e Editing, ok bool) {
	ok = len(i.View.Metadata) <= MaxMetadata && json.Unmarshal([]byte(i.View.Metadata), &e) == nil && store.ValidID(e.Call)
	return e, ok
}

// EditedJSON reads a dialog in which JSON was edited.
func EditedJSON(i incoming.Interaction, w phrases.Catalogue) (args json.RawMessage, wrong map[string]string) {
	text := i.View.State.Values["json"]["value"].Text()
	object := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(text), &object); err != nil || object == nil {
		return nil, map[string]string{"json": badJSON(text, err, w)}
	}
	return json.RawMessage(text), nil
}

// EditedForm reads a dialog in which a form of that schema was filled in.
func (e Editing) EditedForm(i incoming.Interaction, card store.Card, raw json.RawMessage, w phrases.Catalogue) (args json.RawMessage, wrong map[string]string, err error) {
	old := map[string]json.RawMessage{}
	if err := json.Unmarshal(card.Args, &old); err != nil {
		return nil, nil, fmt.Errorf("%w arguments: %w", store.ErrInvalid, err)
	}
	s, names, ok := flat(raw, old)
	if !ok || e.Form != formOf(raw) { // what was chosen there may mean something else now
		return nil, nil, store.Errorf("the tool's form changed: %w", store.ErrConflict)
	}
	wrong = map[string]string{}
	for _, name := range names {
		f, given := i.View.State.Values["field-"+name]["value"]
		v, problem := readField(s.Properties[name], f, given, old[name], w)
		switch {
		case problem != "":
			wrong["field-"+name] = problem
		case v == nil && slices.Contains(s.Required, name) && s.Properties[name].Type != "string":
			wrong["field-"+name] = w.Say(phrases.CardBadField, w.Say(phrases.WantNeeded))
		case v == nil:
			delete(old, name)
		default:
			old[name] = v
		}
	}
	args, err = json.Marshal(old)
	return args, wrong, err
}

// badJSON says what is wrong with a text that is no JSON object. Quotes that a
// keyboard made curly are named: they look like those that JSON takes.
func badJSON(text string, err error, w phrases.Catalogue) string {
	var wrong *json.SyntaxError
	if !errors.As(err, &wrong) {
		return w.Problem(store.Errorf("%w arguments: want a JSON object, {…}", store.ErrInvalid))
	}
	why := w.Problem(err)
	var said interface{ Text() store.Text }
	if _, err := store.Canonical([]byte(text)); errors.As(err, &said) {
		why = w.Text(said.Text())
	}
	if at := int(wrong.Offset) - 1; at >= 0 && at < len(text) {
		if r, _ := utf8.DecodeRuneInString(text[at:]); strings.ContainsRune("“”„‟‘’", r) {
			why = w.Say(phrases.CardCurlyQuotes)
		}
	}
	return w.Say(phrases.CardBadJSON, bots.Escape(Clip(why, 100)))
}

// readField is what a person gave for one argument; nil for nothing. A value
// that was left as it is keeps its bytes: 1e3 stays 1e3.
func readField(p property, f incoming.Field, given bool, old json.RawMessage, w phrases.Catalogue) (v json.RawMessage, problem string) {
	text := f.Text()
	if !given || text == "" {
		if old != nil && plainValue(old) == "" && p.Type == "string" {
			return old, "" // it was the empty text before
		}
		return nil, ""
	}
	choices := p.Enum
	if p.Type == "boolean" {
		choices = []json.RawMessage{json.RawMessage("true"), json.RawMessage("false")}
	}
	if len(choices) > 0 {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n >= len(choices) {
			return nil, w.Say(phrases.CardBadField, w.Say(phrases.WantNeeded))
		}
		return choices[n], ""
	}
	if old != nil && plainValue(old) == text {
		return old, ""
	}
	switch p.Type {
	case "number", "integer":
		var n json.Number
		text = strings.TrimSpace(text)
		if err := json.Unmarshal([]byte(text), &n); err != nil || text[0] == '"' {
			return nil, w.Say(phrases.CardBadField, w.Say(phrases.WantNumber))
		}
		if p.Type == "integer" && strings.ContainsAny(text, ".eE") {
			return nil, w.Say(phrases.CardBadField, w.Say(phrases.WantWhole))
		}
		return json.RawMessage(text), ""
	}
	quoted, err := json.Marshal(text)
	if err != nil {
		return nil, w.Say(phrases.CardBadField, w.Say(phrases.WantText))
	}
	return quoted, ""
}

// MisfitBeside puts what is wrong with arguments beside the first field that it
// is about.
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

// ShownArgs are arguments in every form in which a dialog that edits them shows
// them.
func ShownArgs(raw json.RawMessage) string {
	pretty, _ := bots.PrettyJSON(raw)
	known := string(raw) + "\n" + pretty
	var args map[string]json.RawMessage
	if json.Unmarshal(raw, &args) == nil {
		for _, v := range args {
			known += "\n" + plainValue(v)
		}
	}
	return known
}
