package discord

import (
	"context"
	"fmt"
	"sync"
	"time"

	"nize/bots/discord/incoming"
	"nize/bots/discord/people"
	"nize/bots/discord/view"
	"nize/bots/discord/wire"
)

// Discord waits three seconds for the first answer to an interaction. What has
// not answered by itself after less is told that the answer follows, so that
// neither the model nor the disk nor Discord itself can make somebody read that
// the interaction failed. For fifteen minutes the rest is said through the
// interaction, to its author alone; later, in their own channel with nize.

// Kinds of first answers.
const (
	answerMessage  = 4
	answerLater    = 5 // with a message
	answerNothing  = 6 // the message that was pressed stays as it is
	answerChoices  = 8
	answerDialog   = 9
	deferAfter     = 1800 * time.Millisecond
	answerTime     = 2500 * time.Millisecond
	interactionEnd = 14 * time.Minute
)

// response is how one interaction is answered.
type response struct {
	l     *live
	i     incoming.Interaction
	press bool // the first answer says nothing; else it is a message
	timer *time.Timer

	mu       sync.Mutex // held while Discord is told
	answered bool       // the first answer was given, or is too late
	pending  bool       // a message was promised and is not there
	said     bool       // something was said
	dialog   bool       // a dialog was the answer: nothing can be said through it any more
}

// respond begins to answer an interaction that just came.
func (l *live) respond(ctx context.Context, i incoming.Interaction) *response {
	r := &response{l: l, i: i, press: i.Message.ID != ""}
	r.mu.Lock() // the timer's own goroutine reads it
	defer r.mu.Unlock()
	r.timer = time.AfterFunc(deferAfter, func() {
		if ctx.Err() != nil {
			return // nobody waits for it any more
		}
		l.intake.Soon(ctx, "answering an interaction", func(ctx context.Context) error { return r.later(ctx) })
	})
	return r
}

// respondLate goes on with one of an earlier run, of which nobody knows whether it
// was answered.
func (l *live) respondLate(i incoming.Interaction) *response {
	return &response{l: l, i: i, press: i.Message.ID != "", answered: true, pending: i.Message.ID == ""}
}

// first gives the first answer; ok says that there was none before.
func (r *response) first(ctx context.Context, kind int, data any) (ok bool, err error) {
	if r.answered {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTime)
	defer cancel()
	body := map[string]any{"type": kind}
	if data != nil {
		body["data"] = data
	}
	err = r.l.wire.Do(ctx, wire.Request{Method: "POST", Path: "interactions/" + r.i.ID + "/" + r.i.Token + "/callback", Body: body, Hook: true})
	if err == nil || wire.Refused(err) { // the latter: too late, or given already
		r.answered = true
		if r.timer != nil {
			r.timer.Stop()
		}
	}
	return err == nil, err
}

// later says that the answer follows.
func (r *response) later(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.press {
		_, err := r.first(ctx, answerNothing, nil)
		return err
	}
	ok, err := r.first(ctx, answerLater, map[string]any{"flags": view.Message{}.Alone().Flags})
	r.pending = r.pending || ok
	return err
}

// openDialog opens a dialog, and says whether it did: only the first answer can.
func (r *response) openDialog(ctx context.Context, d view.Dialog) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ok, err := r.first(ctx, answerDialog, d)
	r.dialog = r.dialog || ok
	return ok, err
}

// tell says something to who acted, alone.
func (r *response) tell(ctx context.Context, m view.Message, files ...wire.File) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = true
	if len(files) == 0 {
		if ok, err := r.first(ctx, answerMessage, m.Alone()); ok || err != nil && !wire.Refused(err) {
			return err
		}
	} else if !r.answered {
		ok, _ := r.first(ctx, answerLater, map[string]any{"flags": m.Alone().Flags})
		r.pending = r.pending || ok
	}
	hook := "webhooks/" + r.i.App + "/" + r.i.Token
	if r.pending {
		err := r.l.wire.Do(ctx, wire.Request{Method: "PATCH", Path: hook + "/messages/@original", Body: m, Files: files, Hook: true})
		if err == nil || !wire.Refused(err) {
			r.pending = r.pending && err != nil
			return err
		}
	}
	return r.l.wire.Do(ctx, wire.Request{Method: "POST", Path: hook, Body: m.Alone(), Files: files, Hook: true, Once: true})
}

// close ends an interaction of which nothing more is said.
func (r *response) close(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.press {
		_, err := r.first(ctx, answerNothing, nil)
		return unlessRefused(err)
	}
	if !r.answered { // a command may not be answered by nothing
		if ok, err := r.first(ctx, answerLater, map[string]any{"flags": view.Message{}.Alone().Flags}); !ok {
			return unlessRefused(err)
		}
		r.pending = true
	}
	if !r.pending {
		return nil
	}
	r.pending = false
	err := r.l.wire.Do(ctx, wire.Request{Method: "DELETE", Path: "webhooks/" + r.i.App + "/" + r.i.Token + "/messages/@original", Hook: true})
	return unlessRefused(err)
}

func unlessRefused(err error) error {
	if wire.Refused(err) {
		return nil
	}
	return err
}

// spent says whether nothing can be said through it any more.
func (r *response) spent(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dialog || now.Sub(incoming.TimeOf(r.i.ID)) > interactionEnd
}

// tell says something to one person alone: through what they did, where that is
// not too long ago, else in their own channel with nize.
func (l *live) tell(ctx context.Context, p people.Person, r *response, text string, buttons ...view.Component) error {
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
