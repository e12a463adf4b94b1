package slack

import (
	"context"

	"nize/bots"
	"nize/bots/phrases"
	"nize/bots/slack/incoming"
	"nize/bots/slack/people"
	"nize/bots/slack/view"
	"nize/store"
)

// Pasted keys are masked in what Slack sent before it is stored, and
// anyone who wrote one is told so, alone, when it is worked on. In a dialog whose
// words are done as they stand (the arguments of a call, a pattern, a setting)
// a key with dots in it would be of no use: the field says that it is refused,
// and nothing of it is stored.

// findKeys says at each field of a dialog that it holds a key, and what to do. What
// the call that a dialog edits holds already may stay: it was stored and shown.
func (c *cardPresses) findKeys(ctx context.Context, i incoming.Interaction) map[string]string {
	var wrong map[string]string
	known := ""
	for block, fields := range i.View.State.Values {
		for _, f := range fields {
			if !store.LooksSecret(f.Text()) {
				continue
			}
			if known == "" {
				known = c.shownArgs(ctx, i)
			}
			if !store.AddsSecret(f.Text(), known) {
				continue
			}
			if wrong == nil {
				wrong = map[string]string{}
			}
			w := phrases.For("")
			if p, err := c.people.LookUp(ctx, i.User.ID, people.Recent); err == nil {
				w = p.Words()
			}
			wrong[block] = w.Say(phrases.KeyRefused)
		}
	}
	return wrong
}

// shownArgs is what the call holds that a dialog edits, in every form in which the
// dialog shows it; "" for other dialogs, and where it can't be read.
func (c *cardPresses) shownArgs(ctx context.Context, i incoming.Interaction) string {
	e, ok := view.ReadEditing(i)
	if i.View.Callback != view.EditView || !ok {
		return ""
	}
	call, err := c.Calls.GetCall(ctx, e.Call)
	if err != nil {
		return ""
	}
	return bots.ShownArgs(call.Args)
}
