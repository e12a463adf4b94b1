package offline

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"
)

// param is one property of a tool's input schema, as far as words can fill it.
type param struct {
	name     string
	required bool
	kind     string // string, number, integer, boolean, array, object
	enum     []string
	format   string
	about    string // description, lower case
	fallback json.RawMessage
	words    []string // of the name: from_unit → from, unit
}

// schemaDoc is the part of a JSON schema that is read.
type schemaDoc struct {
	Type        json.RawMessage            `json:"type"`
	Properties  map[string]json.RawMessage `json:"properties"`
	Required    []string                   `json:"required"`
	Enum        []any                      `json:"enum"`
	Format      string                     `json:"format"`
	Description string                     `json:"description"`
	Default     json.RawMessage            `json:"default"`
	Ref         string                     `json:"$ref"`
	AnyOf       []json.RawMessage          `json:"anyOf"`
	Defs        map[string]json.RawMessage `json:"$defs"`
}

// readParams decodes an input schema, the required properties first. An invalid schema has
// no parameters.
func readParams(raw json.RawMessage) (params []param) {
	var doc schemaDoc
	if json.Unmarshal(raw, &doc) != nil {
		return nil
	}
	var optional []string
	for name := range doc.Properties {
		if !slices.Contains(doc.Required, name) {
			optional = append(optional, name)
		}
	}
	slices.Sort(optional)
	for i, name := range append(slices.Clone(doc.Required), optional...) {
		if slices.ContainsFunc(params, func(p param) bool { return p.name == name }) {
			continue
		}
		p := param{name: name, required: i < len(doc.Required), words: nameWords(name)}
		prop := doc.resolve(doc.Properties[name])
		p.kind, p.format, p.about, p.fallback = "string", prop.Format, strings.ToLower(prop.Description), prop.Default
		for _, kind := range []string{"number", "integer", "boolean", "array", "object"} {
			if strings.Contains(string(prop.Type), `"`+kind+`"`) { // also in a list of types
				p.kind = kind
			}
		}
		for _, e := range prop.Enum {
			if s, ok := e.(string); ok {
				p.enum = append(p.enum, s)
			}
		}
		params = append(params, p)
	}
	return params
}

// resolve follows references to $defs and takes the first choice that is not null, to a
// small depth, because schemas are not trusted.
func (doc schemaDoc) resolve(raw json.RawMessage) (prop schemaDoc) {
	for range 4 {
		prop = schemaDoc{}
		if json.Unmarshal(raw, &prop) != nil {
			return schemaDoc{} // true or missing: anything is allowed
		}
		if name, ok := strings.CutPrefix(prop.Ref, "#/$defs/"); ok {
			raw = doc.Defs[name]
			continue
		}
		i := slices.IndexFunc(prop.AnyOf, func(c json.RawMessage) bool { return !strings.Contains(string(c), `"null"`) })
		if i < 0 || len(prop.Type) > 0 {
			return prop
		}
		raw = prop.AnyOf[i]
	}
	return prop
}

// nameWords splits from_unit, fromUnit and from-unit into lower-case words.
func nameWords(name string) []string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte(' ')
		}
		b.WriteRune(r)
	}
	return strings.FieldsFunc(strings.ToLower(b.String()), func(r rune) bool { return strings.ContainsRune(" _-.", r) })
}

// named reports whether the name has one of the words.
func (p param) named(words string) bool {
	return slices.ContainsFunc(p.words, func(w string) bool { return slices.Contains(strings.Fields(words), w) })
}

// label returns the name used when asking a person for it.
func (p param) label() string { return strings.Join(p.words, " ") }
