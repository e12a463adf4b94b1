package scan

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"nize/store"
)

// The limits of the schema gate. The largest schema among 5,000 real tools has 6 KiB, 71
// nodes and depth 8.
const (
	maxBytes    = 64 << 10
	maxDepth    = 32     // nested JSON values
	maxNodes    = 2000   // JSON objects and arrays
	maxCost     = 10_000 // subschemas applied to one instance value, with expanded references
	maxExponent = 400    // of a number: comparing 1e999999999 exactly takes a gigabyte
)

// Check returns an error if a schema of the tool is dangerous: too large, too deep,
// recursive without end, ambiguous to different parsers, or with a reference that leaves
// the document. The error wraps [store.ErrInvalid] and names the schema and the location. A
// schema that is merely odd, for example without a type or with a dangling reference,
// passes: the tool works, its pin covers the schema as received, and arguments that can't
// be checked are sent unchecked. Check takes a few milliseconds at most, for any input.
func (Gate) Check(tool store.Tool) error {
	if len(tool.InputSchema) > 0 {
		if err := checkSchema(tool.InputSchema); err != nil {
			return fmt.Errorf("%w input schema: %w", store.ErrInvalid, err)
		}
	}
	if len(tool.OutputSchema) > 0 {
		if err := checkSchema(tool.OutputSchema); err != nil {
			return fmt.Errorf("%w output schema: %w", store.ErrInvalid, err)
		}
	}
	return nil
}

func checkSchema(raw json.RawMessage) error {
	root, err := parse(raw)
	if err != nil {
		return err
	}
	g := graph{doc: root, in: map[*node]*resource{}, ids: map[string]*resource{}}
	g.collect(root, newResource(root))
	if err := g.resolve(); err != nil {
		return err
	}
	return g.measure()
}

// node is one JSON value of a schema document.
type node struct {
	kind byte // { [ s(tring) n(umber) b(ool) 0 (null)
	text string
	keys []string
	kids []*node // parallel to keys for an object; the elements of an array
}

func (n *node) get(key string) *node {
	for i, k := range n.keys {
		if k == key {
			return n.kids[i]
		}
	}
	return nil
}

// parse parses the document within the limits of size, depth and nodes.
func parse(raw []byte) (*node, error) {
	if len(raw) > maxBytes {
		return nil, fmt.Errorf("%d bytes, over the limit of %d", len(raw), maxBytes)
	}
	if !utf8.Valid(raw) {
		return nil, errors.New("not UTF-8")
	}
	if nesting(raw) > maxDepth {
		return nil, fmt.Errorf("reading JSON: nested deeper than %d", maxDepth)
	}
	if !json.Valid(raw) {
		return nil, whyInvalid(raw)
	}
	p := reader{cursor: cursor{in: raw}}
	n, err := p.value()
	if err != nil {
		return nil, fmt.Errorf("reading JSON: %w", err)
	}
	return n, nil
}

type reader struct {
	cursor
	nodes int
}

func (p *reader) value() (*node, error) {
	switch b := p.peek(); b {
	case '{', '[':
		if p.nodes++; p.nodes > maxNodes {
			return nil, fmt.Errorf("more than %d nodes", maxNodes)
		}
		return p.container(b)
	case '"':
		return &node{kind: 's', text: p.text()}, nil
	case 't', 'f':
		p.word()
		return &node{kind: 'b'}, nil
	case 'n':
		p.word()
		return &node{}, nil
	}
	number := p.word()
	if err := checkNumber(number); err != nil {
		return nil, err
	}
	return &node{kind: 'n', text: number}, nil
}

func (p *reader) container(open byte) (*node, error) {
	n := &node{kind: open}
	var seen map[string]bool
	if open == '{' {
		seen = map[string]bool{}
	}
	for p.open(); p.more(); {
		if open == '{' {
			key := p.text()
			if seen[key] {
				// Two parsers would see two different schemas.
				return nil, fmt.Errorf("the key %.80q appears twice", key)
			}
			seen[key] = true
			n.keys = append(n.keys, key)
		}
		kid, err := p.value()
		if err != nil {
			return nil, err
		}
		n.kids = append(n.kids, kid)
	}
	return n, nil
}

