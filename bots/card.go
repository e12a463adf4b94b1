package bots

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"nize/bots/phrases"
	"nize/store"
)

// Reader is who reads a card, and where.
type Reader struct {
	Locale string         // BCP 47; "" is English
	Zone   *time.Location // nil is UTC
	Now    time.Time
	At     store.Address // the conversation that they read it in, the zero one outside any
	Link   string        // the address of the conversation that the call comes from, where that is another
}

// CardParts is a card in words, in the order in which a person needs them,
// before a platform lays it out. A platform shows
//
//   - while the call waits ([CardParts.Settled] is nil): Headline, large, with
//     Name small beside it; Warnings; Args, whole, in a face where every
//     character counts, below ArgsHead if there is one; then, quietly, Origin
//     and Rules, each in one line ([Join]); and More folded behind something
//     to press, or after all of it. The buttons bind what is pressed to
//     [store.Card.Digest].
//   - afterwards Settled alone, in one line, and Details behind something to
//     press, in the very place where the card stood.
//
// Nothing of Headline, Name, Warnings, ArgsHead and Args may be left out while
// a press can decide: where a platform has no room for all of it, it says so
// and where the rest is. No line holds a character that [Escape] would escape.
// What comes from a server or a model stands in quotes (the title of Headline)
// or behind a bar (in More), so that it can't pass for nize's own words.
type CardParts struct {
	Headline string   `json:"headline,omitempty"` // what is asked, by the tool's title in quotes, or by its name
	Name     string   `json:"name,omitempty"`     // the tool's name; "" where it is in Headline
	Warnings []string `json:"warnings,omitempty"`
	ArgsHead string   `json:"args_head,omitempty"` // that there are none, or that they are no JSON; else ""
	Args     string   `json:"args,omitempty"`      // whole; "" for none
	Origin   []string `json:"origin,omitempty"`    // server, who asked, with which client or where
	Link     string   `json:"link,omitempty"`      // of the last part of Origin, "" for none
	Until    string   `json:"until,omitempty"`     // the end of that line: until when it waits; "" where that is of no matter
	Rules    []string `json:"rules,omitempty"`     // who may answer and who did, as whom it runs, the server's claim, why it asks
	More     []string `json:"more,omitempty"`      // lines: the server's address, its description, the model's words, the digest, the call
	State    []string `json:"state,omitempty"`     // lines: where it stands, and how it ended
	Settled  *Settled `json:"settled,omitempty"`   // nil while it waits for an answer
}

// Settled is the one line that remains of a card that waits no more.
type Settled struct {
	What    string `json:"what,omitempty"`    // how it stands, and the tool
	Who     string `json:"who,omitempty"`     // decided it; "" where nobody did
	When    string `json:"when,omitempty"`    // in the reader's zone; "" where it is not known
	Outcome string `json:"outcome,omitempty"` // in one line; "" for none
}

// Line is the line.
func (s Settled) Line() string { return Join(s.What, s.Who, s.When, s.Outcome) }

// Between stands between the parts of a quiet line; [CardParts] have it nowhere
// else.
const Between = " · "

// Join puts the parts of a quiet line together.
func Join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(parts), func(p string) bool { return p == "" }), Between)
}

// inline is outside text as a part of a quiet line.
func inline(text string) string { return strings.ReplaceAll(Escape(text), "·", `\u00b7`) }

// maxTitle is how many characters of a title stand in a headline.
const maxTitle = 80

// quotedTitle is the tool's title, which its server chose, "" where it has none
// that says more than its name.
func quotedTitle(card store.Card) string {
	title := strings.ReplaceAll(Brief(card.Title, maxTitle), "·", `\u00b7`)
	if title == "" || title == card.Tool || card.Server+":"+title == card.Tool {
		return ""
	}
	return `"` + strings.ReplaceAll(title, `"`, "'") + `"`
}

// PartsOf puts a card into words for its reader.
func PartsOf(card store.Card, r Reader) CardParts {
	words := phrases.For(r.Locale)
	heading, _ := stateKeys(card)
	name := Escape(card.Tool)
	p := CardParts{Headline: words.Say(heading, name), Until: expiryLine(card, r, words)}
	if title := quotedTitle(card); title != "" && card.State == store.Pending {
		p.Headline, p.Name = words.Say(heading, title), name
	}
	if card.Gone && !card.State.Final() {
		p.Warnings = append(p.Warnings, words.Say(phrases.CardWarning, words.Say(phrases.CardGone)))
	}
	for _, warning := range card.Warnings {
		p.Warnings = append(p.Warnings, words.Say(phrases.CardWarning, Escape(words.Text(warning))))
	}
	if !card.Withheld {
		p.ArgsHead, p.Args = arguments(card, words)
	}
	p.Origin = []string{words.Say(phrases.CardServer, inline(card.Server)), words.Say(phrases.CardBy, inline(card.By))}
	if card.View != "" {
		p.Origin = append(p.Origin, words.Say(phrases.CardView, inline(card.View)))
	}
	at := store.Address{Surface: card.In.Surface, Team: card.In.Team, Channel: card.In.Channel, Thread: card.In.Thread}
	here := store.Address{Surface: r.At.Surface, Team: r.At.Team, Channel: r.At.Channel, Thread: r.At.Thread}
	switch {
	case card.Token != "":
		p.Origin = append(p.Origin, words.Say(phrases.CardToken, inline(card.Token)))
	case at == here || at.Surface == "":
	case r.Link != "":
		p.Origin, p.Link = append(p.Origin, words.Say(phrases.CardThread)), r.Link
	default:
		p.Origin = append(p.Origin, words.Say(phrases.CardIn, inline(string(at.Surface)), inline(at.Channel)))
	}
	p.Rules = cardRules(card, r, words)
	p.More = append(p.More, words.Say(phrases.CardWhere, Escape(card.Server), Escape(card.Where)))
	p.More = append(p.More, claim(words.Say(phrases.CardDescription), strings.TrimSpace(card.Title+"\n"+card.Description))...)
	p.More = append(p.More, claim(words.Say(phrases.CardWhy), card.Why)...)
	p.More = append(p.More, words.Say(phrases.CardDigest, Escape(digestHead(card.Digest))), words.Say(phrases.CardCall, Escape(card.Call)))
	p.State = []string{words.Say(phrases.CardState, StateWords(card, r.Locale))}
	if outcome := OutcomeWords(card, r.Locale); outcome != "" {
		p.State = append(p.State, words.Say(phrases.CardOutcome, outcome))
	}
	if card.State != store.Pending || card.Approved {
		p.Settled = settled(card, r, words)
	}
	return p
}

