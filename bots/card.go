package bots

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"nize/bots/arguments"
	"nize/bots/phrases"
	"nize/store"
)

// Reader describes the reader of a card and the place where it is read.
type Reader struct {
	Locale string         // BCP 47; "" is English
	Zone   *time.Location // nil is UTC
	Now    time.Time
	At     store.Address // the conversation in which it is read, zero outside conversations
	Link   string        // URL of the call's conversation if that is a different one
}

// CardParts is the text of a card in the order in which a person needs it, before a
// platform lays it out. A platform shows
//
//   - while the call waits ([CardParts.Settled] is nil): Headline, large, with
//     Badge and Name beside it; Warnings; Rows, complete, in a monospaced font
//     (or ArgsHead, with Args behind a button); then, less prominent, Origin
//     and Rules, each in one line ([Join]); and More folded behind
//     Details. The buttons bind the press to [store.Card.Digest].
//   - afterwards only Settled, in one line, and Details behind a button, at the
//     same position as the card.
//
// As long as a press can decide, a platform may not omit anything of Headline, Badge, Name,
// Warnings, ArgsHead and Rows: if it can't show all of it, it says so and where to find the
// rest. No line contains a character that [Escape] would escape. Text from a server or a
// model is in quotes (the title in Headline) or behind a bar (in More), so that it can't be
// mistaken for nize's own words.
type CardParts struct {
	// Notice is the one-line phone notification of a pending call: the requester, the
	// program used, and what it would do. "" for any other card. It adds nothing that the
	// other parts don't contain.
	Notice   string          `json:"-"`
	Headline string          `json:"headline,omitempty"` // the question, with the tool's title in quotes, or its name
	Badge    string          `json:"badge,omitempty"`    // what the tool does: [store.Effect] in words
	Name     string          `json:"name,omitempty"`     // the tool's name; "" if it is in Headline
	Warnings []string        `json:"warnings,omitempty"`
	ArgsHead string          `json:"args_head,omitempty"` // set if there are no arguments, or if they are not JSON
	Args     string          `json:"args,omitempty"`      // the complete canonical JSON; "" for none
	Rows     []arguments.Row `json:"rows,omitempty"`      // the same as labelled rows; none if it is not JSON
	Origin   []string        `json:"origin,omitempty"`    // server or source, requester, and client or place
	Link     string          `json:"link,omitempty"`      // of the last part of Origin, "" for none
	Until    string          `json:"until,omitempty"`     // appended to that line: when the call expires; "" if irrelevant
	Rules    []string        `json:"rules,omitempty"`     // who may answer, if not only the requester, and who answered
	More     []string        `json:"more,omitempty"`      // lines: reasons, the credential used, the server's claims, the model's words, the digest, the call
	State    []string        `json:"state,omitempty"`     // lines: the state and the outcome
	Settled  *Settled        `json:"settled,omitempty"`   // nil while the call waits for an answer
}

// Settled is the single line that replaces a card when its call no longer waits.
type Settled struct {
	What  string `json:"what,omitempty"`  // the completed action, from the tool's title
	State string `json:"state,omitempty"` // the state and its reason; "" if What already says that it is done
	Who   string `json:"who,omitempty"`   // who approved it; "" if no person did
	Took  string `json:"took,omitempty"`  // how long it ran; "" if it didn't run
}

// Line returns the parts as one line.
func (s Settled) Line() string { return Join(s.What, s.State, s.Who, s.Took) }

// Between separates the parts of a line made by [Join]; no part contains it.
const Between = " · "

// Join joins the parts of a line, without the empty ones.
func Join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(parts), func(p string) bool { return p == "" }), Between)
}

// inline escapes outside text so that it can be a part of a [Join] line.
func inline(text string) string { return strings.ReplaceAll(Escape(text), "·", `\u00b7`) }

// maxTitle is the maximum length of a title in a headline, in characters.
const maxTitle = 80

