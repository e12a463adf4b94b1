package chat

import (
	"context"
	"strconv"
	"strings"
	"time"

	"nize/bots"
	"nize/bots/phrases"
	"nize/daemon/api"
	"nize/store"
)

// standing asks the questions after "always" or "never": one row per question, with the
// narrowest choice first.
type standing struct {
	verb   store.Verb // approve or deny
	asked  []bots.StandingQuestion
	chosen []int
	at     int // the selected row
}

func newStanding(verb store.Verb, may bots.StandingScopes, words phrases.Catalogue) *standing {
	asked := bots.StandingQuestions(verb == store.Deny, may, words)
	return &standing{verb: verb, asked: asked, chosen: make([]int, len(asked))}
}

// request returns the decision for the choices.
func (q *standing) request(now time.Time) (api.DecideCallRequest, error) {
	chosen := map[string]string{}
	for i, asked := range q.asked {
		chosen[asked.Name] = asked.Choices[q.chosen[i]].Value
	}
	d, err := bots.ReadStanding(func(name string) string { return chosen[name] }, now)
	return api.DecideCallRequest{Verb: q.verb, Always: true, For: d.For, Exact: d.Exact, Pattern: d.Pattern, Line: d.Line, Here: d.Here, Until: d.Until}, err
}

// rows shows the questions with all their choices; the selected ones are in brackets, as
// not every terminal has colors.
func (q *standing) rows(s style, width int, words phrases.Catalogue) []string {
	var rows []string
	for i, asked := range q.asked {
		line := "  "
		if i == q.at {
			line = "> "
		}
		line += asked.Label + ": "
		for n, o := range asked.Choices {
			if n == q.chosen[i] {
				line += "[" + noted(o, words) + "] "
			} else {
				line += " " + noted(o, words) + "  "
			}
		}
		look := look(0)
		if i == q.at {
			look = lookBold
		}
		rows = append(rows, s.wrap(paint(cells(strings.TrimRight(line, " ")), look), width, "", "    ")...)
	}
	return rows
}

// noted returns a choice with its notes.
func noted(o bots.Option, words phrases.Catalogue) string {
	if o.Note == "" {
		return o.Label
	}
	return words.Say(phrases.AlwaysNoted, o.Label, o.Note)
}

// standingKey moves among the choices, confirms them or goes back.
func (f *screen) standingKey(ctx context.Context, k key) {
	q := f.standing
	choices := len(q.asked[q.at].Choices)
	switch k.r {
	case keyRight, ' ':
		q.chosen[q.at] = (q.chosen[q.at] + 1) % choices
	case keyLeft:
		q.chosen[q.at] = (q.chosen[q.at] + choices - 1) % choices
	case keyDown, tab:
		q.at = (q.at + 1) % len(q.asked)
	case keyUp:
		q.at = (q.at + len(q.asked) - 1) % len(q.asked)
	case enter:
		d, err := q.request(f.s.opt.Now())
		if err != nil {
			f.printText(f.style.red, f.s.problem(err))
			return
		}
		f.standing = nil
		f.decide(ctx, f.cards[0], d)
		return
	case keyEscape, ctrlC, ctrlD:
		f.standing = nil
		f.cardSince = f.s.opt.Now()
		return
	}
	f.hint = f.s.words().Say(phrases.TermStandingKeys)
}

// parseStanding parses one line as the answer to the current question: a number, or nothing
// for the first choice.
func (p *cardPrompt) parseStanding(line string) (d api.DecideCallRequest, done bool) {
	q := p.standing
	choices := q.asked[q.at].Choices
	n := 1
	if line != "" {
		var err error
		if n, err = strconv.Atoi(line); err != nil || n < 0 || n > len(choices) {
			return d, false // asked again
		}
	}
	if n == 0 {
		p.standing = nil
		return d, false
	}
	q.chosen[q.at] = n - 1
	if q.at++; q.at < len(q.asked) {
		return d, false
	}
	p.standing = nil
	d, err := q.request(p.s.opt.Now())
	return d, err == nil
}

// line returns the question as one line.
func (q *standing) line(words phrases.Catalogue) string {
	asked := q.asked[q.at]
	parts := make([]string, len(asked.Choices))
	for i, o := range asked.Choices {
		parts[i] = strconv.Itoa(i+1) + " " + noted(o, words)
	}
	return words.Say(phrases.TermStandingLine, asked.Label, strings.Join(parts, ", "))
}

// KeptLine returns an English description of the standing answer that was created, and how
// to revoke it.
func KeptLine(ctx context.Context, client *api.Client, tool string, d store.Decision, now time.Time) (string, error) {
	return keptLine(ctx, client, store.Card{Tool: tool}, d, bots.Reader{Zone: now.Location(), Now: now})
}

func keptLine(ctx context.Context, client *api.Client, card store.Card, d store.Decision, r bots.Reader) (string, error) {
	list, err := api.ListGrants.Call(ctx, client, api.ListGrantsRequest{})
	if err != nil {
		return "", err
	}
	var made store.Grant // the last one about the tool
	for _, g := range list.Items {
		if g.Tool == card.Tool && g.Deny == (d.Verb == store.Deny) && !g.Created.Before(made.Created) {
			made = g.Grant
		}
	}
	line := bots.KeptWords(card.Tool, card.Asked, d, r)
	if made.ID == "" {
		return line, nil
	}
	return phrases.For(r.Locale).Say(phrases.TermKept, line, "nizectl approvals grants revoke "+made.ID), nil
}

// AskStanding asks the questions through a command's own prompt.
func AskStanding(deny bool, card store.Card, ask func(question string) (string, error), now time.Time) (d store.Decision, err error) {
	verb := store.Approve
	if deny {
		verb = store.Deny
	}
	q := newStanding(verb, bots.ScopesOf(card, false, true), phrases.For(""))
	chosen := map[string]string{}
	for ; q.at < len(q.asked); q.at++ {
		choices := q.asked[q.at].Choices
		for {
			answer, err := ask(q.line(phrases.For("")))
			if err != nil {
				return d, err
			}
			n := 1
			if answer != "" {
				n, err = strconv.Atoi(answer)
			}
			if err == nil && n >= 1 && n <= len(choices) {
				chosen[q.asked[q.at].Name] = choices[n-1].Value
				break
			}
		}
	}
	d, err = bots.ReadStanding(func(name string) string { return chosen[name] }, now)
	d.Verb = verb
	return d, err
}
