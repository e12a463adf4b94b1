package openapitest

import (
	"encoding/json"
	"maps"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// schema holds the keywords that Sample reads.
type schema struct {
	Ref        string                     `json:"$ref"`
	Type       json.RawMessage            `json:"type"`
	Format     string                     `json:"format"`
	Encoding   string                     `json:"contentEncoding"`
	Enum       []json.RawMessage          `json:"enum"`
	Const      json.RawMessage            `json:"const"`
	Default    json.RawMessage            `json:"default"`
	Pattern    string                     `json:"pattern"`
	MinLength  int                        `json:"minLength"`
	MaxLength  *int                       `json:"maxLength"`
	Minimum    json.Number                `json:"minimum"`
	MinItems   int                        `json:"minItems"`
	Items      json.RawMessage            `json:"items"`
	Properties map[string]json.RawMessage `json:"properties"`
	Required   []string                   `json:"required"`
	AllOf      []json.RawMessage          `json:"allOf"`
	AnyOf      []json.RawMessage          `json:"anyOf"`
	OneOf      []json.RawMessage          `json:"oneOf"`
	Defs       map[string]json.RawMessage `json:"$defs"`
}

// Sample returns a value that is valid under a tool's input schema: the required properties
// and up to some simple optional ones. It returns ok false if a required value can't be
// generated, such as one for a pattern.
func Sample(raw json.RawMessage, some int) (value json.RawMessage, ok bool) {
	var root schema
	if json.Unmarshal(raw, &root) != nil {
		return nil, false
	}
	m := maker{defs: root.Defs, some: some}
	v, ok := m.make(raw, 0)
	return v, ok
}

type maker struct {
	defs map[string]json.RawMessage
	some int
}

func (m *maker) make(raw json.RawMessage, depth int) (json.RawMessage, bool) {
	var s schema
	if depth > 8 || string(raw) == "false" || json.Unmarshal(raw, &s) != nil {
		return nil, false
	}
	switch {
	case s.Ref != "":
		return m.make(m.defs[strings.TrimPrefix(s.Ref, "#/$defs/")], depth+1)
	case len(s.Const) > 0:
		return s.Const, true
	case len(s.Enum) > 0:
		return s.Enum[0], true
	case len(s.AllOf) > 0:
		all := map[string]json.RawMessage{}
		for _, one := range append(s.AllOf, m.without(raw, "allOf")) {
			v, ok := m.make(one, depth+1)
			var o map[string]json.RawMessage
			if !ok || json.Unmarshal(v, &o) != nil {
				return v, ok && len(s.AllOf) == 1
			}
			maps.Copy(all, o)
		}
		b, err := json.Marshal(all)
		return b, err == nil
	case len(s.AnyOf) > 0:
		return m.make(s.AnyOf[0], depth+1)
	case len(s.OneOf) > 0:
		return m.make(s.OneOf[0], depth+1)
	case s.Pattern != "":
		return matching(s.Pattern)
	}
	switch m.kind(s) {
	case "boolean":
		return json.RawMessage("true"), true
	case "integer", "number":
		if s.Minimum != "" {
			return json.RawMessage(s.Minimum), true
		}
		return json.RawMessage("1"), true
	case "array":
		if len(s.Items) == 0 {
			return json.RawMessage("[]"), s.MinItems == 0
		}
		v, ok := m.make(s.Items, depth+1)
		if !ok || s.MinItems > 1 {
			return json.RawMessage("[]"), s.MinItems == 0
		}
		return slices.Concat(json.RawMessage("["), v, json.RawMessage("]")), true
	case "object":
		return m.object(s, depth)
	case "null":
		return json.RawMessage("null"), true
	}
	return m.text(s)
}

func (m *maker) without(raw json.RawMessage, key string) json.RawMessage {
	var o map[string]json.RawMessage
	_ = json.Unmarshal(raw, &o) // it was decoded before
	delete(o, key)
	if len(o) == 0 || o["properties"] == nil && o["type"] == nil {
		return json.RawMessage(`{"type":"object"}`)
	}
	b, _ := json.Marshal(o) // it was decoded, so it can be encoded
	return b
}

func (m *maker) kind(s schema) string {
	var one string
	var list []string
	if json.Unmarshal(s.Type, &one) == nil && one != "" {
		return one
	}
	if json.Unmarshal(s.Type, &list) == nil && len(list) > 0 {
		return list[0]
	}
	if s.Properties != nil {
		return "object"
	}
	return "string"
}

func (m *maker) object(s schema, depth int) (json.RawMessage, bool) {
	out := map[string]json.RawMessage{}
	for _, name := range s.Required {
		p, there := s.Properties[name]
		if !there {
			p = json.RawMessage(`{}`)
		}
		v, ok := m.make(p, depth+1)
		if !ok {
			return nil, false
		}
		out[name] = v
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if _, there := out[name]; there || m.some <= 0 {
			continue
		}
		if v, ok := m.make(s.Properties[name], depth+4); ok && string(v) != "null" {
			out[name] = v
			m.some--
		}
	}
	b, err := json.Marshal(out)
	return b, err == nil
}

func (m *maker) text(s schema) (json.RawMessage, bool) {
	v := "a b/c&d" // contains characters that must be escaped
	switch s.Format {
	case "date":
		v = "2026-01-02"
	case "date-time":
		v = "2026-01-02T03:04:05Z"
	case "uuid":
		v = "123e4567-e89b-12d3-a456-426614174000"
	case "uri", "url":
		v = "https://a.example/b"
	case "email":
		v = "a@b.example"
	case "byte", "binary":
		v = "aGVsbG8="
	}
	if s.Encoding == "base64" {
		v = "aGVsbG8="
	}
	if len(v) < s.MinLength {
		v = strings.Repeat("x", s.MinLength)
	}
	if s.MaxLength != nil && len(v) > *s.MaxLength {
		v = v[:*s.MaxLength]
	}
	b, err := json.Marshal(v)
	return b, err == nil
}

// matching returns a string that matches a pattern, if one is easily found.
func matching(pattern string) (json.RawMessage, bool) {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, false
	}
	var b strings.Builder
	write(&b, re)
	if ok, err := regexp.MatchString(pattern, b.String()); err != nil || !ok {
		return nil, false
	}
	out, err := json.Marshal(b.String())
	return out, err == nil
}

func write(b *strings.Builder, re *syntax.Regexp) {
	switch re.Op {
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		b.WriteRune(re.Rune[0])
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte('x')
	case syntax.OpPlus:
		write(b, re.Sub[0])
	case syntax.OpRepeat:
		for range re.Min {
			write(b, re.Sub[0])
		}
	case syntax.OpAlternate:
		write(b, re.Sub[0])
	case syntax.OpCapture, syntax.OpConcat:
		for _, sub := range re.Sub {
			write(b, sub)
		}
	}
}
