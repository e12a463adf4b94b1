package openapi

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"nize/store"
)

// Limits of the schema of one tool. They are below those of the schema gate, so that parts
// which are too large become open objects here instead of being refused there.
const (
	maxInline      = 14   // nested schemas
	maxNodes       = 1400 // objects and arrays
	maxProse       = 500  // bytes of one description
	maxValue       = 4 << 10
	maxEnum        = 8 << 10
	maxProperties  = 400
	maxAlternative = 100
)

// definition is a rebuilt schema that is the target of references.
type definition struct {
	json json.RawMessage
	stub json.RawMessage // replaces it if it doesn't fit
	refs []string        // targets of its references: pointers, in order
}

// part is a schema being rebuilt, with the targets of its references.
type part struct {
	r     *reader
	depth int // remaining nesting
	refs  []string
	err   error // the first reference that can't be resolved
}

// keywords maps each supported keyword to the kind of its value.
var keywords = map[string]byte{
	"not": 's', "if": 's', "then": 's', "else": 's', "additionalProperties": 's', "propertyNames": 's', "contains": 's', "items": 's',
	"allOf": 'l', "anyOf": 'l', "oneOf": 'l', "prefixItems": 'l',
	"properties": 'm', "patternProperties": 'm', "dependentSchemas": 'm',
	"minimum": 'n', "maximum": 'n', "multipleOf": 'n', "exclusiveMinimum": 'n', "exclusiveMaximum": 'n',
	"minLength": 'i', "maxLength": 'i', "minItems": 'i', "maxItems": 'i', "minProperties": 'i', "maxProperties": 'i', "minContains": 'i', "maxContains": 'i',
	"pattern": 't', "format": 't', "contentEncoding": 't', "contentMediaType": 't',
	"title": 'p', "description": 'p',
	"uniqueItems": 'b', "const": 'v', "default": 'v', "enum": 'e', "required": 'r', "type": 'y',
}

// types lists the valid values of "type".
var types = map[string]bool{"null": true, "boolean": true, "object": true, "array": true, "number": true, "string": true, "integer": true}

// rebuild builds a new schema from the known parts of a schema. References are changed to
// "$defs" and recorded.
func (p *part) rebuild(raw json.RawMessage) json.RawMessage {
	switch string(bytes.TrimSpace(raw)) {
	case "true", "null", "":
		return json.RawMessage("{}")
	case "false":
		return json.RawMessage("false")
	}
	o := asObject(raw)
	if o == nil {
		return json.RawMessage("{}")
	}
	if p.depth <= 0 {
		return stubOf(o)
	}
	p.depth--
	defer func() { p.depth++ }()
	out := map[string]json.RawMessage{}
	if ref := o.text("$ref"); ref != "" {
		if _, err := p.r.find(ref); err != nil {
			if p.err == nil {
				p.err = err
			}
			return json.RawMessage("{}")
		}
		p.refs = append(p.refs, ref)
		out["$ref"] = quote("#/$defs/" + p.r.nameOf(ref))
		if p.r.old { // keywords beside a reference count since 3.1
			if d := o.text("description"); d != "" {
				out["description"] = quote(store.Clip(d, maxProse))
			}
			return encode(out)
		}
	}
	hidden := p.properties(o, out)
	for _, key := range slices.Sorted(maps.Keys(o)) { // in a fixed order, so that each reading keeps the same parts
		if kind, ok := keywords[key]; ok && key != "properties" {
			p.keyword(out, key, kind, o[key])
		}
	}
	p.required(o, out, hidden)
	p.bounds(o, out)
	if null, _ := o.flag("nullable"); null && p.r.old {
		return nullable(out)
	}
	return encode(out)
}

// properties rebuilds the properties except the read-only ones, whose names it returns.
func (p *part) properties(o object, out map[string]json.RawMessage) (hidden map[string]bool) {
	all := o.object("properties")
	if all == nil {
		return nil
	}
	hidden = map[string]bool{}
	kept := map[string]json.RawMessage{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if readOnly, _ := asObject(all[name]).flag("readOnly"); readOnly {
			hidden[name] = true
			continue
		}
		if len(kept) == maxProperties {
			break
		}
		kept[name] = p.rebuild(all[name])
	}
	out["properties"] = encode(kept)
	return hidden
}

