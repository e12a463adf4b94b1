package slack

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"nize/bots/phrases"
	"nize/bots/queue"
	"nize/bots/slack/incoming"
	"nize/bots/slack/people"
	"nize/bots/slack/view"
	"nize/bots/slack/wire"
)

// What people press, choose and fill in is given to anyone who registered for it.
// An action_id is a name, or a name, a colon and more; a dialog goes by its
// callback_id in the same way. The person was looked up, with membership of
// now, before anything of this is called.

// pressFunc does what was pressed.
type pressFunc = func(ctx context.Context, p people.Person, i incoming.Interaction, a incoming.Action) error

// onPress is a button or a choice in a message, a dialog or the Home.
type onPress struct {
	// kept presses are stored before they are acknowledged and are not lost;
	// the others are for dialogs, whose trigger does not outlive a crash anyway.
	kept bool
	do   pressFunc
}

// onSubmit is a dialog that was sent in.
type onSubmit struct {
	// check says what is wrong, by block_id; it only looks, and quickly.
	check func(ctx context.Context, i incoming.Interaction) map[string]string
	do    func(ctx context.Context, p people.Person, i incoming.Interaction) error
	// now, in place of both, takes a dialog that holds a secret while Slack
	// waits for the acknowledgement: it is not kept. It says what is wrong by
	// block_id, or what is left to do afterwards.
	now func(ctx context.Context, i incoming.Interaction) (wrong map[string]string, after func(context.Context) error)
}

// onShortcut is a message shortcut; its trigger lives for three seconds.
type onShortcut func(ctx context.Context, p people.Person, i incoming.Interaction) error

// handlers are who registered for what.
type handlers struct {
	presses   map[string]onPress
	submits   map[string]onSubmit
	shortcuts map[string]onShortcut
}

func headOf(id string) string {
	name, _, _ := strings.Cut(id, ":")
	return name
}

// acceptInteraction keeps a press or a dialog, or answers it at once.
func (l *live) acceptInteraction(ctx context.Context, payload json.RawMessage, done func(any, bool)) error {
	i, err := incoming.DecodeInteraction(payload)
	if err != nil {
		return err
	}
	v := l.handlers
	switch i.Type {
	case "block_actions":
		kept, any := false, false
		for _, a := range i.Actions {
			p, ok := v.presses[headOf(a.ID)]
			any, kept = any || ok, kept || ok && p.kept
		}
		switch {
		case !any:
			done(nil, true)
		case kept:
			key := "slack:press:" + i.User.ID + ":" + i.Channel.ID + ":" + i.Message.TS + ":" + i.View.ID
			for _, a := range i.Actions {
				key += ":" + a.TS + a.ID
			}
			l.storeAndWork(ctx, keptPress, payload, []string{bounded(key)}, done)
		default:
			done(nil, true)
			l.intake.Soon(ctx, "pressing", func(ctx context.Context) error { return l.tellTooLate(ctx, i, l.press(ctx, i, "")) })
		}
	case "view_submission":
		s, ok := v.submits[headOf(i.View.Callback)]
		if !ok {
			done(nil, true)
			return nil
		}
		if s.now != nil {
			l.intake.Soon(ctx, "taking a secret", func(ctx context.Context) error {
				defer done(nil, true) // also where it panics
				wrong, after := s.now(ctx, i)
				if len(wrong) > 0 {
					done(submitErrors{"errors", wrong}, true)
					return nil
				}
				done(nil, true)
				if after == nil {
					return nil
				}
				return after(ctx)
			})
			return nil
		}
		l.acceptSubmit(ctx, s, i, payload, done)
	case "message_action", "shortcut":
		done(nil, true)
		if s, ok := v.shortcuts[headOf(i.Callback)]; ok {
			l.intake.Soon(ctx, "a shortcut", func(ctx context.Context) error {
				p, ok, err := l.presser(ctx, i, "")
				if err != nil || !ok {
					return err
				}
				return l.tellTooLate(ctx, i, s(ctx, p, i))
			})
		}
	default:
		done(nil, true)
	}
	return nil
}

