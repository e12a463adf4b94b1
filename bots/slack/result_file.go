package slack

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	slackgo "github.com/slack-go/slack"

	"nize/bots"
	"nize/bots/phrases"
	"nize/bots/slack/incoming"
	"nize/bots/slack/people"
	"nize/bots/slack/view"
	"nize/bots/slack/wire"
	"nize/store"
)

// A result that is long can be had as a file, and its images and files with it. It goes to
// who asks for it alone, in their own conversation with nize: a file in a thread
// would be everybody's.

// sendResult sends the result that a dialog shows as a file.
func (c *cardPresses) sendResult(ctx context.Context, p people.Person, i incoming.Interaction, _ incoming.Action) error {
	var at view.Page
	if json.Unmarshal([]byte(i.View.Metadata), &at) != nil || at.Kind != "result" || !store.ValidID(at.Call) {
		return store.Errorf("%w dialog", store.ErrInvalid)
	}
	w := p.Words()
	said := w.Say(phrases.ResultSent)
	text, images := c.Result(ctx, p.Caller(), at.Call)
	files := []bots.File{{Name: "result-" + at.Call + ".txt", Data: []byte(text)}}
	if text == "" {
		said = w.Say(phrases.ResultNone)
	} else if err := c.posts.SendFiles(ctx, p, slices.Concat(files, images.List, images.Files)); err != nil {
		if wire.Code(err) == "" && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		c.log.Warn("Slack does not take the file of a result", "call", at.Call, "err", err)
		said = w.Say(phrases.CardNoFile)
	}
	view := view.Modal(w.Say(phrases.ResultTitle), w.Say(phrases.ButtonClose), slackgo.NewSectionBlock(view.PlainText(said), nil, nil))
	return c.wire.UpdateView(ctx, i.View.ID, i.View.Hash, view)
}
