package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"nize/store"
)

// Some servers write slightly malformed JSON: a byte order mark before it, NaN in it, line
// breaks inside strings, colours around it, a warning of their runtime in front of it. The
// meaning of such a message is unambiguous, so it is repaired and read. Anything else is
// refused, and the error quotes it.

var byteOrderMark = []byte("\xef\xbb\xbf")

// escapeCodes matches terminal escape codes: CSI sequences (colours), OSC sequences
// (titles) and two-character ones.
var escapeCodes = regexp.MustCompile(`\x1b(?:\[[0-9;:?<=>]*[ -/]*[@-~]|\][^\x07\x1b\n]{0,512}(?:\x07|\x1b\\)|[@-Z\\^_=>78])`)

// openMessage splits one JSON-RPC message like openEnvelope, and repairs it first if it is
// not valid JSON. The error quotes the unreadable text.
func openMessage(msg []byte, hide Hide) (envelope, error) {
	e, err := openEnvelope(msg)
	if err == nil {
		return e, nil
	}
	if json.Valid(msg) {
		return e, fmt.Errorf("%w: %s", err, hide.quote(msg))
	}
	if mended, ok := mend(msg); ok {
		return openEnvelope(mended)
	}
	return e, fmt.Errorf("%w: %s", errNotJSON, hide.quote(msg))
}

// mend returns the JSON value that doc was meant to be: without a byte order mark and
// escape codes, with null for numbers that JSON can't represent, and with the control
// characters inside strings escaped. It returns ok false if the repaired text is not valid
// JSON either.
func mend(doc []byte) (mended []byte, ok bool) {
	doc = bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(doc), byteOrderMark))
	if json.Valid(doc) {
		return doc, true
	}
	if bytes.IndexByte(doc, 0x1b) >= 0 {
		doc = bytes.TrimSpace(escapeCodes.ReplaceAll(doc, nil))
	}
	out := make([]byte, 0, len(doc)+16)
	inString := false
	for i := 0; i < len(doc); i++ {
		c := doc[i]
		switch {
		case inString && c == '\\' && i+1 < len(doc) && doc[i+1] >= 0x20:
			out = append(out, c, doc[i+1])
			i++
		case c == '"':
			inString = !inString
			out = append(out, c)
		case inString && c < 0x20:
			out = fmt.Appendf(out, `\u%04x`, c)
		case inString:
			out = append(out, c)
		default:
			if n := notANumber(doc[i:]); n > 0 {
				out = append(out, "null"...)
				i += n - 1
				continue
			}
			out = append(out, c)
		}
	}
	return out, json.Valid(out)
}

// notANumber returns the length of the NaN or infinity that doc begins with, or 0.
func notANumber(doc []byte) int {
	for _, word := range []string{"NaN", "Infinity", "-Infinity", "-NaN", "+Infinity"} {
		if bytes.HasPrefix(doc, []byte(word)) {
			return len(word)
		}
	}
	return 0
}

// answerAfterText finds an answer behind other text, and returns it with its end, or nil.
// It ignores requests and notifications, because a server that logs its input would then
// get answers to its own log. An answer may also come from a log of received data, so use
// it only for the single open request.
func answerAfterText(text []byte) (answer []byte, end int) {
	for at, tries := 0, 0; tries < 16; tries++ {
		next := bytes.IndexByte(text[at:], '{')
		if next < 0 {
			return nil, 0
		}
		at += next
		n := (&jsonScan{}).scan(text[at:])
		if n < 0 { // a brace that belongs to the text
			at++
			continue
		}
		if doc, ok := mend(text[at : at+n]); ok && isAnswer(doc) {
			return doc, at + n
		}
		at += n
	}
	return nil, 0
}

// isAnswer reports whether valid JSON is a JSON-RPC response.
func isAnswer(doc []byte) bool {
	e, err := openEnvelope(doc)
	return err == nil && e.version && e.method == "" && (e.result != nil || e.fault != nil)
}

// attemptsAnswer reports whether unreadable text was meant as an answer, so that waiting
// longer is useless.
func attemptsAnswer(text []byte) bool {
	return bytes.HasPrefix(text, []byte("{")) && bytes.Contains(text, []byte("jsonrpc")) &&
		(bytes.Contains(text, []byte("result")) || bytes.Contains(text, []byte("error"))) &&
		!bytes.Contains(text, []byte(`"method"`)) && !bytes.Contains(text, []byte(`'method'`))
}

var (
	pageStart = regexp.MustCompile(`(?i)^\s*(?:<!--.{0,500}?-->\s*)?<(?:!doctype\s+html|html|head|body)\b`)
	pageTitle = regexp.MustCompile(`(?is)<title[^>]*>(.{1,300}?)</title>`)
)

// Hide masks the secrets that a server was given in a text; nil masks nothing. It is called
// before a text is cut, so that no part of a secret remains at the cut.
type Hide func(string) string

func (h Hide) text(s string) string {
	if h == nil {
		return s
	}
	return h(s)
}

// quote formats a server's output for an error: on one line, cut, and reduced to the title
// if it is a web page. It returns "nothing" for blank text.
func (h Hide) quote(b []byte) string {
	b = bytes.TrimPrefix(b[:min(len(b), 8<<10)], byteOrderMark)
	if pageStart.Match(b) {
		if m := pageTitle.FindSubmatch(b); m != nil {
			return fmt.Sprintf("a web page with the title %q", h.line(html.UnescapeString(string(m[1])), 100))
		}
		return "a web page"
	}
	text := h.line(string(escapeCodes.ReplaceAll(b, nil)), maxQuote)
	if text == "" {
		return "nothing"
	}
	return quoted(text)
}

// quoted puts text in quotation marks, unless it is JSON, whose own quotation marks would
// have to be escaped. It replaces or escapes unprintable characters.
func quoted(text string) string {
	if !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[") {
		return fmt.Sprintf("%q", text)
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return utf8.RuneError
	}, text)
}

// maxQuote is how much of a server's output an error quotes, in bytes.
const maxQuote = 200

// line returns text on one line of at most n bytes.
func (h Hide) line(text string, n int) string {
	return store.Clip(strings.Join(strings.Fields(h.text(strings.ToValidUTF8(text, "\uFFFD"))), " "), n)
}
