package mask

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf16"

	"nize/store"
)

// common are values that people put where a secret goes, and that ordinary
// results hold: to mask them would spoil those and hide nothing.
var common = map[string]bool{
	"localhost": true, "password": true, "passw0rd": true, "changeme": true, "disabled": true, "enabled": true, "undefined": true,
	"anonymous": true, "username": true, "production": true, "development": true, "postgres": true, "postgresql": true,
	"administrator": true, "internal": true, "external": true, "unlimited": true, "readonly": true, "127.0.0.1": true,
}

const (
	minSecret = headSize // bytes; shorter ones stand in too many words
	minDigits = 10       // of a value that is all digits: eight are a date
)

// Counts says whether a value can be told from ordinary text: it has 8 bytes or
// more, 10 if all are digits, is not one character again and again, and none of
// the words that stand in any configuration.
func Counts(value string) bool {
	switch {
	case len(value) < minSecret || common[strings.ToLower(value)]:
		return false
	case strings.Trim(value, value[:1]) == "":
		return false
	case strings.Trim(value, "0123456789") == "":
		return len(value) >= minDigits
	}
	return true
}

// secretsIn are the secrets of one value that was sent: itself; behind the scheme
// of a header; the password of Basic and of an address; the lines of a key; and
// the secret members of a JSON document.
func secretsIn(value string) (out []string) {
	add := func(s string) {
		if s = strings.TrimSpace(s); Counts(s) {
			out = append(out, s)
		}
	}
	value = strings.TrimSpace(value)
	add(value)
	if scheme, rest, ok := strings.Cut(value, " "); ok && !strings.Contains(rest, " ") && len(scheme) <= 10 {
		add(rest)
		if pair, err := base64.StdEncoding.DecodeString(rest); err == nil && strings.EqualFold(scheme, "basic") {
			_, password, _ := strings.Cut(string(pair), ":")
			add(string(pair))
			add(password)
		}
	}
	if u, err := url.Parse(value); err == nil && u.User != nil {
		if password, ok := u.User.Password(); ok {
			add(password)
		}
	}
	if _, begin, ok := strings.Cut(value, "-----BEGIN "); ok {
		for line := range strings.Lines(begin) {
			if line = strings.TrimSpace(line); len(line) >= 32 && !strings.Contains(line, "-----") {
				add(line)
			}
		}
	}
	var doc map[string]json.RawMessage
	if json.Unmarshal([]byte(value), &doc) == nil {
		for name, member := range doc {
			var text string
			if json.Unmarshal(member, &text) == nil && store.SecretValue(name, text) {
				out = append(out, secretsIn(text)...)
			}
		}
	}
	return out
}

// formsOf are the forms in which a secret is looked for.
func formsOf(secret string) []string {
	forms := []string{secret}
	for shift := range 3 { // bytes before it in a group of three
		padded := append(make([]byte, shift), secret...)
		// Only characters that say nothing but the secret.
		from, to := (8*shift+5)/6, 8*len(padded)/6
		forms = append(forms, base64.RawStdEncoding.EncodeToString(padded)[from:to], base64.RawURLEncoding.EncodeToString(padded)[from:to])
	}
	for _, escaped := range []string{url.QueryEscape(secret), url.PathEscape(secret), percent(secret)} {
		forms = append(forms, escaped, lowerHex(escaped))
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	for _, html := range []bool{false, true} {
		enc.SetEscapeHTML(html)
		if b.Reset(); enc.Encode(secret) == nil {
			inside := strings.TrimSuffix(strings.TrimSpace(b.String())[1:], `"`)
			forms = append(forms, inside, strings.ReplaceAll(inside, "/", `\/`), ascii(inside))
		}
	}
	return forms
}

// percent is encodeURIComponent of JavaScript.
func percent(s string) string {
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-_.!~*'()", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// lowerHex writes the digits of %XX small.
func lowerHex(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i:], bytes.ToLower(b[i:i+3]))
		}
	}
	return string(b)
}

// ascii writes what is not ASCII as \uXXXX, as json.dumps of Python does.
func ascii(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch hi, lo := utf16.EncodeRune(r); {
		case r < 0x80:
			b.WriteRune(r)
		case r > 0xFFFF:
			fmt.Fprintf(&b, `\u%04x\u%04x`, hi, lo)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
