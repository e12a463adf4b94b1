package openai

import (
	"bytes"
	"strings"

	"nize/llm"
)

// Some models write their reasoning into the answer, between tags before it or between its
// lines; others only close it, because their template opened it. Reasoning is not a part of
// the answer: it is neither shown nor sent in later turns.

// thinkTags open and close reasoning, in lower case.
var thinkTags = []struct{ open, end string }{
	{"<think>", "</think>"},
	{"<thinking>", "</thinking>"},
	{"<thought>", "</thought>"},
	{"<reasoning>", "</reasoning>"},
	{"<seed:think>", "</seed:think>"},
	{"[think]", "[/think]"},
	{"◁think▷", "◁/think▷"},
	{"<|channel|>analysis<|message|>", "<|channel|>final<|message|>"},
}

const (
	// maxTag is longer than every tag.
	maxTag = 64
	// maxAttributes is the maximum length of an opening tag's attributes, and maxBlanks
	// that of the space in a closing tag.
	maxAttributes = 100
	maxBlanks     = 8
)

// blanks may precede an answer.
const blanks = " \t\r\n\ufeff\u200b"

// openTag returns the length of the tag open at the beginning of a text, 0 if there is
// none. partly reports that there may be one when more text arrives.
func openTag(text, open string) (n int, partly bool) {
	name, element := strings.CutSuffix(open, ">")
	if !element || strings.HasPrefix(open, "<|") {
		name = open
	}
	if len(text) < len(name) {
		return 0, strings.EqualFold(text, name[:len(text)])
	}
	if !strings.EqualFold(text[:len(name)], name) {
		return 0, false
	}
	if name == open {
		return len(name), false
	}
	rest := text[len(name):min(len(text), len(name)+maxAttributes)]
	switch end := strings.IndexAny(rest, "<>\n"); {
	case rest == "":
		return 0, true
	case rest[0] != '>' && rest[0] != ' ':
		return 0, false
	case end < 0:
		return 0, len(rest) < maxAttributes
	case rest[end] == '>':
		return len(name) + end + 1, false
	}
	return 0, false
}

// opens reports whether a text contains the tag open.
func opens(text, open string) bool {
	name := strings.TrimSuffix(open, ">")
	for {
		i := indexFold(text, name)
		if i < 0 {
			return false
		}
		if n, _ := openTag(text[i:], open); n > 0 {
			return true
		}
		text = text[i+len(name):]
	}
}

// closeTag finds the first closing tag in a text, which may have space before its bracket.
func closeTag(text, end string) (at, n int) {
	name, element := strings.CutSuffix(end, ">")
	if !element || strings.HasPrefix(end, "<|") {
		return indexFold(text, end), len(end)
	}
	for from := 0; ; {
		i := indexFold(text[from:], name)
		if i < 0 {
			return -1, 0
		}
		at, from = from+i, from+i+len(name)
		rest := strings.TrimLeft(text[from:min(len(text), from+maxBlanks)], " \t\n")
		if strings.HasPrefix(rest, ">") {
			skipped := min(len(text), from+maxBlanks) - from - len(rest)
			return at, len(name) + skipped + 1
		}
	}
}

// answerText separates the text of an answer from reasoning, as it streams. A tag within a
// line of the answer, or in a code block, is a part of the answer.
type answerText struct {
	delta func(llm.Delta)
	// hold keeps the text back until it can't be reasoning that was never opened.
	hold bool

	shown   strings.Builder
	thought strings.Builder // with its tags, as received
	pending []byte          // not decided yet; while held, the whole answer
	end     string          // closing tag of the current reasoning
	opened  int             // where it begins in thought
	depth   int             // number of nested openings that are not closed
	again   string          // tag that may close the reasoning a second time, because it was opened within itself
	begun   bool            // the answer has begun
	after   bool            // reasoning within the answer has ended, and no text followed yet
	orphan  bool            // reasoning was closed that was never opened
	last    bool            // no more text follows
	looked  int             // how much of pending was examined while held

	line []byte // the beginning of the answer's current line
	code bool   // the line is in a code block
}

// Len returns the length of everything received, including reasoning.
func (a *answerText) Len() int { return a.shown.Len() + a.thought.Len() + len(a.pending) }

// write adds the next piece.
func (a *answerText) write(piece string) {
	a.pending = append(a.pending, piece...)
	for a.step() {
	}
}