// checkWait bounds looking at a dialog before it is kept: Slack waits for three
// seconds, and what is wrong can be said later, too.
const checkWait = 1500 * time.Millisecond

// acceptSubmit keeps a dialog that was sent in, or says what is wrong with it. To
// look at it may mean to ask Slack who sent it, which nothing else waits for.
func (l *live) acceptSubmit(ctx context.Context, s onSubmit, i incoming.Interaction, payload json.RawMessage, done func(any, bool)) {
	key := bounded("slack:view:" + i.User.ID + ":" + i.View.ID + ":" + i.View.Hash)
	if i.View.Callback == aboutMessage {
		l.storeAndWork(ctx, keptSubmit, incoming.Mask(payload, questionIn(i), l.log), []string{key}, done)
		return
	}
	l.intake.Soon(ctx, "looking at a dialog", func(ctx context.Context) error {
		var wrong map[string]string
		err := queue.Guard(func() error {
			ctx, cancel := context.WithTimeout(ctx, checkWait)
			defer cancel()
			if wrong = l.cards.findKeys(ctx, i); len(wrong) == 0 && s.check != nil {
				wrong = s.check(ctx, i)
			}
			return nil
		})
		switch {
		case err != nil: // a key may be in it
			done(nil, false)
			return err
		case len(wrong) > 0:
			done(submitErrors{"errors", wrong}, true)
			return nil
		}
		l.storeAndWork(ctx, keptSubmit, payload, []string{key}, done)
		return nil
	})
}

// tellTooLate tells who pressed that their dialog could not be opened in time.
func (l *live) tellTooLate(ctx context.Context, i incoming.Interaction, err error) error {
	if wire.Code(err) != "expired_trigger_id" {
		return err
	}
	p, err := l.people.LookUp(ctx, i.User.ID, people.Recent)
	if err != nil {
		return err
	}
	return l.posts.Tell(ctx, p, i.Channel.ID, i.Message.Thread, p.Words().Say(phrases.DialogLate))
}

// submitErrors shows what is wrong beside the fields of a dialog.
type submitErrors struct {
	Action string            `json:"response_action"`
	Errors map[string]string `json:"errors"`
}

// bounded makes of what Slack sent a key that the store takes.
func bounded(key string) string {
	if incoming.WordForm.MatchString(key) {
		return key
	}
	return "slack:sum:" + view.Digest([]byte(key))
}

// presser is who pressed, looked at again; false if they have no access, which
// they were told.
func (l *live) presser(ctx context.Context, i incoming.Interaction, act string) (people.Person, bool, error) {
	if !pressedHere(i, l.account.Team) {
		return people.Person{ID: i.User.ID, Team: i.Team.ID}, false, nil
	}
	p, err := l.people.Who(ctx, i.User.ID, people.Fresh)
	if err != nil {
		return p, false, err
	}
	p.Act = act
	if p.User.ID != "" {
		l.access.welcome(ctx, p, "", "")
		return p, true, nil
	}
	return p, false, l.access.tellNoAccess(ctx, p, i.Channel.ID, i.Message.Thread)
}

// press gives what was pressed to who registered for it.
func (l *live) press(ctx context.Context, i incoming.Interaction, act string) error {
	p, ok, err := l.presser(ctx, i, act)
	if err != nil {
		return err
	}
	if !ok {
		l.cards.noteRefused(ctx, p, i)
		return nil
	}
	for _, a := range i.Actions {
		if h, ok := l.handlers.presses[headOf(a.ID)]; ok {
			if err := h.do(ctx, p, i, a); err != nil {
				return err
			}
		}
	}
	return nil
}

// submit gives a dialog to who registered for it.
func (l *live) submit(ctx context.Context, i incoming.Interaction, act string) error {
	s, ok := l.handlers.submits[headOf(i.View.Callback)]
	if !ok {
		return nil
	}
	p, ok, err := l.presser(ctx, i, act)
	if err != nil || !ok {
		return err
	}
	return s.do(ctx, p, i)
}
