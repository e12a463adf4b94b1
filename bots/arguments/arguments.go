// Package arguments shows a call's arguments to the person who decides: labelled rows, texts and
// diffs.
//
// The rows follow the order of the tool's schema and are the same on every surface. They
// are another form of the canonical JSON, which the digest covers and which is executed.
// They are complete and unambiguous:
//
//   - each value has one row, or one for each of its parts
//   - a character that is invisible or controls the display is escaped; a
//     backslash that looks like the beginning of an escape is doubled, as in JSON
//   - a text that looks like another type, such as "5", is quoted
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

// Kind is the form of a row's value.
type Kind string

const (
	Value Kind = "value" // in one line
	Text  Kind = "text"  // a text of several lines
	JSON  Kind = "json"  // a list or an object
	Diff  Kind = "diff"  // Lines, the text before and after an edit
)

// Row is an argument or a part of one. Its lines contain no character that
// [printable.Escape] would escape, except tabs.
type Row struct {
	Label string `json:"label"`
	Kind  Kind   `json:"kind"`
	Text  string `json:"text,omitempty"`  // for all kinds but Diff
	Lines []Line `json:"lines,omitempty"` // for Diff
}

// Line is a line of a diff.
type Line struct {
	Op   string `json:"op"` // "-" removed, "+" added, " " unchanged, "@" describes the lines below it
	Text string `json:"text"`
}

// shortJSON is the maximum length of a list or an object on a single line.
const shortJSON = 60

// Rows returns the arguments in the order of fields, followed by the others by name. ok is
// false if args is not a JSON object.
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

// Body returns the row's value as plain text.
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

// Plain returns rows as lines of plain text: a value beside its label, or, if it has
// several lines, below the label and behind a bar, so that none of them looks like a row.
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

// String returns the line as in a diff.
func (l Line) String() string {
	if l.Op == "@" {
		return l.Text
	}
	return l.Op + " " + l.Text
}

// edits are pairs of argument names for the old and the new text of an edit.
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
			continue // the diff contains it
		}
		rows = value(rows, join(head, name), values[name])
	}
	return rows
}

// edited reports whether a field is the first of such a pair, and returns the old text and
// the name of the field with the new one.
func edited(values map[string]json.RawMessage, name string) (was, becomes string, ok bool) {
	for _, pair := range edits {
		if pair[0] == name && isText(values[name]) && isText(values[pair[1]]) {
			return str(values[name]), pair[1], true
		}
	}
	return "", "", false
}

// isBecoming reports whether a field is the second of a pair that [edited] finds.
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
	_ = json.Unmarshal(raw, &text) // isText accepted it, and the document was decoded before
	return text
}

// place returns a field's position in the schema; unknown fields are last.
func place(fields []string, name string) int {
	if i := slices.Index(fields, name); i >= 0 {
		return i
	}
	return len(fields)
}

// join returns the label of an object's field.
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

// value adds the rows of one value. It is a single row if it contains no text of several
// lines and no edit.
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

// spaced adds a space after the commas and colons of a compact document.
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

// long reports whether a list or an object contains a text of several lines or an edit,
// which get their own rows.
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

// text returns the row of a text.
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

// marshal returns a text as JSON, without escapes for HTML.
func marshal(text string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text) // encoding a string can't fail
	return bytes.TrimSpace(b.Bytes())
}

// passes matches backslashes that look like the beginning of an escape: before the rest of
// an escape, or before a character that will be escaped.
var passes = regexp.MustCompile(`\\+(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[^\x20-\x7e\n\t])`)

// escape is [printable.EscapeLines] in a reversible form.
func escape(text string) string {
	text = passes.ReplaceAllStringFunc(text, func(run string) string {
		rest := strings.TrimLeft(run, `\`)
		if r, _ := utf8.DecodeRuneInString(rest); r > 0x7e && printable.Escape(rest) == rest {
			return run // the character is shown unchanged
		}
		return strings.Repeat(`\\`, len(run)-len(rest)) + rest
	})
	return printable.EscapeLines(text)
}
