package mcpfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"

	"nize/store"
)

// Command is an entry that starts a command.
type Command struct {
	Type string            `json:"type,omitempty" toml:"-"`
	Path string            `json:"command" toml:"command"`
	Args []string          `json:"args" toml:"args"`
	Env  map[string]string `json:"env,omitzero" toml:"-"`
	// Wait is how long a call may take, in the client's unit; 0 is the client's default.
	Wait int `json:"timeout,omitzero" toml:"tool_timeout_sec,omitzero"`
}

// ErrForm says that a file holds the entry in a form that only a person can
// change.
var ErrForm = errors.New("the file has a form that is not changed by a program")

// SetJSON puts an entry into the object under key, as name, and leaves every
// other byte of the text as it is, comments too. changed is false where the
// text says so already. A text that is empty becomes a file.
func SetJSON(text []byte, key, name string, entry any) (out []byte, changed bool, err error) {
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}\n")
	}
	before, err := readObject(text)
	if err != nil {
		return nil, false, err
	}
	value, err := json.Marshal(entry)
	if err != nil {
		return nil, false, err
	}
	servers, found, err := findMember(before, 0, key)
	if err != nil {
		return nil, false, err
	}
	e := edit{text: text, plain: before}
	if !found.there {
		inner, _ := json.Marshal(map[string]json.RawMessage{name: value}) // JSON, and a string
		out = e.insert(servers, key, inner)
	} else {
		own, at, err := findMember(before, found.from, name)
		if err != nil {
			return nil, false, fmt.Errorf("%w: %q is no object", ErrForm, key)
		}
		if at.there && sameJSON(before[at.from:at.to], value) {
			return text, false, nil
		}
		if at.there {
			out = e.replace(at, value)
		} else {
			out = e.insert(own, name, value)
		}
	}
	return out, true, checkJSON(before, out, []string{key, name}, value)
}

// readObject is the text as plain JSON of the same length.
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

// place is where a member's key begins and its value stands.
type place struct {
	there         bool
	key, from, to int
}

// object is where an object stands and what an insertion needs to know of it.
type object struct {
	open, close int // its braces
	last        int // where its last member ends, 0 without any
	first       int // where its first key begins
}

// findMember looks an object through that begins at or after from; of a key
// that stands there twice, the last one counts.
func findMember(plain []byte, from int, key string) (object, place, error) {
	var o object
	var found place
	dec := json.NewDecoder(bytes.NewReader(plain[from:]))
	at := func() int { return from + int(dec.InputOffset()) }
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return o, found, fmt.Errorf("%w file: it must be a JSON object", store.ErrInvalid)
	}
	o.open = at() - 1
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return o, found, err
		}
		end := at()
		name, _ := t.(string)
		begin := bytes.LastIndexByte(plain[:end-1], '"')
		for begin > 0 && escaped(plain, begin) {
			begin = bytes.LastIndexByte(plain[:begin], '"')
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return o, found, err
		}
		o.last = at()
		if o.first == 0 {
			o.first = begin
		}
		if name == key {
			found = place{true, begin, o.last - len(value), o.last}
		}
	}
	if _, err := dec.Token(); err != nil {
		return o, found, err
	}
	o.close = at() - 1
	return o, found, nil
}

// escaped says whether the quote there is part of a string.
func escaped(text []byte, quote int) bool {
	n := 0
	for quote--; quote >= 0 && text[quote] == '\\'; quote-- {
		n++
	}
	return n%2 == 1
}

// edit changes a text of which plain is the JSON.
type edit struct{ text, plain []byte }

func (e edit) newline() string {
	if bytes.Contains(e.text, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

// indentAt is the white space before something that is the first on its line.
func (e edit) indentAt(i int) (string, bool) {
	line := e.text[bytes.LastIndexByte(e.text[:i], '\n')+1 : i]
	return string(line), len(bytes.TrimLeft(line, " \t")) == 0
}

// lineIndent is the white space that the line of i begins with.
func (e edit) lineIndent(i int) string {
	line := e.text[bytes.LastIndexByte(e.text[:i], '\n')+1 : i]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// step is by how much the file indents.
func (e edit) step() string {
	root, _, err := findMember(e.plain, 0, "")
	if err == nil && root.first > 0 {
		if s, alone := e.indentAt(root.first); alone && s != "" {
			return s
		}
	}
	return "  "
}

func (e edit) pretty(value []byte, indent string) []byte {
	var b bytes.Buffer
	if json.Indent(&b, value, indent, e.step()) != nil {
		return value
	}
	return bytes.ReplaceAll(b.Bytes(), []byte("\n"), []byte(e.newline()))
}

func (e edit) replace(at place, value []byte) []byte {
	return splice(e.text, at.from, at.to, e.pretty(value, e.lineIndent(at.key)))
}

// insert puts a member last, behind what comments stand there.
func (e edit) insert(o object, name string, value []byte) []byte {
	indent, alone := e.indentAt(max(o.first, 0))
	if o.last == 0 || !alone {
		indent = e.lineIndent(o.open) + e.step()
	}
	key, _ := json.Marshal(name) // a string
	var b bytes.Buffer
	b.WriteString(e.newline() + indent)
	b.Write(key)
	b.WriteString(": ")
	b.Write(e.pretty(value, indent))
	behind := o.open + 1 + len(bytes.TrimRight(e.text[o.open+1:o.close], " \t\r\n"))
	if !bytes.Contains(e.text[behind:o.close], []byte("\n")) {
		b.WriteString(e.newline() + e.lineIndent(o.open))
	}
	out := splice(e.text, behind, behind, b.Bytes())
	if o.last > 0 && !e.commaAfter(o) {
		out = splice(out, o.last, o.last, []byte(","))
	}
	return out
}

// commaAfter says whether a comma stands behind the last member already, as
// files with comments may have it.
func (e edit) commaAfter(o object) bool {
	for i := o.last; i < o.close; i++ {
		switch rest := e.text[i:o.close]; {
		case rest[0] == ',':
			return true
		case bytes.HasPrefix(rest, []byte("//")):
			if i += bytes.IndexByte(rest, '\n'); bytes.IndexByte(rest, '\n') < 0 {
				return false
			}
		case bytes.HasPrefix(rest, []byte("/*")):
			i += 2 + bytes.Index(rest[2:], []byte("*/")) + 1
		}
	}
	return false
}

func splice(text []byte, from, to int, by []byte) []byte {
	return append(append(bytes.Clone(text[:from]), by...), text[to:]...)
}

func sameJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// checkJSON proves that nothing but the entry changed.
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

// SetTOML does for Codex's file what SetJSON does for the others: the entry is
// the table [key.name].
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

// tomlString quotes a path or a flag: JSON's strings are TOML's, too.
func tomlString(s string) string {
	b, _ := json.Marshal(s) // a string always encodes
	return string(b)
}

// findTable is where the table of that name stands, with those below it and
// without what follows: up to the next table of another name. It looks at whole
// lines alone; a line like one in a string of several is found out by the check
// of what came of it.
func findTable(text []byte, name string) (from, to int) {
	from, to = -1, len(text)
	at, filled := 0, 0 // where the line begins; where the last line of the table ended that says something
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
