package commands

import (
	"context"
	"slices"
	"strconv"

	"nize/bots"
	"nize/bots/phrases"
	"nize/store"
)

// The commands for showing answers while they are written: in a conversation they apply to
// that one, elsewhere to the person's new ones.

func isStreaming(words string) bool {
	return words == "" || slices.Contains([]string{store.StreamingOn, store.StreamingOff, "default"}, words)
}

func (cmd *Commands) sayStreaming(ctx context.Context, a bots.Asked) (bots.Answer, error) {
	w := phrases.For(a.Locale)
	if !isStreaming(a.Words) {
		return bots.Answer{}, store.Errorf("%w: write streaming on, streaming off, or streaming default", store.ErrInvalid)
	}
	value := a.Words
	if value == "default" {
		value = ""
	}
	if a.Thread == "" {
		return cmd.streamsOwn(ctx, a, value)
	}
	if a.Words != "" {
		told, err := cmd.choose(ctx, a, func(th *store.Thread) { th.Streaming = value })
		if told != "" || err != nil {
			return bots.Said(told), err
		}
	}
	th, err := cmd.Conversations.Find(ctx, a.Thread)
	if err != nil {
		return bots.Answer{}, err
	}
	if th.Streaming == store.StreamingOff || th.Streaming == "" && !store.GetBool(cmd.Settings.Config, th.User, "streaming") {
		return bots.Said(w.Say(phrases.HereWhole)), nil
	}
	return bots.Said(w.Say(phrases.HereStreams)), nil
}

// streamsOwn shows or sets the default for a person's new conversations.
func (cmd *Commands) streamsOwn(ctx context.Context, a bots.Asked, value string) (bots.Answer, error) {
	w := phrases.For(a.Locale)
	if a.Words != "" {
		if value != "" {
			value = strconv.FormatBool(value == store.StreamingOn)
		}
		if _, err := cmd.setOwn(ctx, a.By, "streaming", value); err != nil {
			return bots.Answer{}, err
		}
	}
	if store.GetBool(cmd.Settings.Config, a.By.User, "streaming") {
		return bots.Said(w.Say(phrases.OwnStreams)), nil
	}
	return bots.Said(w.Say(phrases.OwnWhole)), nil
}
