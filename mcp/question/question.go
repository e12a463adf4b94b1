// Package question reads and checks questions that servers ask the person behind a call.
//
// A question is a form, limited as the protocol limits it, or an address to open. Read
// refuses forms that ask for secrets and addresses that a person can't judge; Check
// validates an answer. The gateway decides whom to ask and where.
package question

import (
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"nize/mcp/schema"
	"nize/mcp/taskwire"
	"nize/store"
)

const (
	maxMessage = 2000 // bytes of a message; the rest is cut
	maxURL     = 2000 // bytes of an address, which is shown whole
)

// Read returns the question and the default values of its form. The error is a
// [store.CallError] for the server.
func Read(e taskwire.Elicit) (q store.Question, defaults json.RawMessage, err error) {
	q.Message = store.Clip(e.Message, maxMessage)
	if e.Mode == "url" {
		q.URL = e.URL
		return q, json.RawMessage("{}"), checkURL(e.URL)
	}
	q.Schema = e.Schema
	f, err := readForm(e.Schema)
	if err != nil {
		return q, nil, err
	}
	if name := f.secret(e.Message); name != "" {
		return q, nil, refuse(store.Textf("nize doesn't ask for secrets in a form, and %q looks like one; store it instead, and have the server read it: nizectl credentials set", name))
	}
	return q, f.defaults(), nil
}

func refuse(why store.Text) error {
	return &store.CallError{Code: store.CodeRefused, Message: why}
}

// checkURL refuses an address that a person can't judge, or that opens something other
// than a page.
func checkURL(raw string) error {
	u, err := url.Parse(raw)
	switch {
	case raw == "" || err != nil || u.Host == "" || u.Opaque != "":
		return refuse(store.Textf("the server asks to open an address that is none"))
	case u.Scheme != "https" && !(u.Scheme == "http" && isLoopback(u.Hostname())):
		return refuse(store.Textf("the server asks to open an address that is not https"))
	case u.User != nil:
		return refuse(store.Textf("the server asks to open an address with a user name, which hides its host"))
	case len(raw) > maxURL:
		return refuse(store.Textf("the server asks to open an address of %d bytes, and it may have %d", len(raw), maxURL))
	case strings.ContainsFunc(raw, func(r rune) bool { return r > unicode.MaxASCII || r <= ' ' || r == 0x7f }):
		return refuse(store.Textf("the server asks to open an address with characters that are not in one"))
	}
	return nil
}

func isLoopback(host string) bool {
	return host == "localhost" || host == "127.0.0.1" || host == "::1"
}

// form is a schema of flat values.
type form struct {
	Type       string           `json:"type"`
	Properties map[string]field `json:"properties"`
	Required   []string         `json:"required"`
}

type field struct {
	Type        types             `json:"type"`
	Title       string            `json:"title"`
	Description string            `json:"description"`
	Format      string            `json:"format"`
	WriteOnly   bool              `json:"writeOnly"`
	Default     json.RawMessage   `json:"default"`
	Enum        []json.RawMessage `json:"enum"`
	OneOf       []option          `json:"oneOf"`
	AnyOf       []option          `json:"anyOf"`
	Items       *field            `json:"items"`
}

type option struct {
	Const json.RawMessage `json:"const"`
}

// types is a type; of a list the first that is not null.
type types string

func (t *types) UnmarshalJSON(raw []byte) error {
	var one string
	var list []string
	if json.Unmarshal(raw, &one) == nil {
		*t = types(one)
		return nil
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return err
	}
	for _, one := range list {
		if one != "null" {
			*t = types(one)
			return nil
		}
	}
	return nil
}

var errForm = errors.New("not a form")

// readForm reads a schema as the protocol limits it: an object whose properties are
// texts, numbers, switches and choices.
func readForm(raw json.RawMessage) (f form, err error) {
	none := refuse(store.Textf("the server asks for what no form can be made of: the schema of a question is an object of texts, numbers, booleans and choices"))
	if _, err := schema.Compile(raw); err != nil {
		return f, none
	}
	if json.Unmarshal(raw, &f) != nil || f.Type != "object" && f.Type != "" {
		return f, none
	}
	for name, p := range f.Properties {
		if name == "" || len(name) > 100 || p.check() != nil {
			return f, none
		}
	}
	for _, name := range f.Required {
		if _, ok := f.Properties[name]; !ok {
			return f, none
		}
	}
	return f, nil
}

func (p field) check() error {
	switch p.Type {
	case "string", "number", "integer", "boolean":
		return nil
	case "array":
		if p.Items != nil && p.Items.Type != "array" && (p.Items.Type != "" || p.Items.chooses()) {
			if p.Items.Type == "" {
				return nil
			}
			return p.Items.check()
		}
	case "":
		if p.chooses() {
			return nil
		}
	}
	return errForm
}

// chooses reports whether the values are listed.
func (p field) chooses() bool {
	consts := func(list []option) bool {
		return len(list) > 0 && !slices.ContainsFunc(list, func(o option) bool { return len(o.Const) == 0 })
	}
	return len(p.Enum) > 0 || consts(p.OneOf) || consts(p.AnyOf)
}

