package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"nize/bots"
	"nize/bots/phrases"
	"nize/bots/slack/incoming"
	"nize/bots/slack/people"
	"nize/bots/slack/view"
	"nize/bots/slack/wire"
	"nize/store"
)

// Editing a call: a form if the tool's schema is flat, otherwise JSON. Arguments without a
// field in the form keep their bytes.

// formSchema returns the schema of a card's form.
func (c *cardPresses) formSchema(ctx context.Context, card store.Card) (json.RawMessage, error) {
	return bots.FormSchema(card, func(tool string) (json.RawMessage, error) {
		if c.schema == nil {
			return nil, nil
		}
		return c.schema(ctx, tool)
	})
}

// openEdit opens that dialog.
func (c *cardPresses) openEdit(ctx context.Context, p people.Person, i incoming.Interaction, a *incoming.Action) error {
	card, err := c.cardOf(ctx, i, a.Value)
	if err != nil {
		return err
	}
	press, _ := bots.ReadPress(a.Value)
	raw, err := c.formSchema(ctx, card)
	if err != nil {
		raw = nil // then the dialog edits JSON
	}
	e := view.Editing{Call: card.Call, Head: press.Head, Channel: i.Channel.ID, Thread: i.Message.ThreadTimestamp}
	_, err = c.wire.OpenView(ctx, i.TriggerID, view.EditModal(card, raw, e, p.Words()))
	return err
}

// edited reads a submitted dialog and returns the new arguments, or the mistakes by block.
func (c *cardPresses) edited(ctx context.Context, i incoming.Interaction, w phrases.Catalogue) (e view.Editing, args json.RawMessage, wrong map[string]string, err error) {
	e, ok := view.ReadEditing(i)
	if !ok {
		return e, nil, nil, store.Errorf("%w dialog", store.ErrInvalid)
	}
	card, err := c.Approver.Card(ctx, e.Call)
	if err != nil {
		return e, nil, nil, err
	}
	raw, err := c.formSchema(ctx, card)
	if err != nil {
		return e, nil, nil, err
	}
	args, wrong, err = e.Edited(i, card, raw, w)
	return e, args, wrong, err
}

// checkEdit returns the mistakes in a dialog before it is closed.
func (c *cardPresses) checkEdit(ctx context.Context, i incoming.Interaction) map[string]string {
	w := phrases.For("")
	if p, err := c.people.LookUp(ctx, i.User.ID, people.Recent); err == nil {
		w = p.Words()
	}
	e, args, wrong, err := c.edited(ctx, i, w)
	if err != nil {
		return nil // reported when it is processed
	}
	if len(wrong) == 0 && c.fits != nil {
		return c.misfit(ctx, e, i, args, w)
	}
	return wrong
}

// misfit returns why the tool doesn't accept the arguments, for the first field concerned.
func (c *cardPresses) misfit(ctx context.Context, e view.Editing, i incoming.Interaction, args json.RawMessage, w phrases.Catalogue) map[string]string {
	call, err := c.Calls.GetCall(ctx, e.Call)
	if err != nil {
		return nil // reported when it is processed
	}
	err = c.fits(call, args)
	if err == nil {
		return nil
	}
	return view.MisfitBeside(i, err, w)
}

// submitEdit replaces a call by the edited one.
func (c *cardPresses) submitEdit(ctx context.Context, p people.Person, i incoming.Interaction) error {
	e, args, wrong, err := c.edited(ctx, i, p.Words())
	if err == nil && len(wrong) > 0 {
		err = fmt.Errorf("%w arguments", store.ErrInvalid)
	}
	if err != nil {
		return c.posts.TellError(ctx, p, e.Channel, e.Thread, err)
	}
	call, err := c.Calls.GetCall(ctx, e.Call)
	if err != nil {
		return c.posts.TellError(ctx, p, e.Channel, e.Thread, store.ErrNotFound)
	}
	digest := call.Digest
	if e.Head == "" || !strings.HasPrefix(digest, e.Head) {
		digest = e.Head
	}
	_, err = c.Handler.Press(ctx, p.Caller(), e.Call, store.Decision{Verb: store.Edit, Digest: digest, Args: args})
	if err != nil && (wire.Lasting(err) || errors.Is(err, store.ErrConflict)) {
		return c.posts.TellError(ctx, p, e.Channel, e.Thread, err)
	}
	return err
}