// titleOf returns the tool's title, which its server chose, or "" if it doesn't say more
// than the name. The title of an ask is not accepted with a definition: each step brings
// its own, which may not be what the step does, so it is shown among the claims alone.
func titleOf(card store.Card) string {
	if card.Asked {
		return ""
	}
	title := inline(Brief(card.Title, maxTitle))
	if title == card.Tool || card.Server+":"+title == card.Tool {
		return ""
	}
	return title
}

// quotedTitle returns titleOf in quotes.
func quotedTitle(card store.Card) string {
	title := titleOf(card)
	if title == "" {
		return ""
	}
	return `"` + strings.ReplaceAll(title, `"`, "'") + `"`
}

// badge returns the tool's effect in one word.
func badge(card store.Card, words phrases.Catalogue) string {
	switch card.Effect {
	case store.Reads:
		return words.Say(phrases.EffectReads)
	case store.Changes:
		return words.Say(phrases.EffectChanges)
	case store.Deletes:
		return words.Say(phrases.EffectDeletes)
	}
	return words.Say(phrases.EffectUnknown)
}

// PartsOf returns the texts of a card for its reader.
func PartsOf(card store.Card, r Reader) CardParts {
	words := phrases.For(r.Locale)
	heading, _ := stateKeys(card)
	name := Escape(card.Tool)
	p := CardParts{Headline: words.Say(heading, name), Badge: badge(card, words), Until: expiryLine(card, r, words)}
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
		p.ArgsHead, p.Args, p.Rows = argumentsOf(card, words)
	}
	from := phrases.CardServer
	if card.Asked {
		from = phrases.CardSource
	}
	p.Origin = []string{words.Say(from, inline(card.Server)), words.Say(phrases.CardBy, inline(card.By))}
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
	if card.Asked && card.State == store.Pending && !card.Approved && !card.Withheld {
		p.Notice = words.Say(phrases.CardNotice, inline(Brief(card.By, 40)), name, inline(noticeOf(card.Args)))
	}
	p.Rules = cardRules(card, r, words)
	where, claims := phrases.CardWhere, phrases.CardDescription
	if card.Asked {
		where, claims = phrases.CardAsker, phrases.CardClaims
	}
	p.More = append(reasons(card, words), words.Say(where, Escape(card.Server), Escape(card.Where)))
	p.More = append(p.More, claim(words.Say(claims), strings.TrimSpace(card.Title+"\n"+card.Description))...)
	p.More = append(p.More, claim(words.Say(phrases.CardWhy), card.Why)...)
	p.More = append(p.More, DigestLine(card, words), words.Say(phrases.CardCall, Escape(card.Call)))
	p.State = []string{words.Say(phrases.CardState, StateWords(card, r.Locale))}
	if outcome := OutcomeWords(card, r.Locale); outcome != "" {
		p.State = append(p.State, words.Say(phrases.CardOutcome, outcome))
	}
	if card.Question != nil {
		questionParts(&p, card, r, words)
	}
	if card.State != store.Pending || card.Approved {
		p.Settled = settled(card, r, words)
	}
	return p
}

// noticeFields are the arguments that summarize a step best.
var noticeFields = []string{"command", "cmd", "file_path", "path", "url"}

// maxNotice is the maximum length of the arguments in a notification, in characters.
const maxNotice = 120

// noticeOf returns the beginning of a call's arguments.
func noticeOf(args json.RawMessage) string {
	var got map[string]any
	if json.Unmarshal(args, &got) == nil {
		for _, field := range noticeFields {
			if text, ok := got[field].(string); ok && text != "" {
				return Brief(text, maxNotice)
			}
		}
	}
	return Brief(string(args), maxNotice)
}

// cardRules returns who may answer and who answered, as parts of a line. It returns nothing
// if only the requester may decide.
func cardRules(card store.Card, r Reader, words phrases.Catalogue) []string {
	var rules []string
	if may := WhoMay(card, r.Locale); may != "" && !alone(card) {
		rules = append(rules, may)
	}
	if len(card.Yes) > 0 {
		rules = append(rules, words.Say(phrases.CardYes, escaped(card.Yes, words), strconv.Itoa(len(card.Yes)), strconv.Itoa(card.Need)))
	}
	return rules
}

