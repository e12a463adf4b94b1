package scan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// The rule of this file: encoding/json decides what is JSON, once for a whole
// document; a cursor only cuts up what is. The Decoder's own tokens cost ten
// times as much, and there are some hundred in each definition of a tool.

// cursor reads one valid JSON document, token by token.
type cursor struct {
	in []byte
	at int
}

// peek steps over white space and what stands between values, and returns the
// first byte of the next value, or the bracket that ends the container.
func (c *cursor) peek() byte {
	for ; ; c.at++ {
		switch b := c.in[c.at]; b {
		case ' ', '\n', '\t', '\r', ',', ':':
		default:
			return b
		}
	}
}

// open steps into the container at hand.
func (c *cursor) open() { c.at++ }

// more says whether another member or element comes, and steps out of the
// container where none does.
func (c *cursor) more() bool {
	if b := c.peek(); b != '}' && b != ']' {
		return true
	}
	c.at++
	return false
}

// text reads the string at hand.
func (c *cursor) text() string {
	c.peek()
	start, escaped := c.at+1, false
	for c.at++; c.in[c.at] != '"'; c.at++ {
		if c.in[c.at] == '\\' {
			escaped = true
			c.at++
		}
	}
	c.at++
	if inner := c.in[start : c.at-1]; !escaped && utf8.Valid(inner) {
		return string(inner)
	}
	var s string
	if json.Unmarshal(c.in[start-1:c.at], &s) != nil {
		return string(c.in[start : c.at-1]) // it was valid a moment ago
	}
	return s
}

// word reads the number, true, false or null at hand.
func (c *cursor) word() string {
	start := c.at
	for c.at < len(c.in) && !bytes.ContainsRune([]byte(" \n\t\r,]}"), rune(c.in[c.at])) {
		c.at++
	}
	return string(c.in[start:c.at])
}

// nesting is how deep the containers of a document stand in one another, which
// need not be valid.
func nesting(raw []byte) int {
	deepest, depth := 0, 0
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		case '"':
			for i++; i < len(raw) && raw[i] != '"'; i++ {
				if raw[i] == '\\' {
					i++
				}
			}
		}
	}
	return deepest
}

// whyInvalid says what is wrong with a document that is not valid.
func whyInvalid(raw []byte) error {
	var v json.RawMessage
	err := json.NewDecoder(bytes.NewReader(raw)).Decode(&v)
	switch {
	case err == nil:
		return errors.New("reading JSON: more than one value")
	case errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("reading JSON: %w", err)
}
