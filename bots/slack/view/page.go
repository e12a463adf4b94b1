package view

import (
	"encoding/json"
	"strconv"

	slackgo "github.com/slack-go/slack"

	"nize/bots/phrases"
)

// Page is the position in a long text that a dialog shows; the dialog carries it.
type Page struct {
	Kind string `json:"kind"` // all or result
	Call string `json:"call"`
	N    int    `json:"n"`
}

// PageModal returns one page.
func PageModal(title, text string, at Page, w phrases.Catalogue) slackgo.ModalViewRequest {
	pages := pieces(text, pageSize)
	at.N = max(at.N%len(pages), 0) // negative after an overflow
	var blocks []slackgo.Block
	for _, piece := range pieces(pages[at.N], MaxSection) {
		blocks = append(blocks, preformatted(piece))
	}
	if len(pages) > 1 {
		note := w.Say(phrases.CardDialog, strconv.Itoa(at.N+1), strconv.Itoa(len(pages)))
		buttons := []slackgo.BlockElement{button(PageAction, w.Say(phrases.ButtonNext), "next")}
		if at.Kind == "result" {
			buttons = append(buttons, button(ResultFileAction, w.Say(phrases.ButtonAsFile), "file"))
		}
		blocks = append(blocks, slackgo.NewContextBlock("", PlainText(note)), slackgo.NewActionBlock("", buttons...))
	}
	view := Modal(title, w.Say(phrases.ButtonClose), blocks...)
	metadata, _ := json.Marshal(at) // encoding strings and a number can't fail
	view.PrivateMetadata = string(metadata)
	return view
}

const ResultFileAction = "resultfile"
