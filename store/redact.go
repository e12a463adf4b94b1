package store

import (
	"bytes"
	"encoding/json"
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"
)

// secretKey matches names of fields whose value is not for the audit.
var secretKey = regexp.MustCompile(`(?i)(^|[_.-])(password|passwd|pwd|secret|token|api_?key|authorization|credential|private_?key|cookie)s?($|[_.-])`)

// SecretName says whether a field of that name holds a secret by its name.
func SecretName(name string) bool {
	return secretKey.MatchString(camel.ReplaceAllString(name, "${1}_$2"))
}

// SecretValue says whether name=value holds a key, by its form or by its name.
// Numbers, switches and paths under such a name are none (MAX_TOKENS=4096,
// TOKEN_FILE=/run/token); an address with a password is one.
func SecretValue(name, value string) bool {
	if LooksSecret(value) {
		return true
	}
	if u, err := url.Parse(value); err == nil && u.User != nil {
		if _, has := u.User.Password(); has {
			return true
		}
	}
	upper := strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	if !SecretName(name) && upper != "KEY" && !strings.HasSuffix(upper, "_KEY") && !strings.HasSuffix(upper, "APIKEY") {
		return false
	}
	for _, tail := range []string{"_FILE", "_PATH", "_DIR", "_URL", "_URI"} {
		if strings.HasSuffix(upper, tail) {
			return false
		}
	}
	switch strings.ToLower(value) {
	case "", "true", "false", "yes", "no", "on", "off", "none":
		return false
	}
	return strings.Trim(value, "0123456789") != ""
}

var camel = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// Redact returns the JSON document without what looks like a secret, by name
// or by form, cut to at most limit bytes (then it is a JSON string).
func Redact(raw json.RawMessage, limit int) json.RawMessage {
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