// required keeps the names of required properties, without the hidden ones.
func (p *part) required(o object, out map[string]json.RawMessage, hidden map[string]bool) {
	delete(out, "required")
	var names []string
	for _, name := range o.texts("required") {
		if !hidden[name] && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		out["required"] = marshal(names)
	}
}

// keyword keeps one keyword if its value has the required type.
func (p *part) keyword(out map[string]json.RawMessage, key string, kind byte, value json.RawMessage) {
	switch kind {
	case 's':
		var list []json.RawMessage
		if key == "items" && json.Unmarshal(value, &list) == nil && len(value) > 0 && value[0] == '[' { // drafts before 2020-12
			p.keyword(out, "prefixItems", 'l', value)
			return
		}
		out[key] = p.rebuild(value)
	case 'l':
		var list []json.RawMessage
		if json.Unmarshal(value, &list) != nil || len(list) == 0 {
			return
		}
		kept := make([]json.RawMessage, 0, min(len(list), maxAlternative))
		for _, e := range list {
			if len(kept) == maxAlternative {
				if key != "allOf" {
					return // a shortened list would reject values that match the rest
				}
				break
			}
			kept = append(kept, p.rebuild(e))
		}
		out[key] = marshal(kept)
	case 'm':
		all, kept := asObject(value), map[string]json.RawMessage{}
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if len(kept) < maxProperties {
				kept[name] = p.rebuild(all[name])
			}
		}
		if all != nil {
			out[key] = encode(kept)
		}
	case 'n':
		var n json.Number
		if json.Unmarshal(value, &n) == nil && len(value) > 0 && value[0] != '"' && value[0] != 'n' && len(value) < 40 {
			out[key] = value
		}
	case 'i':
		if n, err := strconv.ParseFloat(string(value), 64); err == nil && n >= 0 && n == float64(int64(n)) {
			out[key] = strconv.AppendInt(nil, int64(n), 10)
		}
	case 't', 'p':
		var s string
		if json.Unmarshal(value, &s) != nil || s == "" || kind == 't' && len(s) > maxValue {
			return
		}
		if kind == 'p' {
			s = store.Clip(s, maxProse)
		}
		out[key] = quote(s)
	case 'b':
		if s := string(value); s == "true" || s == "false" {
			out[key] = value
		}
	case 'v':
		if len(value) <= maxValue && len(value) > 0 {
			out[key] = compact(value)
		}
	case 'e':
		var list []json.RawMessage
		if len(value) <= maxEnum && json.Unmarshal(value, &list) == nil && len(list) > 0 {
			out[key] = compact(value)
		}
	case 'y':
		p.types(out, value)
	}
}

// types keeps the valid values of "type". A file is represented by its content.
func (p *part) types(out map[string]json.RawMessage, value json.RawMessage) {
	var one string
	var list []string
	if json.Unmarshal(value, &one) == nil {
		list = []string{one}
	} else if json.Unmarshal(value, &list) != nil {
		return
	}
	var kept []string
	for _, t := range list {
		if t == "file" {
			t = "string"
			out["contentEncoding"] = quote("base64")
		}
		if types[t] && !slices.Contains(kept, t) {
			kept = append(kept, t)
		}
	}
	switch len(kept) {
	case 0:
	case 1:
		out["type"] = quote(kept[0])
	default:
		out["type"] = marshal(kept)
	}
}

// bounds converts "exclusiveMinimum: true" to the equivalent number.
func (p *part) bounds(o object, out map[string]json.RawMessage) {
	for exclusive, inclusive := range map[string]string{"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"} {
		if on, said := o.flag(exclusive); said {
			delete(out, exclusive)
			if bound, ok := out[inclusive]; on && ok {
				out[exclusive] = bound
				delete(out, inclusive)
			}
		}
	}
}

// nullable makes a schema of 3.0 also accept null.
func nullable(out map[string]json.RawMessage) json.RawMessage {
	var one string
	if json.Unmarshal(out["type"], &one) != nil || one == "" {
		if len(out) == 0 {
			return json.RawMessage("{}")
		}
		either := map[string]json.RawMessage{}
		for _, key := range []string{"description", "title", "default"} {
			if v, ok := out[key]; ok {
				either[key] = v
				delete(out, key)
			}
		}
		either["anyOf"] = marshal([]json.RawMessage{encode(out), json.RawMessage(`{"type":"null"}`)})
		return encode(either)
	}
	if one != "null" {
		out["type"] = marshal([]string{one, "null"})
	}
	var values []json.RawMessage
	if json.Unmarshal(out["enum"], &values) == nil && len(values) > 0 && !slices.ContainsFunc(values, func(v json.RawMessage) bool { return string(v) == "null" }) {
		out["enum"] = marshal(append(values, json.RawMessage("null")))
	}
	return encode(out)
}

