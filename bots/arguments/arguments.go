// Package arguments shows the arguments of a call to the person who decides on it:
// as labelled rows in the order of the tool's schema, texts with their line breaks,
// and an edit of a text as a diff. It is one description for every surface.
//
// The rows are another form of the canonical JSON, which is what the digest covers
// and what runs. They leave nothing out and are unambiguous:
//
//   - each value has one row, or one for each of its parts
//   - a character that isn't seen, or that steers what shows it, stands as an escape;
//     a backslash that would pass for the beginning of one is doubled, as in JSON
//   - a text that would pass for another type, such as "5", stands in quotes
package arguments

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"nize/store/printable"
)

// Kind is how a row's value is shown.
type Kind string

const (
	Value Kind = "value" // in one line
	Text  Kind = "text"  // a text of several lines
	JSON  Kind = "json"  // a list or an object
	Diff  Kind = "diff"  // Lines, what a text was and what it becomes
)

// Row is one argument, or a part of one. No line of it holds a character that
// [printable.Escape] would escape, tabs excepted.
type Row struct {
	Label string `json:"label"`
	Kind  Kind   `json:"kind"`
	Text  string `json:"text,omitempty"`  // of all kinds but Diff
	Lines []Line `json:"lines,omitempty"` // of Diff
}

// Line is a line of a diff.
type Line struct {
	Op   string `json:"op"` // "-" goes, "+" comes, " " stays, "@" is about the lines below it
	Text string `json:"text"`
}

// shortJSON is how long a list or an object is at most that stands on one line.
const shortJSON = 60

// Rows shows the arguments in the order of fields; those that it doesn't name follow
// by their names. ok is false for what is not a JSON object.
func Rows(args json.RawMessage, fields []string) (rows []Row, ok bool) {
	if !utf8.Valid(args) {
		return nil, false
	}
	var values map[string]json.RawMessage
	if json.Unmarshal(args, &values) != nil || values == nil {
		return nil, false
	}
	return object(nil, "", values, fields), true
}

// Body is the row's value as plain text.
func (r Row) Body() string {
	if r.Kind != Diff {
		return r.Text
	}
	lines := make([]string, len(r.Lines))
	for i, l := range r.Lines {
		lines[i] = l.String()
	}
	return strings.Join(lines, "\n")
}

// Plain are rows as lines of plain text: a value beside its label, and what has
// several lines below it, behind a bar, so that none passes for a row.
func Plain(rows []Row) (lines []string) {
	for _, r := range rows {
		if r.Kind == Value {
			lines = append(lines, r.Label+": "+r.Text)
			continue
		}
		lines = append(lines, r.Label+":")
		for line := range strings.SplitSeq(r.Body(), "\n") {
			lines = append(lines, "  | "+line)
		}
	}
	return lines
}

// String is the line as a diff has it.
func (l Line) String() string {
	if l.Op == "@" {
		return l.Text
	}
	return l.Op + " " + l.Text
}

// edits are the names under which tools take what a text was and what it becomes.
var edits = [][2]string{
	{"old_string", "new_string"}, {"oldString", "newString"}, {"old_str", "new_str"}, {"oldStr", "newStr"},
	{"old_text", "new_text"}, {"oldText", "newText"}, {"old_content", "new_content"}, {"oldContent", "newContent"},
	{"old_code", "new_code"}, {"oldCode", "newCode"}, {"old_value", "new_value"}, {"oldValue", "newValue"},
	{"old", "new"}, {"before", "after"}, {"search", "replace"}, {"search", "replacement"}, {"find", "replace"},
	{"original", "replacement"}, {"original", "updated"}, {"from_text", "to_text"},
}

// object adds the rows of an object's fields.
func object(rows []Row, head string, values map[string]json.RawMessage, fields []string) []Row {
	names := slices.Sorted(maps.Keys(values))
	slices.SortStableFunc(names, func(a, b string) int { return place(fields, a) - place(fields, b) })
	for _, name := range names {
		if was, becomes, ok := edited(values, name); ok {
			rows = append(rows, Row{Label: join(head, name) + " → " + join("", becomes), Kind: Diff, Lines: Compare(was, str(values[becomes]))})
			continue
		}
		if isBecoming(values, name) {
			continue // it stands in the diff
		}
		rows = value(rows, join(head, name), values[name])
	}
	return rows
}

// edited reports whether a field is the first of a pair of old and new text: what the
// text was, and the name of the field that has what it becomes.
func edited(values map[string]json.RawMessage, name string) (was, becomes string, ok bool) {
	for _, pair := range edits {
		if pair[0] == name && isText(values[name]) && isText(values[pair[1]]) {
			return str(values[name]), pair[1], true
		}
	}
	return "", "", false
}