// step decides about pending text; it reports whether there may be more to decide.
func (a *answerText) step() bool {
	switch {
	case len(a.pending) == 0:
		return false
	case a.end != "":
		return a.stepThought()
	case a.again != "":
		return a.stepAgain()
	case a.begun:
		return a.stepAnswer()
	}
	rest := bytes.TrimLeft(a.pending, blanks)
	start := len(a.pending) - len(rest)
	partly := len(rest) == 0
	for _, tag := range thinkTags {
		n, part := openTag(string(rest[:min(len(rest), maxTag+maxAttributes)]), tag.open)
		if n > 0 {
			a.open(start+n, tag.end)
			return true
		}
		partly = partly || part
	}
	if partly && !a.last {
		return false
	}
	if a.thought.Len() == 0 {
		from := max(0, a.looked-maxTag)
		a.looked = len(a.pending)
		if closes(string(a.pending[from:])) {
			answer, ok := a.cut(string(a.pending))
			if ok && answer != "" {
				a.think(len(a.pending) - len(answer))
				a.orphan, a.begun = true, true
				return true
			}
			if ok && !a.last {
				return false // the answer, or calls, may follow
			}
		}
		if a.hold {
			return false
		}
	} else { // the space after the reasoning
		a.pending = rest
	}
	a.begun = true
	return true
}

// open takes the first n bytes of pending as the beginning of reasoning.
func (a *answerText) open(n int, end string) {
	a.opened, a.end, a.depth = a.thought.Len(), end, 0
	a.think(n)
}

// stepThought looks for the end of the reasoning. It may be opened within itself whenever a
// model mentions the tag, or closed as often as it was opened.
func (a *answerText) stepThought() bool {
	text := string(a.pending)
	i, n := closeTag(text, a.end)
	inner := text
	if i >= 0 {
		inner = text[:i]
	}
	open := strings.Replace(a.end, "/", "", 1)
	if at := indexFold(inner, open); at >= 0 && open != a.end {
		a.depth++
		a.think(at + len(open))
		return true
	}
	if i < 0 { // a tag may be incomplete at the end
		a.think(max(0, len(a.pending)-len(a.end)-maxBlanks))
		return false
	}
	a.think(i + n)
	if a.depth > 0 {
		a.again, a.looked = a.end, 0
	}
	a.end, a.after = "", a.begun
	return true
}

// stepAgain checks whether reasoning that was opened within itself is closed once more.
func (a *answerText) stepAgain() bool {
	for from := max(0, a.looked-maxTag); ; {
		i, n := closeTag(string(a.pending[from:]), a.again)
		if i < 0 {
			break
		}
		at := from + i
		if at+n == len(a.pending) && !a.last {
			return false // the following text shows whether the tag is only mentioned
		}
		if !quoted(string(a.pending), at, n) {
			a.think(at + n)
			a.looked = 0
			if a.depth--; a.depth == 0 {
				a.again = ""
			}
			return true
		}
		from = at + n
	}
	a.looked = len(a.pending)
	if a.last {
		a.again = ""
	}
	return a.last
}

// stepAnswer shows pending text, up to reasoning that begins a line.
func (a *answerText) stepAnswer() bool {
	if a.after { // the space after the reasoning
		a.pending = bytes.TrimLeft(a.pending, blanks)
		a.after = len(a.pending) == 0
	}
	for i, b := range a.pending {
		if b == '<' && !a.code && len(a.line) < 4 && len(bytes.TrimLeft(a.line, " ")) == 0 {
			partly := false
			for _, tag := range thinkTags {
				if !strings.HasPrefix(tag.end, "</") {
					continue
				}
				n, part := openTag(string(a.pending[i:min(len(a.pending), i+maxTag+maxAttributes)]), tag.open)
				if n > 0 {
					a.show(i)
					a.open(n, tag.end)
					return true
				}
				partly = partly || part
			}
			if partly && !a.last {
				a.show(i)
				return false
			}
		}
		switch {
		case b == '\n':
			mark := bytes.TrimLeft(a.line, " ")
			if bytes.HasPrefix(mark, []byte("```")) || bytes.HasPrefix(mark, []byte("~~~")) {
				a.code = !a.code
			}
			a.line = a.line[:0]
		case len(a.line) < 8:
			a.line = append(a.line, b)
		}
	}
	a.show(len(a.pending))
	return false
}

// holdOf reports whether a model's answers are held back until they can't be reasoning that
// was never opened, because it wrote such reasoning before.
func (c *Client) holdOf(model string) bool {
	_, orphan := c.unopened.Load(model)
	return orphan
}