// stubOf returns the replacement of a schema that doesn't fit.
func stubOf(o object) json.RawMessage {
	p := part{}
	out := map[string]json.RawMessage{}
	for _, key := range []string{"type", "format"} {
		if v, ok := o[key]; ok {
			p.keyword(out, key, keywords[key], v)
		}
	}
	if d := o.text("description"); d != "" {
		out["description"] = quote(store.Clip(d, 100))
	}
	if null, _ := o.flag("nullable"); null {
		return nullable(out)
	}
	return encode(out)
}

// nameOf returns the definition name of a reference.
func (r *reader) nameOf(ref string) string {
	if name, ok := r.names[ref]; ok {
		return name
	}
	base := cleanName(ref[strings.LastIndexByte(ref, '/')+1:], 60)
	if base == "" {
		base = "schema"
	}
	name := base
	for n := 2; r.taken[name]; n++ {
		name = base + "_" + strconv.Itoa(n)
	}
	r.names[ref], r.taken[name] = name, true
	return name
}

// define rebuilds the target of a reference, once.
func (r *reader) define(ref string) (*definition, error) {
	if d, ok := r.defs[ref]; ok {
		return d, nil
	}
	raw, err := r.find(ref)
	if err != nil {
		return nil, err
	}
	p := part{r: r, depth: maxInline}
	d := &definition{json: p.rebuild(raw), stub: stubOf(asObject(raw)), refs: p.refs}
	if p.err != nil {
		return nil, p.err
	}
	r.defs[ref] = d
	return d, nil
}

// complete adds the targets of a schema's references while they fit; the others become open
// schemas.
func (r *reader) complete(root map[string]json.RawMessage, refs []string, room int) (json.RawMessage, error) {
	defs := map[string]json.RawMessage{}
	used := encode(root)
	size, nodes := len(used), nodesIn(used)
	seen := map[string]bool{}
	for i := 0; i < len(refs); i++ {
		ref := refs[i]
		if seen[ref] {
			continue
		}
		seen[ref] = true
		d, err := r.define(ref)
		if err != nil {
			return nil, err
		}
		body, more := d.json, d.refs
		// Each reference in it needs at least a stub.
		if size+len(body)+60*len(more) > room || nodes+nodesIn(body)+len(more) > maxNodes {
			body, more = d.stub, nil
		}
		if size+len(body) > room {
			body = json.RawMessage("{}")
		}
		name := r.nameOf(ref)
		defs[name] = body
		size += len(body) + len(name) + 4
		nodes += nodesIn(body)
		refs = append(refs, more...)
	}
	if len(defs) > 0 {
		root["$defs"] = encode(defs)
	}
	return encode(root), nil
}

// nodesIn counts objects and arrays, including brackets in strings.
func nodesIn(raw []byte) int {
	return bytes.Count(raw, []byte("{")) + bytes.Count(raw, []byte("["))
}

func compact(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return json.RawMessage("null")
	}
	return b.Bytes()
}

// encode encodes an object. Its values are JSON and not validated again, because schemas
// are encoded level by level.
func encode(m map[string]json.RawMessage) json.RawMessage {
	size := 2
	for key, value := range m {
		size += len(key) + len(value) + 4
	}
	b := append(make([]byte, 0, size), '{')
	for i, key := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, quote(key)...), ':'), m[key]...)
	}
	return append(b, '}')
}

// marshal encodes a value that can always be encoded, without escaping <, > and &.
func marshal(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("openapi: a value that is not JSON: " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// cleanName keeps the characters that all model providers accept in names.
func cleanName(s string, max int) string {
	var b strings.Builder
	gap := false
	for _, c := range s {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' {
			if gap && b.Len() > 0 {
				b.WriteByte('_')
			}
			gap = false
			b.WriteRune(c)
			continue
		}
		gap = true
	}
	return store.Head(b.String(), max)
}
