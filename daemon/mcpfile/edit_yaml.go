package mcpfile

import (
	"bytes"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"nize/store"
)

// SetYAML is SetJSON for Goose's file: the entry, an ordered list of fields, goes into the
// mapping under key. Lines of other entries are unchanged.
func SetYAML(text []byte, key, name string, entry []Field) (out []byte, changed bool, err error) {
	if len(text) > MaxSize {
		return nil, false, fmt.Errorf("%w file: it is over %d MiB", store.ErrInvalid, MaxSize>>20)
	}
	var was, is map[string]any
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &was); err != nil {
		return nil, false, fmt.Errorf("%w file: %w", store.ErrInvalid, err)
	}
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, false, fmt.Errorf("%w file: %w", store.ErrInvalid, err)
	}
	var want map[string]any
	if err := yaml.Unmarshal([]byte(yamlEntry("", "", entry)), &want); err != nil {
		return nil, false, err
	}
	servers, _ := was[key].(map[string]any)
	if reflect.DeepEqual(servers[name], any(want)) {
		return text, false, nil
	}
	if out, err = placeYAML(text, &doc, key, name, entry); err != nil {
		return nil, false, err
	}
	if err := yaml.Unmarshal(out, &is); err != nil {
		return nil, false, fmt.Errorf("%w: %w", ErrForm, err)
	}
	return out, true, checkOnly(was, is, []string{key, name}, any(want))
}

// Field is a field of an entry: a string, a number, a bool, or a list of strings.
type Field struct {
	Name  string
	Value any
}

// placeYAML inserts the lines of the entry.
func placeYAML(text []byte, doc *yaml.Node, key, name string, entry []Field) ([]byte, error) {
	lines := bytes.SplitAfter(text, []byte("\n"))
	if last := lines[len(lines)-1]; len(last) > 0 {
		lines[len(lines)-1] = append(bytes.Clone(last), '\n')
	} else {
		lines = lines[:len(lines)-1]
	}
	insert := func(from, to int, indent, body string) []byte {
		before, after := bytes.Join(lines[:from], nil), bytes.Join(lines[to:], nil)
		return append(append(bytes.Clone(before), yamlEntry(indent, body, entry)...), after...)
	}
	if len(doc.Content) == 0 { // no document, or only comments
		return append(bytes.Join(lines, nil), yamlEntry("  ", name, entry, key)...), nil
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode || root.Style&yaml.FlowStyle != 0 {
		return nil, fmt.Errorf("%w: it is no mapping in lines", ErrForm)
	}
	at, end := memberNode(root, key, len(lines))
	if at == nil {
		return append(bytes.Join(lines, nil), yamlEntry("  ", name, entry, key)...), nil
	}
	switch {
	case at.Kind == yaml.ScalarNode && at.Tag == "!!null" && at.Value == "":
		return insert(at.Line, at.Line, "  ", name), nil
	case at.Kind != yaml.MappingNode || at.Style&yaml.FlowStyle != 0 || len(at.Content) == 0 || at.Anchor != "":
		return nil, fmt.Errorf("%w: %q is no mapping in lines", ErrForm, key)
	}
	indent := strings.Repeat(" ", at.Content[0].Column-1)
	own, ownEnd := memberNode(at, name, end)
	if own == nil {
		return insert(lastLine(lines, end), lastLine(lines, end), indent, name), nil
	}
	for i := 0; i < len(at.Content); i += 2 {
		if at.Content[i].Value == name {
			return insert(at.Content[i].Line-1, lastLine(lines, ownEnd), indent, name), nil
		}
	}
	return nil, ErrForm
}

// memberNode returns the value of a key, and the line on which the next member begins.
func memberNode(mapping *yaml.Node, key string, end int) (value *yaml.Node, next int) {
	for i := 0; i < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value != key {
			continue
		}
		if i+2 < len(mapping.Content) {
			end = mapping.Content[i+2].Line - 1
		}
		return mapping.Content[i+1], end
	}
	return nil, end
}

// lastLine returns the end of a block that extends to end, excluding trailing blank lines
// and comments, which belong to what follows.
func lastLine(lines [][]byte, end int) int {
	for end > 0 {
		line := bytes.TrimSpace(lines[end-1])
		if len(line) > 0 && line[0] != '#' {
			break
		}
		end--
	}
	return end
}

// yamlEntry returns the lines of an entry, below the keys that don't exist yet.
func yamlEntry(indent, name string, entry []Field, above ...string) string {
	var b strings.Builder
	for _, key := range above {
		b.WriteString(key + ":\n")
	}
	inner := indent
	if name != "" {
		b.WriteString(indent + name + ":\n")
		inner += "  "
	}
	for _, f := range entry {
		b.WriteString(inner + f.Name + ": ")
		switch v := f.Value.(type) {
		case string:
			b.WriteString(tomlString(v)) // a JSON string is a valid YAML string
		case int:
			b.WriteString(strconv.Itoa(v))
		case bool:
			b.WriteString(strconv.FormatBool(v))
		case []string:
			quoted := make([]string, len(v))
			for i, s := range v {
				quoted[i] = tomlString(s)
			}
			b.WriteString("[" + strings.Join(quoted, ", ") + "]")
		}
		b.WriteByte('\n')
	}
	return b.String()
}
