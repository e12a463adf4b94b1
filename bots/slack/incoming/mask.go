package incoming

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"

	"nize/store"
)

// maskedField is set in a payload if the author's own words contained a key.
const maskedField = "nize_masked"

// Mask returns the payload without keys; own are the author's words. Dialogs that ask for a
// key don't pass through it. It masks decoded strings, not bytes: Slack writes / as \/, and
// a key may contain that.
func Mask(payload json.RawMessage, own string, log *slog.Logger) json.RawMessage {
	if !json.Valid(payload) {
		return payload
	}
	var doc map[string]any
	dec := json.NewDecoder(bytes.NewReader(payload))
	dec.UseNumber()
	if err := dec.Decode(&doc); err != nil {
		return payload // not an object, so not from Slack
	}
	var m masker
	m.in(doc)
	if !m.found {
		return payload
	}
	doc[maskedField] = store.LooksSecret(own)
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(doc); err != nil {
		log.Error("masking what Slack sent", "err", err)
		return payload
	}
	return bytes.TrimSpace(out.Bytes())
}

// masker masks the texts in a document.
type masker struct{ found bool }

func (m *masker) text(s string) string {
	masked := store.RedactText(s)
	m.found = m.found || masked != s
	return masked
}

// in masks the texts in v, except for file URLs: they contain Slack's own keys, with which
// the files are read.
func (m *masker) in(v any) any {
	switch t := v.(type) {
	case map[string]any:
		m.runs(t)
		_, file := t["url_private"]
		for k, e := range t {
			text, ok := e.(string)
			switch {
			case !ok:
				t[k] = m.in(e)
			case file && (strings.HasPrefix(k, "url") || strings.HasPrefix(k, "permalink") || strings.HasPrefix(k, "thumb")):
			case k == "private_metadata":
				t[k] = m.nested(text)
			default:
				t[k] = m.text(text)
			}
		}
	case []any:
		for i, e := range t {
			t[i] = m.in(e)
		}
	case string:
		return m.text(t)
	}
	return v
}

// runs masks a line of rich text as a whole: Slack splits it at changes of format and
// around links, even within a key. If a key spans several parts, the line becomes one plain
// text, followed by the parts without text, such as mentions.
func (m *masker) runs(element map[string]any) {
	kind, _ := element["type"].(string)
	parts, _ := element["elements"].([]any)
	if !strings.HasPrefix(kind, "rich_text_") || len(parts) < 2 {
		return
	}
	var whole, single strings.Builder
	var mute []any
	for _, p := range parts {
		part, _ := p.(map[string]any)
		text, ok := part["text"].(string)
		if !ok {
			text, ok = part["url"].(string)
		}
		if !ok {
			text, mute = " ", append(mute, p) // no key continues across it
		}
		whole.WriteString(text)
		single.WriteString(store.RedactText(text))
	}
	line := store.RedactText(whole.String())
	if line == single.String() {
		return
	}
	m.found = true
	element["elements"] = append([]any{map[string]any{"type": "text", "text": line}}, mute...)
}

// nested masks a text that is itself JSON, in which a key may end at the end of a string
// rather than of the document.
func (m *masker) nested(text string) string {
	var doc any
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	if !json.Valid([]byte(text)) || dec.Decode(&doc) != nil {
		return m.text(text)
	}
	var inner masker
	b, err := json.Marshal(inner.in(doc))
	if err != nil {
		return m.text(text)
	}
	if !inner.found {
		return text
	}
	m.found = true
	return string(b)
}
