package bots

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"nize/bots/phrases"
	"nize/store"
)

// Editing a call: a form if the tool's schema is flat, otherwise JSON. Arguments without a
// field in the form keep their bytes.

// EditLimits are the limits of a platform's dialogs.
type EditLimits struct {
	Fields  int // fields per dialog
	Options int // options per choice
	Option  int // characters per option
	Input   int // characters per text
}

// TextLimits are those of a surface that asks for one field after the other.
var TextLimits = EditLimits{Fields: 200, Options: 200, Option: 1000, Input: 20000}

// CallEdit describes the dialog that edits a call.
type CallEdit struct {
	Fields  []EditField
	Form    string // identifies the schema's form; "" is JSON
	JSON    string // the arguments, if there is no form for them
	TooLong bool   // neither form nor JSON fits into a dialog
}

// EditField is one argument.
type EditField struct {
	Name, About string
	Label       string   // of a question: the schema's title, if any; else the name
	Options     []string // to choose from, by place; nil lets people write
	Chosen      int      // of them, -1 for none
	Several     []int    // of them, if Many
	Value       string
	Required    bool
	Long        bool // it may have several lines
	List        bool // of an array: each line is an item
	Toggle      bool // of a boolean: the options are true and false
	Many        bool // of an array: several of the options may be chosen
}

type editSchema struct {
	Properties map[string]editProperty `json:"properties"`
	Required   []string                `json:"required"`
}

type editProperty struct {
	Type        string
	Title       string
	Description string
	Enum        []json.RawMessage
	labels      []string // of Enum; nil: the values are their own labels
	Format      string
	Pattern     string
	MaxLength   *float64
	Items       *editProperty
}

// UnmarshalJSON reads a property. It leaves null out of what the schema allows, and
// reads the titled choices of questions (oneOf and anyOf of constants, enumNames) as an
// enum with labels.
func (p *editProperty) UnmarshalJSON(raw []byte) error {
	var read struct {
		Type        json.RawMessage   `json:"type"`
		Title       string            `json:"title"`
		Description string            `json:"description"`
		Enum        []json.RawMessage `json:"enum"`
		EnumNames   []string          `json:"enumNames"`
		OneOf       []editChoice      `json:"oneOf"`
		AnyOf       []editChoice      `json:"anyOf"`
		Format      string            `json:"format"`
		Pattern     string            `json:"pattern"`
		MaxLength   *float64          `json:"maxLength"`
		Items       *editProperty     `json:"items"`
	}
	if err := json.Unmarshal(raw, &read); err != nil {
		return err
	}
	*p = editProperty{Title: read.Title, Description: read.Description, Enum: read.Enum, Format: read.Format, Pattern: read.Pattern, MaxLength: read.MaxLength, Items: read.Items}
	var types []string
	if json.Unmarshal(read.Type, &p.Type) != nil && json.Unmarshal(read.Type, &types) == nil {
		types = slices.DeleteFunc(types, func(t string) bool { return t == "null" })
		if len(types) == 1 {
			p.Type = types[0]
		}
	}
	switch choices := append(read.OneOf, read.AnyOf...); {
	case len(read.Enum) > 0 && len(read.EnumNames) == len(read.Enum):
		p.labels = read.EnumNames
	case len(read.Enum) == 0 && len(choices) > 0 && !slices.ContainsFunc(choices, func(c editChoice) bool { return !scalar(c.Const) }):
		for _, c := range choices {
			p.Enum, p.labels = append(p.Enum, c.Const), append(p.labels, cmp.Or(c.Title, plainScalar(c.Const)))
		}
	}
	if p.Type == "" && len(p.Enum) > 0 && !slices.ContainsFunc(p.Enum, func(v json.RawMessage) bool { return v[0] != '"' }) {
		p.Type = "string"
	}
	return nil
}

type editChoice struct {
	Const json.RawMessage `json:"const"`
	Title string          `json:"title"`
}

// shortText is the maximum length of a text shown as a single-line field.
const shortText = 80

// proseName matches the names of fields whose texts have several lines.
var proseName = regexp.MustCompile(`(?i)(text|body|content|message|description|comment|note|markdown|html|query|script|code|prompt)s?$`)

