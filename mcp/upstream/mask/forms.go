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

// common lists values that people enter instead of a secret, and that ordinary results
// contain: masking them would damage results and hide nothing.
var common = map[string]bool{
	"localhost": true, "password": true, "passw0rd": true, "changeme": true, "disabled": true, "enabled": true, "undefined": true,
	"anonymous": true, "username": true, "production": true, "development": true, "postgres": true, "postgresql": true,
	"administrator": true, "internal": true, "external": true, "unlimited": true, "readonly": true, "127.0.0.1": true,
}

const (
	minSecret = headSize // bytes; shorter ones occur in too many words
	minDigits = 10       // for a value of digits only: eight digits are a date
)

// Counts reports whether a value can be distinguished from ordinary text: it has at least 8
// bytes, 10 if it consists of digits, is not one repeated character, and is not a word that
// occurs in many configurations.
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

// secretsIn returns the secrets in one value that was sent: the value itself; the part
// after the scheme of a header; the password of Basic authentication and of a URL; the
// lines of a key; and the secret members of a JSON document.
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

// formsOf returns the encodings of a secret that are searched for.
func formsOf(secret string) []string {
	forms := []string{secret}
	for shift := range 3 { // preceding bytes in a group of three
		padded := append(make([]byte, shift), secret...)
		// Only characters that encode nothing but the secret.
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

// percent encodes like JavaScript's encodeURIComponent.
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

// lowerHex writes the digits of %XX in lower case.
func lowerHex(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i:], bytes.ToLower(b[i:i+3]))
		}
	}
	return string(b)
}

// ascii writes non-ASCII characters as \uXXXX, like Python's json.dumps.
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
