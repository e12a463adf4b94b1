package discord

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/bwmarrin/discordgo"

	"nize/bots/discord/incoming"
	"nize/bots/discord/people"
	"nize/bots/discord/view"
	"nize/bots/discord/wire"
)

// Discord waits three seconds for the first response to an interaction. If there is none
// after a shorter time, nize responds that the answer follows, so that a slow model, disk
// or Discord API doesn't make the interaction fail. Further replies are sent through the
// interaction, visible to its author only, for fifteen minutes; after that, in their direct
// channel.

const (
	deferAfter     = 1800 * time.Millisecond
	answerTime     = 2500 * time.Millisecond
	interactionEnd = 14 * time.Minute
)

// response tracks the responses to one interaction.
type response struct {
	l     *live
	i     incoming.Interaction
	press bool // the first response has no content; otherwise it is a message
	timer *time.Timer

	mu       sync.Mutex // held during requests to Discord
	answered bool       // the first response was sent, or is too late
	pending  bool       // a message was announced but not sent yet
	said     bool       // a reply was sent
	dialog   bool       // the response was a dialog: no more replies are possible through it
}

// respond starts responding to a new interaction.
func (l *live) respond(ctx context.Context, i incoming.Interaction) *response {
	r := &response{l: l, i: i, press: i.MessageID() != ""}
	r.mu.Lock() // the timer's goroutine reads it
	defer r.mu.Unlock()
	r.timer = time.AfterFunc(deferAfter, func() {
		if ctx.Err() != nil {
			return // it is no longer needed
		}
		l.intake.Soon(ctx, "answering an interaction", func(ctx context.Context) error { return r.later(ctx) })
	})
	return r
}

// respondLate continues with an interaction of an earlier run; it is unknown whether that
// was answered.
func (l *live) respondLate(i incoming.Interaction) *response {
	return &response{l: l, i: i, press: i.MessageID() != "", answered: true, pending: i.MessageID() == ""}
}

// first sends the first response; ok reports that there was none before.
func (r *response) first(ctx context.Context, kind discordgo.InteractionResponseType, data *discordgo.InteractionResponseData) (ok bool, err error) {
	if r.answered {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTime)
	defer cancel()
	err = r.l.wire.Do(ctx, wire.Request{Method: "POST", Path: "interactions/" + r.i.ID + "/" + r.i.Token + "/callback", Body: discordgo.InteractionResponse{Type: kind, Data: data}, Hook: true})
	if err == nil || wire.Refused(err) { // refused: too late, or already given
		r.answered = true
		if r.timer != nil {
			r.timer.Stop()
		}
	}
	return err == nil, err
}

// alone announces a message that only the author of the interaction will see.
var alone = &discordgo.InteractionResponseData{Flags: discordgo.MessageFlagsEphemeral}

// later responds that the answer follows.
func (r *response) later(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.press {
		_, err := r.first(ctx, discordgo.InteractionResponseDeferredMessageUpdate, nil)
		return err
	}
	ok, err := r.first(ctx, discordgo.InteractionResponseDeferredChannelMessageWithSource, alone)
	r.pending = r.pending || ok
	return err
}

// openDialog opens a dialog and reports whether it did: only the first response can be a
// dialog.
func (r *response) openDialog(ctx context.Context, d view.Dialog) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ok, err := r.first(ctx, discordgo.InteractionResponseModal, (*discordgo.InteractionResponseData)(&d))
	r.dialog = r.dialog || ok
	return ok, err
}

// tell sends a reply to the person only.
func (r *response) tell(ctx context.Context, m view.Message, files ...wire.File) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = true
	if len(files) == 0 {
		if ok, err := r.first(ctx, discordgo.InteractionResponseChannelMessageWithSource, m.Alone().Answer()); ok || err != nil && !wire.Refused(err) {
			return err
		}
	} else if !r.answered {
		ok, _ := r.first(ctx, discordgo.InteractionResponseDeferredChannelMessageWithSource, &discordgo.InteractionResponseData{Flags: m.Alone().Flags})
		r.pending = r.pending || ok
	}
	hook := "webhooks/" + r.i.AppID + "/" + r.i.Token
	if r.pending {
		err := r.l.wire.Do(ctx, wire.Request{Method: "PATCH", Path: hook + "/messages/@original", Body: m.Edit(), Files: files, Hook: true})
		if err == nil || !wire.Refused(err) {
			r.pending = r.pending && err != nil
			return err
		}
	}
	return r.l.wire.Do(ctx, wire.Request{Method: "POST", Path: hook, Body: m.Alone().FollowUp(), Files: files, Hook: true, Once: true})
}

// close ends an interaction that gets no further reply.
func (r *response) close(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.press {
		_, err := r.first(ctx, discordgo.InteractionResponseDeferredMessageUpdate, nil)
		return unlessRefused(err)
	}
	if !r.answered { // a command must get a response with content
		if ok, err := r.first(ctx, discordgo.InteractionResponseDeferredChannelMessageWithSource, alone); !ok {
			return unlessRefused(err)
		}
		r.pending = true
	}
	if !r.pending {
		return nil
	}
	r.pending = false
	err := r.l.wire.Do(ctx, wire.Request{Method: "DELETE", Path: "webhooks/" + r.i.AppID + "/" + r.i.Token + "/messages/@original", Hook: true})
	return unlessRefused(err)
}

func unlessRefused(err error) error {
	if wire.Refused(err) {
		return nil
	}
	return err
}

// spent reports whether the interaction can't be used for replies any more.
func (r *response) spent(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dialog || now.Sub(incoming.TimeOf(r.i.ID)) > interactionEnd
}

// tell sends a text to one person only: through their interaction if that is recent enough,
// otherwise in their direct channel.
func (l *live) tell(ctx context.Context, p people.Person, r *response, text string, buttons ...discordgo.MessageComponent) error {
	if r == nil || r.spent(l.b.o.Now()) {
		return l.posts.Direct(ctx, p, text, buttons...)
	}
	pages := view.Pages(text)
	for i, page := range pages {
		m := view.Text(page)
		if i == len(pages)-1 {
			m = view.Text(page, buttons...)
		}
		err := r.tell(ctx, m)
		if wire.Refused(err) && i == 0 {
			return l.posts.Direct(ctx, p, text, buttons...)
		}
		if err != nil {
			return fmt.Errorf("telling somebody something alone: %w", err)
		}
	}
	return nil
}
