package index

import "encoding/json"

// The rule of this file: a schema is untrusted input. The gate has checked it, but nothing
// here relies on that: length, depth and number are limited, and unreadable parts yield no
// words. The parser is handwritten, because schemas are most of the bytes of a tool and
// encoding/json takes three times as long.

const (
	maxSchema      = 64 << 10 // bytes that are read
	maxSchemaDepth = 8
	maxParams      = 200
	maxEnum        = 30
)

// param is one parameter of a tool: its name, its descriptions, and the strings among its
// enum and examples.
type param struct {
	name  string
	texts []string
}

// readParams returns the parameters of a tool's input schema in document order, including
// those of nested objects.
func readParams(schema []byte) []param {
	r := schemaReader{b: schema[:min(len(schema), maxSchema)]}
	r.schema(0, -1)
	return r.params
}

// schemaReader reads JSON in one pass; every method leaves i after the value that it reads,
// or at the end of b if there is none.
type schemaReader struct {
	b      []byte
	i      int
	params []param
}

// schema reads a schema whose words belong to the parameter at into, or to the tool itself
// if into is -1.
func (r *schemaReader) schema(depth, into int) {
	if depth > maxSchemaDepth {
		r.skip()
		return
	}
	r.object(func(key string) {
		switch key {
		case "properties":
			r.object(func(name string) {
				if len(r.params) >= maxParams {
					r.skip()
					return
				}
				r.params = append(r.params, param{name: name})
				r.schema(depth+1, len(r.params)-1)
			})
		case "description":
			r.text(into)
		case "const":
			r.text(into)
		case "enum", "examples":
			n := 0
			r.array(func() {
				if n++; n > maxEnum {
					r.skip()
					return
				}
				r.text(into)
			})
		case "items":
			r.schema(depth+1, into)
		case "anyOf", "oneOf", "allOf":
			r.array(func() { r.schema(depth+1, into) })
		case "$defs", "definitions":
			r.object(func(string) { r.schema(depth+1, -1) })
		default:
			r.skip()
		}
	})
}

// text adds the next string to the parameter at into.
func (r *schemaReader) text(into int) {
	if r.peek() != '"' {
		r.skip()
		return
	}
	if s := r.str(); into >= 0 && s != "" {
		r.params[into].texts = append(r.params[into].texts, s)
	}
}

// object calls member with each key; member must read the value. A value that is not an
// object is skipped.
func (r *schemaReader) object(member func(key string)) {
	if r.peek() != '{' {
		r.skip()
		return
	}
	r.i++
	for r.peek() == '"' {
		key := r.str()
		if r.peek() != ':' {
			r.i = len(r.b)
			return
		}
		r.i++
		member(key)
		if r.peek() == ',' {
			r.i++
		}
	}
	r.close('}')
}

// array calls item before each element; item must read it.
func (r *schemaReader) array(item func()) {
	if r.peek() != '[' {
		r.skip()
		return
	}
	r.i++
	for c := r.peek(); c != ']' && c != 0; c = r.peek() {
		before := r.i
		item()
		if r.peek() == ',' {
			r.i++
		}
		if r.i == before {
			break
		}
	}
	r.close(']')
}

// close skips c, or stops reading if the input is not JSON.
func (r *schemaReader) close(c byte) {
	if r.peek() != c {
		r.i = len(r.b)
		return
	}
	r.i++
}

// peek skips white space and returns the next byte, or 0 at the end.
func (r *schemaReader) peek() byte {
	for ; r.i < len(r.b); r.i++ {
		switch r.b[r.i] {
		case ' ', '\t', '\n', '\r':
		default:
			return r.b[r.i]
		}
	}
	return 0
}

// str reads the string at i.
func (r *schemaReader) str() string {
	start, escaped := r.i, false
	for r.i++; r.i < len(r.b); r.i++ {
		switch r.b[r.i] {
		case '\\':
			escaped = true
			r.i++
		case '"':
			r.i++
			if !escaped {
				return string(r.b[start+1 : r.i-1])
			}
			var s string
			if json.Unmarshal(r.b[start:r.i], &s) != nil {
				return ""
			}
			return s
		}
	}
	r.i = len(r.b)
	return ""
}

// skip skips one value of any kind.
func (r *schemaReader) skip() {
	depth := 0
	for c := r.peek(); c != 0; c = r.peek() {
		switch c {
		case '"':
			r.str()
		case '{', '[':
			depth++
			r.i++
		case '}', ']':
			if depth == 0 {
				return // the end of the container: there was no value
			}
			depth--
			r.i++
		case ',', ':':
			if depth == 0 {
				return
			}
			r.i++
			continue
		default:
			for r.i < len(r.b) && !ends(r.b[r.i]) {
				r.i++
			}
		}
		if depth == 0 {
			return
		}
	}
}

// ends reports whether c ends a number or a literal such as true.
func ends(c byte) bool {
	switch c {
	case ' ', '\t', '\n', '\r', ',', ':', '{', '}', '[', ']', '"':
		return true
	}
	return false
}