// cardRules are why it asks and who answers, in parts of a quiet line.
func cardRules(card store.Card, r Reader, words phrases.Catalogue) []string {
	var rules []string
	if may := WhoMay(card, r.Locale); may != "" {
		rules = append(rules, may)
	}
	if len(card.Yes) > 0 {
		rules = append(rules, words.Say(phrases.CardYes, escaped(card.Yes, words), strconv.Itoa(len(card.Yes)), strconv.Itoa(card.Need)))
	}
	if card.RunsAs != (store.Text{}) {
		rules = append(rules, words.Say(phrases.CardRunsAs, inline(words.Text(card.RunsAs))))
	}
	if card.State != store.Pending || card.Approved {
		return rules
	}
	says := words.Say(phrases.CardNoClaim)
	if card.Claim != (store.Text{}) {
		says = words.Say(phrases.CardClaim, inline(words.Text(card.Claim)))
	}
	rules = append(rules, says)
	if card.Asks != (store.Text{}) {
		rules = append(rules, words.Say(phrases.CardAsks, inline(words.Text(card.Asks))))
	}
	if card.Stops != (store.Text{}) {
		rules = append(rules, words.Say(phrases.CardStops, inline(words.Text(card.Stops))))
	}
	return rules
}

func settled(card store.Card, r Reader, words phrases.Catalogue) *Settled {
	heading, _ := stateKeys(card)
	s := &Settled{What: words.Say(heading, inline(card.Tool)), Outcome: strings.ReplaceAll(OutcomeWords(card, r.Locale), "·", `\u00b7`)}
	if card.Gone && !card.State.Final() {
		s.Outcome = words.Say(phrases.CardGone)
	}
	if card.DecidedBy != "" {
		s.Who = words.Say(phrases.CardDecided, inline(card.DecidedBy))
	}
	if !card.Settled.IsZero() {
		s.When = clock(card.Settled, r)
	}
	return s
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

// Lines are all the parts as plain lines.
func (p CardParts) Lines() []string {
	return slices.Concat(p.Front(), p.More, p.State)
}

// Front is what a person decides on as plain lines: all but what is folded.
func (p CardParts) Front() []string {
	out := []string{p.Headline}
	if p.Name != "" {
		out = append(out, p.Name)
	}
	out = append(out, p.Warnings...)
	if p.ArgsHead != "" {
		out = append(out, p.ArgsHead)
	}
	if p.Args != "" {
		for line := range strings.SplitSeq(p.Args, "\n") {
			out = append(out, "  "+line)
		}
	}
	out = append(out, Join(append(slices.Clone(p.Origin), p.Until)...))
	if len(p.Rules) > 0 {
		out = append(out, Join(p.Rules...))
	}
	return out
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
			text = inline(card.By)
		}
	}
	if card.Need > 1 {
		text = words.Say(phrases.MayNeed, strconv.Itoa(card.Need), text)
	}
	if card.NotRequester {
		text = words.Say(phrases.MayNot, text, inline(card.By))
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
		out[i] = inline(n)
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
	return "", text
}

// ReminderText says that a call still waits.
func ReminderText(card store.Card, locale string) string {
	return phrases.For(locale).Say(phrases.Reminder, Escape(card.Tool), Escape(card.Call))
}

// runsOut says whether it is of matter until when a card may be answered.
func runsOut(card store.Card) bool {
	return !card.Expires.IsZero() && card.State == store.Pending && !card.Approved
}

// clock is a time as its reader reads it: the day only where it is another.
func clock(at time.Time, r Reader) string {
	zone := r.Zone
	if zone == nil {
		zone = time.UTC
	}
	at = at.In(zone)
	layout := "15:04 MST"
	if y, m, d := r.Now.In(zone).Date(); at.Year() != y || at.Month() != m || at.Day() != d {
		layout = "2006-01-02 15:04 MST"
	}
	return at.Format(layout)
}

// expiryLine tells until when the call waits, in the reader's zone.
func expiryLine(card store.Card, r Reader, words phrases.Catalogue) string {
	if !runsOut(card) {
		return ""
	}
	left := card.Expires.Sub(r.Now).Round(time.Second)
	if left >= 2*time.Minute { // it is read, and drawn again with each key
		left = left.Round(time.Minute)
	}
	if left <= 0 {
		return words.Say(phrases.CardExpired, clock(card.Expires, r))
	}
	return words.Say(phrases.CardExpires, clock(card.Expires, r), span(left))
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
