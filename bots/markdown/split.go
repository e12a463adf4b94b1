// Package markdown splits an assistant's text into messages.
//
// The position of a split depends only on the text before it, so a growing text and the
// complete one are split alike. A code block or table that is split is closed in one
// message and reopened in the next.
package markdown

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// Sizes are the maximum lengths of a platform's messages, in bytes or as counted by Size.
type Sizes struct {
	Part int // content of one message, without what Dress adds
	// A message ends with the first line that ends after Soft, or the first word or clause
	// after Word.
	Soft, Word int
	Lead       int // maximum length of what is repeated at the beginning of a message
	// Size returns the size of a character as the platform counts it; nil counts bytes.
	Size func(r rune) int
}

// ends are the characters that end a word or a clause; Chinese has no spaces.
const ends = " ，。；：、！？"

// cutAt returns the end of the message that begins with text, or -1 if all of it fits and
// more may follow.
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

// FirstPart returns the part of a text that its first message contains.
func (z Sizes) FirstPart(text string) string {
	if n := z.cutAt(text); n >= 0 {
		return text[:n]
	}
	return text
}

// Split splits a text in the same places as streaming does.
func (z Sizes) Split(text string) []string {
	var out []string
	for text != "" {
		piece := z.FirstPart(text)
		out, text = append(out, piece), text[len(piece):]
	}
	return out
}

// Dress returns what a message shows of a text: body, which follows before, with what makes
// it readable by itself. more says that another message follows.
func (z Sizes) Dress(before, body string, more bool) string {
	out := z.leadOf(before, body) + body
	if more {
		out += z.TailOf(before + body)
	}
	return out
}

// leadOf reopens what before leaves open: a code block, or a table that body continues.
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
	fence   string // the end of the code block, "" for none
	opening string // the line that began it
	head    string // the first two lines of a table, "" for none
}

var (
	fenceLine = regexp.MustCompile("^ *(`{3,}|~{3,})(.*)$")
	ruleLine  = regexp.MustCompile(`^ *\|?[ :|-]*-[ :|-]*\|[ :|-]*$`)
)

// openIn reads a text line by line. A table counts only if the text ends with one of its
// rows.
func openIn(text string) (o opened) {
	before := "" // the previous line
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
