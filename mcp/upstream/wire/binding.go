package wire

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Binding is an argument that is also sent as a header, since 2026-07-28 (an x-mcp-header
// annotation in the input schema, SEP-2243).
type Binding struct {
	path   []string
	header string
}

// BindingsOf returns the bindings that an input schema declares. If one breaks the rules,
// it returns an error that refuses the tool, as the specification requires of clients. The
// schema has passed the gate, so its depth is limited.
func BindingsOf(schema json.RawMessage) ([]Binding, error) {
	if !strings.Contains(string(schema), `x-mcp-header`) {
		return nil, nil
	}
	var all []Binding
	err := collectBindings(schema, nil, map[string]bool{}, &all)
	return all, err
}

func collectBindings(schema json.RawMessage, path []string, seen map[string]bool, all *[]Binding) error {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return nil // true, false, or a schema without properties
	}
	for name, raw := range s.Properties {
		var p struct {
			Type   json.RawMessage `json:"type"`
			Header json.RawMessage `json:"x-mcp-header"`
		}
		if json.Unmarshal(raw, &p) != nil {
			continue
		}
		at := append(append([]string(nil), path...), name)
		if p.Header != nil {
			b := Binding{path: at}
			if json.Unmarshal(p.Header, &b.header) != nil || !isToken(b.header) {
				return fmt.Errorf("property %q: x-mcp-header is not a valid header name", strings.Join(at, "."))
			}
			switch string(p.Type) {
			case `"string"`, `"integer"`, `"boolean"`:
			default:
				return fmt.Errorf("property %q: x-mcp-header is for strings, integers and booleans only", strings.Join(at, "."))
			}
			if lower := strings.ToLower(b.header); seen[lower] {
				return fmt.Errorf("property %q: x-mcp-header %q occurs twice", strings.Join(at, "."), b.header)
			} else {
				seen[lower] = true
			}
			b.header = "Mcp-Param-" + b.header
			*all = append(*all, b)
		}
		if err := collectBindings(raw, at, seen, all); err != nil {
			return err
		}
	}
	return nil
}

// isToken reports whether s is a field name of RFC 9110 5.6.2.
func isToken(s string) bool {
	for _, c := range s {
		if c > 0x7e || c <= ' ' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c) {
			return false
		}
	}
	return s != ""
}

var errFound = errors.New("found")

// value returns the header's value for these arguments. It returns ok false if the argument
// is absent or can't be represented in a header.
func (b Binding) value(args json.RawMessage) (string, bool) {
	doc := []byte(args)
	for _, name := range b.path {
		var next []byte
		err := Members(doc, func(key, value []byte) error {
			if string(key) == name {
				next = value
				return errFound
			}
			return nil
		})
		if !errors.Is(err, errFound) {
			return "", false
		}
		doc = next
	}
	switch {
	case string(doc) == "true" || string(doc) == "false":
		return string(doc), true
	case len(doc) > 0 && doc[0] == '"':
		var s string
		if json.Unmarshal(doc, &s) != nil {
			return "", false
		}
		return encodeHeader(s), true
	}
	n, err := strconv.ParseFloat(string(doc), 64)
	if err != nil || n != float64(int64(n)) || n > 1<<53-1 || n < -(1<<53-1) {
		return "", false
	}
	return strconv.FormatInt(int64(n), 10), true
}

// encodeHeader encodes values that a header cannot carry verbatim (SEP-2243).
func encodeHeader(s string) string {
	plainText := strings.Trim(s, " \t") == s && !(strings.HasPrefix(s, "=?base64?") && strings.HasSuffix(s, "?="))
	for i := range len(s) {
		plainText = plainText && s[i] >= 0x20 && s[i] <= 0x7e
	}
	if plainText {
		return s
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(s)) + "?="
}
