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

// SecretModal is that dialog.
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
	f.About = ""                   // what comes back says for what it is alone
	metadata, _ := json.Marshal(f) // strings always encode
	view.CallbackID, view.PrivateMetadata, view.Submit = SecretView, string(metadata), PlainText(Clip(w.Say(phrases.ButtonConnect), MaxTitle))
	return view
}
