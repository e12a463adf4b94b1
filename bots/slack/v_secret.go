package slack

import (
	"encoding/json"

	slackgo "github.com/slack-go/slack"

	"nize/bots"
	"nize/bots/phrases"
)

const (
	secretView  = "secret"
	secretBlock = "secret"
)

// secretModal is that dialog.
func secretModal(f bots.Prompt, w phrases.Catalogue) slackgo.ModalViewRequest {
	input := slackgo.NewPlainTextInputBlockElement(nil, "value").WithMaxLength(maxInput)
	label := w.Say(phrases.ConnectLabel, bots.Escape(clip(f.Name, 60)), f.Service)
	view := modal(w.Say(phrases.ConnectTitle), w.Say(phrases.ButtonClose),
		slackgo.NewInputBlock(secretBlock, plainText(clip(label, maxPlaceholder)), nil, input),
		slackgo.NewContextBlock("", plainText(w.Say(phrases.ConnectHint))))
	metadata, _ := json.Marshal(f) // strings always encode
	view.CallbackID, view.PrivateMetadata, view.Submit = secretView, string(metadata), plainText(clip(w.Say(phrases.ButtonConnect), maxTitle))
	return view
}
