package view

import (
	"encoding/json"
	"errors"
	"time"

	slackgo "github.com/slack-go/slack"

	"nize/bots"
	"nize/bots/phrases"
	"nize/bots/slack/incoming"
	"nize/store"
)

const AlwaysView = "always"

// Blocks of the dialog, and what is chosen in them.
const (
	alwaysFor     = "for"
	alwaysArgs    = "args"
	alwaysPattern = "pattern"
	alwaysUntil   = "until"
)

// Standing travels in the dialog.
type Standing struct {
	Call    string `json:"call"`
	Head    string `json:"head"` // of the digest of the call that is answered
	Deny    bool   `json:"deny,omitempty"`
	Channel string `json:"channel,omitempty"`
	Thread  string `json:"thread,omitempty"`
}

// AlwaysModal is the dialog. What its reader may not choose is not offered; who
// administers the channel is looked at when it is sent in.
func AlwaysModal(card store.Card, s Standing, admin bool, w phrases.Catalogue) slackgo.ModalViewRequest {
	title, hint := w.Say(phrases.ButtonAlways), phrases.AlwaysHint
	if s.Deny {
		title, hint = w.Say(phrases.ButtonNever), phrases.NeverHint
	}
	scopes := []choice{{string(store.ForMe), w.Say(phrases.AlwaysForMe)}}
	if s.Channel != "" && s.Channel[0] != 'D' {
		scopes = append(scopes, choice{string(store.ForChannel), w.Say(phrases.AlwaysForChannel)})
	}
	if admin {
		scopes = append(scopes, choice{string(store.ForEveryone), w.Say(phrases.AlwaysForEveryone)})
	}
	blocks := []slackgo.Block{
		slackgo.NewSectionBlock(PlainText(w.Say(hint, bots.Escape(Clip(card.Tool, 200)))), nil, nil),
		selectOne(alwaysFor, w.Say(phrases.AlwaysFor), scopes),
	}
	if !s.Deny {
		pattern := slackgo.NewPlainTextInputBlockElement(nil, "value").WithMultiline(true).WithMaxLength(maxInput)
		input := slackgo.NewInputBlock(alwaysPattern, PlainText(w.Say(phrases.AlwaysPattern)), PlainText(Clip(w.Say(phrases.AlwaysPatternHint), maxPlaceholder)), pattern)
		input.Optional = true
		blocks = append(blocks, selectOne(alwaysArgs, w.Say(phrases.AlwaysArgs), []choice{{bots.AnyArgs, w.Say(phrases.AlwaysArgsAny)}, {bots.TheseArgs, w.Say(phrases.AlwaysArgsThese)}}), input)
	}
	spans := []choice{{bots.ForEver, w.Say(phrases.AlwaysForEver)}}
	for _, span := range bots.AlwaysSpans {
		spans = append(spans, choice{span, w.Say(phrases.AlwaysSpan, store.Span(span))})
	}
	view := Modal(title, w.Say(phrases.ButtonClose), append(blocks, selectOne(alwaysUntil, w.Say(phrases.AlwaysUntil), spans))...)
	view.Submit, view.CallbackID = PlainText(Clip(title, MaxTitle)), AlwaysView
	metadata, _ := json.Marshal(s) // strings always encode
	view.PrivateMetadata = string(metadata)
	return view
}

// AnsweredAlways reads a dialog that was sent in: the decision, or what is
// wrong by block.
func AnsweredAlways(i incoming.Interaction, now time.Time, w phrases.Catalogue) (s Standing, d store.Decision, wrong map[string]string, err error) {
	if len(i.View.Metadata) > MaxMetadata || json.Unmarshal([]byte(i.View.Metadata), &s) != nil || !store.ValidID(s.Call) {
		return s, d, nil, store.Errorf("%w dialog", store.ErrInvalid)
	}
	given := func(block string) string { return i.View.State.Values[block]["value"].Text() }
	d, err = bots.StandingAnswer{Scope: given(alwaysFor), Args: given(alwaysArgs), Pattern: given(alwaysPattern), Until: given(alwaysUntil)}.Decision(now)
	if d.Verb = store.Approve; s.Deny {
		d.Verb = store.Deny
	}
	var pattern *bots.PatternError
	if errors.As(err, &pattern) {
		return s, d, map[string]string{alwaysPattern: Clip(w.Say(phrases.CardBadJSON, bots.Escape(bots.ErrorText(w, pattern.Err))), maxPlaceholder)}, nil
	}
	return s, d, nil, err
}
