package scan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"nize/store"
)

const (
	maxFindings = 20       // what one tool may fill a screen with
	maxText     = 64 << 10 // of one string that is read for orders; a longer one is held for its length
)

// text is one string of a definition and where it stands, in words.
type text struct {
	where string
	value string
	name  bool // an identifier, of which more is asked than of prose
}

// inspect reads every string of the definition. Hidden characters come first.
func inspect(instructions string, tool store.Tool) []string {
	texts := []text{
		{"name", tool.Name, true},
		{"title", tool.Title, false},
		{"annotations title", tool.Annotations.Title, false},
		{"description", tool.Description, false},
		{"server instructions", instructions, false},
	}
	texts = append(texts, stringsOf("input schema", tool.InputSchema)...)
	texts = append(texts, stringsOf("output schema", tool.OutputSchema)...)
	texts = append(texts, stringsOf("meta", tool.Meta)...)

	var hard, review []string
	for _, t := range texts {
		for _, h := range findHidden(t.value, t.where == "name") {
			hard = append(hard, fmt.Sprintf("%s: hides %s", t.where, h))
		}
		if len(t.value) > maxText {
			review = append(review, fmt.Sprintf("%s: %d bytes, more than a person reads", t.where, len(t.value)))
		}
		if t.name {
			if why := mixedName(t.value); why != "" {
				hard = append(hard, fmt.Sprintf("%s: %s", t.where, why))
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

// stringsOf lists every string of a JSON document, keys included, with JSON
// pointers. It reads what it can: a document that the gate refuses is scanned
// up to where it breaks, within the gate's bounds.
func stringsOf(what string, raw json.RawMessage) []text {
	if len(raw) == 0 {
		return nil
	}
	// What the gate would refuse for its size is scanned in one piece.
	if len(raw) > maxBytes {
		return []text{{where: what, value: unescape(raw)}}
	}
	w := walker{dec: json.NewDecoder(bytes.NewReader(raw)), what: what}
	w.dec.UseNumber()
	if err := w.value("", 0); err != nil {
		// The rest of a broken document is text as well.
		w.texts = append(w.texts, text{where: what, value: unescape(raw)})
	}
	return w.texts
}

type walker struct {
	dec   *json.Decoder
	what  string
	texts []text
}

func (w *walker) add(at, s string, name bool) {
	w.texts = append(w.texts, text{where: w.what + " " + Visible(store.Clip(at, 80)), value: s, name: name})
}

func (w *walker) value(at string, depth int) error {
	tok, err := w.dec.Token()
	if err != nil {
		return err
	}
	switch t := tok.(type) {
	case string:
		w.add(at, t, false)
	case json.Delim:
		if depth > 4*maxDepth {
			return fmt.Errorf("nested deeper than %d", 4*maxDepth)
		}
		for i := 0; w.dec.More(); i++ {
			key := fmt.Sprint(i)
			if t == '{' {
				tok, err := w.dec.Token()
				if err != nil {
					return err
				}
				key = tok.(string)
				w.add(at+"/"+key, key, strings.HasSuffix(at, "/properties"))
			}
			if err := w.value(store.Clip(at, 400)+"/"+key, depth+1); err != nil {
				return err
			}
		}
		_, err = w.dec.Token()
	}
	return err
}

// unescape turns a broken or oversize document into text in which \u escapes
// hide nothing.
func unescape(raw []byte) string {
	var out strings.Builder
	for i := 0; i < len(raw); i++ {
		if raw[i] == '\\' && i+5 < len(raw) && raw[i+1] == 'u' {
			var s string
			end := i + 6
			if end+6 <= len(raw) && raw[end] == '\\' && raw[end+1] == 'u' {
				end += 6 // may be the other half of a surrogate pair
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