// isBecoming reports whether a field is the second of the pair that [edited] finds.
func isBecoming(values map[string]json.RawMessage, name string) bool {
	for _, pair := range edits {
		if pair[1] != name {
			continue
		}
		if _, becomes, ok := edited(values, pair[0]); ok && becomes == name {
			return true
		}
	}
	return false
}

func isText(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '"' }

func str(raw json.RawMessage) (text string) {
	_ = json.Unmarshal(raw, &text) // isText, of a document that was read
	return text
}

// place is where a field stands in the schema; those that it doesn't name come last.
func place(fields []string, name string) int {
	if i := slices.Index(fields, name); i >= 0 {
		return i
	}
	return len(fields)
}

// join is the label of a field of an object.
func join(head, name string) string {
	if name == "" || strings.TrimSpace(name) != name || strings.ContainsAny(name, ".:[]\"→\n\r\t") {
		name, _ = printable.PrettyJSON(marshal(name))
	} else {
		name = escape(name)
	}
	if head != "" {
		return head + "." + name
	}
	return name
}

// value adds the rows of one value. What holds no text of several lines and no edit
// is one row.
func value(rows []Row, label string, raw json.RawMessage) []Row {
	if isText(raw) {
		return append(rows, text(label, str(raw)))
	}
	if raw[0] != '{' && raw[0] != '[' {
		return append(rows, Row{Label: label, Kind: Value, Text: string(raw)})
	}
	if long(raw) {
		if raw[0] == '{' {
			var values map[string]json.RawMessage
			if json.Unmarshal(raw, &values) == nil {
				return object(rows, label, values, nil)
			}
		}
		var items []json.RawMessage
		if raw[0] == '[' && json.Unmarshal(raw, &items) == nil {
			for i, item := range items {
				rows = value(rows, label+"["+strconv.Itoa(i+1)+"]", item)
			}
			return rows
		}
	}
	pretty, _ := printable.PrettyJSON(raw)
	var short bytes.Buffer
	if json.Compact(&short, []byte(pretty)) == nil && utf8.RuneCount(short.Bytes()) <= shortJSON {
		return append(rows, Row{Label: label, Kind: Value, Text: spaced(short.String())})
	}
	return append(rows, Row{Label: label, Kind: JSON, Text: pretty})
}

// spaced puts a blank behind the commas and colons of a compact document.
func spaced(doc string) string {
	var b strings.Builder
	in, skip := false, false
	for _, r := range doc {
		b.WriteRune(r)
		switch {
		case skip:
			skip = false
		case in && r == '\\':
			skip = true
		case r == '"':
			in = !in
		case !in && (r == ',' || r == ':'):
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// long reports whether a list or an object holds a text of several lines or an edit,
// which are shown as rows of their own.
func long(raw json.RawMessage) bool {
	switch {
	case isText(raw):
		return strings.Contains(str(raw), "\n")
	case raw[0] == '[':
		var items []json.RawMessage
		return json.Unmarshal(raw, &items) == nil && slices.ContainsFunc(items, long)
	case raw[0] == '{':
		var values map[string]json.RawMessage
		if json.Unmarshal(raw, &values) != nil {
			return false
		}
		for name, v := range values {
			if _, _, ok := edited(values, name); ok || long(v) {
				return true
			}
		}
	}
	return false
}

// text is the row of a text.
func text(label, text string) Row {
	if isPatch(text) {
		return Row{Label: label, Kind: Diff, Lines: patch(text)}
	}
	if strings.Contains(text, "\n") {
		return Row{Label: label, Kind: Text, Text: escape(text)}
	}
	if text == "" || strings.TrimSpace(text) != text || strings.Contains(text, "\t") || text[0] == '"' || json.Valid([]byte(text)) {
		shown, _ := printable.PrettyJSON(marshal(text))
		return Row{Label: label, Kind: Value, Text: shown}
	}
	return Row{Label: label, Kind: Value, Text: escape(text)}
}

// marshal is a text as JSON, without escapes for HTML.
func marshal(text string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text) // a text always encodes
	return bytes.TrimSpace(b.Bytes())
}

// passes are backslashes that would pass for the beginning of an escape: before what
// an escape goes on with, or before a character that will be one.
var passes = regexp.MustCompile(`\\+(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[^\x20-\x7e\n\t])`)

// escape is [printable.EscapeLines], from which the text can be read back.
func escape(text string) string {
	text = passes.ReplaceAllStringFunc(text, func(run string) string {
		rest := strings.TrimLeft(run, `\`)
		if r, _ := utf8.DecodeRuneInString(rest); r > 0x7e && printable.Escape(rest) == rest {
			return run // it is seen as itself
		}
		return strings.Repeat(`\\`, len(run)-len(rest)) + rest
	})
	return printable.EscapeLines(text)
}
