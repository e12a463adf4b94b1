package mcpfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// AddToList adds an entry to the list under a path of keys in a settings file. It replaces
// the entry for which ours returns true, which is an older one of nize's; otherwise it
// appends. The rest of the text is unchanged, including comments. changed is false if the
// entry is already there. An empty text becomes a new file. It returns ErrForm if the file
// can't be edited this way.
func AddToList(text []byte, path []string, entry any, ours func(json.RawMessage) bool) (out []byte, changed bool, err error) {
	value, err := json.Marshal(entry)
	if err != nil {
		return nil, false, err
	}
	if len(bytes.TrimSpace(text)) == 0 {
		var whole any = []json.RawMessage{value}
		for i := len(path) - 1; i >= 0; i-- {
			whole = map[string]any{path[i]: whole}
		}
		out, err = json.MarshalIndent(whole, "", "  ")
		return append(out, '\n'), true, err
	}
	doc, err := parse(text)
	if err != nil {
		return nil, false, fmt.Errorf("%w: it is not JSON: %w", ErrForm, err)
	}
	plain := doc.Clone()
	plain.Standardize()
	at, op, rest := json.RawMessage(plain.Pack()), "", json.RawMessage(value)
	pointer := ""
	for i, key := range path {
		var object map[string]json.RawMessage
		if err := json.Unmarshal(at, &object); err != nil || object == nil {
			return nil, false, fmt.Errorf("%w: %q is no object", ErrForm, strings.Join(path[:i], "."))
		}
		pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
		next, there := object[key]
		if !there || string(bytes.TrimSpace(next)) == "null" {
			var whole any = []json.RawMessage{value}
			for j := len(path) - 1; j > i; j-- {
				whole = map[string]any{path[j]: whole}
			}
			op = "add"
			if rest, err = json.Marshal(whole); err != nil {
				return nil, false, err
			}
			break
		}
		at = next
	}
	if op == "" {
		var list []json.RawMessage
		if err := json.Unmarshal(at, &list); err != nil {
			return nil, false, fmt.Errorf("%w: %q is no list", ErrForm, strings.Join(path, "."))
		}
		op = "add"
		where := "/-"
		for i, have := range list {
			if !ours(have) {
				continue
			}
			if sameJSON(have, value) {
				return text, false, nil
			}
			op, where = "replace", fmt.Sprintf("/%d", i)
			break
		}
		pointer += where
	}
	patch, err := json.Marshal([]map[string]any{{"op": op, "path": pointer, "value": rest}})
	if err != nil {
		return nil, false, err
	}
	if err := doc.Patch(patch); err != nil {
		return nil, false, fmt.Errorf("%w: %w", ErrForm, err)
	}
	return pack(doc), true, nil
}
