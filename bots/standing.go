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

// What "always" and "never" ask before they are kept: whose calls, with which
// arguments, and for how long.

// StandingQuestion is one of these. Its first choice is the narrowest, and
// stands until somebody chooses another.
type StandingQuestion struct {
	Name    string   `json:"name"`
	Label   string   `json:"label"`
	Choices []Option `json:"choices"`
}

// Names of the questions, and what is chosen where a choice has no value of its
// own elsewhere.
const (
	StandingFor     = "for"     // a store.GrantScope
	StandingArgs    = "args"    // these or any; not asked of a no
	StandingPattern = "pattern" // beside them, where people can write
	StandingUntil   = "until"   // a span, or ever

	patternArgs = "pattern " // before the pattern
	hereArgs    = "here "    // before the pattern, which is for the repository of the ask
	lineArgs    = "line"     // the command line of the ask
	theseArgs   = "these"
	anyArgs     = "any"
	forEver     = "ever"
)

// standingSpans are for how long a standing answer may hold, besides for ever.
var standingSpans = []string{"1h", "8h", "1d", "7d", "30d"}

// StandingScopes are for whom somebody may answer besides themselves, and what else a
// card offers.
type StandingScopes struct {
	Conversation, Channel, Everyone bool

	Session  bool                // the conversation is the session of a program that asks
	Patterns []store.CardPattern // for the arguments, the narrow ones first
}

// ScopesOf are those of a card.
func ScopesOf(card store.Card, channel, everyone bool) StandingScopes {
	return StandingScopes{Conversation: card.Here, Channel: channel, Everyone: everyone, Session: card.Asked, Patterns: card.Patterns}
}

// StandingQuestions are what is asked of a yes, or of a no.
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
	// maxPatternValue is how long the value of a choice may be on every platform, in
	// bytes. A longer pattern is for the field, where people can write.
	maxPatternValue = 75
	// maxPatternLabel is how much of a pattern stands in its choice, in characters.
	maxPatternLabel = 40
)

// patternOptions are choices of arguments by the patterns that a card proposes: the
// pattern, and with it what it would have covered lately and what else it lets through.
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

// PatternError says what is wrong with the pattern; it is an ErrInvalid.
type PatternError struct{ Err error }

func (e *PatternError) Error() string { return e.Err.Error() }
func (e *PatternError) Unwrap() error { return e.Err }

// ReadStanding is the answer to the questions by their names, without its verb
// and digest. A pattern that is none is a PatternError.
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

// KeptWords says what was kept of a standing answer to the calls of a tool; asked is
// [store.Card.Asked].
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