// alone reports whether only the requester may decide the call.
func alone(card store.Card) bool {
	own := len(card.Approvers) == 0 && card.Policy == store.ByRequester || len(card.Approvers) == 1 && card.Approvers[0].Kind == "requester"
	return own && card.Need <= 1 && !card.NotRequester
}

// reasons returns lines that say why the call needs approval and which credential it uses.
func reasons(card store.Card, words phrases.Catalogue) []string {
	var lines []string
	waits := card.State == store.Pending && !card.Approved
	if waits && alone(card) {
		lines = append(lines, words.Say(phrases.CardMay, mayLine(card, words)))
	}
	if card.RunsAs != (store.Text{}) {
		lines = append(lines, words.Say(phrases.CardRunsAs, inline(words.Text(card.RunsAs))))
	}
	if !waits {
		return lines
	}
	switch {
	case card.Asked: // a source declares no effects of its tools
	case card.Claim != (store.Text{}):
		lines = append(lines, words.Say(phrases.CardClaim, inline(words.Text(card.Claim))))
	default:
		lines = append(lines, words.Say(phrases.CardNoClaim))
	}
	if card.Asks != (store.Text{}) {
		lines = append(lines, words.Say(phrases.CardAsks, inline(words.Text(card.Asks))))
	}
	if card.Stops != (store.Text{}) {
		lines = append(lines, words.Say(phrases.CardStops, inline(words.Text(card.Stops))))
	}
	return lines
}

// settled returns the line that replaces a settled card.
func settled(card store.Card, r Reader, words phrases.Catalogue) *Settled {
	s := &Settled{What: cmp.Or(titleOf(card), inline(card.Tool)), State: endOf(card, words)}
	if card.Question != nil {
		s.What = words.Say(phrases.QuestionOf, s.What)
		return s
	}
	if card.State == store.Done {
		if done, ok := past(s.What, words); ok {
			s.What, s.State = done, ""
		}
	}
	if card.DecidedBy != "" && approved(card) {
		key := phrases.CardApprovedBy
		if card.Edited {
			key = phrases.CardEditedBy
		}
		s.Who = words.Say(key, inline(card.DecidedBy))
	}
	if card.Took > 0 && card.State.Final() {
		s.Took = took(card.Took, words)
	}
	return s
}

// approved reports whether the decision on the card was an approval.
func approved(card store.Card) bool {
	return card.Approved && !card.State.Final() || slices.Contains([]store.State{store.Running, store.Done, store.Failed, store.Lost}, card.State)
}

// took formats how long a call ran, in as few digits as useful.
func took(ms int64, words phrases.Catalogue) string {
	d := time.Duration(ms) * time.Millisecond
	switch {
	case d < time.Second:
		return words.Say(phrases.TookMillis, strconv.FormatInt(ms, 10))
	case d < time.Minute:
		digits := 0
		if d < 10*time.Second {
			digits = 1
		}
		return words.Say(phrases.TookSeconds, strings.TrimSuffix(strconv.FormatFloat(d.Seconds(), 'f', digits, 64), ".0"))
	}
	return words.Say(phrases.TookSpan, span(d.Round(time.Second)))
}

