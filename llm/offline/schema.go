package offline

import (
	"encoding/json"
	"slices"
	"strings"
)

// param is one property of a tool's input schema, as far as words can fill it.
type param struct {
	name     string
	required bool
	kind     string // string, number, integer, boolean, array, object
	item     string // kind of the items of an array
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
	Enum        []json.RawMessage          `json:"enum"`
	Const       json.RawMessage            `json:"const"`
	Format      string                     `json:"format"`
	Description string                     `json:"description"`
	Default     json.RawMessage            `json:"default"`
	Items       json.RawMessage            `json:"items"`
	Ref         string                     `json:"$ref"`
	AnyOf       []json.RawMessage          `json:"anyOf"`
	OneOf       []json.RawMessage          `json:"oneOf"`
	AllOf       []json.RawMessage          `json:"allOf"`
}

// maxParams bounds how many properties are looked at, the required ones first.
const maxParams = 64

// readParams reads an input schema. A schema that isn't one has no parameters.
func readParams(raw json.RawMessage) []param {
	var doc schemaDoc
	if json.Unmarshal(raw, &doc) != nil {
		return nil
	}
	doc = resolveRef(doc, raw)
	var names []string
	for name := range doc.Properties {
		if !slices.Contains(doc.Required, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var out []param
	for _, name := range append(slices.Clone(doc.Required), names...) {
		if len(out) == maxParams {
			break
		}
		if slices.ContainsFunc(out, func(p param) bool { return p.name == name }) {
			continue
		}
		out = append(out, readParam(name, slices.Contains(doc.Required, name), doc.Properties[name], raw))
	}
	return out
}

func readParam(name string, required bool, prop, root json.RawMessage) param {
	p := param{name: name, required: required, kind: "string", words: nameWords(name)}
	var doc schemaDoc
	if json.Unmarshal(prop, &doc) != nil {
		return p // true, or not there: anything goes
	}
	doc = resolveRef(doc, root)
	p.kind = firstType(doc.Type, "string")
	p.format, p.about, p.fallback = doc.Format, strings.ToLower(doc.Description), doc.Default
	for _, e := range doc.Enum {
		var s string
		if json.Unmarshal(e, &s) == nil {
			p.enum = append(p.enum, s)
		}
	}
	if len(doc.Const) > 0 {
		p.fallback = doc.Const
	}
	if p.kind == "array" {
		var item schemaDoc
		if json.Unmarshal(doc.Items, &item) == nil {
			p.item = firstType(resolveRef(item, root).Type, "string")
		}
	}
	return p
}

// resolveRef follows references within the document and takes the first choice
// where there are several, to a small depth: schemas are not trusted.
func resolveRef(doc schemaDoc, root json.RawMessage) schemaDoc {
	for range 8 {
		var next json.RawMessage
		switch {
		case strings.HasPrefix(doc.Ref, "#/"):
			next = lookupPath(root, strings.Split(doc.Ref[2:], "/"))
		case len(doc.Type) > 0 || len(doc.Properties) > 0 || len(doc.Enum) > 0:
			return doc
		default:
			next = firstChoice(doc)
		}
		var inner schemaDoc
		if len(next) == 0 || json.Unmarshal(next, &inner) != nil {
			return doc
		}
		if inner.Description == "" {
			inner.Description = doc.Description
		}
		if len(inner.Default) == 0 {
			inner.Default = doc.Default
		}
		doc = inner
	}
	return doc
}

// firstChoice is the first alternative that is not null.
func firstChoice(doc schemaDoc) json.RawMessage {
	for _, list := range [][]json.RawMessage{doc.AnyOf, doc.OneOf, doc.AllOf} {
		for _, c := range list {
			var probe schemaDoc
			if json.Unmarshal(c, &probe) == nil && string(probe.Type) != `"null"` {
				return c
			}
		}
	}
	return nil
}

// lookupPath walks a JSON pointer.
func lookupPath(doc json.RawMessage, path []string) json.RawMessage {
	for _, step := range path {
		var obj map[string]json.RawMessage
		if json.Unmarshal(doc, &obj) != nil {
			return nil
		}
		doc = obj[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]
	}
	return doc
}

// firstType reads a type that is a word or a list of words.
func firstType(raw json.RawMessage, fallback string) string {
	var one string
	if json.Unmarshal(raw, &one) == nil && one != "" {
		return one
	}
	var many []string
	if json.Unmarshal(raw, &many) == nil {
		for _, t := range many {
			if t != "null" {
				return t
			}
		}
	}
	return fallback
}

// nameWords splits from_unit, fromUnit and from-unit into lower-case words.
func nameWords(name string) []string {
	var b strings.Builder
	for i, r := range name {
		if r >= 'A' && r <= 'Z' && i > 0 {
			b.WriteByte(' ')
		}
		if r == '_' || r == '-' || r == '.' {
			r = ' '
		}
		b.WriteRune(r)
	}
	return strings.Fields(strings.ToLower(b.String()))
}

// named says whether the name has one of the words.
func (p param) named(words ...string) bool {
	return slices.ContainsFunc(p.words, func(w string) bool { return slices.Contains(words, w) })
}

// label is how a person is asked for it.
func (p param) label() string { return strings.Join(p.words, " ") }
