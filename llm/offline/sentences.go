package offline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"nize/llm"
	"nize/store"
)

// voice translates the planner's sentences for the reader. Texts of others (tools, servers,
// the person) stay as they are.
type voice func(t store.Text) string

// format returns one sentence with its arguments.
func (v voice) format(format string, args ...any) string { return v(store.Textf(format, args...)) }

// joinSentences joins sentences, without a space after a full-width mark, which includes
// its own.
func joinSentences(sentences ...string) string {
	var b strings.Builder
	last := ""
	for _, s := range sentences {
		if last != "" && !strings.HasSuffix(last, "。") && !strings.HasSuffix(last, "）") {
			b.WriteByte(' ')
		}
		b.WriteString(s)
		last = s
	}
	return b.String()
}

// introduction is shown once in a conversation, before the first answer.
var introduction = store.Textf("I am nize's offline planner, not a language model: I look for a tool that fits your words, fill in what I can tell from them, and show the result.")

var (
	greeting    = store.Textf("Hello! Tell me what you need, for example “what time is it in Tokyo?”, or ask “what can you do?”.")
	welcome     = store.Textf("You are welcome.")
	nothingDone = store.Textf("All right, nothing was done.")
	noTools     = store.Textf("Tools are switched off in this conversation, and without them I can do nothing.")
	tooLong     = store.Textf("That message is too long for me. Please say in a few words what you need.")
	giveUp      = store.Textf("I could not finish this. Please try again in other words.")
)

const (
	maxShown = 1500 // bytes of a result that are shown
	maxLine  = 300  // bytes of a result that are shown within a sentence
)

// toolList lists the tools that were found.
func (v voice) toolList(wanted string, tools []found) string {
	var b strings.Builder
	b.WriteString(v.format("For “%s” I found:", shorten(wanted)) + "\n")
	for _, t := range tools {
		fmt.Fprintf(&b, "\n- `%s`: %s", t.ID, shorten(t.Description))
	}
	return b.String()
}

func (v voice) notFound(wanted string, near []found) string {
	text := v.format("I found no tool for “%s” here.", shorten(wanted))
	if len(near) == 0 {
		return text
	}
	text = joinSentences(text, v.format("The nearest are:")) + "\n"
	for i, t := range near {
		if i < 3 {
			text += fmt.Sprintf("\n- `%s`: %s", t.ID, shorten(t.Description))
		}
	}
	return text
}

// domainList lists the domains that have tools.
func (v voice) domainList(result store.Turn) string {
	var doc struct {
		Domains []struct {
			ID          string `json:"id"`
			Description string `json:"description"`
			Count       int    `json:"tool_count"`
		} `json:"domains"`
	}
	if json.Unmarshal([]byte(result.Text), &doc) != nil {
		return v.failure(result)
	}
	if len(doc.Domains) == 0 {
		return v.format("There are no tools here yet. An admin adds some with `nizectl servers add`.")
	}
	var b strings.Builder
	b.WriteString(v.format("I can use tools for:") + "\n")
	for _, d := range doc.Domains {
		fmt.Fprintf(&b, "\n- **%s** (%d)", d.ID, d.Count)
		if d.Description != "" {
			b.WriteString(": " + shorten(d.Description))
		}
	}
	b.WriteString("\n\n" + v.format("Say what you need, or ask “which tool can …?”."))
	return b.String()
}

func (v voice) question(tool string, p param) string {
	parts := []string{v.format("I would use `%s`, but I could not tell the **%s** from your words.", tool, p.label())}
	if p.about != "" {
		parts = append(parts, v.format("(%s)", shorten(p.about)))
	}
	if len(p.enum) > 0 {
		parts = append(parts, v.format("It is one of: %s.", strings.Join(p.enum, ", ")))
	}
	return joinSentences(append(parts, v.format("What is the %s?", p.label()))...)
}

func (v voice) proposal(tool string) string {
	return v.format("I propose to run `%s` with what I could tell from your words. It needs a yes first.", tool)
}

// outcome shows a call's result, or why it has none.
func (v voice) outcome(tool string, result store.Turn) string {
	why := within(result.Said, maxShown)
	some := why != (store.Text{})
	switch {
	case result.Unmade || result.Ended == store.Planned: // Planned is the form stored by older versions
		return v.format("`%s` was not run: %s.", tool, why)
	case result.Ended == store.Refused && some:
		return v.format("`%s` was not run: it was refused: %s.", tool, why)
	case result.Ended == store.Refused:
		return v.format("`%s` was not run, because it was refused.", tool)
	case result.Ended == store.Expired:
		return v.format("`%s` was not run: nobody approved it in time.", tool)
	case result.Ended == store.Cancelled:
		return v.format("`%s` was not run: the call was cancelled.", tool)
	case result.Ended == store.Lost && some:
		return v.format("`%s` ended without a result: %s.", tool, why)
	case result.Ended == store.Lost:
		return v.format("nize stopped while `%s` ran, so it is unknown whether it took effect. Please check before you ask for it again.", tool)
	case result.Ended == store.Failed && some:
		return v.format("`%s` failed: %s.", tool, why)
	case result.Ended == store.Failed:
		return v.format("`%s` failed.", tool)
	case result.Ended == store.Done:
		return v.format("`%s` reported an error: %s.", tool, why)
	}
	return v.shownResult(tool, result.Text)
}

// within returns a text as a part of a sentence, cut to a number of bytes.
func within(t store.Text, limit int) store.Text {
	text := t.String()
	if short := llm.Truncate(strings.TrimSuffix(strings.TrimSpace(text), "."), limit); short != text {
		return store.Plain(short)
	}
	return t
}

// shownResult returns a result within a sentence or, if it is longer, below one.
func (v voice) shownResult(tool, result string) string {
	result = strings.TrimSpace(result)
	switch {
	case result == "" || result == "(no output)":
		return v.format("`%s` ran and returned nothing.", tool)
	case len(result) <= maxLine && !strings.Contains(result, "\n"):
		return result + "\n\n" + v.format("(from `%s`)", tool)
	}
	fence := "```"
	for strings.Contains(result, fence) {
		fence += "`"
	}
	return v.format("`%s` returned:", tool) + "\n\n" + fence + "\n" + llm.Truncate(result, maxShown) + "\n" + fence
}

func (v voice) failure(result store.Turn) string {
	said := within(result.Said, maxLine)
	if result.Ended == "" {
		said = within(store.Plain(result.Text), maxLine)
	}
	if said == (store.Text{}) {
		return v(giveUp)
	}
	return v.format("That did not work: %s.", said)
}

// shorten returns one line of limited length.
func shorten(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > 160 {
		return string(bytes.TrimSpace([]byte(string(r[:159])))) + "…"
	}
	return s
}
