package secrettext

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// RedactJSON returns the JSON document with masked secrets, detected by name or by form,
// cut to at most limit bytes (it is then a JSON string). A much longer document is
// shortened first, since redaction reads all of it.
func RedactJSON(raw json.RawMessage, limit int) json.RawMessage {
	if len(raw) <= limit && harmless(raw) {
		return raw
	}
	raw = shorten(raw, 4*limit)
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return redactedString(Redact(string(raw)), limit)
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

// harmless reports that redaction would find nothing in the JSON document, as in most
// calls' arguments and results; decoding and encoding them would take a twentieth of a
// call's time. Without an escape each string is contained literally in the document, so a
// secret in a string is also found in the whole document.
func harmless(raw json.RawMessage) bool {
	for _, c := range raw {
		if c < ' ' || c > '~' || c == '\\' {
			return false
		}
	}
	s := strings.ToLower(string(raw))
	return !strings.ContainsAny(s, "=@") && !containsAny(s, secretNames) && !containsAny(s, secretMarks) &&
		len(discordTokens(string(raw))) == 0 && json.Valid(raw)
}

func containsAny(s string, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(s, part) })
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

// redactValue walks generic JSON. It is used for the trail only, never for arguments that
// run. Everything below a secret's name is secret too, at any depth; counts of tokens
// (max_tokens) are not.
func redactValue(name string, v any) any {
	switch t := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(t))
		for k, e := range t {
			below := k
			if Name(name) {
				below = name
			}
			out[Redact(k)] = redactValue(below, e)
		}
		return out
	case []any:
		for i, e := range t {
			t[i] = redactValue(name, e)
		}
		return t
	case string:
		if Name(name) {
			return dots
		}
		return Redact(t)
	case json.Number:
		if Name(name) && !strings.HasSuffix(strings.ToLower(name), "tokens") {
			return dots
		}
	}
	return v
}

// shorten returns the beginning of a JSON document, closed properly, so that redaction by
// field names still works.
func shorten(raw json.RawMessage, limit int) json.RawMessage {
	if len(raw) <= limit {
		return raw
	}
	var (
		out   bytes.Buffer
		dec   = json.NewDecoder(bytes.NewReader(raw))
		open  []json.Delim // open delimiters, outermost first
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
	if out.Len() == 0 { // not JSON
		return raw[:limit]
	}
	return out.Bytes()
}
