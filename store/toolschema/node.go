package toolschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// node is one JSON value. Objects preserve the order of their members, because models read
// them in that order, and scalars their literal, so that no number is rounded.
type node struct {
	kind byte            // { [ s(tring) n(umber) b(ool) 0 (null)
	raw  json.RawMessage // of a scalar
	keys []string
	kids []*node // the values of an object's keys, or the items of an array
}

// Limits of a document; schemas of real tools are far below them.
const (
	maxDepth = 64   // nested JSON values
	maxKids  = 2000 // members of an object, items of an array
)

var (
	errDepth = errors.New("nested too deep")
	errKids  = errors.New("too many members or items")
)

func parse(raw json.RawMessage) (*node, error) {
	if !json.Valid(raw) {
		return nil, errors.New("not JSON")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	return read(dec, 0)
}

func read(dec *json.Decoder, depth int) (*node, error) {
	if depth > maxDepth {
		return nil, errDepth
	}
	t, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case json.Delim:
		n := &node{kind: byte(t)}
		for dec.More() {
			if len(n.kids) == maxKids {
				return nil, errKids
			}
			if n.kind == '{' {
				key, err := dec.Token()
				if err != nil {
					return nil, err
				}
				name, _ := key.(string) // the decoder accepts no other key
				n.keys = append(n.keys, name)
			}
			kid, err := read(dec, depth+1)
			if err != nil {
				return nil, err
			}
			n.kids = append(n.kids, kid)
		}
		_, err := dec.Token()
		return n, err
	case string:
		return text(t), nil
	case json.Number:
		return &node{kind: 'n', raw: json.RawMessage(t)}, nil
	case bool:
		if t {
			return &node{kind: 'b', raw: json.RawMessage("true")}, nil
		}
		return &node{kind: 'b', raw: json.RawMessage("false")}, nil
	}
	return &node{raw: json.RawMessage("null")}, nil
}

// encode returns the value without white space.
func (n *node) encode() json.RawMessage {
	var b bytes.Buffer
	n.write(&b)
	return b.Bytes()
}

func (n *node) write(b *bytes.Buffer) {
	if n.kind != '{' && n.kind != '[' {
		b.Write(n.raw)
		return
	}
	b.WriteByte(n.kind)
	for i, kid := range n.kids {
		if i > 0 {
			b.WriteByte(',')
		}
		if n.kind == '{' {
			b.Write(text(n.keys[i]).raw)
			b.WriteByte(':')
		}
		kid.write(b)
	}
	b.WriteByte(n.kind + 2) // } and ] are two code points after { and [
}

func text(s string) *node {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always encodes
	return &node{kind: 's', raw: bytes.TrimSuffix(b.Bytes(), []byte("\n"))}
}

func texts(list []string) *node {
	n := array()
	for _, s := range list {
		n.kids = append(n.kids, text(s))
	}
	return n
}

func array(kids ...*node) *node { return &node{kind: '[', kids: kids} }

func object() *node { return &node{kind: '{'} }

// str returns the string that n is, "" for anything else.
func (n *node) str() string {
	if n == nil || n.kind != 's' {
		return ""
	}
	var s string
	_ = json.Unmarshal(n.raw, &s) // can't fail: text or the decoder produced it
	return s
}

func (n *node) is(kind byte) bool { return n != nil && n.kind == kind }

// isTrue reports whether n is the value true.
func (n *node) isTrue() bool { return n.is('b') && string(n.raw) == "true" }

func (n *node) get(key string) *node {
	if n == nil || n.kind != '{' {
		return nil
	}
	if i := slices.Index(n.keys, key); i >= 0 {
		return n.kids[i]
	}
	return nil
}

func (n *node) set(key string, value *node) {
	if i := slices.Index(n.keys, key); i >= 0 {
		n.kids[i] = value
		return
	}
	n.keys, n.kids = append(n.keys, key), append(n.kids, value)
}

// setFirst inserts a member before all others.
func (n *node) setFirst(key string, value *node) {
	n.drop(key)
	n.keys, n.kids = slices.Insert(n.keys, 0, key), slices.Insert(n.kids, 0, value)
}

func (n *node) drop(keys ...string) {
	for _, key := range keys {
		if i := slices.Index(n.keys, key); i >= 0 {
			n.keys, n.kids = slices.Delete(n.keys, i, i+1), slices.Delete(n.kids, i, i+1)
		}
	}
}

func (n *node) clone() *node {
	c := *n
	c.keys, c.kids = slices.Clone(n.keys), make([]*node, len(n.kids))
	for i, kid := range n.kids {
		c.kids[i] = kid.clone()
	}
	return &c
}

// strings returns the strings of an array, each once.
func (n *node) strings() []string {
	var list []string
	if n.is('[') {
		seen := make(map[string]bool, len(n.kids))
		for _, kid := range n.kids {
			if s := kid.str(); kid.kind == 's' && !seen[s] {
				seen[s] = true
				list = append(list, s)
			}
		}
	}
	return list
}

func equal(a, b *node) bool {
	if a == b {
		return true
	}
	return a.kind == b.kind && bytes.Equal(a.raw, b.raw) && slices.Equal(a.keys, b.keys) && slices.EqualFunc(a.kids, b.kids, equal)
}

// shallow returns a copy whose members may be replaced.
func (n *node) shallow() *node {
	return &node{kind: n.kind, raw: n.raw, keys: slices.Clone(n.keys), kids: slices.Clone(n.kids)}
}

// child returns the member or item named by one token of a JSON pointer.
func (n *node) child(token string) *node {
	if n.kind == '{' {
		return n.get(token)
	}
	var i int
	if n.kind != '[' || json.Unmarshal([]byte(token), &i) != nil || i < 0 || i >= len(n.kids) || strings.HasPrefix(token, "+") {
		return nil
	}
	return n.kids[i]
}
