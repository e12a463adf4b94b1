package slack

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"

	"nize/bots"
	"nize/bots/phrases"
	"nize/store"
)

// Pasted keys are masked in what Slack sent before it is stored, and
// whoever wrote one is told so, alone, when it is worked on. In a dialog whose
// words are done as they stand (the arguments of a call, a pattern, a setting)
// a key with dots in it would be of no use: the field says that it is refused,
// and nothing of it is stored.

// maskedField is set in a payload whose author's own words held a key.
const maskedField = "nize_masked"

// mask returns the payload without keys; own are the words of its author.
// Dialogs that ask for a key are not given to it. It looks at what the payload
// says, not at its bytes: Slack writes / as \/, and a key may be written so.
func mask(payload json.RawMessage, own string, log *slog.Logger) json.RawMessage {
	if !json.Valid(payload) {
		return payload
	}
	var doc map[string]any
	dec := json.NewDecoder(bytes.NewReader(payload))
	dec.UseNumber()
	if err := dec.Decode(&doc); err != nil {
		return payload // no object: nothing of Slack's
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

// in masks the texts in v, but for the addresses of files: they hold keys of
// Slack's, by which the files are read.
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

// runs looks at one line of rich text as its reader does: Slack parts it where
// its looks change and where it makes a link, also in the middle of a key. A
// line with a key that goes over several parts becomes one plain text, before
// those of its parts that say nothing, such as mentions.
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
			text, mute = " ", append(mute, p) // no key goes on behind it
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

// nested masks a text that is JSON itself, where a key may end with the
// text, and not with the document.
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

// tellMasked tells somebody, alone and once, that what they wrote held a key.
// It never stands in the way of an answer.
func (l *live) tellMasked(ctx context.Context, p person, key, channel, thread string) {
	first, err := l.once(ctx, "masked:"+key)
	if err == nil && first {
		err = l.tell(ctx, p, channel, thread, p.words().Say(phrases.SecretMasked))
	}
	if err != nil {
		l.log.Warn("telling somebody of a key that was masked", "user", p.id, "err", err)
	}
}

// keysIn says at each field of a dialog that it holds a key, and what to do. What
// the call that a dialog edits holds already may stay: it was stored and shown.
func (l *live) keysIn(ctx context.Context, i interaction) map[string]string {
	var wrong map[string]string
	known := ""
	for block, fields := range i.View.State.Values {
		for _, f := range fields {
			if !store.LooksSecret(f.text()) {
				continue
			}
			if known == "" {
				known = l.knownTo(ctx, i)
			}
			if !store.AddsSecret(f.text(), known) {
				continue
			}
			if wrong == nil {
				wrong = map[string]string{}
			}
			w := phrases.For("")
			if p, err := l.look(ctx, i.User.ID, keepPerson); err == nil {
				w = p.words()
			}
			wrong[block] = w.Say(phrases.KeyRefused)
		}
	}
	return wrong
}

// knownTo is what the call holds that a dialog edits, in every form in which the
// dialog shows it; "" for other dialogs, and where it can't be read.
func (l *live) knownTo(ctx context.Context, i interaction) string {
	e, ok := readEditing(i)
	if i.View.Callback != editView || !ok {
		return ""
	}
	call, err := l.b.o.Calls.GetCall(ctx, e.Call)
	if err != nil {
		return ""
	}
	return shownArgs(call.Args)
}

// shownArgs are arguments in every form in which a dialog that edits them shows
// them.
func shownArgs(raw json.RawMessage) string {
	pretty, _ := bots.PrettyJSON(raw)
	known := string(raw) + "\n" + pretty
	var args map[string]json.RawMessage
	if json.Unmarshal(raw, &args) == nil {
		for _, v := range args {
			known += "\n" + plainValue(v)
		}
	}
	return known
}
