package bots

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"nize/bots/phrases"
	"nize/store"
)

// The questions that "always" and "never" ask before they are stored: for whom, for which
// arguments, and for how long.

// StandingQuestion is one of these questions. Its first choice is the narrowest and the
// default.
type StandingQuestion struct {
	Name    string   `json:"name"`
	Label   string   `json:"label"`
	Choices []Option `json:"choices"`
}

// Names of the questions, and the values of choices that have no value elsewhere.
const (
	StandingFor     = "for"     // a store.GrantScope
	StandingArgs    = "args"    // these or any; only asked for an approval
	StandingPattern = "pattern" // an optional text field next to them
	StandingUntil   = "until"   // a duration, or forever

	patternArgs = "pattern " // prefix of a pattern
	hereArgs    = "here "    // prefix of a pattern that is limited to the call's repository
	lineArgs    = "line"     // the call's command line
	theseArgs   = "these"
	anyArgs     = "any"
	forEver     = "ever"
)

// standingSpans are the durations offered for standing answers, besides forever.
var standingSpans = []string{"1h", "8h", "1d", "7d", "30d"}

// StandingScopes says for whom a person may answer besides themselves, and what else a card
// offers.
type StandingScopes struct {
	Conversation, Channel, Everyone bool

	Session  bool                // the conversation is the session of the program that made the call
	Patterns []store.CardPattern // for the arguments, narrow ones first
}

// ScopesOf returns the scopes of a card.
func ScopesOf(card store.Card, channel, everyone bool) StandingScopes {
	return StandingScopes{Conversation: card.Here, Channel: channel, Everyone: everyone, Session: card.Asked, Patterns: card.Patterns}
}

// StandingQuestions returns the questions for a standing approval, or refusal if deny is
// set.
func StandingQuestions(deny bool, may StandingScopes, w phrases.Catalogue) []StandingQuestion {
	scopes := []Option{{Value: string(store.ForMe), Label: w.Say(phrases.AlwaysForMe)}}
	if may.Conversation && !deny {
		label := phrases.AlwaysForConversation
		if may.Session {
			label = phrases.AlwaysForSession
		}
		scopes = append(scopes, Option{Value: string(store.ForConversation), Label: w.Say(label)})
	}
	if may.Channel {
		scopes = append(scopes, Option{Value: string(store.ForChannel), Label: w.Say(phrases.AlwaysForChannel)})
	}
	if may.Everyone {
		scopes = append(scopes, Option{Value: string(store.ForEveryone), Label: w.Say(phrases.AlwaysForEveryone)})
	}
	asked := []StandingQuestion{{StandingFor, w.Say(phrases.AlwaysFor), scopes}}
	if !deny {
		args := patternOptions(may.Patterns, w)
		if len(args) == 0 || args[0].Value != lineArgs {
			args = slices.Insert(args, 0, Option{Value: theseArgs, Label: w.Say(phrases.AlwaysArgsThese)})
		}
		asked = append(asked, StandingQuestion{StandingArgs, w.Say(phrases.AlwaysArgs), append(args, Option{Value: anyArgs, Label: w.Say(phrases.AlwaysArgsAny)})})
	}
	var spans []Option
	for _, span := range standingSpans {
		spans = append(spans, Option{Value: span, Label: w.Say(phrases.AlwaysSpan, store.Span(span))})
	}
	return append(asked, StandingQuestion{StandingUntil, w.Say(phrases.AlwaysUntil), append(spans, Option{Value: forEver, Label: w.Say(phrases.AlwaysForEver)})})
}

const (
	// maxPatternValue is the maximum length of a choice's value on every platform, in
	// bytes. Longer patterns can only be typed into the text field.
	maxPatternValue = 75
	// maxPatternLabel is the maximum length of a pattern in a choice's label, in
	// characters.
	maxPatternLabel = 40
)

