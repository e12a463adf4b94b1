package scan

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"nize/store"
	"nize/store/printable"
)

const (
	maxFindings = 20       // findings per tool, so that they fit on a screen
	maxText     = 64 << 10 // bytes of one string that are scanned for instructions; a longer one is a finding itself
)

// text is one string of a definition with its location.
type text struct {
	what  string // the part of the definition, in words
	at    string // a JSON pointer into that part, "" if it is not JSON
	value string
	name  bool // an identifier, with stricter rules than prose
}

// where returns the location in words.
func (t text) where() string {
	if t.at == "" {
		return t.what
	}
	return t.what + " " + printable.EscapeLines(store.Clip(t.at, 80))
}

// inspect scans every string of the definition. Findings about hidden characters come
// first.
func inspect(instructions string, tool store.Tool) []string {
	texts := []text{
		{what: "name", value: tool.Name, name: true},
		{what: "title", value: tool.Title},
		{what: "annotations title", value: tool.Annotations.Title},
		{what: "description", value: tool.Description},
		{what: "server instructions", value: instructions},
	}
	texts = append(texts, stringsOf("input schema", tool.InputSchema)...)
	texts = append(texts, stringsOf("output schema", tool.OutputSchema)...)
	texts = append(texts, stringsOf("meta", tool.Meta)...)

	var hard, review []string
	for _, t := range texts {
		for _, h := range findHidden(t.value, t.what == "name") {
			hard = append(hard, fmt.Sprintf("%s: hides %s", t.where(), h))
		}
		if len(t.value) > maxText {
			review = append(review, fmt.Sprintf("%s: %d bytes, more than a person reads", t.where(), len(t.value)))
		}
		if t.name {
			if why := mixedName(t.value); why != "" {
				hard = append(hard, fmt.Sprintf("%s: %s", t.where(), why))
			}
		}
		review = append(review, orders(t)...)
	}
	findings := append(hard, review...)
	if len(findings) > maxFindings {
		more := len(findings) - maxFindings + 1
		findings = append(findings[:maxFindings-1], fmt.Sprintf("and %d more findings", more))
	}
	return findings
}

func (h hidden) String() string {
	s := fmt.Sprintf("%s U+%04X", classNames[h.class], h.first)
	switch h.class {
	case private, zeroWidth, tag:
		s = "an " + s
		if h.class == private {
			s = "a" + s[2:]
		}
	default:
		s = "a " + s
		if h.class == format {
			s = "an" + s[1:]
		}
	}
	if h.count > 1 {
		s += fmt.Sprintf(" and %d more of its kind", h.count-1)
	}
	return s
}

// stringsOf returns every string of a JSON document, including keys, with JSON pointers. A
// document that the gate would refuse, because it is too large or invalid, is scanned as
// one text.
func stringsOf(what string, raw json.RawMessage) []text {
	if len(raw) == 0 {
		return nil
	}
	if len(raw) > maxBytes || nesting(raw) > 4*maxDepth || !json.Valid(raw) {
		return []text{{what: what, value: unescape(raw)}}
	}
	w := walker{cursor: cursor{in: raw}, what: what}
	w.value("")
	return w.texts
}

// walker collects the strings of a valid document.
type walker struct {
	cursor
	what  string
	texts []text
}

func (w *walker) value(at string) {
	switch open := w.peek(); open {
	case '"':
		w.texts = append(w.texts, text{what: w.what, at: at, value: w.text()})
	case '{', '[':
		w.open()
		named := strings.HasSuffix(at, "/properties")
		at = store.Clip(at, 400)
		for i := 0; w.more(); i++ {
			if open == '[' {
				w.value(at + "/" + strconv.Itoa(i))
				continue
			}
			key := w.text()
			place := at + "/" + key
			w.texts = append(w.texts, text{what: w.what, at: place, value: key, name: named})
			w.value(place)
		}
	default:
		w.word()
	}
}

// unescape converts an invalid or oversize document to text in which escapes hide nothing.
func unescape(raw []byte) string {
	const short, meant = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	var out strings.Builder
	for i := 0; i < len(raw); i++ {
		if raw[i] == '\\' && i+1 < len(raw) {
			if k := strings.IndexByte(short, raw[i+1]); k >= 0 {
				out.WriteByte(meant[k])
				i++
				continue
			}
		}
		if raw[i] == '\\' && i+5 < len(raw) && raw[i+1] == 'u' {
			var s string
			end := i + 6
			if end+6 <= len(raw) && raw[end] == '\\' && raw[end+1] == 'u' {
				end += 6 // may be the second half of a surrogate pair
			}
			if json.Unmarshal([]byte(`"`+string(raw[i:end])+`"`), &s) == nil {
				out.WriteString(s)
				i = end - 1
				continue
			}
		}
		out.WriteByte(raw[i])
	}
	return strings.ToValidUTF8(out.String(), "\uFFFD")
}
