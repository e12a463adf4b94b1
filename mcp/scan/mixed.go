package scan

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"

	"nize/store"
	"nize/store/printable"
)

const maxMixed = 20 // how many warnings Mixed returns

var moreMixed = store.Textf("there is more of that kind than is listed here")

// Mixed returns one warning for each host, path and e-mail address in s that mixes scripts
// or contains letters that look like ASCII ones, together with the form that a machine
// reads: punycode for hosts (RFC 3492), \u escapes for the rest. Legitimate ones such as
// "münchen.de" and "/home/иван" give none. It is for approval cards, beside the text
// itself. It returns nil if there is no warning.
func Mixed(s string) []store.Text {
	if isPlain(s) {
		return nil
	}
	var out []store.Text
	seen := map[string]bool{}
	for _, token := range strings.FieldsFunc(s, between) {
		token = strings.Trim(token, ".,:;!?")
		if isPlain(token) || seen[token] {
			continue
		}
		seen[token] = true
		if out = append(out, place(token)...); len(out) > maxMixed {
			return append(out[:maxMixed], moreMixed)
		}
	}
	return out
}

// between splits prose and JSON into tokens.
func between(r rune) bool {
	return unicode.IsSpace(r) || strings.ContainsRune("\"'`<>()[]{}|,;=\u201c\u201d\u2018\u2019、「」", r)
}

// place splits a token into host, path and address, and returns warnings about each part.
func place(token string) []store.Text {
	rest := token
	scheme := false
	if i := strings.Index(rest, "://"); i >= 0 {
		rest, scheme = rest[i+3:], true
	}
	head, path := rest, ""
	if i := strings.IndexAny(rest, `/\?#`); i >= 0 {
		head, path = rest[:i], rest[i:]
	}
	var out []store.Text
	user, host, isMail := strings.Cut(head, "@")
	if !isMail {
		user, host = "", head
	}
	switch {
	case isMail && !scheme:
		out = append(out, warn(store.Textf("e-mail address"), head, deceives(user) || deceivesHost(host), user+"@"+asciiHost(host))...)
	case scheme || looksHost(host):
		host = strings.TrimRight(host, ".")
		out = append(out, warn(store.Textf("host"), host, deceivesHost(host), asciiHost(host))...)
	case path == "":
		return nil // a word
	default:
		path = rest // a relative path
	}
	return append(out, warn(store.Textf("path"), path, deceivesPath(path), escape(path))...)
}

func warn(what store.Text, shown string, deceives bool, ascii string) []store.Text {
	if !deceives {
		return nil
	}
	mixed := ""
	for _, word := range words(shown) {
		if names := scriptsOf(word); !together(names) {
			mixed = list(names)
			break
		}
	}
	shown, ascii = printable.Escape(store.Clip(printable.Escape(shown), 200)), escape(store.Clip(escape(ascii), 400)) // cutting may split sequences that belong together
	if mixed == "" {
		return []store.Text{store.Textf("%s %s has letters that only look ASCII: in ASCII it is %s", what, shown, ascii)}
	}
	return []store.Text{store.Textf("%s %s mixes %s letters: in ASCII it is %s", what, shown, mixed, ascii)}
}

// looksHost reports whether a bare word has the form of a host: labels and dots, with
// letters in the last label. Full stops of other scripts count as dots.
func looksHost(s string) bool {
	labels := strings.FieldsFunc(s, func(r rune) bool { return dot(r) || r == ':' })
	if len(labels) < 2 {
		return false
	}
	for _, r := range s {
		if !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) && r != '-' && r != ':' && !dot(r) {
			return false
		}
	}
	return true
}

func dot(r rune) bool { return r == '.' || r == '。' || r == '．' || r == '｡' || r == '․' }

// deceives checks one part that people read as a unit.
func deceives(s string) bool {
	if isPlain(s) {
		return false
	}
	if disguised(s) {
		return true
	}
	for _, word := range words(s) {
		if !together(scriptsOf(word)) {
			return true
		}
		if posing(word) {
			return true
		}
	}
	return false
}

