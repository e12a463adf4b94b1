package chat

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"nize/bots"
	"nize/bots/phrases"
	"nize/daemon/api"
	"nize/store"
)

// cardPrompt prompts for cards line by line.
type cardPrompt struct {
	s    *session
	w    io.Writer
	mode string // "", or "args" or "reason" while these are prompted for

	standing *standing  // what always or never asks, or nil
	answers  *answering // the form of a question that is being filled in, or nil
}

// print prompts for the answer to a card that has been shown.
func (p *cardPrompt) print(card store.Card) {
	if p.mode == "args" {
		fmt.Fprint(p.w, p.s.words().Say(phrases.TermArgsLine))
		return
	}
	if p.mode == "reason" {
		fmt.Fprint(p.w, p.s.words().Say(phrases.TermReasonLine))
		return
	}
	if p.answers != nil {
		fmt.Fprint(p.w, p.answers.prompt())
		return
	}
	if p.standing != nil {
		fmt.Fprint(p.w, bots.Escape(p.standing.line(p.s.words())))
		return
	}
	fmt.Fprintf(p.w, "%s: ", cardKeys(card, p.s.words()))
}

// parse parses an answer: if done, d is to be sent; if show, the card is to be shown again.
func (p *cardPrompt) parse(card store.Card, line string) (d api.DecideCallRequest, done, show bool) {
	line = strings.TrimSpace(line)
	if p.mode == "args" {
		p.mode = ""
		if line == "" {
			return d, false, false
		}
		args, err := checkArguments(line)
		if err != nil {
			fmt.Fprintln(p.w, p.s.problem(err))
			p.mode = "args"
			return d, false, false
		}
		return api.DecideCallRequest{Verb: store.Edit, Args: args}, true, false
	}
	if p.mode == "reason" {
		p.mode = ""
		return api.DecideCallRequest{Verb: store.Deny, Reason: line}, line != "", false
	}
	if card.Question != nil {
		return p.parseQuestion(card, line)
	}
	if p.standing != nil {
		d, done = p.parseStanding(line)
		return d, done, false
	}
	if line == "Y" && card.Together > 0 {
		return api.DecideCallRequest{Verb: store.RunAll}, true, false
	}
	switch strings.ToLower(line) {
	case "y", "yes":
		return api.DecideCallRequest{Verb: store.Approve}, true, false
	case "n", "no":
		return api.DecideCallRequest{Verb: store.Deny}, true, false
	case "r", "reason":
		p.mode = "reason"
	case "a", "always":
		if card.Always {
			p.standing = newStanding(store.Approve, bots.ScopesOf(card, false, true), p.s.words())
			return d, false, false
		}
		fmt.Fprintln(p.w, p.s.words().Say(phrases.TermNotAlways))
	case "d", "deny":
		p.standing = newStanding(store.Deny, bots.StandingScopes{Everyone: true}, p.s.words())
	case "e", "edit":
		p.mode = "args"
	case "?":
		return d, false, true
	}
	return d, false, false
}

// parseQuestion is parse for a question. A field that is left empty keeps its default.
func (p *cardPrompt) parseQuestion(card store.Card, line string) (d api.DecideCallRequest, done, show bool) {
	if p.answers != nil && p.answers.card.Call == card.Call {
		if line == "" {
			line = p.answers.initial()
		}
		answer, done, problem := p.answers.take(line)
		if problem != "" {
			fmt.Fprintln(p.w, bots.Plain(problem))
		}
		if done {
			p.answers = nil
		}
		return api.DecideCallRequest{Verb: store.Edit, Args: answer}, done, false
	}
	switch strings.ToLower(line) {
	case "y", "yes":
		p.answers = newAnswering(card, p.s.words())
		return api.DecideCallRequest{Verb: store.Approve}, p.answers == nil, false
	case "n", "no":
		return api.DecideCallRequest{Verb: store.Deny}, true, false
	case "c", "cancel":
		return api.DecideCallRequest{Verb: store.Cancel}, true, false
	case "?":
		return d, false, true
	}
	return d, false, false
}

// checkArguments returns an error for arguments that the daemon would refuse. Every tool
// takes an object (MCP).
func checkArguments(text string) (json.RawMessage, error) {
	args, err := store.Canonical([]byte(text))
	if err != nil {
		return nil, err
	}
	if len(args) == 0 || args[0] != '{' {
		return nil, fmt.Errorf("%w arguments: want a JSON object, {…}", store.ErrInvalid)
	}
	return args, nil
}

// CardLines returns a card as plain English lines, for a command that shows one.
func CardLines(card store.Card, now time.Time) []string {
	return bots.CardLines(card, bots.Reader{Zone: now.Location(), Now: now})
}

func printCard(w io.Writer, card store.Card, reader bots.Reader) {
	for _, line := range bots.CardLines(card, reader) {
		fmt.Fprintln(w, line)
	}
}
