package store

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"nize/store/secrettext"
)

// What looks like a secret, by its form or its name, is told in store/secrettext.

// SecretName says whether a field of that name holds a secret by its name.
func SecretName(name string) bool { return secrettext.Name(name) }

// SecretValue says whether name=value holds a key, by its form or by its name.
func SecretValue(name, value string) bool { return secrettext.Value(name, value) }

// RedactText replaces what looks like a key by dots.
func RedactText(s string) string { return secrettext.Redact(s) }

// LooksSecret says whether s is, or holds, what looks like a key.
func LooksSecret(s string) bool { return secrettext.Looks(s) }

// AddsSecret says whether s holds what looks like a key and known does not.
func AddsSecret(s, known string) bool { return secrettext.Adds(s, known) }

// Redact returns the JSON document without what looks like a secret, by name
// or by form, cut to at most limit bytes (then it is a JSON string). What is far
// longer is shortened first, since redaction reads it all.
func Redact(raw json.RawMessage, limit int) json.RawMessage {
	raw = shorten(raw, 4*limit)
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return redactedString(RedactText(string(raw)), limit)
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(redactValue("", v)); err != nil {
		return json.RawMessage(`"unprintable"`)
	}
	b := bytes.TrimSpace(out.Bytes())
	if len(b) > limit {
		return redactedString(string(b), limit)
	}
	return b
}

func redactedString(s string, limit int) json.RawMessage {
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "") + "… (cut)"
	}
	b, err := json.Marshal(s)
	if err != nil {
		return json.RawMessage(`"unprintable"`)
	}
	return b
}

// redactValue walks generic JSON; it is for the trail only, never for what
// runs. What stands below a secret's name is secret too, at any depth; counts
// of tokens (max_tokens) are not.
func redactValue(name string, v any) any {
	switch t := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(t))
		for k, e := range t {
			below := k
			if SecretName(name) {
				below = name
			}
			out[RedactText(k)] = redactValue(below, e)
		}
		return out
	case []any:
		for i, e := range t {
			t[i] = redactValue(name, e)
		}
		return t
	case string:
		if SecretName(name) {
			return dots
		}
		return RedactText(t)
	case json.Number:
		if SecretName(name) && !strings.HasSuffix(strings.ToLower(name), "tokens") {
			return dots
		}
	}
	return v
}

// shorten returns the beginning of a JSON document, closed properly, so that
// redaction by the names of fields still works on it.
func shorten(raw json.RawMessage, limit int) json.RawMessage {
	if len(raw) <= limit {
		return raw
	}
	var (
		out   bytes.Buffer
		dec   = json.NewDecoder(bytes.NewReader(raw))
		open  []json.Delim // what is open, outermost first
		count []int        // tokens so far in each
	)
	dec.UseNumber()
	for out.Len() < limit {
		tok, err := dec.Token()
		if err != nil {
			break
		}
		if d, ok := tok.(json.Delim); ok && (d == '}' || d == ']') {
			out.WriteRune(rune(d))
			open, count = open[:len(open)-1], count[:len(count)-1]
			if len(open) == 0 {
				break
			}
			continue
		}
		inObject := len(open) > 0 && open[len(open)-1] == '{'
		if n := len(count) - 1; n >= 0 {
			switch {
			case inObject && count[n]%2 == 1:
				out.WriteByte(':')
			case count[n] > 0:
				out.WriteByte(',')
			}
			count[n]++
		}
		if d, ok := tok.(json.Delim); ok {
			out.WriteRune(rune(d))
			open, count = append(open, d), append(count, 0)
			continue
		}
		if s, ok := tok.(string); ok && len(s) > limit {
			tok = s[:limit]
		}
		b, err := json.Marshal(tok)
		if err != nil {
			break
		}
		out.Write(b)
	}
	for i := len(open) - 1; i >= 0; i-- {
		switch {
		case open[i] == '[':
			out.WriteByte(']')
		case count[i]%2 == 1: // a name without its value
			out.WriteString(":null}")
		default:
			out.WriteByte('}')
		}
	}
	if out.Len() == 0 { // no JSON at all
		return raw[:limit]
	}
	return out.Bytes()
}

// Head returns s, or its first n bytes or a few less where a character would be
// cut.
func Head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n = max(n, 0)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// Clip is [Head] with … behind what was cut: at most n+3 bytes. It bounds what is
// repeated of words from outside.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return Head(s, n) + "…"
}

// maxLine bounds [Line], in runes.
const maxLine = 500

// Line is a text from outside as one line of at most 500 runes.
func Line(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > maxLine {
		return string(r[:maxLine-1]) + "…"
	}
	return s
}

// ErrText is an error that may hold what a stranger wrote, as one redacted
// [Line]; "" for none.
func ErrText(err error) string {
	if err == nil {
		return ""
	}
	return Line(RedactText(err.Error()))
}
