package mcpfile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"go.yaml.in/yaml/v3"

	"nize/store"
)

// Files are JSON with comments, TOML or YAML. The format is detected from the text, since
// the name is not always known. The rest of the package reads only JSON.

// plain converts the text of a file to JSON. The error includes the line and the format
// that was detected.
func plain(data []byte) ([]byte, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	asJSON := stripComments(data)
	first, head := firstLine(data)
	err := checkDepth(asJSON)
	if err == nil {
		err = syntax(asJSON)
	}
	switch {
	case err == nil, first == "", first[0] == '{', strings.HasPrefix(first, "//"), strings.HasPrefix(first, "/*"), first[0] == '[' && !head:
		return asJSON, err
	}
	if err := checkNesting(data); err != nil {
		return nil, err
	}
	fromTOML, errTOML := tomlToJSON(data)
	if errTOML == nil {
		return fromTOML, checkDepth(fromTOML)
	}
	fromYAML, errYAML := yamlToJSON(data)
	switch {
	case errYAML == nil:
		return fromYAML, checkDepth(fromYAML)
	case head || tomlLine.MatchString(first):
		return nil, fmt.Errorf("%w file: it looks like TOML, and %w", store.ErrInvalid, errTOML)
	case errors.Is(errYAML, errNoObject):
		return nil, fmt.Errorf("%w file: it is neither JSON, nor TOML, nor YAML with servers in it", store.ErrInvalid)
	}
	return nil, fmt.Errorf("%w file: it looks like YAML, and %w", store.ErrInvalid, errYAML)
}

// tomlKey matches one part of a key in TOML.
const tomlKey = `([\w-]+|"[^"\n]*"|'[^'\n]*')`

var (
	tomlHead = regexp.MustCompile(`^\[\[?\s*` + tomlKey + `(\s*\.\s*` + tomlKey + `)*\s*\]\]?\s*(#.*)?$`)
	tomlLine = regexp.MustCompile(`^[\w."'-]+\s*=`)
)

// firstLine returns the first line that is not blank or a comment (#, in TOML and YAML),
// and whether it is the header of a table in TOML.
func firstLine(data []byte) (line string, head bool) {
	for l := range bytes.Lines(data) {
		line = strings.TrimSpace(string(l))
		if line != "" && line[0] != '#' {
			return line, tomlHead.MatchString(line)
		}
	}
	return line, false // "" or a comment
}

// maxNesting bounds the brackets of a text that is not JSON before it is passed to a
// decoder, which would recurse as deep. It also counts brackets in strings; no real file
// has so many.
const maxNesting = 1000

func checkNesting(data []byte) error {
	depth := 0
	for _, c := range data {
		switch c {
		case '[', '{':
			depth++
		case ']', '}':
			depth = max(0, depth-1)
		}
		if depth > maxNesting {
			return fmt.Errorf("%w file: it is nested deeper than %d", store.ErrInvalid, maxNesting)
		}
	}
	return nil
}

// maxKeys bounds the keys of a text that is not JSON before it is passed to a decoder:
// those of TOML and YAML compare each key of a table with all others.
const maxKeys = 20_000

var errTooManyKeys = fmt.Errorf("it has more than %d keys", maxKeys)

// tomlToJSON keeps the order of the text for the keys of a table, as far as it can be
// determined.
func tomlToJSON(data []byte) ([]byte, error) {
	if bytes.Count(data, []byte("="))+bytes.Count(data, []byte("\n[")) > maxKeys {
		return nil, errTooManyKeys
	}
	var all map[string]any
	if err := toml.Unmarshal(data, &all); err != nil {
		var at *toml.DecodeError
		if errors.As(err, &at) {
			line, _ := at.Position()
			return nil, fmt.Errorf("line %d: %s", line, strings.TrimPrefix(at.Error(), "toml: "))
		}
		return nil, errors.New(strings.TrimPrefix(err.Error(), "toml: "))
	}
	var b bytes.Buffer
	writeJSON(&b, all, firstPlaces(data))
	return b.Bytes(), nil
}

// tomlWord matches a key of TOML: bare or quoted.
var tomlWord = regexp.MustCompile(`[A-Za-z0-9_-]+|"[^"\\\n]*"|'[^'\n]*'`)

// firstPlaces returns the first offset of each key in a text. It does not include keys with
// escapes.
func firstPlaces(text []byte) map[string]int {
	places := map[string]int{}
	for _, at := range tomlWord.FindAllIndex(text, -1) {
		word := strings.Trim(string(text[at[0]:at[1]]), `"'`)
		if _, ok := places[word]; !ok {
			places[word] = at[0]
		}
	}
	return places
}

