package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"
)

// maxDepth bounds nesting in JSON from outside (SPEC 20).
const maxDepth = 64

// Canonical returns the one form in which arguments are shown, hashed and
// sent (SPEC 6): keys sorted, no spaces, number literals exactly as written.
// Duplicate keys, invalid UTF-8, trailing data and nesting over 64 are
// refused, since two readers could see two different calls in them.
// Canonical(Canonical(x)) equals Canonical(x).
func Canonical(raw []byte) (json.RawMessage, error) {
	if !utf8.Valid(raw) {
		return nil, fmt.Errorf("%w JSON: not UTF-8", ErrInvalid)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var out bytes.Buffer
	out.Grow(len(raw))
	if err := canonValue(dec, &out, 0); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("%w JSON: %w", ErrInvalid, err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("%w JSON: more than one value", ErrInvalid)
	}
	return out.Bytes(), nil
}

func canonValue(dec *json.Decoder, out *bytes.Buffer, depth int) error {
	tok, err := dec.Token()
	if err != nil {
		return err
	}
	return canonToken(dec, tok, out, depth)
}

func canonToken(dec *json.Decoder, tok json.Token, out *bytes.Buffer, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("nested deeper than %d", maxDepth)
	}
	switch t := tok.(type) {
	case json.Delim:
		if t == '{' {
			return canonObject(dec, out, depth)
		}
		out.WriteByte('[')
		for i := 0; dec.More(); i++ {
			if i > 0 {
				out.WriteByte(',')
			}
			if err := canonValue(dec, out, depth+1); err != nil {
				return err
			}
		}
		out.WriteByte(']')
		_, err := dec.Token()
		return err
	case json.Number:
		out.WriteString(t.String())
	case string:
		writeString(out, t)
	case bool:
		if t {
			out.WriteString("true")
		} else {
			out.WriteString("false")
		}
	case nil:
		out.WriteString("null")
	}
	return nil
}

func canonObject(dec *json.Decoder, out *bytes.Buffer, depth int) error {
	type member struct {
		key        string
		start, end int
	}
	var members []member
	var values bytes.Buffer
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return err
		}
		m := member{key: tok.(string), start: values.Len()} // the decoder lets only strings be keys
		if err := canonValue(dec, &values, depth+1); err != nil {
			return err
		}
		m.end = values.Len()
		members = append(members, m)
	}
	if _, err := dec.Token(); err != nil {
		return err
	}
	slices.SortFunc(members, func(a, b member) int { return bytes.Compare([]byte(a.key), []byte(b.key)) })
	out.WriteByte('{')
	for i, m := range members {
		if i > 0 {
			if members[i-1].key == m.key {
				return fmt.Errorf("duplicate key %q", m.key)
			}
			out.WriteByte(',')
		}
		writeString(out, m.key)
		out.WriteByte(':')
		out.Write(values.Bytes()[m.start:m.end])
	}
	out.WriteByte('}')
	return nil
}

// writeString escapes only what JSON demands, so that the bytes sent are those
// that a person would write; what must not be seen raw is escaped by the card.
func writeString(out *bytes.Buffer, s string) {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s)           // a string always encodes
	out.Truncate(out.Len() - 1) // Encode ends with a newline
}