func checkNumber(s string) error {
	i := strings.IndexAny(s, "eE")
	if i < 0 {
		return nil
	}
	if exp, err := strconv.Atoi(s[i+1:]); err != nil || exp > maxExponent || exp < -maxExponent {
		return fmt.Errorf("the number %.20s has an exponent over %d", s, maxExponent)
	}
	return nil
}

// resource is a document, or a part of one with its own $id: it is the meaning of "#" in a
// reference below it (JSON Schema 2020-12 core, 8.2.1).
type resource struct {
	root    *node
	anchors map[string]*node
}

func newResource(root *node) *resource {
	return &resource{root: root, anchors: map[string]*node{}}
}

// graph holds the schemas of a document and the references between them.
type graph struct {
	doc     *node
	schemas []*node              // in document order
	in      map[*node]*resource  // the resource of every schema
	ids     map[string]*resource // by $id, as written
	dynamic map[string][]*node   // $dynamicAnchor in any resource
	targets map[*node][]*node    // targets of a schema's references
}

// The keywords, by the way in which their values contain subschemas.
var (
	oneSchema  = set("not if then else additionalProperties additionalItems unevaluatedProperties unevaluatedItems propertyNames contains contentSchema items")
	listSchema = set("allOf anyOf oneOf prefixItems items")
	mapSchema  = set("properties patternProperties dependentSchemas dependencies $defs definitions")
	inPlaceOne = []string{"not", "if", "then", "else"}
	inPlaceAll = []string{"allOf", "anyOf", "oneOf"}
	inPlaceMap = []string{"dependentSchemas", "dependencies"}
)

func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}

// collect collects the schemas in keyword positions. parse has limited the depth.
func (g *graph) collect(n *node, res *resource) {
	if n.kind != '{' || g.in[n] != nil {
		return
	}
	if id := n.get("$id"); id != nil && id.kind == 's' && n == res.root {
		g.ids[strings.TrimSuffix(id.text, "#")] = res
	} else if id != nil && id.kind == 's' {
		if name, ok := strings.CutPrefix(id.text, "#"); ok {
			res.anchors[name] = n // the form of anchors in draft-06 and draft-07
		} else {
			res = newResource(n)
			g.ids[strings.TrimSuffix(id.text, "#")] = res
		}
	}
	if id := n.get("id"); id != nil && id.kind == 's' && strings.HasPrefix(id.text, "#") {
		res.anchors[id.text[1:]] = n // draft-04
	}
	if a := n.get("$anchor"); a != nil && a.kind == 's' {
		res.anchors[a.text] = n
	}
	if a := n.get("$dynamicAnchor"); a != nil && a.kind == 's' {
		res.anchors[a.text] = n
		if g.dynamic == nil {
			g.dynamic = map[string][]*node{}
		}
		g.dynamic[a.text] = append(g.dynamic[a.text], n)
	}
	g.schemas = append(g.schemas, n)
	g.in[n] = res
	for i, key := range n.keys {
		v := n.kids[i]
		switch {
		case v.kind == '{' && mapSchema[key], v.kind == '[' && listSchema[key]:
			for _, kid := range v.kids {
				g.collect(kid, res)
			}
		case v.kind == '{' && oneSchema[key]:
			g.collect(v, res)
		}
	}
}

// resolve resolves all references. A target outside of a keyword position ("#/x-types/a")
// becomes a schema by being referenced, so the list grows during the iteration.
func (g *graph) resolve() error {
	g.targets = map[*node][]*node{}
	for i := 0; i < len(g.schemas); i++ {
		n := g.schemas[i]
		for _, key := range []string{"$ref", "$dynamicRef", "$recursiveRef"} {
			ref := n.get(key)
			if ref == nil || ref.kind != 's' {
				continue
			}
			target, err := g.find(g.in[n], ref.text)
			if err != nil {
				return err
			}
			if target == nil { // it validates nothing
				continue
			}
			g.collect(target, g.in[n])
			g.targets[n] = append(g.targets[n], target)
			if key == "$dynamicRef" {
				g.targets[n] = append(g.targets[n], g.dynamic[strings.TrimPrefix(ref.text, "#")]...)
			}
		}
	}
	return nil
}

