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

// CardLines renders a card as plain lines, for terminals, screen readers and
// notifications (SPEC 11): every argument whole, whatever comes from a server
// or a model marked as its claim and behind a bar, so that it can't pass for a
// line of nize's own; the state always a word. It holds no character that
// Escape would escape.
func CardLines(card store.Card, r Reader) []string {
	words := phrases.For(r.Locale)
	var out []string
	add := func(key phrases.Key, args ...any) { out = append(out, words.Say(key, args...)) }
	title := Escape(card.Tool)
	if card.Title != "" {
		title += " (" + Escape(card.Title) + ")"
	}
	add(phrases.CardTitle, title)
	add(phrases.CardServer, Escape(card.Server), Escape(card.Where))
	add(phrases.CardBy, Escape(card.By))
	add(phrases.CardRunsAs, Escape(card.RunsAs))
	for _, warning := range card.Warnings {
		add(phrases.CardWarning, Escape(warning))
	}
	out = append(out, claim(words.Say(phrases.CardDescription), card.Description)...)
	out = append(out, claim(words.Say(phrases.CardWhy), card.Why)...)
	out = append(out, argumentLines(card, words)...)
	if card.State == store.Pending && !card.Approved {
		add(phrases.CardMay, mayLine(card, words))
	}
	if len(card.Yes) > 0 {
		add(phrases.CardYes, escaped(card.Yes), strconv.Itoa(len(card.Yes)), strconv.Itoa(card.Need))
	}
	if line := expiryLine(card, r, words); line != "" {
		out = append(out, line)
	}
	add(phrases.CardDigest, Escape(digestHead(card.Digest)))
	add(phrases.CardCall, Escape(card.Call))
	add(phrases.CardState, StateWords(card, r.Locale))
	if card.Outcome != "" {
		add(phrases.CardOutcome, Escape(card.Outcome))
	}
	return out
}

// mayLine says who may press, outside the arguments and in nize's own words
// (SPEC 11).
func mayLine(card store.Card, words phrases.Catalogue) string {
	var parts []string
	for _, a := range card.Approvers {
		parts = append(parts, approver(a, words))
	}
	text := strings.Join(parts, ", ")
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
	names := escaped(a.Names)
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

func escaped(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = Escape(n)
	}
	return strings.Join(out, ", ")
}

// StateWords is where the card's call stands, and who decided, in words.
func StateWords(card store.Card, locale string) string {
	words := phrases.For(locale)
	state := words.Say(stateKey(card.State, card.Approved))
	if card.DecidedBy != "" {
		return words.Say(phrases.StateBy, state, Escape(card.DecidedBy))
	}
	return state
}

func stateKey(s store.State, approved bool) phrases.Key {
	switch s {
	case store.Planned:
		return phrases.StatePlanned
	case store.Pending:
		if approved {
			return phrases.StateApproved
		}
		return phrases.StatePending
	case store.Running:
		return phrases.StateRunning
	case store.Done:
		return phrases.StateDone
	case store.Failed:
		return phrases.StateFailed
	case store.Refused:
		return phrases.StateRefused
	case store.Expired:
		return phrases.StateExpired
	case store.Cancelled:
		return phrases.StateCancelled
	}
	return phrases.StateLost // unknown states too: nothing is known of their outcome
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

func argumentLines(card store.Card, words phrases.Catalogue) []string {
	text, ok := PrettyJSON(card.Args)
	head := words.Say(phrases.CardArguments)
	switch {
	case !ok:
		head = words.Say(phrases.CardNotJSON)
	case text == "{}":
		return []string{words.Say(phrases.CardNoArguments)}
	}
	out := []string{head}
	for line := range strings.SplitSeq(text, "\n") {
		out = append(out, "  "+line)
	}
	return out
}

// expiryLine tells until when the call waits, in the reader's zone.
func expiryLine(card store.Card, r Reader, words phrases.Catalogue) string {
	if card.Expires.IsZero() || card.State != store.Pending || card.Approved {
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
func span(d time.Duration) string {
	if d >= time.Hour {
		d = d.Round(time.Minute)
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// digestHead is enough of the digest to compare two cards by eye.
func digestHead(digest string) string {
	return digest[:min(len(digest), 12)]
}
