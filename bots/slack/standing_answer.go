package slack

import (
	"context"
	"errors"

	"nize/bots"
	"nize/bots/phrases"
	"nize/bots/slack/incoming"
	"nize/bots/slack/people"
	"nize/bots/slack/view"
	"nize/store"
)

// Standing answers: a dialog for "always allow" and "deny always" asks for whom, for which
// arguments and for how long they hold. One press answers the call and stores the standing
// answer.

// openAlways opens the dialog of a standing answer.
func (c *cardPresses) openAlways(ctx context.Context, p people.Person, i incoming.Interaction, a *incoming.Action) error {
	press, _ := bots.ReadPress(a.Value)
	card, err := c.cardOf(ctx, i, a.Value)
	if errors.Is(err, store.ErrNotFound) { // forged: the gateway refuses it and records that
		_, err = c.Decide(ctx, p.Caller(), press, shownAt(i), nil)
		return c.posts.TellError(ctx, p, i.Channel.ID, i.Message.ThreadTimestamp, err)
	}
	if err != nil {
		return err
	}
	s := view.Standing{Call: card.Call, Head: press.Head, Deny: press.Verb == bots.VerbNever, Channel: i.Channel.ID, Thread: i.Message.ThreadTimestamp}
	_, err = c.wire.OpenView(ctx, i.TriggerID, view.AlwaysModal(card, s, p.Caller().IsAdmin(), p.Words()))
	return err
}

// checkAlways returns the mistakes in a dialog before it is closed.
func (c *cardPresses) checkAlways(ctx context.Context, i incoming.Interaction) map[string]string {
	w := phrases.For("")
	if p, err := c.people.LookUp(ctx, i.User.ID, people.Recent); err == nil {
		w = p.Words()
	}
	_, _, wrong, err := view.AnsweredAlways(i, c.now(), w)
	if err != nil {
		return nil // reported when it is processed
	}
	return wrong
}

// submitAlways answers the call and stores the standing answer.
func (c *cardPresses) submitAlways(ctx context.Context, p people.Person, i incoming.Interaction) error {
	s, d, wrong, err := view.AnsweredAlways(i, c.now(), p.Words())
	if err == nil && len(wrong) > 0 {
		err = store.Errorf("%w dialog", store.ErrInvalid)
	}
	if err != nil {
		return c.posts.TellError(ctx, p, s.Channel, s.Thread, err)
	}
	call, err := c.Calls.GetCall(ctx, s.Call)
	if err != nil {
		return c.posts.TellError(ctx, p, s.Channel, s.Thread, store.ErrNotFound)
	}
	if d.Digest = call.Digest; !(bots.Press{Head: s.Head}).Shows(call.Digest) {
		d.Digest = bots.NotShown
	}
	card, err := c.Handler.Press(ctx, p.Caller(), s.Call, d)
	if errors.Is(err, store.ErrDecided) || errors.Is(err, store.ErrExpired) { // the card doesn't show that nothing was stored
		return c.posts.TellError(ctx, p, s.Channel, s.Thread, err)
	}
	if err == nil {
		return c.posts.Tell(ctx, p, s.Channel, s.Thread, p.Words().Say(phrases.AlwaysKept, bots.KeptWords(card.Tool, card.Asked, d, bots.Reader{Locale: p.Locale, Zone: bots.Zone(p.Zone), Now: c.now()})))
	}
	return c.tellPressFailed(ctx, p, store.Address{Channel: s.Channel, Thread: s.Thread}, bots.Pressed{Card: card, Seen: card.Call == s.Call}, err)
}