// long reports whether a text may have several lines, judging by its current value, then
// the schema, then the field's name.
func (p editProperty) long(name, value string) bool {
	switch {
	case p.Type != "string":
		return p.Type == "array" && !p.many()
	case utf8.RuneCountInString(value) > shortText || strings.Contains(value, "\n"):
		return true
	case p.Format != "" || p.Pattern != "":
		return false
	case p.MaxLength != nil:
		return *p.MaxLength > 2*shortText
	}
	return proseName.MatchString(name)
}

// fits reports whether a form field can represent the property.
func (p editProperty) fits(l EditLimits) bool {
	if p.Type == "array" {
		return p.Items != nil && p.Items.Type != "array" && p.Items.Type != "boolean" && p.Items.fits(l)
	}
	return slices.Contains([]string{"string", "number", "integer", "boolean"}, p.Type)
}

// shows reports whether a field shows a value without changing it.
func (p editProperty) shows(v json.RawMessage, l EditLimits) bool {
	if p.Type != "array" {
		return scalar(v) && l.visible(plainScalar(v))
	}
	items, ok := itemsOf(v)
	if p.many() {
		return ok && !slices.ContainsFunc(items, func(item json.RawMessage) bool { return p.Items.place(item) < 0 })
	}
	return ok && l.visible(listText(items)) && !slices.ContainsFunc(items, func(item json.RawMessage) bool {
		text := plainScalar(item)
		return !scalar(item) || text == "" || strings.ContainsAny(text, "\r\n") || (item[0] == '"') != (p.Items.Type == "string")
	})
}

func itemsOf(v json.RawMessage) (items []json.RawMessage, ok bool) {
	return items, json.Unmarshal(v, &items) == nil && items != nil
}

// listText returns the items of an array, one per line.
func listText(items []json.RawMessage) string {
	lines := make([]string, len(items))
	for i, item := range items {
		lines[i] = plainScalar(item)
	}
	return strings.Join(lines, "\n")
}

// many reports whether the items of an array are chosen from a list.
func (p editProperty) many() bool { return p.Type == "array" && len(p.Items.Enum) > 0 }

// place returns which of the options a value is, or -1.
func (p editProperty) place(value json.RawMessage) int {
	return slices.IndexFunc(p.options(), func(v json.RawMessage) bool {
		return len(value) > 0 && (v[0] == '"') == (value[0] == '"') && plainScalar(v) == plainScalar(value)
	})
}

// choices returns the labels of the options; nil if people write. Those of a tool's
// arguments are the values: its server must not describe them as something else.
func (p editProperty) choices(question bool) []string {
	if labels := p.labels; question && !p.many() && labels != nil {
		return labels
	}
	if question && p.many() && p.Items.labels != nil {
		return p.Items.labels
	}
	var labels []string
	for _, v := range p.options() {
		labels = append(labels, plainScalar(v))
	}
	return labels
}

// options returns the choices of a field, or nil for a text field.
func (p editProperty) options() []json.RawMessage {
	if p.many() {
		return p.Items.Enum
	}
	if p.Type == "boolean" {
		return []json.RawMessage{json.RawMessage("true"), json.RawMessage("false")}
	}
	return p.Enum
}