// noteText records which form of answer a model wrote.
func (c *Client) noteText(model string, a *answerText) {
	if a.orphan {
		c.unopened.Store(model, struct{}{})
	}
}

// release ends the hold, because the service sends the reasoning separately.
func (a *answerText) release() {
	a.hold = false
	for a.step() {
	}
}

// think takes the first n bytes of pending as reasoning.
func (a *answerText) think(n int) {
	a.thought.Write(a.pending[:n])
	a.pending = a.pending[n:]
}

// show takes the first n bytes of pending as answer.
func (a *answerText) show(n int) {
	if n == 0 {
		return
	}
	text := string(a.pending[:n])
	a.pending = a.pending[n:]
	a.shown.WriteString(text)
	a.delta(llm.Delta{Text: text})
}

// finish decides about the rest and returns the answer. calls says that the reply has
// calls.
func (a *answerText) finish(calls bool) string {
	if answer, ok := a.cut(string(a.pending)); calls && !a.begun && a.thought.Len() == 0 && ok && answer == "" {
		a.orphan = true
		a.think(len(a.pending))
	}
	a.last = true
	a.release()
	if a.end != "" {
		a.unclosed()
	}
	if len(bytes.TrimSpace(a.pending)) > 0 || a.thought.Len() == 0 {
		a.begun = true
		for a.step() {
		}
	}
	text := a.shown.String()
	if a.thought.Len() > 0 {
		return text
	}
	answer, ok := a.cut(text)
	if !ok {
		return text
	}
	a.orphan = true
	if strings.TrimSpace(answer) == "" && !calls { // there is no other answer
		return strings.TrimSpace(text[:lastTag(text)])
	}
	a.thought.WriteString(text[:len(text)-len(answer)])
	return answer
}

// unclosed decides about reasoning that was never closed. Within the answer it is a part of
// the answer; before it, another tag may close it.
func (a *answerText) unclosed() {
	end := a.end
	a.think(len(a.pending))
	a.end = ""
	thought := a.thought.String()
	keep := len(thought)
	if a.begun {
		keep = a.opened
	} else {
		for _, tag := range thinkTags {
			if i, n := closeTag(thought[a.opened:], tag.end); tag.end != end && i >= 0 && !quoted(thought[a.opened:], i, n) {
				keep = min(keep, a.opened+i+n)
			}
		}
	}
	a.thought.Reset()
	a.thought.WriteString(thought[:keep])
	rest := thought[keep:]
	if !a.begun {
		rest = strings.TrimLeft(rest, blanks)
	}
	if a.pending = []byte(rest); rest != "" {
		a.begun = true
		a.show(len(rest))
	}
}

// cut returns the text after reasoning that is closed but was never opened.
func (a *answerText) cut(text string) (answer string, ok bool) {
	for _, tag := range thinkTags {
		i, n := closeTag(text, tag.end)
		if i < 0 || opens(text[:i], tag.open) || quoted(text, i, n) {
			continue
		}
		return strings.TrimLeft(text[i+n:], " \t\r\n"), true
	}
	return "", false
}

// closes reports whether a text closes reasoning.
func closes(text string) bool {
	for _, tag := range thinkTags {
		if i, _ := closeTag(text, tag.end); i >= 0 {
			return true
		}
	}
	return false
}

// lastTag returns the position of the closing tag at the end of a text.
func lastTag(text string) int {
	for _, tag := range thinkTags {
		if i, _ := closeTag(text, tag.end); i >= 0 {
			return i
		}
	}
	return len(text)
}

// quoted reports whether a tag is only mentioned: in code, in quotation marks, or as a word
// within a line.
func quoted(text string, at, size int) bool {
	before, behind := text[:at], text[at+size:]
	if strings.Count(before, "`")%2 == 1 || strings.HasPrefix(behind, "`") {
		return true
	}
	for _, marks := range []struct{ open, end string }{{`"`, `"`}, {"'", "'"}, {"(", ")"}} {
		if strings.HasSuffix(before, marks.open) && strings.HasPrefix(behind, marks.end) {
			return true
		}
	}
	return strings.HasSuffix(before, " ") && behind != "" && strings.ContainsAny(behind[:1], " ,.;:!?)")
}

// indexFold is a case-insensitive strings.Index for a needle in lower case.
func indexFold(text, needle string) int {
	for i := 0; i+len(needle) <= len(text); i++ {
		if (text[i] == needle[0] || needle[0] >= 'a') && strings.EqualFold(text[i:i+len(needle)], needle) {
			return i
		}
	}
	return -1
}
