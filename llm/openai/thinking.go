package openai

import (
	"bytes"
	"strings"

	"nize/llm"
)

// Some models write their reasoning into the answer, between tags in front of it;
// others only close it, because their template opened it. What stands there is not
// answer: it is neither shown nor said in later turns.

// thinkTags open and close reasoning, in lower case.
var thinkTags = []struct{ open, end string }{
	{"<think>", "</think>"},
	{"<thinking>", "</thinking>"},
	{"<thought>", "</thought>"},
	{"<reasoning>", "</reasoning>"},
	{"[think]", "[/think]"},
	{"◁think▷", "◁/think▷"},
	{"<|channel|>analysis<|message|>", "<|channel|>final<|message|>"},
}

// answerText tells the text of an answer from the reasoning in front of it, as it
// comes. A tag in the midst of the answer is a part of it.
type answerText struct {
	delta func(llm.Delta)
	// hold keeps the text back until it is certain that it is no reasoning which was
	// never opened.
	hold bool

	shown   strings.Builder
	thought strings.Builder // with its tags, as it came
	pending []byte          // what is not decided yet: while it is held, all of the answer
	end     string          // what closes the reasoning that goes on
	begun   bool            // the answer, which nothing turns into reasoning any more
	orphan  bool            // reasoning was closed that was never opened
	looked  int             // how much of what is pending was looked through, while it is held
}

// Len is how much was said, reasoning included.
func (a *answerText) Len() int { return a.shown.Len() + a.thought.Len() + len(a.pending) }

// write takes the next piece.
func (a *answerText) write(piece string) {
	a.pending = append(a.pending, piece...)
	for a.step() {
	}
}

// step decides about what is pending; it reports whether there may be more to decide.
func (a *answerText) step() bool {
	if len(a.pending) == 0 {
		return false
	}
	if a.begun {
		a.show(string(a.pending))
		a.pending = nil
		return false
	}
	if a.end != "" {
		i := indexFold(string(a.pending), a.end)
		if i < 0 { // the tag may be cut at the end
			keep := max(0, len(a.pending)-len(a.end)+1)
			a.think(keep)
			return false
		}
		a.think(i + len(a.end))
		a.end = ""
		return true
	}
	rest := bytes.TrimLeft(a.pending, " \t\r\n")
	start := len(a.pending) - len(rest)
	partly := len(rest) == 0
	for _, tag := range thinkTags {
		if len(rest) >= len(tag.open) && strings.EqualFold(string(rest[:len(tag.open)]), tag.open) {
			a.think(start + len(tag.open))
			a.end = tag.end
			return true
		}
		partly = partly || len(rest) < len(tag.open) && strings.EqualFold(string(rest), tag.open[:len(rest)])
	}
	if partly {
		return false
	}
	if a.thought.Len() == 0 {
		from := max(0, a.looked-maxTag)
		a.looked = len(a.pending)
		if closes(string(a.pending[from:])) {
			if answer, ok := a.cut(string(a.pending)); ok && answer != "" {
				a.think(len(a.pending) - len(answer))
				a.orphan, a.begun = true, true
				return true
			}
		}
		if a.hold {
			return false
		}
	} else { // the space behind the reasoning
		a.pending = rest
	}
	a.begun = true
	return true
}

// holdOf reports whether the answers of a model are kept back until it is certain
// that they are no reasoning which was never opened: it wrote such before.
func (c *Client) holdOf(model string) bool {
	_, orphan := c.unopened.Load(model)
	return orphan
}

// noteText remembers what kind of answer a model wrote.
func (c *Client) noteText(model string, a *answerText) {
	if a.orphan {
		c.unopened.Store(model, struct{}{})
	}
}

// release gives up the hold: the service says the reasoning elsewhere.
func (a *answerText) release() {
	a.hold = false
	for a.step() {
	}
}

// think takes the first n bytes of what is pending as reasoning.
func (a *answerText) think(n int) {
	a.thought.Write(a.pending[:n])
	a.pending = a.pending[n:]
}

func (a *answerText) show(text string) {
	a.shown.WriteString(text)
	a.delta(llm.Delta{Text: text})
}

// finish decides about the rest, and returns the answer. calls says that calls go
// with it.
func (a *answerText) finish(calls bool) string {
	a.release()
	if a.end != "" { // reasoning that was never closed
		a.think(len(a.pending))
	} else if len(bytes.TrimSpace(a.pending)) > 0 || a.thought.Len() == 0 {
		a.begun = true
		a.step()
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

// cut returns what stands behind reasoning that is closed but was never opened.
func (a *answerText) cut(text string) (answer string, ok bool) {
	for _, tag := range thinkTags {
		i := indexFold(text, tag.end)
		if i < 0 || indexFold(text[:i], tag.open) >= 0 || quoted(text, i, len(tag.end)) {
			continue
		}
		return strings.TrimLeft(text[i+len(tag.end):], " \t\r\n"), true
	}
	return "", false
}

// maxTag is longer than every tag.
const maxTag = 64

// closes reports whether a text closes reasoning.
func closes(text string) bool {
	for _, tag := range thinkTags {
		if indexFold(text, tag.end) >= 0 {
			return true
		}
	}
	return false
}

// lastTag is where the closing tag at the end of a text begins.
func lastTag(text string) int {
	for _, tag := range thinkTags {
		if i := indexFold(text, tag.end); i >= 0 {
			return i
		}
	}
	return len(text)
}

// quoted reports whether a tag is spoken of: it stands in code, or as a word within a
// line.
func quoted(text string, at, size int) bool {
	before, behind := text[:at], text[at+size:]
	if strings.Count(before, "`")%2 == 1 || strings.HasPrefix(behind, "`") {
		return true
	}
	return strings.HasSuffix(before, " ") && behind != "" && strings.ContainsAny(behind[:1], " ,.;:!?)")
}

// indexFold is strings.Index of a needle in lower case, whatever case the text has.
func indexFold(text, needle string) int {
	for i := 0; i+len(needle) <= len(text); i++ {
		if (text[i] == needle[0] || needle[0] >= 'a') && strings.EqualFold(text[i:i+len(needle)], needle) {
			return i
		}
	}
	return -1
}
