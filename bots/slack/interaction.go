package slack

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	slackgo "github.com/slack-go/slack"

	"nize/bots/phrases"
	"nize/bots/queue"
	"nize/bots/slack/incoming"
	"nize/bots/slack/people"
	"nize/bots/slack/view"
	"nize/bots/slack/wire"
)

// Presses, choices and dialogs are dispatched to registered handlers. An action_id is a
// name, or a name, a colon and more; a dialog's callback_id has the same form. Before a
// handler is called, the person's membership is looked up afresh.

// pressFunc handles a press.
type pressFunc = func(ctx context.Context, p people.Person, i incoming.Interaction, a *incoming.Action) error

// onPress handles a button or a choice in a message, a dialog or the Home.
type onPress struct {
	// kept presses are stored before they are acknowledged, so they are not lost. The
	// others open dialogs; their trigger would not survive a crash anyway.
	kept bool
	do   pressFunc
}

// onSubmit handles a submitted dialog.
type onSubmit struct {
	// check returns the mistakes by block_id. It has no side effects and returns quickly.
	check func(ctx context.Context, i incoming.Interaction) map[string]string
	do    func(ctx context.Context, p people.Person, i incoming.Interaction) error
	// now replaces both for a dialog that contains a secret: it runs while Slack waits for
	// the acknowledgement, and the dialog is not stored. It returns the mistakes by
	// block_id, or the work left to do afterwards.
	now func(ctx context.Context, i incoming.Interaction) (wrong map[string]string, after func(context.Context) error)
}

// onShortcut handles a message shortcut; its trigger expires after three seconds.
type onShortcut func(ctx context.Context, p people.Person, i incoming.Interaction) error

// handlers are the registered handlers.
type handlers struct {
	presses   map[string]onPress
	submits   map[string]onSubmit
	shortcuts map[string]onShortcut
}

func headOf(id string) string {
	name, _, _ := strings.Cut(id, ":")
	return name
}

// acceptInteraction stores a press or a dialog, or answers it at once.
func (l *live) acceptInteraction(ctx context.Context, payload json.RawMessage, done func(any, bool)) error {
	i, err := incoming.DecodeInteraction(payload)
	if err != nil {
		return err
	}
	v := l.handlers
	switch i.Type {
	case "block_actions":
		kept, any := false, false
		for _, a := range i.Actions() {
			p, ok := v.presses[headOf(a.ActionID)]
			any, kept = any || ok, kept || ok && p.kept
		}
		switch {
		case !any:
			done(nil, true)
		case kept:
			key := "slack:press:" + i.User.ID + ":" + i.Channel.ID + ":" + i.Message.Timestamp + ":" + i.View.ID
			for _, a := range i.Actions() {
				key += ":" + a.ActionTs + a.ActionID
			}
			l.storeAndWork(ctx, keptPress, payload, []string{bounded(key)}, done)
		default:
			done(nil, true)
			l.intake.Soon(ctx, "pressing", func(ctx context.Context) error { return l.tellTooLate(ctx, i, l.press(ctx, i, "")) })
		}
	case "view_submission":
		s, ok := v.submits[headOf(i.View.CallbackID)]
		if !ok {
			done(nil, true)
			return nil
		}
		if s.now != nil {
			l.intake.Soon(ctx, "taking a secret", func(ctx context.Context) error {
				defer done(nil, true) // even if it panics
				wrong, after := s.now(ctx, i)
				if len(wrong) > 0 {
					done(showMistakes(wrong), true)
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
		if s, ok := v.shortcuts[headOf(i.CallbackID)]; ok {
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

// checkWait limits the check of a dialog before it is stored: Slack waits three seconds,
// and mistakes can be reported later too.
const checkWait = 1500 * time.Millisecond

// acceptSubmit stores a submitted dialog, or returns its mistakes. The check may have to
// ask Slack about the person, so it runs in its own goroutine.
func (l *live) acceptSubmit(ctx context.Context, s onSubmit, i incoming.Interaction, payload json.RawMessage, done func(any, bool)) {
	key := bounded("slack:view:" + i.User.ID + ":" + i.View.ID + ":" + i.View.Hash)
	if i.View.CallbackID == aboutMessage {
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
		case err != nil: // it may contain a key
			done(nil, false)
			return err
		case len(wrong) > 0:
			done(showMistakes(wrong), true)
			return nil
		}
		l.storeAndWork(ctx, keptSubmit, payload, []string{key}, done)
		return nil
	})
}

// tellTooLate tells a person that their dialog could not be opened in time.
func (l *live) tellTooLate(ctx context.Context, i incoming.Interaction, err error) error {
	if wire.Code(err) != "expired_trigger_id" {
		return err
	}
	p, err := l.people.LookUp(ctx, i.User.ID, people.Recent)
	if err != nil {
		return err
	}
	return l.posts.Tell(ctx, p, i.Channel.ID, i.Message.ThreadTimestamp, p.Words().Say(phrases.DialogLate))
}

// maxMistake is the maximum length of a mistake, in characters: those of a dialog with as
// many fields as Slack allows must fit into one acknowledgement.
const maxMistake = 150

// showMistakes returns the response that shows mistakes beside the fields of a dialog.
func showMistakes(wrong map[string]string) *slackgo.ViewSubmissionResponse {
	for block, text := range wrong {
		wrong[block] = view.Clip(text, maxMistake)
	}
	return slackgo.NewErrorsViewSubmissionResponse(wrong)
}

// bounded turns a value from Slack into a key that the store accepts.
func bounded(key string) string {
	if incoming.WordForm.MatchString(key) {
		return key
	}
	return "slack:sum:" + view.Digest([]byte(key))
}

// presser returns the person who pressed, looked up afresh. It returns false if they have
// no access, and tells them so.
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
	return p, false, l.access.tellNoAccess(ctx, p, i.Channel.ID, i.Message.ThreadTimestamp)
}

// press passes a press to its handler.
func (l *live) press(ctx context.Context, i incoming.Interaction, act string) error {
	p, ok, err := l.presser(ctx, i, act)
	if err != nil {
		return err
	}
	if !ok {
		l.cards.noteRefused(ctx, p, i)
		return nil
	}
	for _, a := range i.Actions() {
		if h, ok := l.handlers.presses[headOf(a.ActionID)]; ok {
			if err := h.do(ctx, p, i, a); err != nil {
				return err
			}
		}
	}
	return nil
}

// submit passes a dialog to its handler.
func (l *live) submit(ctx context.Context, i incoming.Interaction, act string) error {
	s, ok := l.handlers.submits[headOf(i.View.CallbackID)]
	if !ok {
		return nil
	}
	p, ok, err := l.presser(ctx, i, act)
	if err != nil || !ok {
		return err
	}
	return s.do(ctx, p, i)
}
