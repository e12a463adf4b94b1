package mcpfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"

	"nize/store"
)

// Command is an entry that runs a command.
type Command struct {
	Type string            `json:"type,omitempty" toml:"-"`
	Path string            `json:"command" toml:"command"`
	Args []string          `json:"args" toml:"args"`
	Env  map[string]string `json:"env,omitzero" toml:"-"`
	// Wait is the timeout of a call in the client's unit; 0 is the client's default.
	Wait int `json:"timeout,omitzero" toml:"tool_timeout_sec,omitzero"`
}

// ErrForm is returned if the file's form can only be edited by a person.
var ErrForm = errors.New("the file has a form that is not changed by a program")

// SetJSON sets the entry name in the object under key and leaves every other byte of the
// text unchanged, including comments. changed is false if the entry is already there. An
// empty text becomes a new file.
func SetJSON(text []byte, key, name string, entry any) (out []byte, changed bool, err error) {
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}\n")
	}
	if mark := []byte("\xef\xbb\xbf"); bytes.HasPrefix(text, mark) { // hujson does not accept a byte order mark
		out, changed, err = SetJSON(text[len(mark):], key, name, entry)
		if err == nil {
			out = append(mark, out...)
		}
		return out, changed, err
	}
	before, err := readObject(text)
	if err != nil {
		return nil, false, err
	}
	value, err := json.Marshal(entry)
	if err != nil {
		return nil, false, err
	}
	doc, err := parse(text)
	if err != nil {
		return nil, false, fmt.Errorf("%w: %w", ErrForm, err)
	}
	root, isObject := doc.Value.(*hujson.Object)
	if !isObject {
		return nil, false, fmt.Errorf("%w file: it must be a JSON object", store.ErrInvalid)
	}
	w := newLayout(text, root)
	servers := memberOf(root, key)
	if servers == nil {
		inner, err := json.Marshal(map[string]json.RawMessage{name: value})
		if err != nil {
			return nil, false, err
		}
		w.add(root, key, inner, "")
	} else {
		object, isObject := servers.Value.Value.(*hujson.Object)
		if !isObject {
			return nil, false, fmt.Errorf("%w: %q is no object", ErrForm, key)
		}
		switch own := memberOf(object, name); {
		case own == nil:
			w.add(object, name, value, w.indentOf(servers))
		case sameJSON(before[own.Value.StartOffset:own.Value.EndOffset], value):
			return text, false, nil
		default:
			own.Value.Value = w.literal(value, w.indentOf(own))
		}
	}
	out = pack(doc)
	return out, true, checkJSON(before, out, []string{key, name}, value)
}

// parse reads a text for editing, and pack writes it back. hujson rejects a comment without
// a newline at its end, so both add a newline.
func parse(text []byte) (hujson.Value, error) { return hujson.Parse(append(bytes.Clone(text), '\n')) }

func pack(doc hujson.Value) []byte { return bytes.TrimSuffix(doc.Pack(), []byte("\n")) }

// readObject returns the text as plain JSON of the same length.
func readObject(text []byte) ([]byte, error) {
	if len(text) > MaxSize {
		return nil, fmt.Errorf("%w file: it is over %d MiB", store.ErrInvalid, MaxSize>>20)
	}
	if !utf8.Valid(text) {
		return nil, fmt.Errorf("%w file: it is not UTF-8 text", store.ErrInvalid)
	}
	plain := stripComments(text)
	if mark := []byte("\xef\xbb\xbf"); bytes.HasPrefix(plain, mark) {
		copy(plain, "   ")
	}
	if err := checkDepth(plain); err != nil {
		return nil, err
	}
	if err := syntax(plain); err != nil {
		return nil, err
	}
	return plain, nil
}

// memberOf returns the member of that name; the last one if there are duplicates.
func memberOf(o *hujson.Object, name string) *hujson.ObjectMember {
	for i, m := range slices.Backward(o.Members) {
		if l, ok := m.Name.Value.(hujson.Literal); ok && l.String() == name {
			return &o.Members[i]
		}
	}
	return nil
}

// layout is a file's formatting: its line endings and indentation.
type layout struct {
	text          []byte
	newline, step string
}

func newLayout(text []byte, root *hujson.Object) layout {
	w := layout{text: text, newline: "\n", step: "  "}
	if bytes.Contains(text, []byte("\r\n")) {
		w.newline = "\r\n"
	}
	if len(root.Members) > 0 {
		if line := w.before(&root.Members[0]); line != "" && strings.TrimLeft(line, " \t") == "" {
			w.step = line
		}
	}
	return w
}

// before returns the text before a member on its line, indentOf the white space of it.
func (w layout) before(m *hujson.ObjectMember) string {
	text := w.text[:m.Name.StartOffset]
	return string(text[bytes.LastIndexByte(text, '\n')+1:])
}

func (w layout) indentOf(m *hujson.ObjectMember) string {
	line := w.before(m)
	return line[:len(line)-len(strings.TrimLeft(line, " \t"))]
}

func (w layout) literal(value []byte, indent string) hujson.Literal {
	var b bytes.Buffer
	if json.Indent(&b, value, indent, w.step) != nil {
		return value
	}
	return bytes.ReplaceAll(b.Bytes(), []byte("\n"), []byte(w.newline))
}

