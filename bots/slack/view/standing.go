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

// Standing is carried by the dialog.
type Standing struct {
	Call    string `json:"call"`
	Head    string `json:"head"` // beginning of the digest of the answered call
	Deny    bool   `json:"deny,omitempty"`
	Channel string `json:"channel,omitempty"`
	Thread  string `json:"thread,omitempty"`
}

// AlwaysModal returns the dialog. It doesn't offer choices that its reader may not make;
// whether they administer the channel is checked when it is submitted.
func AlwaysModal(card store.Card, s Standing, admin bool, w phrases.Catalogue) slackgo.ModalViewRequest {
	title, hint := w.Say(phrases.ButtonAlways), phrases.AlwaysHint
	if s.Deny {
		title, hint = w.Say(phrases.ButtonNever), phrases.NeverHint
	}
	may := bots.ScopesOf(card, s.Channel != "" && s.Channel[0] != 'D', admin)
	blocks := []slackgo.Block{slackgo.NewSectionBlock(PlainText(w.Say(hint, bots.Escape(Clip(card.Tool, 200)))), nil, nil)}
	for _, q := range bots.StandingQuestions(s.Deny, may, w) {
		var choices []choice
		for _, o := range q.Choices {
			choices = append(choices, choice{o.Value, o.Label, o.Note})
		}
		blocks = append(blocks, selectOne(q.Name, q.Label, choices))
		if q.Name == bots.StandingArgs {
			pattern := slackgo.NewPlainTextInputBlockElement(nil, "value").WithMultiline(true).WithMaxLength(maxInput)
			input := slackgo.NewInputBlock(bots.StandingPattern, PlainText(w.Say(phrases.AlwaysPattern)), PlainText(Clip(w.Say(phrases.AlwaysPatternHint), maxPlaceholder)), pattern)
			input.Optional = true
			blocks = append(blocks, input)
		}
	}
	view := Modal(title, w.Say(phrases.ButtonClose), blocks...)
	view.Submit, view.CallbackID = PlainText(Clip(title, MaxTitle)), AlwaysView
	metadata, _ := json.Marshal(s) // encoding strings can't fail
	view.PrivateMetadata = string(metadata)
	return view
}

// AnsweredAlways reads a submitted dialog and returns the decision, or the mistakes by
// block.
func AnsweredAlways(i incoming.Interaction, now time.Time, w phrases.Catalogue) (s Standing, d store.Decision, wrong map[string]string, err error) {
	if len(i.View.PrivateMetadata) > MaxMetadata || json.Unmarshal([]byte(i.View.PrivateMetadata), &s) != nil || !store.ValidID(s.Call) {
		return s, d, nil, store.Errorf("%w dialog", store.ErrInvalid)
	}
	given := func(block string) string { return incoming.Typed(i.View.State.Values[block]["value"]) }
	d, err = bots.ReadStanding(given, now)
	if d.Verb = store.Approve; s.Deny {
		d.Verb = store.Deny
	}
	var pattern *bots.PatternError
	if errors.As(err, &pattern) {
		return s, d, map[string]string{bots.StandingPattern: Clip(w.Say(phrases.CardBadJSON, bots.Escape(w.Problem(pattern.Err))), maxPlaceholder)}, nil
	}
	return s, d, nil, err
}
