package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// toJSON returns a JSON or YAML document as JSON.
func toJSON(data []byte) (json.RawMessage, error) {
	data = bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))
	if !utf8.Valid(data) {
		return nil, invalid("it is not UTF-8 text")
	}
	if len(data) == 0 {
		return nil, invalid("it is empty")
	}
	if data[0] == '{' {
		if json.Valid(data) {
			return data, nil
		}
		var v json.RawMessage
		err := json.Unmarshal(data, &v)
		if bad := (*json.SyntaxError)(nil); errors.As(err, &bad) {
			return nil, invalid("it is not JSON: line %d: %v", 1+bytes.Count(data[:min(int(bad.Offset), len(data))], []byte("\n")), bad)
		}
		return nil, invalid("it is not JSON: %v", err)
	}
	if data[0] == '<' {
		return nil, invalid("it is an HTML or XML page: give the address of the document itself")
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, invalid("it is neither JSON nor YAML: %s", oneLine(err.Error(), 200))
	}
	if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, invalid("it is not a JSON or YAML object")
	}
	w := yamlWriter{}
	if err := w.value(doc.Content[0], 0); err != nil {
		return nil, err
	}
	return w.out.Bytes(), nil
}

// yamlWriter writes YAML nodes as JSON. It expands aliases, so the expansion is limited.
type yamlWriter struct {
	out   bytes.Buffer
	count int // number of values, with expanded aliases
}

// maxValues is the maximum number of values in a YAML document with expanded aliases.
const maxValues = 4_000_000

func (w *yamlWriter) value(n *yaml.Node, depth int) error {
	w.count++
	if depth > maxDepth {
		return invalid("it is nested deeper than %d", maxDepth)
	}
	if w.out.Len() > MaxDocument || w.count > maxValues {
		return invalid("its aliases come to more than %d MiB", MaxDocument>>20)
	}
	switch n.Kind {
	case yaml.AliasNode:
		return w.value(n.Alias, depth+1)
	case yaml.SequenceNode:
		w.out.WriteByte('[')
		for i, e := range n.Content {
			if i > 0 {
				w.out.WriteByte(',')
			}
			if err := w.value(e, depth+1); err != nil {
				return err
			}
		}
		w.out.WriteByte(']')
	case yaml.MappingNode:
		w.out.WriteByte('{')
		first := true
		if err := w.members(n, depth, map[string]bool{}, &first); err != nil {
			return err
		}
		w.out.WriteByte('}')
	case yaml.ScalarNode:
		w.out.Write(scalar(n))
	default:
		w.out.WriteString("null")
	}
	return nil
}

// members writes the members of a mapping that were not written yet. Members merged by "<<"
// come last, because the mapping's own ones take precedence.
func (w *yamlWriter) members(n *yaml.Node, depth int, written map[string]bool, first *bool) error {
	if depth > maxDepth {
		return invalid("it is nested deeper than %d", maxDepth)
	}
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode {
			return invalid("line %d: a key is not a text", key.Line)
		}
		if key.Tag == "!!merge" {
			merged = append(merged, value)
			continue
		}
		if written[key.Value] {
			continue
		}
		written[key.Value] = true
		if !*first {
			w.out.WriteByte(',')
		}
		*first = false
		w.out.Write(quote(key.Value))
		w.out.WriteByte(':')
		if err := w.value(value, depth+1); err != nil {
			return err
		}
	}
	for len(merged) > 0 {
		m := merged[0]
		merged = merged[1:]
		w.count++
		if w.count > maxValues {
			return invalid("its aliases come to more than %d MiB", MaxDocument>>20)
		}
		if m.Kind == yaml.AliasNode {
			m = m.Alias
		}
		switch m.Kind {
		case yaml.SequenceNode:
			merged = append(merged, m.Content...)
		case yaml.MappingNode:
			if err := w.members(m, depth+1, written, first); err != nil {
				return err
			}
		}
	}
	return nil
}

// scalar writes a scalar as JSON, or as a string if JSON can't represent it.
func scalar(n *yaml.Node) []byte {
	switch n.Tag {
	case "!!null":
		return []byte("null")
	case "!!bool":
		var b bool
		if n.Decode(&b) == nil {
			return strconv.AppendBool(nil, b)
		}
	case "!!int", "!!float":
		if json.Valid([]byte(n.Value)) && !strings.HasPrefix(n.Value, `"`) {
			return []byte(n.Value)
		}
		var i int64
		if n.Tag == "!!int" && n.Decode(&i) == nil { // 0x1F, 0o17
			return strconv.AppendInt(nil, i, 10)
		}
		var f float64
		if n.Decode(&f) == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
			return fmt.Append(nil, json.Number(strconv.FormatFloat(f, 'g', -1, 64)))
		}
	}
	return quote(n.Value)
}

func quote(s string) json.RawMessage { return marshal(s) }