// find returns the target of a reference, or nil if it has none.
func (g *graph) find(res *resource, ref string) (*node, error) {
	base, frag, _ := strings.Cut(ref, "#")
	if base != "" {
		if res = g.ids[base]; res == nil {
			return nil, fmt.Errorf("$ref %.80q leaves the document: only #/… and #anchor are followed", ref)
		}
	}
	if frag == "" {
		return res.root, nil
	}
	if frag[0] != '/' {
		return res.anchors[frag], nil
	}
	at := res.root
	for _, token := range strings.Split(frag[1:], "/") {
		token, ok := pointerToken(token)
		if !ok {
			return nil, nil
		}
		if at = at.child(token); at == nil {
			return nil, nil
		}
	}
	if at.kind != '{' && at.kind != 'b' {
		return nil, nil
	}
	return at, nil
}

// pointerToken unescapes a token of a fragment (RFC 3986) and of a pointer (RFC 6901).
// net/url could do the former, but this package must not import anything of net.
func pointerToken(token string) (string, bool) {
	var out []byte
	for i := 0; i < len(token); i++ {
		if token[i] != '%' {
			out = append(out, token[i])
			continue
		}
		if i+2 >= len(token) {
			return "", false
		}
		b, err := strconv.ParseUint(token[i+1:i+3], 16, 8)
		if err != nil {
			return "", false
		}
		out = append(out, byte(b))
		i += 2
	}
	return strings.ReplaceAll(strings.ReplaceAll(string(out), "~1", "/"), "~0", "~"), true
}

func (n *node) child(token string) *node {
	if n.kind == '{' {
		return n.get(token)
	}
	i, err := strconv.Atoi(token)
	if n.kind != '[' || err != nil || i < 0 || i >= len(n.kids) || strconv.Itoa(i) != token {
		return nil
	}
	return n.kids[i]
}

// inPlace returns the schemas that apply to the same instance value as n.
func (g *graph) inPlace(n *node) []*node {
	out := append([]*node(nil), g.targets[n]...)
	for _, key := range inPlaceOne {
		if v := n.get(key); v != nil {
			out = append(out, v)
		}
	}
	for _, key := range inPlaceAll {
		if v := n.get(key); v != nil && v.kind == '[' {
			out = append(out, v.kids...)
		}
	}
	for _, key := range inPlaceMap {
		if v := n.get(key); v != nil && v.kind == '{' {
			for _, kid := range v.kids {
				if kid.kind == '{' {
					out = append(out, kid)
				}
			}
		}
	}
	return out
}

const measuring = -1

// measure returns an error for in-place cycles (validation would never end) and if
// validating one value costs too much with all references expanded (a chain of thirty allOf
// with the same schema twice has 1.4 KB and takes ten seconds).
func (g *graph) measure() error {
	cost := make(map[*node]int, len(g.schemas))
	for _, n := range g.schemas {
		if _, err := g.cost(n, cost); err != nil {
			return err
		}
	}
	return nil
}

// cost recurses at most once into each schema, so at most maxNodes deep.
func (g *graph) cost(n *node, known map[*node]int) (int, error) {
	switch c := known[n]; {
	case c == measuring:
		return 0, errors.New("its references form a cycle that never reaches a property or item")
	case c > 0:
		return c, nil
	}
	known[n] = measuring
	total := 1
	for _, kid := range g.inPlace(n) {
		c, err := g.cost(kid, known)
		if err != nil {
			return 0, err
		}
		if total += c; total > maxCost {
			return 0, fmt.Errorf("checking one value takes more than %d steps once its references are expanded", maxCost)
		}
	}
	known[n] = total
	return total, nil
}
