package bots

import (
	"strconv"
	"strings"
	"time"

	"nize/bots/phrases"
	"nize/store"
)

// Reader is who reads a card.
type Reader struct {
	Locale string         // BCP 47; "" is English
	Zone   *time.Location // nil is UTC
	Now    time.Time
}

// CardParts is a card in words, before a platform lays it out. No line holds a
// character that [Escape] would escape; whatever comes from a server or a model
// stands behind a bar, so that it can't pass for a line of nize's own.
type CardParts struct {
	Title       string
	Facts       []string // server, who asked, as whom it runs
	Warnings    []string
	Description []string // the server's claims, title and description, with their heading
	Why         []string // the model's words, with their heading
	ArgsHead    string
	Args        string   // whole; "" for none
	Rules       []string // who may answer, and who said yes
	Until       string   // until when they may; "" where that is of no matter
	Bound       []string // to what an answer is bound: the digest, the call
	State       []string // where it stands, and how it ended
}

// PartsOf puts a card into words for its reader.
func PartsOf(card store.Card, r Reader) CardParts {
	words := phrases.For(r.Locale)
	heading, _ := stateKeys(card)
	p := CardParts{
		Title: words.Say(heading, Escape(card.Tool)),
		Facts: []string{
			words.Say(phrases.CardServer, Escape(card.Server), Escape(card.Where)),
			words.Say(phrases.CardBy, Escape(card.By)),
			words.Say(phrases.CardRunsAs, Escape(words.Text(card.RunsAs))),
		},
		Description: claim(words.Say(phrases.CardDescription), strings.TrimSpace(card.Title+"\n"+card.Description)),
		Why:         claim(words.Say(phrases.CardWhy), card.Why),
		State:       []string{words.Say(phrases.CardState, StateWords(card, r.Locale))},
	}
	for _, warning := range card.Warnings {
		p.Warnings = append(p.Warnings, words.Say(phrases.CardWarning, Escape(words.Text(warning))))
	}
	p.ArgsHead, p.Args = arguments(card, words)
	if may := WhoMay(card, r.Locale); may != "" {
		p.Rules = append(p.Rules, may)
	}
	if len(card.Yes) > 0 {
		p.Rules = append(p.Rules, words.Say(phrases.CardYes, escaped(card.Yes, words), strconv.Itoa(len(card.Yes)), strconv.Itoa(card.Need)))
	}
	p.Until = expiryLine(card, r, words)
	p.Bound = []string{words.Say(phrases.CardDigest, Escape(digestHead(card.Digest))), words.Say(phrases.CardCall, Escape(card.Call))}
	if outcome := OutcomeWords(card, r.Locale); outcome != "" {
		p.State = append(p.State, words.Say(phrases.CardOutcome, outcome))
	}
	return p
}

// WhoMay says who may answer a card that waits, "" for any other.
func WhoMay(card store.Card, locale string) string {
	if card.State != store.Pending || card.Approved {
		return ""
	}
	words := phrases.For(locale)
	return words.Say(phrases.CardMay, mayLine(card, words))
}

// CardLines renders a card as plain lines, for terminals, screen readers and
// notifications: every argument whole.
func CardLines(card store.Card, r Reader) []string {
	return PartsOf(card, r).Lines()
}

// Lines are the parts as plain lines.
func (p CardParts) Lines() []string {
	out := append([]string{p.Title}, p.Facts...)
	out = append(out, p.Warnings...)
	out = append(out, p.Description...)
	out = append(out, p.Why...)
	out = append(out, p.ArgsHead)
	if p.Args != "" {
		for line := range strings.SplitSeq(p.Args, "\n") {
			out = append(out, "  "+line)
		}
	}
	out = append(out, p.Rules...)
	if p.Until != "" {
		out = append(out, p.Until)
	}
	out = append(out, p.Bound...)
	return append(out, p.State...)
}

// mayLine says who may press, outside the arguments and in nize's own words.
func mayLine(card store.Card, words phrases.Catalogue) string {
	var parts []string
	for _, a := range card.Approvers {
		parts = append(parts, approver(a, words))
	}
	text := strings.Join(parts, words.Say(phrases.Comma))
	if len(parts) == 0 { // an approver that does not say
		text = words.Say(phrases.MayAdmins)
		if card.Policy == store.ByRequester {
			text = Escape(card.By)
		}
	}
	if card.Need > 1 {
		text = words.Say(phrases.MayNeed, strconv.Itoa(card.Need), text)
	}
	if card.NotRequester {
		text = words.Say(phrases.MayNot, text, Escape(card.By))
	}
	return text
}

