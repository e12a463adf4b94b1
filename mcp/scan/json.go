package scan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// The rule of this file: encoding/json validates the whole document once; a cursor then
// only splits valid JSON. The Decoder's own tokens cost ten times as much, and each
// definition of a tool contains some hundred.

// cursor reads one valid JSON document, token by token.
type cursor struct {
	in []byte
	at int
}

// peek skips white space and separators, and returns the first byte of the next value, or
// the bracket that ends the container.
func (c *cursor) peek() byte {
	for ; ; c.at++ {
		switch b := c.in[c.at]; b {
		case ' ', '\n', '\t', '\r', ',', ':':
		default:
			return b
		}
	}
}

// open enters the current container.
func (c *cursor) open() { c.at++ }

// more reports whether another member or element follows, and leaves the container if not.
func (c *cursor) more() bool {
	if b := c.peek(); b != '}' && b != ']' {
		return true
	}
	c.at++
	return false
}

// text reads the current string.
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
		return string(c.in[start : c.at-1]) // unreachable: the document is valid
	}
	return s
}

// word reads the current number, true, false or null.
func (c *cursor) word() string {
	start := c.at
	for c.at < len(c.in) && !bytes.ContainsRune([]byte(" \n\t\r,]}"), rune(c.in[c.at])) {
		c.at++
	}
	return string(c.in[start:c.at])
}

// nesting returns the nesting depth of a document's containers. The document need not be
// valid.
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

// whyInvalid returns the error of an invalid document.
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