// add appends a member after any trailing comments. outer is the indentation of the line on
// which the object begins.
func (w layout) add(o *hujson.Object, name string, value []byte, outer string) {
	indent := outer + w.step
	if len(o.Members) > 0 {
		if line := w.before(&o.Members[0]); strings.TrimLeft(line, " \t") == "" {
			indent = line
		}
	}
	comments := bytes.TrimRight(o.AfterExtra, " \t\r\n")
	end := o.AfterExtra[len(comments):]
	if !bytes.Contains(end, []byte("\n")) {
		end = []byte(w.newline + outer)
	}
	m := hujson.ObjectMember{Name: hujson.Value{Value: hujson.String(name)}, Value: hujson.Value{BeforeExtra: hujson.Extra(" "), Value: w.literal(value, indent)}}
	m.Name.BeforeExtra = append(bytes.Clone(comments), w.newline+indent...)
	o.AfterExtra = end
	o.Members = append(o.Members, m)
}

func splice(text []byte, from, to int, by []byte) []byte {
	return append(append(bytes.Clone(text[:from]), by...), text[to:]...)
}

func sameJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// checkJSON returns an error if anything but the entry changed.
func checkJSON(before, after []byte, path []string, value []byte) error {
	plain, err := readObject(after)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrForm, err)
	}
	var was, is map[string]any
	var want any
	if err := errors.Join(json.Unmarshal(before, &was), json.Unmarshal(plain, &is), json.Unmarshal(value, &want)); err != nil {
		return fmt.Errorf("%w: %w", ErrForm, err)
	}
	return checkOnly(was, is, path, want)
}

func checkOnly(was, is map[string]any, path []string, want any) error {
	if was == nil {
		was = map[string]any{}
	}
	servers, _ := was[path[0]].(map[string]any)
	if servers == nil {
		servers = map[string]any{}
	}
	servers[path[1]] = want
	was[path[0]] = servers
	if !reflect.DeepEqual(was, is) {
		return ErrForm
	}
	return nil
}

// SetTOML is SetJSON for Codex's file: the entry is the table [key.name].
func SetTOML(text []byte, key, name string, entry Command) (out []byte, changed bool, err error) {
	if len(text) > MaxSize {
		return nil, false, fmt.Errorf("%w file: it is over %d MiB", store.ErrInvalid, MaxSize>>20)
	}
	var was, is map[string]any
	if err := toml.Unmarshal(text, &was); err != nil {
		return nil, false, fmt.Errorf("%w file: %w", store.ErrInvalid, err)
	}
	table, err := toml.Marshal(map[string]any{key: map[string]any{name: entry}})
	if err != nil {
		return nil, false, err
	}
	var own map[string]map[string]any
	if err := toml.Unmarshal(table, &own); err != nil {
		return nil, false, err
	}
	want := own[key][name]
	body := "[" + key + "." + name + "]\n" + tomlLines(entry)
	servers, _ := was[key].(map[string]any)
	switch had := servers[name]; {
	case reflect.DeepEqual(had, want):
		return text, false, nil
	case had == nil:
		gap := ""
		if trimmed := bytes.TrimRight(text, "\r\n"); len(trimmed) > 0 {
			text, gap = trimmed, "\n\n"
		}
		out = append(bytes.Clone(text), gap+body...)
	default:
		from, to := findTable(text, key+"."+name)
		if from < 0 {
			return nil, false, fmt.Errorf("%w: %s.%s stands in it otherwise than as a table", ErrForm, key, name)
		}
		out = splice(text, from, to, []byte(body))
	}
	if err := toml.Unmarshal(out, &is); err != nil {
		return nil, false, fmt.Errorf("%w: %w", ErrForm, err)
	}
	return out, true, checkOnly(was, is, []string{key, name}, want)
}

func tomlLines(entry Command) string {
	quoted := make([]string, len(entry.Args))
	for i, a := range entry.Args {
		quoted[i] = tomlString(a)
	}
	lines := "command = " + tomlString(entry.Path) + "\nargs = [" + strings.Join(quoted, ", ") + "]\n"
	if entry.Wait > 0 {
		lines += "tool_timeout_sec = " + strconv.Itoa(entry.Wait) + "\n"
	}
	return lines
}

// tomlString quotes a path or a flag; a JSON string is a valid TOML string.
func tomlString(s string) string {
	b, _ := json.Marshal(s) // a string always encodes
	return string(b)
}

// findTable returns the extent of the table of that name with its subtables, up to the next
// table of another name and without trailing blank lines and comments. It looks only at
// whole lines; a false match within a multi-line string is caught by the check of the
// result.
func findTable(text []byte, name string) (from, to int) {
	from, to = -1, len(text)
	at, filled := 0, 0 // start of the line; end of the table's last non-blank line
	for line := range bytes.Lines(text) {
		word := strings.TrimSpace(string(line))
		head, _, _ := strings.Cut(word, "#")
		head = strings.TrimSpace(head)
		isHead := strings.HasPrefix(head, "[") && strings.HasSuffix(head, "]")
		bare := strings.NewReplacer(" ", "", `"`, "", "'", "").Replace(strings.Trim(head, "[]"))
		switch {
		case from < 0 && isHead && bare == name:
			from = at
		case from >= 0 && isHead && bare != name && !strings.HasPrefix(bare, name+"."):
			return from, filled
		}
		at += len(line)
		if from >= 0 && word != "" && !strings.HasPrefix(word, "#") {
			filled = at
		}
	}
	if from >= 0 {
		to = filled
	}
	return from, to
}