func approver(a store.Approver, words phrases.Catalogue) string {
	names := escaped(a.Names, words)
	if a.More > 0 {
		names = words.Say(phrases.MayMore, names, strconv.Itoa(a.More))
	}
	keys := map[string][2]phrases.Key{
		"admins":         {phrases.MayAdmins, phrases.MayAdminsNamed},
		"channel-admins": {phrases.MayChannelAdmins, phrases.MayChannelAdminsNamed},
	}
	switch key, ok := keys[a.Kind]; {
	case ok && names == "":
		return words.Say(key[0])
	case ok:
		return words.Say(key[1], names)
	case a.Kind == "channel":
		return words.Say(phrases.MayChannel)
	case a.Kind == "group":
		return words.Say(phrases.MayGroup, names)
	}
	return names // the requester, or people
}

func escaped(names []string, words phrases.Catalogue) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = Escape(n)
	}
	return strings.Join(out, words.Say(phrases.Comma))
}

// StateWords is where the card's call stands, and who decided, in words.
func StateWords(card store.Card, locale string) string {
	return phrases.For(locale).Text(stateText(card))
}

func stateText(card store.Card) store.Text {
	_, key := stateKeys(card)
	if card.DecidedBy != "" {
		return phrases.StateBy.Text(key.Text(), Escape(card.DecidedBy))
	}
	return key.Text()
}

// OutcomeWords is how the card's call ended, in one line: a tool's words as
// they are, nize's in the reader's language.
func OutcomeWords(card store.Card, locale string) string {
	if card.State == store.Done {
		return Escape(card.Outcome.String())
	}
	return Escape(phrases.For(locale).Text(card.Outcome))
}

// stateKeys are a card's heading and its state. The heading is a question only
// while it is one; what became of the call stands before the tool's name, which
// may be long and is not nize's word.
func stateKeys(card store.Card) (heading, state phrases.Key) {
	switch card.State {
	case store.Planned:
		return phrases.CardPlanned, phrases.StatePlanned
	case store.Pending:
		if card.Approved {
			return phrases.CardApproved, phrases.StateApproved
		}
		return phrases.CardTitle, phrases.StatePending
	case store.Running:
		return phrases.CardRunning, phrases.StateRunning
	case store.Done:
		return phrases.CardDone, phrases.StateDone
	case store.Failed:
		return phrases.CardFailed, phrases.StateFailed
	case store.Refused:
		return phrases.CardRefused, phrases.StateRefused
	case store.Expired:
		return phrases.CardLapsed, phrases.StateExpired
	case store.Cancelled:
		return phrases.CardCancelled, phrases.StateCancelled
	}
	return phrases.CardLost, phrases.StateLost // unknown states too: nothing is known of their outcome
}

// claim renders somebody else's words behind a bar; nothing for no words.
func claim(head, text string) []string {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil
	}
	out := []string{head}
	for line := range strings.SplitSeq(text, "\n") {
		out = append(out, "  | "+Escape(strings.TrimRight(line, "\r")))
	}
	return out
}

func arguments(card store.Card, words phrases.Catalogue) (head, text string) {
	text, ok := PrettyJSON(card.Args)
	switch {
	case !ok:
		return words.Say(phrases.CardNotJSON), text
	case text == "{}":
		return words.Say(phrases.CardNoArguments), ""
	}
	return words.Say(phrases.CardArguments), text
}

// ReminderText says that a call still waits.
func ReminderText(card store.Card, locale string) string {
	return phrases.For(locale).Say(phrases.Reminder, Escape(card.Tool), Escape(card.Call))
}

// runsOut says whether it is of matter until when a card may be answered.
func runsOut(card store.Card) bool {
	return !card.Expires.IsZero() && card.State == store.Pending && !card.Approved
}

// expiryLine tells until when the call waits, in the reader's zone.
func expiryLine(card store.Card, r Reader, words phrases.Catalogue) string {
	if !runsOut(card) {
		return ""
	}
	zone := r.Zone
	if zone == nil {
		zone = time.UTC
	}
	at := card.Expires.In(zone)
	layout := "15:04:05 MST"
	if y, m, d := r.Now.In(zone).Date(); at.Year() != y || at.Month() != m || at.Day() != d {
		layout = "2006-01-02 15:04:05 MST"
	}
	left := at.Sub(r.Now).Round(time.Second)
	if left <= 0 {
		return words.Say(phrases.CardExpired, at.Format(layout))
	}
	return words.Say(phrases.CardExpires, at.Format(layout), span(left))
}

// span is a duration without the parts that say nothing: 15m, 23h59m, 40s.
func span(d time.Duration) store.Span {
	if d >= time.Hour {
		d = d.Round(time.Minute)
	}
	return store.Span(store.SpanText(d))
}

// digestHead is enough of the digest to compare two cards by eye.
func digestHead(digest string) string {
	return digest[:min(len(digest), 12)]
}
