package toolschema

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

const (
	// maxRefs limits how deeply references and combinators are followed.
	maxRefs = 8
	// maxNarrow is how deeply a schema may be nested for the narrowest services.
	maxNarrow = 10
	// maxForms is how many alternative forms of a root are described.
	maxForms = 8
)

// legalKey matches the property names that Anthropic accepts.
var legalKey = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

// Plain returns the schema in the form that model services accept: valid, its root an
// object with properties and without a combinator, each array with items, and no reference
// outside of the document. Alternative forms of a root are merged into one with the
// properties of all, and the description lists which of them belong together.
//
// If keys is set, properties of the root whose names Anthropic does not accept are removed,
// and named in the description.
func Plain(raw json.RawMessage, keys bool) json.RawMessage {
	d, was := open(raw)
	if d == nil {
		return Bare()
	}
	d.plain(keys)
	d.complete(d.root)
	if string(d.root.encode()) == was {
		return raw
	}
	return d.root.encode()
}

// Narrow returns the schema in the subset of OpenAPI that the narrowest model services
// accept: without references, combinators other than anyOf, and lists of types.
func Narrow(raw json.RawMessage) json.RawMessage {
	d, was := open(raw)
	if d == nil {
		return Bare()
	}
	d.plain(true)
	d.root = d.narrow(d.root, nil, 0)
	member(d.root, "properties")
	if string(d.root.encode()) == was {
		return raw
	}
	return d.root.encode()
}

// open parses a schema and returns it, and its original text without white space.
func open(raw json.RawMessage) (*document, string) {
	root, err := parse(raw)
	if err != nil || root.kind != '{' {
		return nil, ""
	}
	was := root.encode()
	return newDocument(valid(root)), string(was)
}

// plain makes the root an object without combinators.
func (d *document) plain(keys bool) {
	root := d.root
	f := flat{d: d, properties: object()}
	f.add(root, nil)
	changed := slices.ContainsFunc(root.keys, func(k string) bool { return rootWords[k] })
	root.drop("$ref", "allOf", "anyOf", "oneOf", "not", "enum", "const", "if", "then", "else", "$dynamicRef", "$recursiveRef")
	required := f.required
	for i := len(f.properties.keys) - 1; i >= 0; i-- {
		if name := f.properties.keys[i]; keys && !legalKey.MatchString(name) {
			f.properties.drop(name)
			required = slices.DeleteFunc(required, func(r string) bool { return r == name })
			changed = true
			f.notes = append(f.notes, "There is also the property "+string(text(name).raw)+".")
		}
	}
	root.set("properties", f.properties)
	if root.get("required") != nil || len(required) > 0 {
		root.set("required", texts(required))
	}
	if len(required) == 0 && changed {
		root.drop("required")
	}
	if changed { // they refer to the properties of one form only
		root.drop("additionalProperties", "unevaluatedProperties", "minProperties", "maxProperties")
	}
	if len(f.notes) > 0 {
		root.set("description", text(strings.TrimSpace(root.get("description").str()+" "+strings.Join(f.notes, " "))))
	}
}

// flat collects the properties of a root and of its combinators.
type flat struct {
	d          *document
	properties *node
	required   []string
	notes      []string
}

// add adds what a schema specifies for the same object.
func (f *flat) add(n *node, within []*node) {
	if !n.is('{') || slices.Contains(within, n) || len(within) > maxRefs || !f.d.visit(n) {
		return
	}
	within = append(slices.Clone(within), n)
	if ref := n.get("$ref"); ref != nil {
		f.add(f.d.find(ref.str()), within)
	}
	if all := n.get("properties"); all != nil {
		for i, name := range all.keys {
			f.property(name, all.kids[i], "allOf")
		}
	}
	for _, name := range n.get("required").strings() {
		if !slices.Contains(f.required, name) {
			f.required = append(f.required, name)
		}
	}
	if all := n.get("allOf"); all != nil {
		for _, kid := range all.kids {
			f.add(kid, within)
		}
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if all := n.get(key); all != nil {
			f.addForms(all.kids, within)
		}
	}
	for _, key := range []string{"then", "else"} {
		one := flat{d: f.d, properties: object()}
		one.add(n.get(key), within)
		f.merge(one)
	}
}

