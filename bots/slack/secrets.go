package slack

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"nize/bots/phrases"
	"nize/store"
)

// Pasted keys (SPEC 22) are masked in what Slack sent before it is stored, and
// whoever wrote one is told so, alone, when it is worked on.

// maskedField is set in a payload whose author's own words held a key.
const maskedField = "nize_masked"

// mask returns the payload without keys; own are the words of its author.
// Dialogs that ask for a key are not given to it.
func (l *live) mask(payload json.RawMessage, own string) json.RawMessage {
	if !store.LooksSecret(string(payload)) || !json.Valid(payload) {
		return payload
	}
	var doc map[string]any
	dec := json.NewDecoder(bytes.NewReader(payload))
	dec.UseNumber()
	if err := dec.Decode(&doc); err != nil {
		return payload // no object: nothing of Slack's
	}
	maskIn(doc)
	doc[maskedField] = store.LooksSecret(own)
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(doc); err != nil {
		l.log.Error("masking what Slack sent", "err", err)
		return payload
	}
	return bytes.TrimSpace(out.Bytes())
}

// maskIn masks the texts in v, but for the addresses of files: they hold keys
// of Slack's, by which the files are read.
func maskIn(v any) any {
	switch t := v.(type) {
	case map[string]any:
		_, file := t["url_private"]
		for k, e := range t {
			text, ok := e.(string)
			switch {
			case !ok:
				t[k] = maskIn(e)
			case file && (strings.HasPrefix(k, "url") || strings.HasPrefix(k, "permalink") || strings.HasPrefix(k, "thumb")):
			case k == "private_metadata":
				t[k] = maskNested(text)
			default:
				t[k] = store.RedactText(text)
			}
		}
	case []any:
		for i, e := range t {
			t[i] = maskIn(e)
		}
	case string:
		return store.RedactText(t)
	}
	return v
}

// maskNested masks a text that is JSON itself, where a key may end with the
// text, and not with the document.
func maskNested(text string) string {
	var doc any
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	if !json.Valid([]byte(text)) || dec.Decode(&doc) != nil {
		return store.RedactText(text)
	}
	b, err := json.Marshal(maskIn(doc))
	if err != nil {
		return store.RedactText(text)
	}
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