// endOf returns a call's outcome for the line that replaces its card.
func endOf(card store.Card, words phrases.Catalogue) string {
	why := strings.ReplaceAll(outcomeWords(card, words), "·", `\u00b7`)
	if card.Gone && !card.State.Final() {
		why = words.Say(phrases.CardGone)
	}
	said := func(key, alone phrases.Key, args ...any) string {
		if why == "" {
			return words.Say(alone, args...)
		}
		return words.Say(key, append(args, why)...)
	}
	by := inline(card.DecidedBy)
	heading, _ := stateKeys(card)
	switch {
	case card.Question != nil && (card.State == store.Approved || card.Ended == store.Withdrawn):
		return capital(words.Text(stateText(card)), words)
	case card.Ended == store.Declined:
		return said(phrases.CardDeclinedWhy, phrases.CardDeclinedBy, by)
	case card.Ended == store.Withdrawn:
		return said(phrases.CardWithdrawnWhy, phrases.CardWithdrawnBy, by)
	case card.State == store.Pending:
		return said(phrases.CardSoonWhy, phrases.CardSoon)
	case card.State == store.Done, card.State == store.Expired, !card.State.Final() || why == "": // the result and the missing answer are already shown
		return capital(words.Text(cardState(card)), words)
	}
	return words.Say(heading, why)
}

// capital makes the first letter of an English sentence a capital.
func capital(text string, words phrases.Catalogue) string {
	if !words.English() || text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// WhoMay returns who may answer a waiting card, "" for any other.
func WhoMay(card store.Card, locale string) string {
	if card.State != store.Pending || card.Approved {
		return ""
	}
	words := phrases.For(locale)
	return words.Say(phrases.CardMay, mayLine(card, words))
}

// CardLines renders a card as plain lines, for terminals, screen readers and notifications,
// with complete arguments.
func CardLines(card store.Card, r Reader) []string {
	return PartsOf(card, r).Lines()
}

// Lines returns all parts as plain lines.
func (p CardParts) Lines() []string {
	return slices.Concat(p.Front(), p.More, p.State)
}

// Front returns everything needed for a decision as plain lines: all parts except the
// folded ones.
func (p CardParts) Front() []string {
	out := []string{p.Headline}
	if p.Settled == nil {
		out[0] = Join(p.Headline, p.Badge)
	}
	if p.Name != "" {
		out = append(out, p.Name)
	}
	out = append(out, p.Warnings...)
	if p.ArgsHead != "" {
		out = append(out, p.ArgsHead)
	}
	for _, line := range p.ArgLines() {
		out = append(out, "  "+line)
	}
	out = append(out, Join(append(slices.Clone(p.Origin), p.Until)...))
	if len(p.Rules) > 0 {
		out = append(out, Join(p.Rules...))
	}
	return out
}

// ArgText returns the arguments of a card as plain text, in the form that platforms show.
func ArgText(card store.Card) string {
	_, text, rows := argumentsOf(card, phrases.For(""))
	return strings.Join(CardParts{Args: text, Rows: rows}.ArgLines(), "\n")
}

// ArgLines returns the arguments as plain lines.
func (p CardParts) ArgLines() []string {
	switch {
	case p.Rows != nil:
		return arguments.Plain(p.Rows)
	case p.Args != "":
		return strings.Split(p.Args, "\n")
	}
	return nil
}

// mayLine returns who may press, in nize's own words and separate from the arguments.
func mayLine(card store.Card, words phrases.Catalogue) string {
	var parts []string
	for _, a := range card.Approvers {
		parts = append(parts, approver(a, words))
	}
	text := strings.Join(parts, words.Say(phrases.Comma))
	if len(parts) == 0 { // the approver gave no rules
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
	return names // the requester, or named people
}

func escaped(names []string, words phrases.Catalogue) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = inline(n)
	}
	return strings.Join(out, words.Say(phrases.Comma))
}

// StateWords returns the state of the card's call and who decided.
func StateWords(card store.Card, locale string) string {
	return phrases.For(locale).Text(stateText(card))
}

func stateText(card store.Card) store.Text {
	by := Escape(card.DecidedBy)
	switch {
	case card.Question != nil && card.State == store.Approved && by != "":
		return phrases.QuestionAnswered.Text(by)
	case card.Question != nil && card.Ended == store.Withdrawn:
		return phrases.QuestionDismissed.Text(by)
	case card.Ended == store.Declined:
		return phrases.StateDeclined.Text(by)
	case card.Ended == store.Withdrawn:
		return phrases.StateWithdrawn.Text(by)
	case card.DecidedBy == "":
		return cardState(card)
	case approved(card) && card.Edited:
		return phrases.StateEdited.Text(cardState(card), by)
	case approved(card):
		return phrases.StateApprovedBy.Text(cardState(card), by)
	}
	return phrases.StateBy.Text(cardState(card), by)
}