// addForms adds the properties of schemas of which one applies; a property is required if
// it is required in each of them.
func (f *flat) addForms(forms []*node, within []*node) {
	var common, said []string
	first := true
	for _, form := range forms {
		if target := f.d.find(form.get("$ref").str()); form.get("$ref") != nil && target != nil && !admitsObject(target) || !admitsObject(form) {
			continue // for example null
		}
		one := flat{d: f.d, properties: object()}
		one.add(form, within)
		f.merge(one)
		if first {
			common, first = slices.Clone(one.required), false
		} else {
			common = slices.DeleteFunc(common, func(r string) bool { return !slices.Contains(one.required, r) })
		}
		names := one.required
		if len(names) == 0 {
			names = one.properties.keys
		}
		if words := strings.Join(names, ", "); words != "" && !slices.Contains(said, words) {
			said = append(said, words)
		}
	}
	for _, name := range common {
		if !slices.Contains(f.required, name) {
			f.required = append(f.required, name)
		}
	}
	if len(said) > 1 {
		f.notes = append(f.notes, "Give one of these: "+strings.Join(said[:min(len(said), maxForms)], "; or ")+".")
	}
}

// merge adds the properties of one form among others.
func (f *flat) merge(one flat) {
	for i, name := range one.properties.keys {
		f.property(name, one.properties.kids[i], "anyOf")
	}
	f.notes = append(f.notes, one.notes...)
}

// property adds a property; two schemas for one name are combined by how.
func (f *flat) property(name string, schema *node, how string) {
	was := f.properties.get(name)
	switch {
	case was == nil || isAny(was) && how == "allOf" || isAny(schema) && how == "anyOf":
		f.properties.set(name, schema)
	case isAny(was) || isAny(schema) || equal(was, schema):
	case len(was.keys) == 1 && was.keys[0] == how:
		if !slices.ContainsFunc(was.kids[0].kids, func(k *node) bool { return equal(k, schema) }) {
			both := object()
			both.set(how, array(append(slices.Clone(was.kids[0].kids), schema)...))
			f.properties.set(name, both)
		}
	default:
		both := object()
		both.set(how, array(was, schema))
		f.properties.set(name, both)
	}
}

// isAny reports whether a schema allows everything.
func isAny(n *node) bool { return n.isTrue() || n.is('{') && len(n.keys) == 0 }

// complete adds missing items to arrays and removes unresolvable references in every schema
// of the document.
func (d *document) complete(n *node) {
	if !n.is('{') {
		return
	}
	if ref := n.get("$ref"); ref != nil && d.find(ref.str()) == nil {
		n.drop("$ref")
	}
	if slices.Contains(typesOf(n), "array") && n.get("items") == nil && n.get("prefixItems") == nil {
		n.set("items", object())
	}
	for i, key := range n.keys {
		switch value := n.kids[i]; {
		case schemaWords[key], key == "items":
			d.complete(value)
		case schemasWords[key], namedWords[key]:
			for _, kid := range value.kids {
				d.complete(kid)
			}
		}
	}
}

// narrowWords are the keywords that are kept unchanged in a narrow schema.
var narrowWords = map[string][]string{
	"string":  {"minLength", "maxLength", "pattern"},
	"number":  {"minimum", "maximum"},
	"integer": {"minimum", "maximum"},
	"array":   {"minItems", "maxItems"},
}

// narrowFormats are the formats that are kept, by type.
var narrowFormats = map[string][]string{
	"string":  {"date-time", "enum"},
	"number":  {"float", "double"},
	"integer": {"int32", "int64"},
}

// narrow returns one schema in the subset.
func (d *document) narrow(n *node, within []*node, depth int) *node {
	out := object()
	switch {
	case !n.is('{') || len(n.keys) == 0:
		out.set("type", text("string"))
		return out
	case slices.Contains(within, n) || depth > maxNarrow || !d.visit(n):
		out.set("type", text("object"))
		return out
	}
	within = append(slices.Clone(within), n)
	n = d.resolved(n, within)
	about := n.get("description").str()
	types, nullable := d.narrowTypes(n)
	forms := append(d.forms(n.get("anyOf"), &nullable), d.forms(n.get("oneOf"), &nullable)...)
	switch {
	case len(types) == 0 && len(forms) == 1:
		out = d.narrow(forms[0], within, depth+1)
		if about == "" {
			about = out.get("description").str()
		}
		nullable = nullable || out.get("nullable").isTrue()
	case len(types) == 0 && len(forms) > 1:
		list := array()
		for _, form := range forms {
			list.kids = append(list.kids, d.narrow(form, within, depth+1))
		}
		out.set("anyOf", list)
	case len(types) > 1:
		list := array()
		for _, t := range types {
			list.kids = append(list.kids, d.narrowAs(n, t, &about, within, depth))
		}
		out.set("anyOf", list)
	case len(types) == 1:
		out = d.narrowAs(n, types[0], &about, within, depth)
	default:
		out.set("type", text("string"))
	}
	if about != "" {
		out.set("description", text(about))
	}
	if nullable {
		out.set("nullable", &node{kind: 'b', raw: json.RawMessage("true")})
	}
	return out
}

