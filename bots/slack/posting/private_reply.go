package posting

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	slackgo "github.com/slack-go/slack"

	"nize/bots"
	"nize/bots/outbox"
	"nize/bots/slack/people"
	"nize/bots/slack/view"
	"nize/bots/slack/wire"
	"nize/store"
)

// Tell sends a text to one person: as a message in their direct conversation with nize, as
// an ephemeral message elsewhere.
func (ms *messages) Tell(ctx context.Context, p people.Person, channel, thread, text string) error {
	if channel == "" || channel[0] == 'D' {
		return ms.direct(ctx, p, channel, thread, text)
	}
	options := []slackgo.MsgOption{slackgo.MsgOptionText(view.Fallback(text, view.MaxFallback), false), slackgo.MsgOptionBlocks(view.WordsBlocks(text)...), slackgo.MsgOptionDisableLinkUnfurl()}
	if thread != "" {
		options = append(options, slackgo.MsgOptionTS(thread))
	}
	err := ms.wire.Ephemeral(ctx, channel, p.ID, options...)
	if noEphemeral[wire.Code(err)] {
		return ms.direct(ctx, p, "", "", text)
	}
	return err
}

// noEphemeral are Slack's error codes if a channel can't show an ephemeral message to a
// person.
var noEphemeral = map[string]bool{"not_in_channel": true, "channel_not_found": true, "user_not_in_channel": true}

// direct posts in a person's direct conversation with nize.
func (ms *messages) direct(ctx context.Context, p people.Person, channel, thread, text string) error {
	if channel == "" {
		var err error
		if channel, err = ms.people.OpenDM(ctx, p.ID); err != nil {
			return err
		}
	}
	_, err := ms.Say(ctx, p, store.Address{Channel: channel, Thread: thread}, text)
	return err
}

// Say posts a text of nize's own for all readers, once per action of p.
func (ms *messages) Say(ctx context.Context, p people.Person, at store.Address, text string) (string, error) {
	m := store.Message{ID: ms.answerID(p, text), Kind: store.NoticeMessage, Text: text}
	return ms.postOnce(ctx, p, at, m.ID, view.Notice(m).Post)
}

// answerID returns the id of a reply to a person's action; it is the same if the action is
// processed again.
func (ms *messages) answerID(p people.Person, text string) string {
	return outbox.SaidID(ms.act(p), view.Digest([]byte(text)))
}

// postOnce posts a message whose first block carries the id, once per action of p.
func (ms *messages) postOnce(ctx context.Context, p people.Person, at store.Address, id string, options []slackgo.MsgOption) (string, error) {
	if at.Thread != "" {
		options = append(options, slackgo.MsgOptionTS(at.Thread))
	}
	return ms.sent.PostOnce(ctx, at, id, store.IDTime(ms.act(p)), func(ctx context.Context) (string, error) {
		return ms.wire.Post(ctx, at.Channel, options...)
	}, wire.Unsure)
}

// act returns the id of p's action, or a new one if the action is not stored.
func (ms *messages) act(p people.Person) string { return cmp.Or(p.Act, store.NewID(ms.now())) }

// TellBlocks is Tell with blocks after the text.
func (ms *messages) TellBlocks(ctx context.Context, p people.Person, at store.Address, text string, blocks ...slackgo.Block) error {
	id := ms.answerID(p, text)
	blocks = append(view.MarkedBlocks(id, text), blocks...)
	options := []slackgo.MsgOption{slackgo.MsgOptionText(view.Fallback(text, view.MaxFallback), false), slackgo.MsgOptionBlocks(blocks...), slackgo.MsgOptionDisableLinkUnfurl()}
	if at.Channel != "" && at.Channel[0] != 'D' {
		alone := options
		if at.Thread != "" {
			alone = append(slices.Clip(alone), slackgo.MsgOptionTS(at.Thread))
		}
		err := ms.wire.Ephemeral(ctx, at.Channel, p.ID, alone...)
		if !noEphemeral[wire.Code(err)] {
			return err
		}
		at.Channel, at.Thread = "", ""
	}
	if at.Channel == "" {
		channel, err := ms.people.OpenDM(ctx, p.ID)
		if err != nil {
			return err
		}
		at.Channel = channel
	}
	_, err := ms.postOnce(ctx, p, at, id, options)
	return err
}

// TellError tells a person in private why their press failed.
func (ms *messages) TellError(ctx context.Context, p people.Person, channel, thread string, err error) error {
	text := bots.ErrorText(p.Words(), err)
	if err := ms.Tell(ctx, p, channel, thread, text); err != nil {
		return fmt.Errorf("telling what did not work: %w", err)
	}
	return nil
}