var editName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,90}$`)

// flat decodes a schema and reports whether a form can represent it.
func (l EditLimits) flat(raw json.RawMessage, args map[string]json.RawMessage) (editSchema, []string, bool) {
	var s editSchema
	if len(raw) == 0 || json.Unmarshal(raw, &s) != nil || len(s.Properties) == 0 || len(s.Properties) > l.Fields {
		return s, nil, false
	}
	var names []string
	for name, p := range s.Properties {
		if !editName.MatchString(name) || !p.fits(l) {
			return s, nil, false
		}
		if len(p.options()) > l.Options {
			return s, nil, false
		}
		for i, v := range p.options() {
			for _, label := range []string{p.choices(false)[i], p.choices(true)[i]} {
				if n := utf8.RuneCountInString(label); n == 0 || n > l.Option || !scalar(v) {
					return s, nil, false
				}
			}
		}
		if v, ok := args[name]; ok && !p.shows(v, l) {
			return s, nil, false
		}
		names = append(names, name)
	}
	slices.Sort(names)
	order := orderOf(raw)
	slices.SortStableFunc(names, func(a, b string) int { return slices.Index(order, a) - slices.Index(order, b) })
	return s, names, true
}

// orderOf returns the names of a schema's properties in the order in which they stand
// there.
func orderOf(schema json.RawMessage) (names []string) {
	var s struct {
		Properties json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(s.Properties))
	if _, err := dec.Token(); err != nil {
		return nil
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return names
		}
		var skipped json.RawMessage
		if err := dec.Decode(&skipped); err != nil {
			return names
		}
		names = append(names, fmt.Sprint(name))
	}
	return names
}

// visible reports whether an input field shows the text unchanged. Longer texts and texts
// with invisible characters, such as bidi and zero-width ones, are edited as JSON, which
// shows those as escapes.
func (l EditLimits) visible(text string) bool {
	for line := range strings.SplitSeq(text, "\n") {
		if Escape(line) != line {
			return false
		}
	}
	return utf8.RuneCountInString(text) <= l.Input
}

func scalar(v json.RawMessage) bool {
	return len(v) > 0 && v[0] != '{' && v[0] != '[' && string(v) != "null"
}

// plainScalar returns a scalar in the form in which a person types it.
func plainScalar(v json.RawMessage) string {
	var text string
	if json.Unmarshal(v, &text) == nil {
		return text
	}
	return string(v)
}

// formOf returns an identifier of a schema's form.
func formOf(schema json.RawMessage) string {
	sum := sha256.Sum256(schema)
	return hex.EncodeToString(sum[:])[:digestChars]
}

// EditCall chooses how a dialog edits a call: by the form of its tool's schema, as JSON, or
// not at all.
func EditCall(card store.Card, schema json.RawMessage, l EditLimits) CallEdit {
	args := map[string]json.RawMessage{}
	if json.Unmarshal(card.Args, &args) != nil {
		args = map[string]json.RawMessage{}
	}
	s, names, ok := l.flat(schema, args)
	if !ok {
		pretty, _ := PrettyJSON(card.Args)
		return CallEdit{JSON: pretty, TooLong: utf8.RuneCountInString(pretty) > l.Input}
	}
	e := CallEdit{Form: formOf(schema)}
	for _, name := range names {
		p, value := s.Properties[name], args[name]
		f := EditField{Name: name, Label: cmp.Or(p.Title, name), About: p.Description, Chosen: -1, Required: slices.Contains(s.Required, name), Toggle: p.Type == "boolean", Many: p.Type == "array" && p.many()}
		f.List = p.Type == "array" && !f.Many
		f.Options = p.choices(card.Question != nil)
		if card.Question == nil {
			f.Label = name
		}
		items, isList := itemsOf(value)
		switch {
		case f.Many:
			for _, item := range items {
				f.Several = append(f.Several, p.place(item))
			}
		case isList && f.List:
			f.Value = listText(items)
		case value != nil:
			f.Chosen, f.Value = p.place(value), plainScalar(value)
		}
		f.Long = p.long(name, f.Value)
		e.Fields = append(e.Fields, f)
	}
	return e
}

// EditedJSON is the field name for arguments edited as JSON.
const EditedJSON = "json"

// ReadEdit reads a dialog that was sent in: the new arguments, or what is wrong
// by the name of a field. given returns what stands in a field; of a choice that is
// its place among the options.
func ReadEdit(card store.Card, schema json.RawMessage, form string, l EditLimits, given func(name string) ([]string, bool), w phrases.Catalogue) (args json.RawMessage, wrong map[string]string, err error) {
	if form == "" {
		values, _ := given(EditedJSON)
		text := strings.Join(values, "")
		object := map[string]json.RawMessage{}
		if err := json.Unmarshal([]byte(text), &object); err != nil || object == nil {
			return nil, map[string]string{EditedJSON: badJSON(text, err, w)}, nil
		}
		return json.RawMessage(text), nil, nil
	}
	old := map[string]json.RawMessage{}
	if err := json.Unmarshal(card.Args, &old); err != nil {
		return nil, nil, fmt.Errorf("%w arguments: %w", store.ErrInvalid, err)
	}
	s, names, ok := l.flat(schema, old)
	if !ok || form != formOf(schema) { // the schema changed, so the indexes chosen there may mean other options now
		return nil, nil, store.Mark(store.Errorf("the tool's form changed meanwhile; open it again"), store.ErrConflict)
	}
	wrong = map[string]string{}
	for _, name := range names {
		values, given := given(name)
		v, problem := s.Properties[name].readAll(values, given, old[name], w)
		switch {
		case problem != "":
			wrong[name] = problem
		case v == nil && slices.Contains(s.Required, name) && s.Properties[name].Type != "string":
			wrong[name] = w.Say(phrases.CardBadField, w.Say(phrases.WantNeeded))
		case v == nil:
			delete(old, name)
		default:
			old[name] = v
		}
	}
	args, err = json.Marshal(old)
	return args, wrong, err
}

// badJSON explains why a text is not a JSON object. It mentions curly quotes, which some
// keyboards produce and which look like those that JSON accepts.
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
	return w.Say(phrases.CardBadJSON, Brief(why, 100))
}

// readAll is read for a field in which several values may be chosen.
func (p editProperty) readAll(values []string, given bool, old json.RawMessage, w phrases.Catalogue) (v json.RawMessage, problem string) {
	if p.Type != "array" || !p.many() {
		return p.read(strings.Join(values, ""), given, old, w)
	}
	items := []json.RawMessage{}
	for _, text := range values {
		if text == "" { // Discord's form of nothing chosen
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n >= len(p.Items.Enum) {
			return nil, w.Say(phrases.CardBadField, w.Say(phrases.WantNeeded))
		}
		items = append(items, p.Items.Enum[n])
	}
	if len(items) == 0 {
		return nil, ""
	}
	raw, err := json.Marshal(items)
	if err != nil {
		return nil, w.Say(phrases.CardBadField, w.Say(phrases.WantText))
	}
	return raw, ""
}

// read returns the value that a person entered for one argument, nil for none. An unchanged
// value keeps its bytes: 1e3 stays 1e3.
func (p editProperty) read(text string, given bool, old json.RawMessage, w phrases.Catalogue) (v json.RawMessage, problem string) {
	if p.Type == "array" {
		return p.readList(text, old, w)
	}
	if !given || text == "" {
		if old != nil && plainScalar(old) == "" && p.Type == "string" {
			return old, "" // it was the empty string before
		}
		return nil, ""
	}
	if choices := p.options(); len(choices) > 0 {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n >= len(choices) {
			return nil, w.Say(phrases.CardBadField, w.Say(phrases.WantNeeded))
		}
		return choices[n], ""
	}
	if old != nil && plainScalar(old) == text {
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

// readList reads an array, one item per line. Items that existed before keep their bytes.
func (p editProperty) readList(text string, old json.RawMessage, w phrases.Catalogue) (v json.RawMessage, problem string) {
	before, _ := itemsOf(old)
	text = strings.ReplaceAll(text, "\r\n", "\n")
	switch {
	case before != nil && listText(before) == text:
		return old, ""
	case strings.TrimSpace(text) == "":
		return nil, ""
	}
	known := map[string]json.RawMessage{}
	for _, item := range before {
		known[plainScalar(item)] = item
	}
	items := []json.RawMessage{}
	for line := range strings.SplitSeq(text, "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		item, problem := p.Items.read(line, true, known[line], w)
		if problem != "" {
			return nil, problem
		}
		items = append(items, item)
	}
	raw, err := json.Marshal(items)
	if err != nil {
		return nil, w.Say(phrases.CardBadField, w.Say(phrases.WantText))
	}
	return raw, ""
}

// ShownArgs returns the arguments in all forms in which an edit dialog shows them.
func ShownArgs(raw json.RawMessage) string {
	pretty, _ := PrettyJSON(raw)
	known := string(raw) + "\n" + pretty
	var args map[string]json.RawMessage
	if json.Unmarshal(raw, &args) == nil {
		for _, v := range args {
			known += "\n" + plainScalar(v)
		}
	}
	return known
}