// resolved returns a schema with the members of the schemas that it refers to, and of those
// in allOf, as its own; its own members take precedence.
func (d *document) resolved(n *node, within []*node) *node {
	if n.get("$ref") == nil && n.get("allOf") == nil {
		return n
	}
	out := n.shallow()
	if all := out.get("properties"); all != nil {
		out.set("properties", all.shallow())
	}
	out.drop("$ref", "allOf")
	var parts []*node
	if ref := n.get("$ref"); ref != nil {
		parts = append(parts, d.find(ref.str()))
	}
	if all := n.get("allOf"); all != nil {
		parts = append(parts, all.kids...)
	}
	required := array() // of all parts, merged once: there may be thousands
	if own := n.get("required"); own.is('[') {
		required.kids = slices.Clone(own.kids)
	}
	for _, part := range parts {
		if !part.is('{') || slices.Contains(within, part) || len(within) > maxRefs || !d.visit(part) {
			if part.is('{') && out.get("type") == nil {
				out.set("type", text("object"))
			}
			continue
		}
		part = d.resolved(part, append(slices.Clone(within), part))
		for i, key := range part.keys {
			switch {
			case key == "properties":
				for j, name := range part.kids[i].keys {
					if all := member(out, key); all.get(name) == nil {
						all.set(name, part.kids[i].kids[j])
					}
				}
			case key == "required":
				required.kids = append(required.kids, part.kids[i].kids...)
			case out.get(key) == nil:
				out.set(key, part.kids[i])
			}
		}
	}
	if list := required.strings(); len(list) > 0 {
		out.set("required", texts(list))
	}
	return out
}

// narrowTypes returns the types of a schema without null, inferred if it has none.
func (d *document) narrowTypes(n *node) (types []string, nullable bool) {
	for _, t := range typesOf(n) {
		if t == "null" {
			nullable = true
			continue
		}
		types = append(types, t)
	}
	if len(types) > 0 || nullable {
		return types, nullable
	}
	switch {
	case n.get("properties") != nil || n.get("additionalProperties") != nil || n.get("patternProperties") != nil:
		return []string{"object"}, false
	case n.get("items") != nil || n.get("prefixItems") != nil:
		return []string{"array"}, false
	case n.get("enum") != nil || n.get("const") != nil:
		return []string{scalarType(values(n))}, false
	}
	return nil, false
}

// forms returns the schemas of anyOf or oneOf without null.
func (d *document) forms(list *node, nullable *bool) (forms []*node) {
	if list == nil {
		return nil
	}
	for _, kid := range list.kids {
		if kid.get("type").str() == "null" {
			*nullable = true
			continue
		}
		forms = append(forms, kid)
	}
	return forms
}

// values returns the values allowed by enum or const.
func values(n *node) []*node {
	if enum := n.get("enum"); enum != nil {
		return enum.kids
	}
	if c := n.get("const"); c != nil {
		return []*node{c}
	}
	return nil
}

func scalarType(list []*node) string {
	for _, v := range list {
		switch v.kind {
		case 'n':
			return "number"
		case 'b':
			return "boolean"
		case '{':
			return "object"
		case '[':
			return "array"
		}
	}
	return "string"
}

// narrowAs returns a schema restricted to one type.
func (d *document) narrowAs(n *node, t string, about *string, within []*node, depth int) *node {
	out := object()
	out.set("type", text(t))
	for _, key := range narrowWords[t] {
		if value := n.get(key); value != nil {
			out.set(key, value)
		}
	}
	if format := n.get("format"); slices.Contains(narrowFormats[t], format.str()) {
		out.set("format", format)
	}
	if fixed := values(n); len(fixed) > 0 {
		if only := array(fixed...).strings(); t == "string" && len(only) > 0 && !slices.Contains(only, "") {
			out.set("enum", texts(only))
		} else if t != "object" && t != "array" && !strings.Contains(*about, "One of: ") {
			*about = strings.TrimSpace(*about + " One of: " + strings.Trim(string(array(fixed...).encode()), "[]") + ".")
		}
	}
	switch t {
	case "object":
		if all := n.get("properties"); all != nil && len(all.kids) > 0 {
			properties := object()
			for i, name := range all.keys {
				if legalKey.MatchString(name) {
					properties.set(name, d.narrow(all.kids[i], within, depth+1))
				}
			}
			if len(properties.keys) > 0 {
				out.set("properties", properties)
			}
			var required []string
			for _, name := range n.get("required").strings() {
				if properties.get(name) != nil {
					required = append(required, name)
				}
			}
			if len(required) > 0 {
				out.set("required", texts(required))
			}
		}
	case "array":
		items := n.get("items")
		if tuple := n.get("prefixItems"); !items.is('{') && tuple != nil {
			items = tuple.kids[0]
			if len(tuple.kids) > 1 {
				items = object()
				items.set("anyOf", tuple)
			}
		}
		out.set("items", d.narrow(items, within, depth+1))
	}
	return out
}
