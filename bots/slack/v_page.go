package slack

import (
	"encoding/json"
	"strconv"

	slackgo "github.com/slack-go/slack"

	"nize/bots/phrases"
)

// page is where a dialog over long text stands; it travels in the dialog.
type page struct {
	Kind string `json:"kind"` // all or result
	Call string `json:"call"`
	N    int    `json:"n"`
}

// pageModal lays out one page.
func pageModal(title, text string, at page, w phrases.Catalogue) slackgo.ModalViewRequest {
	pages := pieces(text, pageSize)
	at.N = max(at.N%len(pages), 0) // below 0 behind the largest integer
	var blocks []slackgo.Block
	for _, piece := range pieces(pages[at.N], maxSection) {
		blocks = append(blocks, preformatted(piece))
	}
	if len(pages) > 1 {
		note := w.Say(phrases.CardDialog, strconv.Itoa(at.N+1), strconv.Itoa(len(pages)))
		buttons := []slackgo.BlockElement{button(pageAction, w.Say(phrases.ButtonNext), "next")}
		if at.Kind == "result" {
			buttons = append(buttons, button(resultFileAction, w.Say(phrases.ButtonAsFile), "file"))
		}
		blocks = append(blocks, slackgo.NewContextBlock("", plainText(note)), slackgo.NewActionBlock("", buttons...))
	}
	view := modal(title, w.Say(phrases.ButtonClose), blocks...)
	metadata, _ := json.Marshal(at) // strings and a number always encode
	view.PrivateMetadata = string(metadata)
	return view
}

const resultFileAction = "resultfile"
