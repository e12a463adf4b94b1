// Package toolschema rewrites tool schemas for clients and models that accept less than
// servers send.
//
// Servers list schemas without a type, with null for a keyword, of old drafts, or with
// unresolvable references. Because of one of them, clients drop a whole list, and model
// services refuse a whole request.
//
// Each function returns its argument unchanged if the reader accepts it. A rewritten schema
// allows at least what the original allows: a keyword that can't be understood or expressed
// is removed, because the server still checks the arguments, and nize checks them against
// the original.
//
//   - [Valid] is a schema of draft 2020-12 whose root is an object.
//   - [Listed] is what MCP clients accept: the root has "type": "object".
//   - [Plain] is what model services generally accept: no combinator at the root.
//   - [Narrow] is the subset of OpenAPI that the narrowest of them accept.
//   - [Bare] is an object without any constraints.
package toolschema

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// bareSchema is an object without any constraints.
const bareSchema = `{"type":"object","properties":{}}`

// Bare returns a schema that every service accepts.
func Bare() json.RawMessage { return json.RawMessage(bareSchema) }

// Valid returns the schema as draft 2020-12 with "type": "object" at its root, and without
// anything that is not JSON Schema. References outside of the document are kept, and don't
// resolve.
func Valid(raw json.RawMessage) json.RawMessage {
	root, err := parse(raw)
	if err != nil || root.kind != '{' {
		return json.RawMessage(`{"type":"object"}`)
	}
	was := root.encode()
	if root = valid(root); string(root.encode()) == string(was) {
		return raw
	}
	return root.encode()
}

// valid is Valid for an object.
func valid(root *node) *node {
	d := newDocument(root)
	root = d.repair(root)
	d.root = root
	d.inlineRoot()
	if !admitsObject(root) { // its constraints apply to other values
		only := object()
		if about := root.get("description"); about != nil {
			only.set("description", about)
		}
		root = only
	}
	if root.get("type").str() != "object" {
		root.setFirst("type", text("object"))
	}
	return root
}

// Listed returns the schema unchanged if it is an object whose type is "object", otherwise
// [Valid] of it. MCP clients drop lists in which a root has no such type.
func Listed(raw json.RawMessage) json.RawMessage {
	if IsObject(raw) {
		return raw
	}
	return Valid(raw)
}

// IsObject reports whether the root of a schema has "type": "object".
func IsObject(raw json.RawMessage) bool {
	var root struct {
		Type json.RawMessage `json:"type"`
	}
	return json.Unmarshal(raw, &root) == nil && string(root.Type) == `"object"`
}

// The keywords of JSON Schema, by the kind of their value.
var (
	schemaWords   = words("not if then else additionalProperties unevaluatedProperties unevaluatedItems propertyNames contains contentSchema")
	schemasWords  = words("allOf anyOf oneOf prefixItems")
	namedWords    = words("properties patternProperties $defs definitions dependentSchemas")
	numberWords   = words("minimum maximum exclusiveMinimum exclusiveMaximum")
	countWords    = words("minLength maxLength minItems maxItems minProperties maxProperties minContains maxContains")
	textWords     = words("title description format pattern $comment contentEncoding contentMediaType $ref $id $anchor $dynamicRef $dynamicAnchor $recursiveRef")
	boolWords     = words("uniqueItems deprecated readOnly writeOnly $recursiveAnchor")
	nullRelevant  = words("$ref $dynamicRef allOf anyOf oneOf not if const")
	typeNames     = words("object array string number integer boolean null")
	foreignWords  = words("$schema $vocabulary nullable additionalItems dependencies")
	rootWords     = words("$ref allOf anyOf oneOf not enum const if then else")
	identityWords = words("$id $anchor $dynamicAnchor")
)

func words(list string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		m[w] = true
	}
	return m
}

// document is a schema with the targets of references.
type document struct {
	root    *node
	anchors map[string]*node // by name, and by $id
	left    int              // members that may still be visited, references expanded
}

func newDocument(root *node) *document {
	d := &document{root: root, anchors: map[string]*node{}, left: maxVisits}
	d.collect(root)
	return d
}

// collect records the anchors anywhere below n, which may also be data: no reference names
// a wrong one.
func (d *document) collect(n *node) {
	for _, key := range []string{"$anchor", "$dynamicAnchor", "$id", "id"} {
		if name := strings.TrimPrefix(n.get(key).str(), "#"); name != "" && d.anchors[name] == nil {
			d.anchors[name] = n
		}
	}
	for _, kid := range n.kids {
		d.collect(kid)
	}
}