// patternOptions returns choices for the patterns that a card proposes, each with the
// number of recent calls it would have covered and what else it allows.
func patternOptions(list []store.CardPattern, w phrases.Catalogue) (options []Option) {
	for _, p := range list {
		value, label := patternArgs+string(p.Args), inline(Brief(p.Line, maxPatternLabel))
		switch {
		case p.Exact:
			value = lineArgs
		case p.Repository != "":
			value, label = hereArgs+string(p.Args), w.Say(phrases.AlwaysPatternHere, label)
		}
		if len(value) > maxPatternValue {
			continue
		}
		note := w.Say(phrases.AlwaysPatternCovers, strconv.Itoa(p.Covered), strconv.Itoa(p.Of))
		if p.Wide {
			note = w.Say(phrases.AlwaysPatternWide, strconv.Itoa(p.Covered), strconv.Itoa(p.Of), w.Text(p.Risk))
		}
		options = append(options, Option{value, label, note})
	}
	return options
}

// PatternError is returned if a pattern is invalid; it wraps ErrInvalid.
type PatternError struct{ Err error }

func (e *PatternError) Error() string { return e.Err.Error() }
func (e *PatternError) Unwrap() error { return e.Err }

// ReadStanding returns the decision from the answers to the questions by their names,
// without verb and digest. It returns a PatternError if the pattern is invalid.
func ReadStanding(chosen func(name string) string, now time.Time) (d store.Decision, err error) {
	d = store.Decision{Always: true, For: store.GrantScope(chosen(StandingFor))}
	if until := chosen(StandingUntil); until != forEver {
		if !slices.Contains(standingSpans, until) {
			return d, fmt.Errorf("%w dialog: no such time", store.ErrInvalid)
		}
		span, err := store.ParseSpan(until)
		if err != nil {
			return d, err
		}
		d.Until = now.Add(span)
	}
	pattern := strings.TrimSpace(chosen(StandingPattern))
	if pattern == "" {
		args := chosen(StandingArgs)
		if proposed, ok := strings.CutPrefix(args, patternArgs); ok {
			pattern = proposed
		} else if proposed, ok := strings.CutPrefix(args, hereArgs); ok {
			pattern, d.Here = proposed, true
		}
		d.Line = args == lineArgs
	}
	if pattern != "" {
		if d.Pattern, err = store.CheckPattern([]byte(pattern)); err != nil {
			return d, &PatternError{err}
		}
		return d, nil
	}
	d.Exact = chosen(StandingArgs) == theseArgs
	return d, nil
}

// KeptWords describes the stored standing answer for a tool; asked is [store.Card.Asked].
func KeptWords(tool string, asked bool, d store.Decision, r Reader) string {
	w := phrases.For(r.Locale)
	conversation := phrases.AlwaysForConversation
	if asked {
		conversation = phrases.AlwaysForSession
	}
	key := phrases.HomeAllowed
	if d.Verb == store.Deny {
		key = phrases.HomeDenied
	}
	parts := []string{w.Say(key, inline(tool)), map[store.GrantScope]string{
		store.ForConversation: w.Say(conversation), store.ForChannel: w.Say(phrases.AlwaysForChannel), store.ForEveryone: w.Say(phrases.AlwaysForEveryone),
	}[d.For]}
	if parts[1] == "" {
		parts[1] = w.Say(phrases.AlwaysForMe)
	}
	switch {
	case d.Pattern != nil:
		parts = append(parts, w.Say(phrases.GrantOnly, inline(Brief(string(d.Pattern), 120))))
	case d.Line:
		parts = append(parts, w.Say(phrases.KeptLine))
	case d.Exact:
		parts = append(parts, w.Say(phrases.AlwaysArgsThese))
	case d.Verb != store.Deny:
		parts = append(parts, w.Say(phrases.KeptAny))
	}
	if d.Here {
		parts = append(parts, w.Say(phrases.KeptHere))
	}
	until := w.Say(phrases.AlwaysForEver)
	if !d.Until.IsZero() {
		until = w.Say(phrases.GrantUntil, clock(d.Until, r))
	}
	return Join(append(parts, until)...)
}