// keyName matches the names of secrets that [store.SecretName] doesn't know, since not
// each key in a field of a form is one.
var keyName = regexp.MustCompile(`(?i)(^|_)(pass_?(phrase|code|key)|pin_?(code|number)|otp|one_?time_?(code|password)|cvv|cvc|(access|auth|client|account|master|ssh|signing|encryption|recovery|seed)_?(key|phrase))s?($|_)`)

// secretWords match sentences that ask for one.
var secretWords = regexp.MustCompile(`(?i)\b(password|passphrase|passcode|api[ _-]?key|secret[ _-]?key|private[ _-]?key|access[ _-]?token|auth(entication)?[ _-]?token|bearer[ _-]?token)s?\b`)

var camel = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// secretName reports whether a name, or a title, is one of a secret.
func secretName(name string) bool {
	name = camel.ReplaceAllString(name, "${1}_$2")
	name = strings.Trim(strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return '_'
	}, name), "_")
	return store.SecretName(name) || keyName.MatchString(name)
}

// secret names a field that asks for a secret, "" if none does: by its format, its
// name, or what stands beside it. Where people only choose or count they type none.
func (f form) secret(message string) string {
	var typed []string
	for name, p := range f.Properties {
		of := p
		if p.Type == "array" && p.Items != nil {
			of = *p.Items
			of.Title, of.Description, of.Format, of.WriteOnly = p.Title, p.Description, cmp.Or(of.Format, p.Format), of.WriteOnly || p.WriteOnly
		}
		switch {
		case of.Format == "password" || of.WriteOnly:
			return name
		case of.chooses() || of.Type != "string":
			continue
		case secretName(name), secretName(of.Title), secretWords.MatchString(of.Title), secretWords.MatchString(of.Description):
			return name
		}
		typed = append(typed, name)
	}
	if len(typed) == 1 && secretWords.MatchString(message) {
		return typed[0]
	}
	return ""
}

// defaults returns the values with which the form opens. A default of another type than
// its field has is left out.
func (f form) defaults() json.RawMessage {
	values := map[string]json.RawMessage{}
	for name, p := range f.Properties {
		if p.holds(p.Default) {
			values[name] = p.Default
		}
	}
	b, err := json.Marshal(values)
	if err != nil {
		return json.RawMessage("{}")
	}
	canonical, err := store.Canonical(b)
	if err != nil {
		return json.RawMessage("{}")
	}
	return canonical
}

// holds reports whether a value has the field's type.
func (p field) holds(value json.RawMessage) bool {
	var v any
	if len(value) == 0 || json.Unmarshal(value, &v) != nil || v == nil {
		return false
	}
	switch v := v.(type) {
	case string:
		return p.Type == "string" || p.Type == ""
	case bool:
		return p.Type == "boolean"
	case float64:
		return p.Type == "number" || p.Type == "integer" && v == math.Trunc(v)
	case []any:
		return p.Type == "array"
	}
	return false
}

// Check returns nil if an answer fits the form, or a [store.CallError] with
// [store.CodeInvalid] for the person. The answer to an address is empty.
func Check(q store.Question, answer json.RawMessage) error {
	invalid := func(t store.Text, at ...string) error {
		return &store.CallError{Code: store.CodeInvalid, Message: t, Misfits: []store.Misfit{{At: at, Text: t}}}
	}
	values := map[string]json.RawMessage{}
	if json.Unmarshal(answer, &values) != nil || values == nil {
		return invalid(store.Textf("the answer must be a JSON object"))
	}
	if len(q.Schema) == 0 {
		if len(values) > 0 {
			return invalid(store.Textf("this question has no form: answer it without values"))
		}
		return nil
	}
	f, err := readForm(q.Schema)
	if err != nil {
		return err
	}
	v, err := schema.Compile(q.Schema)
	if err != nil {
		return err
	}
	if err := v.Check(answer); err != nil {
		return err
	}
	for name, value := range values {
		p, ok := f.Properties[name]
		if !ok {
			return invalid(store.Textf("%q is no field of the form", store.Clip(name, 100)), name)
		}
		if why := p.misfit(value); why != (store.Text{}) {
			return invalid(why, name)
		}
	}
	return nil
}

// misfit says why a value has not the format that its field wants, which schemas don't
// assert.
func (p field) misfit(raw json.RawMessage) store.Text {
	var text string
	if p.Type != "string" || json.Unmarshal(raw, &text) != nil {
		return store.Text{}
	}
	switch p.Format {
	case "date":
		if _, err := time.Parse("2006-01-02", text); err != nil {
			return store.Textf("must be a date such as 2026-11-27")
		}
	case "date-time":
		if _, err := time.Parse(time.RFC3339, text); err != nil {
			return store.Textf("must be a date and time such as 2026-11-27T15:04:00Z")
		}
	case "email":
		if at := strings.LastIndexByte(text, '@'); at < 1 || at == len(text)-1 || strings.ContainsFunc(text, unicode.IsSpace) {
			return store.Textf("must be an email address")
		}
	case "uri":
		if u, err := url.Parse(text); err != nil || u.Scheme == "" || strings.ContainsFunc(text, unicode.IsSpace) {
			return store.Textf("must be an address such as https://example.com/")
		}
	}
	return store.Text{}
}