// find returns the schema that a reference names, nil if there is none here.
func (d *document) find(ref string) *node {
	base, fragment, _ := strings.Cut(ref, "#")
	at := d.root
	if base != "" {
		if at = d.anchors[base]; at == nil {
			return nil
		}
	}
	switch {
	case fragment == "":
	case fragment[0] != '/':
		at = d.anchors[fragment]
	default:
		for token := range strings.SplitSeq(fragment[1:], "/") {
			if at = at.child(pointerToken(token)); at == nil {
				return nil
			}
		}
	}
	if at.is('{') || at.is('b') {
		return at
	}
	return nil
}

// pointerToken decodes the escapes of a fragment and of a JSON pointer.
func pointerToken(token string) string {
	var b strings.Builder
	for i := 0; i < len(token); i++ {
		if token[i] == '%' && i+2 < len(token) {
			if c, err := strconv.ParseUint(token[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(c))
				i += 2
				continue
			}
		}
		b.WriteByte(token[i])
	}
	return strings.ReplaceAll(strings.ReplaceAll(b.String(), "~1", "/"), "~0", "~")
}

// local reports whether a reference, by its form, stays in the document.
func (d *document) local(ref string) bool {
	base, _, _ := strings.Cut(ref, "#")
	return base == "" || d.anchors[base] != nil
}

// repair returns n as a valid schema. If n is not a schema, the result allows everything.
func (d *document) repair(n *node) *node {
	if n.kind == 'b' {
		return n
	}
	if n.kind != '{' {
		return object()
	}
	out := object()
	for i, key := range n.keys {
		if value := d.repairMember(n, key, n.kids[i]); value != nil && out.get(key) == nil {
			out.set(key, value)
		}
	}
	exclusive(n, out, "minimum", "exclusiveMinimum")
	exclusive(n, out, "maximum", "exclusiveMaximum")
	d.repairItems(n, out)
	d.repairDependencies(n, out)
	if n.get("nullable").isTrue() {
		return allowNull(out)
	}
	return out
}

// repairMember returns a valid value for a keyword of n, or nil to remove the keyword.
// Unknown keywords are kept.
func (d *document) repairMember(n *node, key string, value *node) *node {
	keep := func(yes bool) *node {
		if yes {
			return value
		}
		return nil
	}
	switch {
	case key == "type":
		return typeOf(value)
	case key == "items" || foreignWords[key]:
		return nil // see repairItems, repairDependencies and repair
	case key == "$ref":
		return keep(value.kind == 's' && (!d.local(value.str()) || d.find(value.str()) != nil))
	case schemaWords[key]:
		if value.kind != '{' && value.kind != 'b' {
			return nil
		}
		return d.repair(value)
	case schemasWords[key]:
		return d.repairList(value)
	case namedWords[key]:
		if value.kind != '{' {
			return nil
		}
		return d.repairNamed(value)
	case key == "required":
		if value.kind != '[' {
			return nil // draft-03 puts true beside the property
		}
		return texts(value.strings())
	case key == "dependentRequired":
		return keep(value.kind == '{' && !slices.ContainsFunc(value.kids, func(k *node) bool { return k.kind != '[' || len(k.strings()) != len(k.kids) }))
	case key == "enum" || key == "examples":
		return keep(value.kind == '[' && (len(value.kids) > 0 || key == "examples"))
	case key == "multipleOf":
		return keep(value.kind == 'n' && value.raw[0] != '-' && strings.ContainsAny(mantissa(value), "123456789"))
	case numberWords[key]:
		return keep(value.kind == 'n')
	case countWords[key]:
		return keep(value.kind == 'n' && strings.Trim(string(value.raw), "0123456789") == "")
	case textWords[key]:
		return keep(value.kind == 's')
	case boolWords[key]:
		return keep(value.kind == 'b')
	}
	return value
}

func (d *document) repairList(value *node) *node {
	if value.kind != '[' || len(value.kids) == 0 {
		return nil
	}
	out := array()
	for _, kid := range value.kids {
		out.kids = append(out.kids, d.repair(kid))
	}
	return out
}

func (d *document) repairNamed(value *node) *node {
	out := object()
	for i, name := range value.keys {
		if out.get(name) == nil {
			out.set(name, d.repair(value.kids[i]))
		}
	}
	return out
}

