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

// Pasted keys are masked before Slack's payload is stored, and the author is told in
// private when it is processed. In dialogs whose words are used literally (the arguments of
// a call, a pattern, a setting), a masked key would be useless: the field reports that it
// is refused, and nothing is stored.

// findKeys returns a message for each field of a dialog that contains a key. A key that the
// edited call already contains is allowed: it was stored and shown.
func (c *cardPresses) findKeys(ctx context.Context, i incoming.Interaction) map[string]string {
	var wrong map[string]string
	known := ""
	for block, fields := range i.View.State.Values {
		for _, f := range fields {
			if !store.LooksSecret(incoming.Typed(f)) {
				continue
			}
			if known == "" {
				known = c.shownArgs(ctx, i)
			}
			if !store.AddsSecret(incoming.Typed(f), known) {
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

// shownArgs returns the arguments of the call that a dialog edits, in all forms in which
// the dialog shows them; "" for other dialogs, and if the call can't be read.
func (c *cardPresses) shownArgs(ctx context.Context, i incoming.Interaction) string {
	e, ok := view.ReadEditing(i)
	if i.View.CallbackID != view.EditView || !ok {
		return ""
	}
	call, err := c.Calls.GetCall(ctx, e.Call)
	if err != nil {
		return ""
	}
	return bots.ShownArgs(call.Args)
}
