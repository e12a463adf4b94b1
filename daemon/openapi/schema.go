package openapi

import (
	"encoding"
	"encoding/json"
	"fmt"
	"path"
	"reflect"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"nize/store"
)

// schemas generates JSON Schemas from Go types. A named struct becomes a shared component.
type schemas struct {
	names      map[reflect.Type]string // of components whose Go name is ambiguous
	types      map[string]reflect.Type
	components map[string]*jsonschema.Schema
}

// direction is that of a value. A request's schema is closed, since unknown fields are
// rejected; a response may get more fields later, and its pointers may be null.
type direction bool

const (
	request direction = true
	answer  direction = false
)

// choice is a type whose JSON is that of one of several Go values; nil is null.
type choice interface{ OneOf() []any }

func refTo(name string) *jsonschema.Schema {
	return &jsonschema.Schema{Ref: "#/components/schemas/" + name}
}

// of returns the schema of a type.
func (s *schemas) of(t reflect.Type, d direction) *jsonschema.Schema {
	if c, ok := reflect.Zero(t).Interface().(choice); ok && t.Kind() != reflect.Pointer {
		choices := func() *jsonschema.Schema {
			all := new(jsonschema.Schema)
			for _, v := range c.OneOf() {
				one := &jsonschema.Schema{Type: "null"}
				if v != nil {
					one = s.of(reflect.TypeOf(v), d)
				}
				all.OneOf = append(all.OneOf, one)
			}
			return all
		}
		if t.Kind() != reflect.Struct { // a nullable string needs no name
			return choices()
		}
		return s.component(t, choices)
	}
	switch t {
	case reflect.TypeFor[time.Time]():
		return &jsonschema.Schema{Type: "string", Format: "date-time"}
	case reflect.TypeFor[store.Text]():
		return &jsonschema.Schema{Type: "string"}
	case reflect.TypeFor[json.RawMessage]():
		return new(jsonschema.Schema)
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.of(t.Elem(), d)
	case reflect.String:
		return &jsonschema.Schema{Type: "string"}
	case reflect.Bool:
		return &jsonschema.Schema{Type: "boolean"}
	case reflect.Int, reflect.Int64:
		return &jsonschema.Schema{Type: "integer"}
	case reflect.Float64:
		return &jsonschema.Schema{Type: "number"}
	case reflect.Slice:
		return &jsonschema.Schema{Type: "array", Items: s.of(t.Elem(), d)}
	case reflect.Map:
		return &jsonschema.Schema{Type: "object", AdditionalProperties: s.of(t.Elem(), d)}
	case reflect.Struct:
		if !encodesItself(t) {
			return s.component(t, func() *jsonschema.Schema { return s.structOf(t, d) })
		}
	}
	panic(fmt.Sprintf("daemon/openapi: nothing says what %v is in JSON", t)) // a programming error
}

// encodesItself reports whether a type has a JSON form that its fields don't show.
func encodesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[json.Marshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// component generates the schema of a named type once, and returns a reference to it.
func (s *schemas) component(t reflect.Type, make func() *jsonschema.Schema) *jsonschema.Schema {
	if t.Name() == "" {
		return make()
	}
	name, ok := s.names[t]
	if !ok {
		name = nameOf(t)
	}
	switch at, known := s.types[name]; {
	case !known:
		s.types[name] = t
		s.components[name] = make()
	case at != t:
		panic(fmt.Sprintf("daemon/openapi: %v and %v are both called %s", at, t, name)) // a programming error
	}
	return refTo(name)
}

// nameOf returns the name of a type; a List[x.Item] is an ItemList.
func nameOf(t reflect.Type) string {
	name, of, generic := strings.Cut(t.Name(), "[")
	if generic {
		of = path.Base(strings.TrimSuffix(of, "]"))
		name = of[strings.LastIndexByte(of, '.')+1:] + name
	}
	r, n := utf8.DecodeRuneInString(name)
	return string(unicode.ToUpper(r)) + name[n:]
}

// structOf returns the schema of a struct: an object or, if the struct embeds some that are
// marked oneof, one of several, each with the struct's own fields and those of one embedded
// struct. The mark's value, if any, is that of the first field, which distinguishes them.
func (s *schemas) structOf(t reflect.Type, d direction) *jsonschema.Schema {
	var variants []reflect.StructField
	for f := range t.Fields() {
		if _, ok := f.Tag.Lookup("oneof"); ok {
			variants = append(variants, f)
		}
	}
	if len(variants) == 0 {
		return s.object(d, t)
	}
	all, mapping := new(jsonschema.Schema), map[string]string{}
	by, _ := fieldName(t.Field(0))
	for _, v := range variants {
		ref := s.component(v.Type, func() *jsonschema.Schema {
			one := s.object(d, t, v.Type)
			one.Description = v.Tag.Get("doc")
			if value := any(v.Tag.Get("oneof")); value != "" {
				one.Properties[by] = &jsonschema.Schema{Type: "string", Const: &value}
			}
			return one
		})
		all.OneOf = append(all.OneOf, ref)
		mapping[v.Tag.Get("oneof")] = ref.Ref
	}
	if mapping[""] == "" {
		all.Extra = map[string]any{"discriminator": map[string]any{"propertyName": by, "mapping": mapping}}
	}
	return all
}

// object returns an object with the fields of all these structs.
func (s *schemas) object(d direction, types ...reflect.Type) *jsonschema.Schema {
	o := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}}
	if d == request {
		o.AdditionalProperties = &jsonschema.Schema{Not: new(jsonschema.Schema)} // false
	}
	for _, t := range types {
		s.addFields(o, d, t)
	}
	return o
}

func (s *schemas) addFields(o *jsonschema.Schema, d direction, t reflect.Type) {
	for f := range t.Fields() {
		name, optional := fieldName(f)
		_, variant := f.Tag.Lookup("oneof")
		switch {
		case variant || name == "-" || !f.IsExported():
			continue
		case f.Anonymous:
			s.addFields(o, d, f.Type)
			continue
		}
		o.Properties[name] = s.field(f, d, optional)
		o.PropertyOrder = append(o.PropertyOrder, name)
		if !optional {
			o.Required = append(o.Required, name)
		}
	}
}

// field returns the schema of a field, from its type and its tags.
func (s *schemas) field(f reflect.StructField, d direction, optional bool) *jsonschema.Schema {
	one := s.of(f.Type, d)
	if kind := f.Tag.Get("jsontype"); kind != "" {
		one = &jsonschema.Schema{Type: kind}
	}
	if values := f.Tag.Get("enum"); values != "" {
		for v := range strings.SplitSeq(values, ",") {
			one.Enum = append(one.Enum, v)
		}
	}
	if f.Type.Kind() == reflect.Pointer && d == answer && !optional {
		one = &jsonschema.Schema{AnyOf: []*jsonschema.Schema{one, {Type: "null"}}}
	}
	one.Description = f.Tag.Get("doc")
	return one
}

// fieldName returns a field's name in JSON, and whether it may be missing.
func fieldName(f reflect.StructField) (name string, optional bool) {
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "" {
		name = f.Name
	}
	return name, strings.Contains(options, "omit")
}