// repairItems rewrites the tuples of older drafts as prefixItems.
func (d *document) repairItems(n, out *node) {
	items := n.get("items")
	switch {
	case items.is('{'), items.is('b'):
		out.set("items", d.repair(items))
	case items.is('[') && len(items.kids) > 0 && out.get("prefixItems") == nil:
		out.set("prefixItems", d.repairList(items))
		if more := n.get("additionalItems"); more.is('{') || more.is('b') {
			out.set("items", d.repair(more))
		}
	}
}

// repairDependencies rewrites dependencies as the two keywords that replaced it.
func (d *document) repairDependencies(n, out *node) {
	all := n.get("dependencies")
	if !all.is('{') {
		return
	}
	for i, name := range all.keys {
		switch value := all.kids[i]; value.kind {
		case '[':
			member(out, "dependentRequired").set(name, texts(value.strings()))
		case '{', 'b':
			member(out, "dependentSchemas").set(name, d.repair(value))
		}
	}
}

// member returns the object under a key, and creates it if it is missing.
func member(n *node, key string) *node {
	if !n.get(key).is('{') {
		n.set(key, object())
	}
	return n.get(key)
}

// exclusive rewrites draft-04's exclusiveMinimum: true as a number.
func exclusive(n, out *node, limit, word string) {
	if value := out.get(limit); n.get(word).isTrue() && value != nil {
		out.drop(limit)
		out.set(word, value)
	}
}

// mantissa returns a number's literal without its exponent.
func mantissa(n *node) string {
	m, _, _ := strings.Cut(strings.ToLower(string(n.raw)), "e")
	return m
}

// typeOf returns the type names defined by JSON Schema, nil if there are none.
func typeOf(value *node) *node {
	if value.kind == 's' {
		if name := strings.ToLower(value.str()); typeNames[name] {
			return text(name)
		}
		return nil
	}
	var names []string
	for _, name := range value.strings() {
		if name = strings.ToLower(name); typeNames[name] && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	switch {
	case len(names) == 0 || len(names) < len(value.strings()): // an unknown type may allow anything
		return nil
	case len(names) == 1:
		return text(names[0])
	}
	return texts(names)
}

// typesOf returns the types that a schema allows by its keyword type; nil is all.
func typesOf(n *node) []string {
	t := n.get("type")
	if t.is('s') {
		return []string{t.str()}
	}
	return t.strings()
}

// allowNull implements OpenAPI's nullable.
func allowNull(n *node) *node {
	null := object()
	null.set("type", text("null"))
	if slices.ContainsFunc(n.keys, func(k string) bool { return nullRelevant[k] }) {
		out := object()
		for _, key := range []string{"title", "description"} {
			if value := n.get(key); value != nil {
				out.set(key, value)
				n.drop(key)
			}
		}
		out.set("anyOf", array(n, null))
		return out
	}
	if types := typesOf(n); len(types) > 0 && !slices.Contains(types, "null") {
		n.set("type", texts(append(types, "null")))
	}
	if enum := n.get("enum"); enum != nil && !slices.ContainsFunc(enum.kids, func(k *node) bool { return k.kind == 0 }) {
		n.set("enum", array(append(slices.Clone(enum.kids), &node{raw: json.RawMessage("null")})...))
	}
	return n
}

// maxVisits limits the members that are visited with all references expanded: a few KB can
// refer to themselves without end.
const maxVisits = 20_000

// visit reports whether one more schema may be visited.
func (d *document) visit(n *node) bool {
	d.left -= 1 + len(n.kids)
	for _, key := range []string{"properties", "required"} {
		if all := n.get(key); all != nil {
			d.left -= len(all.kids)
		}
	}
	return d.left >= 0
}

// maxHops limits how many references in a row are followed.
const maxHops = 8

// inlineRoot replaces the root's reference by the schema that it refers to.
func (d *document) inlineRoot() {
	for range maxHops {
		ref := d.root.get("$ref")
		if ref == nil {
			return
		}
		target := d.find(ref.str())
		if target == nil && !d.local(ref.str()) {
			return
		}
		d.root.drop("$ref")
		if !target.is('{') || target == d.root {
			return
		}
		for i, key := range target.keys {
			if d.root.get(key) == nil && !identityWords[key] {
				d.root.set(key, target.kids[i].clone())
			}
		}
	}
	d.root.drop("$ref")
}

// admitsObject reports whether type, enum and const allow any object.
func admitsObject(n *node) bool {
	types := typesOf(n)
	if len(types) > 0 && !slices.Contains(types, "object") || n.get("const") != nil && !n.get("const").is('{') {
		return false
	}
	enum := n.get("enum")
	return enum == nil || slices.ContainsFunc(enum.kids, func(k *node) bool { return k.kind == '{' })
}
