package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"
)

// maxDepth limits the nesting of JSON from outside.
const maxDepth = 64

// Canonical returns the one form in which arguments are shown, hashed and sent: sorted
// keys, no spaces, number literals exactly as written. It refuses duplicate keys, invalid
// UTF-8, trailing data and nesting deeper than 64, because two parsers could read two
// different calls from them. Canonical(Canonical(x)) equals Canonical(x).
func Canonical(raw []byte) (json.RawMessage, error) {
	if !utf8.Valid(raw) {
		return nil, fmt.Errorf("%w JSON: %w", ErrInvalid, Errorf("not UTF-8"))
	}
	// encoding/json checks the grammar; the code below relies on it.
	if !json.Valid(raw) {
		return nil, fmt.Errorf("%w JSON: %w", ErrInvalid, syntaxOf(raw))
	}
	c := canon{in: raw, out: make([]byte, 0, len(raw))}
	if err := c.value(0); err != nil {
		return nil, fmt.Errorf("%w JSON: %w", ErrInvalid, err)
	}
	return c.out, nil
}

// syntaxOf returns what is wrong with invalid JSON.
func syntaxOf(raw []byte) error {
	var v json.RawMessage
	if err := json.Unmarshal(raw, &v); err != nil {
		var wrong *json.SyntaxError
		if errors.As(err, &wrong) && wrong.Error() == "unexpected end of JSON input" { // encoding/json exports no error for this
			return Errorf("unexpected end of JSON input")
		}
		return err
	}
	return Errorf("not one value")
}

// canon rewrites one valid JSON text.
type canon struct {
	in    []byte
	at    int
	out   []byte
	spare []byte // buffer for sorting an object
}

// space skips white space between tokens.
func (c *canon) space() {
	for c.at < len(c.in) && (c.in[c.at] == ' ' || c.in[c.at] == '\n' || c.in[c.at] == '\t' || c.in[c.at] == '\r') {
		c.at++
	}
}

func (c *canon) value(depth int) error {
	if depth > maxDepth {
		return Errorf("nested deeper than %d", maxDepth)
	}
	c.space()
	switch c.in[c.at] {
	case '{':
		return c.object(depth)
	case '[':
		return c.array(depth)
	case '"':
		c.out = appendString(c.out, c.text())
		return nil
	}
	start := c.at // a number, true, false or null: up to a byte that may follow a value
	for c.at < len(c.in) && !bytes.ContainsRune([]byte(" \n\t\r,]}"), rune(c.in[c.at])) {
		c.at++
	}
	c.out = append(c.out, c.in[start:c.at]...)
	return nil
}

// text reads a string and returns it as written, with its quotes.
func (c *canon) text() []byte {
	start := c.at
	for c.at++; c.in[c.at] != '"'; c.at++ {
		if c.in[c.at] == '\\' {
			c.at++
		}
	}
	c.at++
	return c.in[start:c.at]
}

func (c *canon) array(depth int) error {
	c.at++
	c.out = append(c.out, '[')
	for n := 0; ; n++ {
		c.space()
		switch c.in[c.at] {
		case ']':
			c.at++
			c.out = append(c.out, ']')
			return nil
		case ',':
			c.at++
			c.out = append(c.out, ',')
		}
		c.space()
		if c.in[c.at] == ']' {
			continue
		}
		if err := c.value(depth + 1); err != nil {
			return err
		}
	}
}

// member is one key of an object and the range of its rewritten value.
type member struct {
	key        string
	start, end int
}

// object appends the rewritten members to the output one after another and then sorts them.
func (c *canon) object(depth int) error {
	c.at++
	var few [8]member
	members, from := few[:0], len(c.out)
	for {
		c.space()
		switch c.in[c.at] {
		case '}':
			c.at++
			return c.order(members, from)
		case ',':
			c.at++
			c.space()
		}
		m := member{key: decoded(c.text())}
		c.space()
		c.at++ // the colon
		m.start = len(c.out)
		if err := c.value(depth + 1); err != nil {
			return err
		}
		m.end = len(c.out)
		members = append(members, m)
	}
}

func (c *canon) order(members []member, from int) error {
	slices.SortFunc(members, func(a, b member) int { return bytes.Compare([]byte(a.key), []byte(b.key)) })
	sorted := append(c.spare[:0], '{')
	for i, m := range members {
		if i > 0 {
			if members[i-1].key == m.key {
				return Errorf("duplicate key %q", m.key)
			}
			sorted = append(sorted, ',')
		}
		sorted = appendText(sorted, m.key)
		sorted = append(sorted, ':')
		sorted = append(sorted, c.out[m.start:m.end]...)
	}
	c.out = append(append(c.out[:from], sorted...), '}')
	c.spare = sorted
	return nil
}

// decoded returns the text of a valid JSON string. A lone surrogate becomes U+FFFD, as in
// encoding/json.
func decoded(quoted []byte) string {
	inner := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner)
	}
	var s string
	if err := json.Unmarshal(quoted, &s); err != nil {
		return string(inner) // can't happen: it was validated
	}
	return s
}

// appendString appends a quoted string in its canonical form.
func appendString(out, quoted []byte) []byte {
	if plain(quoted[1 : len(quoted)-1]) {
		return append(out, quoted...)
	}
	return appendText(out, decoded(quoted))
}

// appendText escapes only what JSON requires, so that the bytes sent are those that a
// person would write; the card escapes characters that must not be shown raw.
func appendText(out []byte, s string) []byte {
	if plain([]byte(s)) {
		return append(append(append(out, '"'), s...), '"')
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s)                            // a string always encodes
	return append(out, b.Bytes()[:b.Len()-1]...) // Encode ends with a newline
}

// plain reports whether a text needs no escaping in JSON. encoding/json escapes U+2028 and
// U+2029.
func plain(s []byte) bool {
	for _, b := range s {
		if b < 0x20 || b == '"' || b == '\\' || b == 0xe2 {
			return false
		}
	}
	return true
}
