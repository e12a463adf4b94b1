package view

import (
	"encoding/json"
	"strings"

	slackgo "github.com/slack-go/slack"

	"nize/bots"
	"nize/bots/phrases"
	"nize/bots/slack/incoming"
	"nize/store"
)

const ReasonView = "reason"

// maxReason is the maximum length of a reason, in characters.
const maxReason = 500

// ReasonModal asks why a call is declined.
func ReasonModal(card store.Card, s Standing, w phrases.Catalogue) slackgo.ModalViewRequest {
	input := slackgo.NewPlainTextInputBlockElement(nil, "value").WithMultiline(true).WithMaxLength(maxReason)
	view := Modal(w.Say(phrases.ButtonReason), w.Say(phrases.ButtonClose),
		slackgo.NewSectionBlock(PlainText(bots.Escape(Clip(card.Tool, 200))), nil, nil),
		slackgo.NewInputBlock(ReasonView, PlainText(w.Say(phrases.ReasonLabel)), nil, input))
	view.Submit, view.CallbackID = PlainText(Clip(w.Say(phrases.ButtonDecline), MaxTitle)), ReasonView
	metadata, _ := json.Marshal(s) // encoding strings can't fail
	view.PrivateMetadata = string(metadata)
	return view
}

// ReadReason reads that dialog.
func ReadReason(i incoming.Interaction) (s Standing, reason string, ok bool) {
	if len(i.View.PrivateMetadata) > MaxMetadata || json.Unmarshal([]byte(i.View.PrivateMetadata), &s) != nil || !store.ValidID(s.Call) {
		return s, "", false
	}
	return s, strings.TrimSpace(incoming.Typed(i.View.State.Values[ReasonView]["value"])), true
}
