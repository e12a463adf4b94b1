package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Misfit returns the path of the first member of a JSON document that can't be decoded into
// the type that req points to, with its indexes ("tools[0].allowed_tools"), and the reason
// ("must be a list of strings"). The errors of encoding/json include neither the index nor,
// for an unknown member or a type with its own UnmarshalJSON, the path. Both results are ""
// if the document fits or is not JSON.
func Misfit(req any, body []byte) (path, problem string) {
	var raw json.RawMessage
	if json.NewDecoder(bytes.NewReader(body)).Decode(&raw) != nil {
		return "", ""
	}
	return misfit(reflect.TypeOf(req).Elem(), raw, "")
}

const notAField = "is not a field of a request"

func misfit(t reflect.Type, raw json.RawMessage, path string) (at, problem string) {
	for t.Kind() == reflect.Pointer {
		if string(raw) == "null" {
			return "", ""
		}
		t = t.Elem()
	}
	if _, reads := reflect.New(t).Interface().(json.Unmarshaler); reads {
		if json.Unmarshal(raw, reflect.New(t).Interface()) != nil {
			return path, "must be " + wanted(t)
		}
		return "", ""
	}
	if string(raw) == "null" {
		return "", "" // the zero value
	}
	switch t.Kind() {
	case reflect.Struct:
		var members map[string]json.RawMessage
		if json.Unmarshal(raw, &members) != nil {
			return path, "must be an object"
		}
		return misfitMember(t, members, path)
	case reflect.Map:
		var members map[string]json.RawMessage
		if json.Unmarshal(raw, &members) != nil {
			return path, "must be an object"
		}
		for _, name := range slices.Sorted(maps.Keys(members)) {
			if at, problem := misfit(t.Elem(), members[name], join(path, name)); problem != "" {
				return at, problem
			}
		}
		return "", ""
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			break
		}
		var entries []json.RawMessage
		if json.Unmarshal(raw, &entries) != nil {
			return path, "must be " + wanted(t)
		}
		for i, entry := range entries {
			if at, problem := misfit(t.Elem(), entry, fmt.Sprintf("%s[%d]", path, i)); problem != "" {
				return at, problem
			}
		}
		return "", ""
	}
	if json.Unmarshal(raw, reflect.New(t).Interface()) != nil {
		return path, "must be " + wanted(t)
	}
	return "", ""
}

// misfitMember checks the members of an object, and then looks for an unknown one.
func misfitMember(t reflect.Type, members map[string]json.RawMessage, path string) (at, problem string) {
	names := slices.Sorted(maps.Keys(members))
	known := map[string]bool{}
	for _, f := range reflect.VisibleFields(t) {
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag == "-" || !f.IsExported() || f.Anonymous && tag == "" {
			continue
		}
		if tag == "" {
			tag = f.Name
		}
		for _, name := range names {
			if known[name] || name != tag && !strings.EqualFold(name, tag) {
				continue
			}
			known[name] = true
			if at, problem := misfit(f.Type, members[name], join(path, name)); problem != "" {
				return at, problem
			}
		}
	}
	for _, name := range names {
		if !known[name] {
			return join(path, name), notAField
		}
	}
	return "", ""
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// wanted describes the JSON form of a value of that type.
func wanted(t reflect.Type) string {
	if choice, ok := reflect.New(t).Interface().(interface{ OneOf() []any }); ok {
		var words []string
		for _, one := range choice.OneOf() {
			words = append(words, wantedChoice(one))
		}
		return strings.Join(words, " or ")
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice:
		switch t.Elem().Kind() {
		case reflect.String:
			return "a list of strings"
		case reflect.Uint8:
			return "a string in base64"
		}
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	}
	return "another kind of value"
}

func wantedChoice(one any) string {
	if one == nil {
		return "null"
	}
	t := reflect.TypeOf(one)
	if t.Kind() != reflect.Struct {
		return wanted(t)
	}
	var members []string
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		members = append(members, fmt.Sprintf("%q: …", name))
	}
	return "{" + strings.Join(members, ", ") + "}"
}
