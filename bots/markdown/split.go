// Package markdown cuts an assistant's text into messages.
//
// A long text stands in several messages. Where it is cut depends on what
// stands before the cut alone, so that a text that is still growing and the
// whole one are cut alike; and a code block or a table that a cut goes through
// is closed in the one message and opened again in the next.
package markdown

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// Sizes say how long the messages of a platform are, in bytes, or as Size counts.
type Sizes struct {
	Part int // what stands in one at most, without what Dress adds
	// A message ends with the first line that ends after Soft, or the first word
	// or clause after Word.
	Soft, Word int
	Lead       int // what is said again at the beginning of a message at most
	// Size counts a character as the platform does; nil counts bytes.
	Size func(r rune) int
}

// ends are what ends a word or a clause; Chinese has no spaces.
const ends = " ，。；：、！？"

// cutAt is where the message ends that begins with text, -1 if all of it fits
// and more may follow.
func (z Sizes) cutAt(text string) int {
	n := 0
	for i := 0; i < len(text); {
		r, width := utf8.DecodeRuneInString(text[i:])
		size := width
		if z.Size != nil {
			size = z.Size(r)
		}
		if n+size > z.Part {
			return i
		}
		i += width
		if n >= z.Soft && (r == '\n' || n >= z.Word && strings.ContainsRune(ends, r)) {
			return i
		}
		n += size
	}
	if n < z.Part {
		return -1
	}
	return len(text)
}

// FirstPart is what of a text stands in the message that it begins.
func (z Sizes) FirstPart(text string) string {
	if n := z.cutAt(text); n >= 0 {
		return text[:n]
	}
	return text
}

// Split cuts a text as it is streamed.
func (z Sizes) Split(text string) []string {
	var out []string
	for text != "" {
		piece := z.FirstPart(text)
		out, text = append(out, piece), text[len(piece):]
	}
	return out
}

// Dress is what a message shows of a text: body, which follows before, with
// what makes it readable alone. more says that the text goes on in another.
func (z Sizes) Dress(before, body string, more bool) string {
	out := z.leadOf(before, body) + body
	if more {
		out += z.TailOf(before + body)
	}
	return out
}

// leadOf opens again what before leaves open: a code block, or a table that
// body goes on with.
func (z Sizes) leadOf(before, body string) string {
	o := openIn(before)
	lead := ""
	switch {
	case o.fence != "":
		lead = o.opening + "\n"
	case o.head != "" && strings.HasPrefix(strings.TrimLeft(body, " "), "|"):
		lead = o.head
	}
	if len(lead) > z.Lead {
		return ""
	}
	return lead
}

// TailOf closes the code block that text leaves open.
func (z Sizes) TailOf(text string) string {
	o := openIn(text)
	if o.fence == "" || len(o.opening) > z.Lead {
		return ""
	}
	if strings.HasSuffix(text, "\n") {
		return o.fence
	}
	return "\n" + o.fence
}

// opened is what is open at the end of a text.
type opened struct {
	fence   string // what ends the code block, "" for none
	opening string // the line that began it
	head    string // the first two lines of a table, "" for none
}

var (
	fenceLine = regexp.MustCompile("^ *(`{3,}|~{3,})(.*)$")
	ruleLine  = regexp.MustCompile(`^ *\|?[ :|-]*-[ :|-]*\|[ :|-]*$`)
)

// openIn reads a text line by line. A table counts only where the text ends
// with one of its rows.
func openIn(text string) (o opened) {
	before := "" // the line before
	for line := range strings.Lines(text) {
		trimmed := strings.TrimRight(line, "\r\n")
		m := fenceLine.FindStringSubmatch(trimmed)
		switch {
		case o.fence != "":
			if m != nil && strings.HasPrefix(m[1], o.fence) && strings.TrimSpace(m[2]) == "" {
				o = opened{}
			}
		case m != nil && (m[1][0] != '`' || !strings.Contains(m[2], "`")):
			o = opened{fence: m[1], opening: trimmed}
		case ruleLine.MatchString(trimmed) && strings.Contains(before, "|"):
			o.head = before + "\n" + trimmed + "\n"
		case !strings.Contains(trimmed, "|"):
			o.head = ""
		}
		before = trimmed
	}
	if !strings.HasSuffix(text, "\n") {
		o.head = ""
	}
	return o
}
