package main

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"nize/cmd/nizectl/command"
	"nize/store"
	"nize/store/printable"
)

// Arguments of a tool as words of a command line: key=value, where the tool's schema
// determines the type, and key:=json. A word that can be read in two ways is refused, since
// a call with the wrong one may do harm.

// wordArgs parses the words into the arguments of the tool called id.
func wordArgs(id string, schema json.RawMessage, words []string) (json.RawMessage, error) {
	root := argSchema{raw: schema}
	root.read()
	var order []string
	values := map[string][]string{} // of key=value
	exact := map[string]json.RawMessage{}
	for _, word := range words {
		key, value, ok := strings.Cut(word, "=")
		if !ok || key == "" || key == ":" {
			return nil, command.Usagef("%q is no argument: write KEY=VALUE, such as place=Tokyo, or KEY:=JSON", printable.Escape(word))
		}
		name, isJSON := strings.CutSuffix(key, ":")
		if isJSON && root.has(key) {
			return nil, command.Usagef("%s= may be the parameter %q or JSON for %q: pass the arguments with --args", key, key, name)
		}
		key = name
		if exact[key] != nil || isJSON && values[key] != nil {
			return nil, command.Usagef("%s is given twice", key)
		}
		if isJSON {
			if _, err := store.Canonical([]byte(value)); err != nil {
				return nil, command.Usagef("%s:=%s: %v; a text is %s=…, or in quotes: %s:='\"…\"'", key, command.Clip(value, 40), err, key, key)
			}
			exact[key] = json.RawMessage(value)
			order = append(order, key)
			continue
		}
		if values[key] == nil {
			order = append(order, key)
		}
		values[key] = append(values[key], value)
	}
	var b bytes.Buffer
	b.WriteByte('{')
	for i, key := range order {
		value := exact[key]
		if value == nil {
			var err error
			if value, err = root.argument(id, key, values[key]); err != nil {
				return nil, err
			}
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(jsonText(key))
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// argument returns the value of a parameter that was given with these texts.
func (s *argSchema) argument(id, key string, texts []string) (json.RawMessage, error) {
	if parent, _, nested := strings.Cut(key, "."); nested && !s.has(key) && s.has(parent) {
		return nil, command.Usagef("%s is not a parameter of %s, but %s is: pass it as a whole, such as %s:='{…}'", key, id, parent, parent)
	}
	if !s.has(key) && s.closed {
		near := store.Nearest(key, s.names())
		if near != "" {
			return nil, command.Usagef("%s is not a parameter of %s; did you mean %s?", key, id, near)
		}
		return nil, command.Usagef("%s is not a parameter of %s: it has %s", key, id, strings.Join(s.names(), ", "))
	}
	p := s.parameter(key)
	if slices.Contains(p.types, "array") {
		return p.list(key, texts)
	}
	if len(texts) > 1 {
		return nil, command.Usagef("%s is given twice, but it is not a list", key)
	}
	return p.value(key, texts[0])
}

// list returns the texts as a list. A text with a comma is two numbers, but it may be one
// string.
func (s *argSchema) list(key string, texts []string) (json.RawMessage, error) {
	items := s.items()
	comma := !slices.ContainsFunc(items.types, func(t string) bool { return t != "number" && t != "integer" && t != "boolean" }) && len(items.types) > 0
	var out []json.RawMessage
	for _, text := range texts {
		parts := []string{text}
		switch {
		case strings.HasPrefix(text, "[") || text == "null" && len(texts) == 1:
			return nil, command.Usagef("%s is a list, and %s may be one item of it or the whole: write %s:=%s, or repeat %s=ITEM", key, command.Clip(text, 40), key, printable.ShellWord(command.Clip(text, 40)), key)
		case len(s.types) > 1 && len(texts) == 1:
			return nil, command.Usagef("%s may be a list or not: write %s:=JSON", key, key)
		case comma:
			parts = strings.Split(text, ",")
		case strings.Contains(text, ","):
			one := jsonText(text)
			many, _ := json.Marshal(strings.Split(text, ",")) // strings always encode
			return nil, command.Usagef("%s=%s may be one item or several: write %s:=%s or %s:=%s, or repeat %s=ITEM", key, command.Clip(text, 40), key, printable.ShellWord("["+string(one)+"]"), key, printable.ShellWord(string(many)), key)
		}
		for _, part := range parts {
			value, err := items.value(key, strings.TrimSpace(part))
			if !comma {
				value, err = items.value(key, part)
			}
			if err != nil {
				return nil, err
			}
			out = append(out, value)
		}
	}
	return json.Marshal(out)
}

// value returns the only value that a text can stand for according to the schema.
func (s *argSchema) value(key, text string) (json.RawMessage, error) {
	types := s.types
	if len(types) == 0 {
		types = []string{"string", "number", "boolean", "null", "array", "object"}
	}
	var readings []json.RawMessage
	for _, t := range types {
		if v := reading(t, text); v != nil && !slices.ContainsFunc(readings, func(had json.RawMessage) bool { return bytes.Equal(had, v) }) {
			readings = append(readings, v)
		}
	}
	if len(s.enum) > 0 {
		allowed := slices.DeleteFunc(slices.Clone(readings), func(v json.RawMessage) bool { return !slices.Contains(s.enum, string(v)) })
		if len(allowed) > 0 {
			readings = allowed
		}
	}
	switch {
	case len(readings) == 1 && readings[0][0] != '{' && readings[0][0] != '[':
		return readings[0], nil
	case len(readings) > 1:
		var ways []string
		for _, v := range readings {
			ways = append(ways, key+":="+printable.ShellWord(string(v)))
		}
		return nil, command.Usagef("%s=%s can be read in %d ways: write %s", key, command.Clip(text, 40), len(readings), strings.Join(ways, " or "))
	case slices.Contains(types, "object") || slices.Contains(types, "array"):
		return nil, command.Usagef("%s is %s: write it as JSON, such as %s:='%s'", key, wantedTypes(types), key, example(types))
	}
	return nil, command.Usagef("%s=%s: want %s", key, command.Clip(text, 40), wantedTypes(types))
}

// reading returns the text as a value of that type, nil if it can't be one.
func reading(kind, text string) json.RawMessage {
	raw := json.RawMessage(text)
	first := byte(0)
	if len(text) > 0 && json.Valid(raw) {
		first = text[0]
	}
	switch kind {
	case "string":
		return jsonText(text)
	case "number", "integer":
		if first == '-' || first >= '0' && first <= '9' {
			return raw
		}
	case "boolean":
		if text == "true" || text == "false" {
			return raw
		}
	case "null":
		if text == "null" {
			return raw
		}
	case "array":
		if first == '[' {
			return raw
		}
	case "object":
		if first == '{' {
			return raw
		}
	}
	return nil
}

// wantedTypes returns the names of types for people.
func wantedTypes(types []string) string {
	names := map[string]string{"string": "a text", "number": "a number", "integer": "a whole number", "boolean": "true or false", "null": "null", "array": "a list", "object": "an object"}
	var out []string
	for _, t := range types {
		out = append(out, names[t])
	}
	return strings.Join(out, " or ")
}

func example(types []string) string {
	if slices.Contains(types, "object") {
		return "{…}"
	}
	return "[…]"
}

// jsonText returns a text as JSON with the minimum of escapes.
func jsonText(s string) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always encodes
	return bytes.TrimSpace(b.Bytes())
}

// argSchema is the part of a schema that is needed for parsing words.
type argSchema struct {
	raw    json.RawMessage
	defs   *argSchema // the document that references point into
	fields map[string]json.RawMessage
	types  []string // empty: any
	enum   []string // as JSON
	closed bool     // no other properties are allowed
}

// deepest limits the depth of references and alternatives.
const deepest = 8

func (s *argSchema) read() { s.readTo(deepest) }

// readTo sets the types and the enum.
func (s *argSchema) readTo(depth int) {
	var document struct {
		Ref        string                     `json:"$ref"`
		Type       json.RawMessage            `json:"type"`
		Enum       []json.RawMessage          `json:"enum"`
		Const      json.RawMessage            `json:"const"`
		Any        []json.RawMessage          `json:"anyOf"`
		One        []json.RawMessage          `json:"oneOf"`
		All        []json.RawMessage          `json:"allOf"`
		Properties map[string]json.RawMessage `json:"properties"`
		Additional json.RawMessage            `json:"additionalProperties"`
	}
	if s.defs == nil {
		s.defs = s
	}
	if depth == 0 || json.Unmarshal(s.raw, &document) != nil {
		return // any value is allowed
	}
	s.fields = document.Properties
	s.closed = string(document.Additional) == "false"
	if len(document.Const) > 0 {
		document.Enum = append(document.Enum, document.Const)
	}
	for _, v := range document.Enum {
		var b bytes.Buffer
		if json.Compact(&b, v) == nil {
			s.enum = append(s.enum, b.String())
		}
	}
	var one string
	if json.Unmarshal(document.Type, &one) == nil && one != "" {
		s.types = []string{one}
	} else if json.Unmarshal(document.Type, &s.types) != nil {
		s.types = nil
	}
	sub := func(raw json.RawMessage) argSchema {
		other := argSchema{raw: raw, defs: s.defs}
		other.readTo(depth - 1)
		return other
	}
	take := func(other argSchema) {
		for _, t := range other.types {
			if !slices.Contains(s.types, t) {
				s.types = append(s.types, t)
			}
		}
		s.enum = append(s.enum, other.enum...)
		if s.fields == nil {
			s.fields = other.fields
		}
	}
	if len(s.types) > 0 {
		return
	}
	for _, raw := range slices.Concat(document.Any, document.One) {
		other := sub(raw)
		if len(other.types) == 0 {
			s.types, s.enum = nil, nil // one of them allows any value
			return
		}
		take(other)
	}
	for _, raw := range document.All {
		if other := sub(raw); len(other.types) > 0 {
			take(other)
			break
		}
	}
	if target := s.defs.at(document.Ref); target != nil {
		take(sub(target))
	}
	if len(s.types) == 0 {
		for _, v := range s.enum {
			for _, t := range []string{"boolean", "number", "null", "array", "object"} {
				if reading(t, v) != nil && !slices.Contains(s.types, t) {
					s.types = append(s.types, t)
				}
			}
			if v[0] == '"' && !slices.Contains(s.types, "string") {
				s.types = append(s.types, "string")
			}
		}
	}
}

// at returns the target of a reference within the document, nil if there is none.
func (s *argSchema) at(ref string) json.RawMessage {
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil
	}
	raw := s.raw
	for step := range strings.SplitSeq(path, "/") {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		members := map[string]json.RawMessage{}
		if json.Unmarshal(raw, &members) != nil || members[step] == nil {
			return nil
		}
		raw = members[step]
	}
	return raw
}

func (s *argSchema) has(key string) bool { return s.fields[key] != nil }

// names returns the names of the parameters.
func (s *argSchema) names() []string {
	var out []string
	for name := range s.fields {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// parameter returns the schema of a parameter.
func (s *argSchema) parameter(key string) *argSchema {
	p := &argSchema{raw: s.fields[key], defs: s.defs}
	p.read()
	return p
}

// items returns the schema of the items of a list.
func (s *argSchema) items() *argSchema {
	raw := s.raw
	for range deepest {
		var document struct {
			Ref   string            `json:"$ref"`
			Items json.RawMessage   `json:"items"`
			Any   []json.RawMessage `json:"anyOf"`
			One   []json.RawMessage `json:"oneOf"`
		}
		if json.Unmarshal(raw, &document) != nil {
			break
		}
		if document.Items != nil {
			p := &argSchema{raw: document.Items, defs: s.defs}
			p.read()
			return p
		}
		next := s.defs.at(document.Ref)
		for _, other := range slices.Concat(document.Any, document.One) {
			if strings.Contains(string(other), `"items"`) {
				next = other
			}
		}
		if next == nil {
			break
		}
		raw = next
	}
	return &argSchema{defs: s.defs}
}
