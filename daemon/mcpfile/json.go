package mcpfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"nize/store"
)

// stripComments replaces comments and trailing commas with spaces, which leaves JSON in
// which every byte keeps its offset.
func stripComments(data []byte) []byte {
	out := bytes.Clone(data)
	comma := -1 // a comma followed only by space so far
	for i := 0; i < len(out); i++ {
		switch c := out[i]; {
		case c == '"':
			comma = -1
			for i++; i < len(out) && out[i] != '"'; i++ {
				if out[i] == '\\' {
					i++
				}
			}
		case c == '/' && i+1 < len(out) && out[i+1] == '/':
			for ; i < len(out) && out[i] != '\n'; i++ {
				out[i] = ' '
			}
		case c == '/' && i+1 < len(out) && out[i+1] == '*':
			end := bytes.Index(out[i+2:], []byte("*/"))
			if end < 0 {
				return out // left in place: the decoder reports the syntax error and its position
			}
			for stop := i + 2 + end + 2; i < stop; i++ {
				if out[i] != '\n' {
					out[i] = ' '
				}
			}
			i--
		case c == ',':
			comma = i
		case c == '}' || c == ']':
			if comma >= 0 {
				out[comma] = ' '
			}
			comma = -1
		case c != ' ' && c != '\t' && c != '\r' && c != '\n':
			comma = -1
		}
	}
	return out
}

// checkDepth returns an error for nesting deeper than any legitimate file has.
func checkDepth(data []byte) error {
	depth, text := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return fmt.Errorf("%w file: it is nested deeper than %d", store.ErrInvalid, maxDepth)
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}

// syntax returns the JSON syntax error of a text, with its line.
func syntax(data []byte) error {
	if len(bytes.TrimSpace(data)) == 0 {
		return fmt.Errorf("%w file: it is empty", store.ErrInvalid)
	}
	var raw json.RawMessage
	err := json.Unmarshal(data, &raw)
	if err == nil {
		return nil
	}
	var bad *json.SyntaxError
	if errors.As(err, &bad) {
		line := 1 + bytes.Count(data[:min(int(bad.Offset), len(data))], []byte("\n"))
		return fmt.Errorf("%w file: line %d: %w", store.ErrInvalid, line, err)
	}
	return fmt.Errorf("%w file: %w", store.ErrInvalid, err)
}

// member is one member of an object.
type member struct {
	key   string
	value json.RawMessage
}

var errNoObject = errors.New("no object")

// membersOf reads an object in order; if a key is repeated, the last one counts, as in the
// programs that wrote the file.
func membersOf(raw json.RawMessage) ([]member, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, errNoObject
	}
	var all []member
	at := map[string]int{}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, err
		}
		key, ok := t.(string)
		if !ok {
			return nil, errNoObject
		}
		m := member{key: key}
		if err := dec.Decode(&m.value); err != nil {
			return nil, err
		}
		if i, twice := at[key]; twice {
			all[i] = m
			continue
		}
		at[key] = len(all)
		all = append(all, m)
	}
	return all, nil
}

func pick(all []member, key string) (json.RawMessage, bool) {
	for _, m := range all {
		if m.key == key {
			return m.value, true
		}
	}
	return nil, false
}