// cardState returns the state of the card's call, without who decided.
func cardState(card store.Card) store.Text {
	_, key := stateKeys(card)
	return key.Text()
}

// OutcomeWords returns the call's outcome in one line: a tool's words unchanged, nize's own
// in the reader's language.
func OutcomeWords(card store.Card, locale string) string {
	return outcomeWords(card, phrases.For(locale))
}

func outcomeWords(card store.Card, words phrases.Catalogue) string {
	if card.State == store.Done {
		return Escape(card.Outcome.String())
	}
	return Escape(words.Text(card.Outcome))
}

// stateKeys returns a card's heading and state. The heading is a question only while the
// call waits. Afterwards the outcome precedes the tool's name, which may be long and was
// not chosen by nize.
func stateKeys(card store.Card) (heading, state phrases.Key) {
	switch card.Ended {
	case store.Declined:
		return phrases.CardDeclined, phrases.StateRefused
	case store.Withdrawn:
		return phrases.CardWithdrawn, phrases.StateCancelled
	}
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
	case store.Approved:
		return phrases.CardApproved, phrases.StateApproved
	case store.Cancelled:
		return phrases.CardCancelled, phrases.StateCancelled
	}
	return phrases.CardLost, phrases.StateLost // also for unknown states, whose outcome we can't know
}

// claim renders text from outside behind a bar; nothing if there is none.
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

func argumentsOf(card store.Card, words phrases.Catalogue) (head, text string, rows []arguments.Row) {
	text, ok := PrettyJSON(card.Args)
	switch {
	case asks(card):
		return "", text, questionRows(card, words)
	case !ok:
		return words.Say(phrases.CardNotJSON), text, nil
	case text == "{}":
		return words.Say(phrases.CardNoArguments), "", nil
	}
	if rows, ok = arguments.Rows(card.Args, card.Fields); !ok {
		rows = nil
	}
	return "", text, rows
}

// ReminderText returns a reminder that a call still waits.
func ReminderText(card store.Card, locale string) string {
	if card.Question != nil {
		return phrases.For(locale).Say(phrases.QuestionReminder, Escape(card.Tool), Escape(card.Call))
	}
	return phrases.For(locale).Say(phrases.Reminder, Escape(card.Tool), Escape(card.Call))
}

// runsOut reports whether the card's expiry still matters.
func runsOut(card store.Card) bool {
	return !card.Expires.IsZero() && card.State == store.Pending && !card.Approved
}

// clock formats a time in the reader's zone, with the date only if it isn't today.
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

// expiryLine returns when the call expires, in the reader's zone.
func expiryLine(card store.Card, r Reader, words phrases.Catalogue) string {
	if !runsOut(card) {
		return ""
	}
	left := card.Expires.Sub(r.Now).Round(time.Second)
	if left >= 2*time.Minute { // seconds would change with every redraw and help no reader
		left = left.Round(time.Minute)
	}
	if left <= 0 {
		return words.Say(phrases.CardExpired, clock(card.Expires, r))
	}
	return words.Say(phrases.CardExpires, clock(card.Expires, r), span(left))
}

// span formats a duration without its zero parts: 15m, 23h59m, 40s.
func span(d time.Duration) store.Span {
	if d >= time.Hour {
		d = d.Round(time.Minute)
	}
	return store.Span(store.SpanText(d))
}

// DigestLine returns the line of [CardParts.More] with the beginning of the digest.
func DigestLine(card store.Card, words phrases.Catalogue) string {
	return words.Say(phrases.CardDigest, Escape(digestHead(card.Digest)))
}

// digestHead returns enough of the digest to compare two cards by eye.
func digestHead(digest string) string {
	return digest[:min(len(digest), 12)]
}
