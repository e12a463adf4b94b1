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

// A long result can be requested as a file, together with its images and files. It is sent
// to the requester's own conversation with nize only: everyone in a thread could read a
// file there.

// sendResult sends a dialog's result as a file.
func (c *cardPresses) sendResult(ctx context.Context, p people.Person, i incoming.Interaction, _ *incoming.Action) error {
	var at view.Page
	if json.Unmarshal([]byte(i.View.PrivateMetadata), &at) != nil || at.Kind != "result" || !store.ValidID(at.Call) {
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
