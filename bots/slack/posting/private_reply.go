package posting

import (
	"context"
	"fmt"

	slackgo "github.com/slack-go/slack"

	"nize/bots"
	"nize/bots/slack/people"
	"nize/bots/slack/view"
	"nize/bots/slack/wire"
	"nize/store"
)

// Tell says something to one person: in their own conversation with nize
// openly, elsewhere so that nobody else sees it.
func (ms *messages) Tell(ctx context.Context, p people.Person, channel, thread, text string) error {
	if channel == "" || channel[0] == 'D' {
		return ms.direct(ctx, p.ID, channel, thread, text)
	}
	options := []slackgo.MsgOption{slackgo.MsgOptionText(view.Fallback(text, view.MaxFallback), false), slackgo.MsgOptionBlocks(view.WordsBlocks(text)...), slackgo.MsgOptionDisableLinkUnfurl()}
	if thread != "" {
		options = append(options, slackgo.MsgOptionTS(thread))
	}
	err := ms.wire.Ephemeral(ctx, channel, p.ID, options...)
	if noEphemeral[wire.Code(err)] {
		return ms.direct(ctx, p.ID, "", "", text)
	}
	return err
}

// noEphemeral are Slack's answers where nothing can be shown to one person alone
// in a channel.
var noEphemeral = map[string]bool{"not_in_channel": true, "channel_not_found": true, "user_not_in_channel": true}

// direct writes to somebody's conversation with nize.
func (ms *messages) direct(ctx context.Context, user, channel, thread, text string) error {
	if channel == "" {
		var err error
		if channel, err = ms.people.OpenDM(ctx, user); err != nil {
			return err
		}
	}
	options := view.Words(text).Post
	if thread != "" {
		options = append(options, slackgo.MsgOptionTS(thread))
	}
	_, err := ms.wire.Post(ctx, channel, options...)
	return err
}

// TellBlocks is tell with blocks.
func (ms *messages) TellBlocks(ctx context.Context, p people.Person, at store.Address, text string, blocks []slackgo.Block) error {
	options := []slackgo.MsgOption{slackgo.MsgOptionText(view.Fallback(text, view.MaxFallback), false), slackgo.MsgOptionBlocks(blocks...), slackgo.MsgOptionDisableLinkUnfurl()}
	if at.Thread != "" {
		options = append(options, slackgo.MsgOptionTS(at.Thread))
	}
	if at.Channel != "" && at.Channel[0] != 'D' {
		err := ms.wire.Ephemeral(ctx, at.Channel, p.ID, options...)
		if !noEphemeral[wire.Code(err)] {
			return err
		}
		at.Channel, options = "", options[:3]
	}
	if at.Channel == "" {
		channel, err := ms.people.OpenDM(ctx, p.ID)
		if err != nil {
			return err
		}
		at.Channel = channel
	}
	_, err := ms.wire.Post(ctx, at.Channel, options...)
	return err
}

// TellError tells somebody in private why what they pressed did not work.
func (ms *messages) TellError(ctx context.Context, p people.Person, channel, thread string, err error) error {
	text := bots.ErrorText(p.Words(), err)
	if err := ms.Tell(ctx, p, channel, thread, text); err != nil {
		return fmt.Errorf("telling what did not work: %w", err)
	}
	return nil
}