// deceivesHost is stricter: one letter that looks ASCII is enough in any label that also
// has ASCII letters, and so is punctuation that looks like a dot or slash.
func deceivesHost(host string) bool {
	for _, r := range host {
		if a, ok := lookalike(r); ok && !unicode.IsLetter(r) && strings.ContainsRune(`./\:-`, a) {
			return true
		}
	}
	for _, label := range strings.FieldsFunc(host, dot) {
		if deceives(label) || disguised(label) {
			return true
		}
		ascii, other := false, false
		for _, r := range label {
			_, ok := lookalike(r)
			ascii, other = ascii || r < 0x80 && unicode.IsLetter(r), other || ok
		}
		if ascii && other {
			return true
		}
	}
	return false
}

// deceivesPath checks each segment, but accepts a word of look-alikes if the rest of the
// path is clearly in that script.
func deceivesPath(path string) bool {
	for _, r := range path {
		if a, ok := lookalike(r); ok && !unicode.IsLetter(r) && strings.ContainsRune(`./\`, a) {
			return true
		}
	}
	honest := strings.ContainsFunc(path, func(r rune) bool {
		_, ok := lookalike(r)
		return r >= 0x80 && unicode.IsLetter(r) && !ok && !unicode.Is(unicode.Latin, r)
	})
	for _, segment := range strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune(`/\?#&%`, r) }) {
		for _, word := range words(segment) {
			if !together(scriptsOf(word)) || posing(word) || disguised(word) && !honest {
				return true
			}
		}
	}
	return false
}

// escape writes all characters except printable ASCII as \uXXXX, like JSON.
func escape(s string) string {
	if isPlain(s) && !strings.ContainsAny(s, "\n\t") {
		return s
	}
	var out strings.Builder
	for _, r := range s {
		if r >= ' ' && r < 0x7f {
			out.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&out, `\u%04x`, unit)
		}
	}
	return out.String()
}

// asciiHost encodes each label of a host that requires it in punycode.
func asciiHost(host string) string {
	labels := strings.FieldsFunc(strings.ToLower(host), dot)
	for i, label := range labels {
		if !isPlain(label) {
			labels[i] = "xn--" + punycode(label)
		}
	}
	return strings.Join(labels, ".")
}

// Parameters of punycode (RFC 3492, section 5).
const base, tMin, tMax, skew, damp = 36, 1, 26, 38, 700

func adapt(delta, points int, first bool) int {
	if first {
		delta /= damp
	} else {
		delta /= 2
	}
	delta += delta / points
	k := 0
	for ; delta > (base-tMin)*tMax/2; k += base {
		delta /= base - tMin
	}
	return k + (base-tMin+1)*delta/(delta+skew)
}

// punycode encodes one label (RFC 3492, section 6.3).
func punycode(label string) string {
	runes := []rune(label)
	var out []byte
	for _, r := range runes {
		if r < 0x80 {
			out = append(out, byte(r))
		}
	}
	basic, done := len(out), len(out)
	if basic > 0 {
		out = append(out, '-')
	}
	n, delta, bias := rune(0x80), 0, 72
	for done < len(runes) {
		next := unicode.MaxRune
		for _, r := range runes {
			if r >= n && r < next {
				next = r
			}
		}
		delta += int(next-n) * (done + 1)
		n = next
		for _, r := range runes {
			if r < n {
				delta++
			}
			if r != n {
				continue
			}
			q := delta
			for k := base; ; k += base {
				t := min(max(k-bias, tMin), tMax)
				if q < t {
					break
				}
				out = append(out, "abcdefghijklmnopqrstuvwxyz0123456789"[t+(q-t)%(base-t)])
				q = (q - t) / (base - t)
			}
			out = append(out, "abcdefghijklmnopqrstuvwxyz0123456789"[q])
			bias = adapt(delta, done+1, done == basic)
			delta = 0
			done++
		}
		delta++
		n++
	}
	return string(out)
}
