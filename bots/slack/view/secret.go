package view

import (
	"encoding/json"

	slackgo "github.com/slack-go/slack"

	"nize/bots"
	"nize/bots/phrases"
)

const (
	SecretView  = "secret"
	SecretBlock = "secret"
)

// SecretModal returns the dialog for a credential.
func SecretModal(f bots.Prompt, w phrases.Catalogue) slackgo.ModalViewRequest {
	input := slackgo.NewPlainTextInputBlockElement(nil, "value").WithMaxLength(maxInput)
	label := w.Say(phrases.ConnectLabel, bots.Escape(Clip(f.Name, 60)), f.Service)
	blocks := []slackgo.Block{
		slackgo.NewInputBlock(SecretBlock, PlainText(Clip(label, maxPlaceholder)), nil, input),
		slackgo.NewContextBlock("", PlainText(w.Say(phrases.ConnectHint))),
	}
	if f.About != "" {
		about := slackgo.NewSectionBlock(PlainText(Clip(bots.Escape(f.About), MaxSection)), nil, nil)
		blocks = append([]slackgo.Block{about}, blocks...)
	}
	view := Modal(w.Say(phrases.ConnectTitle), w.Say(phrases.ButtonClose), blocks...)
	f.About = ""                   // the dialog only carries what the credential is for
	metadata, _ := json.Marshal(f) // encoding strings can't fail
	view.CallbackID, view.PrivateMetadata, view.Submit = SecretView, string(metadata), PlainText(Clip(w.Say(phrases.ButtonConnect), MaxTitle))
	return view
}