// writeJSON writes a value from a TOML decoder, with the keys of a table ordered by their
// offsets. Values without a JSON form are written as strings.
func writeJSON(b *bytes.Buffer, v any, places map[string]int) {
	switch v := v.(type) {
	case map[string]any:
		keys := slices.SortedFunc(maps.Keys(v), func(x, y string) int {
			return cmp.Or(places[x]-places[y], strings.Compare(x, y))
		})
		b.WriteByte('{')
		for i, k := range keys {
			if i > 0 {
				b.WriteByte(',')
			}
			writeText(b, k)
			b.WriteByte(':')
			writeJSON(b, v[k], places)
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, one := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			writeJSON(b, one, places)
		}
		b.WriteByte(']')
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			writeText(b, fmt.Sprint(v))
			return
		}
		writeScalar(b, v)
	default:
		writeScalar(b, v)
	}
}

func writeText(b *bytes.Buffer, s string) { writeScalar(b, s) }

func writeScalar(b *bytes.Buffer, v any) {
	out, err := json.Marshal(v)
	if err != nil {
		out, _ = json.Marshal(fmt.Sprint(v)) // a string always encodes
	}
	b.Write(out)
}

// Limits of the expansion of a YAML file's aliases, which repeat nodes and long strings.
const (
	maxNodes = 100_000
	maxText  = 4 * MaxSize
)

// yamlToJSON converts the first document of a text. It returns errNoObject if that is not a
// mapping, since almost any text is YAML.
func yamlToJSON(data []byte) ([]byte, error) {
	if bytes.Count(data, []byte(":"))+bytes.Count(data, []byte("?"))+bytes.Count(data, []byte(",")) > maxKeys {
		return nil, errTooManyKeys
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, errNoObject
	}
	w := yamlWriter{left: maxNodes}
	if err := w.write(doc.Content[0], 0); err != nil {
		return nil, err
	}
	return w.out.Bytes(), nil
}

type yamlWriter struct {
	out  bytes.Buffer
	left int
}

// spend counts one more node and returns an error over the limit.
func (w *yamlWriter) spend() error {
	if w.left--; w.left < 0 || w.out.Len() > maxText {
		return errors.New("its aliases make too much of it")
	}
	return nil
}

func (w *yamlWriter) write(n *yaml.Node, depth int) error {
	if err := w.spend(); err != nil {
		return err
	}
	if depth > maxDepth+1 {
		return fmt.Errorf("it is nested deeper than %d", maxDepth)
	}
	switch n.Kind {
	case yaml.AliasNode:
		return w.write(n.Alias, depth+1)
	case yaml.SequenceNode:
		w.out.WriteByte('[')
		for i, one := range n.Content {
			if i > 0 {
				w.out.WriteByte(',')
			}
			if err := w.write(one, depth+1); err != nil {
				return err
			}
		}
		w.out.WriteByte(']')
		return nil
	case yaml.MappingNode:
		w.out.WriteByte('{')
		if err := w.members(n, new(bool), depth); err != nil {
			return err
		}
		w.out.WriteByte('}')
		return nil
	}
	var v any
	if n.Decode(&v) != nil || n.Tag == "!!timestamp" || n.Tag == "!!float" || n.Tag == "!!binary" {
		v = n.Value // as it was written
	}
	writeScalar(&w.out, v)
	return nil
}

// members writes the members of a mapping. Merged ones are written first, so that the
// mapping's own keys override them: if a key is repeated, the last one counts.
func (w *yamlWriter) members(n *yaml.Node, some *bool, depth int) error {
	if depth > maxDepth+1 {
		return fmt.Errorf("it is nested deeper than %d", maxDepth)
	}
	for _, merged := range []bool{true, false} {
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			if (key.Tag == "!!merge") != merged {
				continue
			}
			if err := w.spend(); err != nil {
				return err
			}
			if merged {
				if err := w.merge(value, some, depth+1); err != nil {
					return err
				}
				continue
			}
			if *some {
				w.out.WriteByte(',')
			}
			*some = true
			writeText(&w.out, key.Value)
			w.out.WriteByte(':')
			if err := w.write(value, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// merge writes the target of "<<": a mapping, or several, of which the first takes
// precedence.
func (w *yamlWriter) merge(n *yaml.Node, some *bool, depth int) error {
	for range maxDepth {
		if n.Kind != yaml.AliasNode {
			break
		}
		n = n.Alias
	}
	switch n.Kind {
	case yaml.MappingNode:
		return w.members(n, some, depth)
	case yaml.SequenceNode:
		for _, one := range slices.Backward(n.Content) {
			if err := w.spend(); err != nil {
				return err
			}
			if err := w.merge(one, some, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}
