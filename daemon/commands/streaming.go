package daemon

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"nize/bots"
	"nize/bots/phrases"
	"nize/store"
)

// Whether answers are shown while they are written: in a conversation
// for it alone, elsewhere for all that somebody begins.

func isStreaming(words string) bool {
	return words == "" || slices.Contains([]string{store.StreamingOn, store.StreamingOff, "default"}, words)
}

func (d *Daemon) sayStreaming(ctx context.Context, a bots.Asked) (bots.Answer, error) {
	w := phrases.For(a.Locale)
	if !isStreaming(a.Words) {
		return bots.Answer{}, fmt.Errorf("%w: write streaming on, streaming off, or streaming default", store.ErrInvalid)
	}
	value := a.Words
	if value == "default" {
		value = ""
	}
	if a.Thread == "" {
		return d.streamsOwn(ctx, a, value)
	}
	if a.Words != "" {
		told, err := d.choose(ctx, a, func(th *store.Thread) { th.Streaming = value })
		if told != "" || err != nil {
			return bots.Said(told), err
		}
	}
	th, err := d.db.GetThread(ctx, a.Thread)
	if err != nil {
		return bots.Answer{}, fmt.Errorf("reading the conversation: %w", err)
	}
	if th.Streaming == store.StreamingOff || th.Streaming == "" && !store.GetBool(d.config, th.User, "streaming") {
		return bots.Said(w.Say(phrases.HereWhole)), nil
	}
	return bots.Said(w.Say(phrases.HereStreams)), nil
}

// streamsOwn is about what a person begins.
func (d *Daemon) streamsOwn(ctx context.Context, a bots.Asked, value string) (bots.Answer, error) {
	w := phrases.For(a.Locale)
	if a.Words != "" {
		if value != "" {
			value = strconv.FormatBool(value == store.StreamingOn)
		}
		if _, err := d.config.Put(ctx, a.By, a.By.User, "streaming", value); err != nil {
			return bots.Answer{}, err
		}
	}
	if store.GetBool(d.config, a.By.User, "streaming") {
		return bots.Said(w.Say(phrases.OwnStreams)), nil
	}
	return bots.Said(w.Say(phrases.OwnWhole)), nil
}
