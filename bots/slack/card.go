package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	slackgo "github.com/slack-go/slack"

	"nize/bots"
	"nize/bots/phrases"
	"nize/bots/slack/incoming"
	"nize/bots/slack/people"
	"nize/bots/slack/posting"
	"nize/bots/slack/view"
	"nize/bots/slack/wire"
	"nize/store"
)

// cardPresses handles the buttons and dialogs of cards.
type cardPresses struct {
	*bots.Presses
	people *people.Directory
	posts  *posting.Poster
	wire   *wire.Client
	log    *slog.Logger
	now    func() time.Time
	schema func(ctx context.Context, tool string) (json.RawMessage, error) // see [Options]
	fits   func(c store.Call, values json.RawMessage) error
}

// noteRefused records in the audit trail a press by a person without access to nize.
func (c *cardPresses) noteRefused(ctx context.Context, p people.Person, i incoming.Interaction) {
	by := store.Caller{Name: p.Name, Surface: store.OnSlack, Identity: p.Identity()}
	for _, a := range i.Actions() {
		if press, ok := bots.ReadPress(a.Value); ok && p.ID != "" {
			c.Refused(ctx, by, press)
		}
	}
}

// shownAt returns the address of the pressed message.
func shownAt(i incoming.Interaction) store.Address {
	return store.Address{Surface: store.OnSlack, Channel: i.Channel.ID, Thread: i.Message.ThreadTimestamp, Message: i.Message.Timestamp}
}

// decide handles the buttons that need no dialog.
func (c *cardPresses) decide(ctx context.Context, p people.Person, i incoming.Interaction, a *incoming.Action) error {
	press, ok := bots.ReadPress(a.Value)
	if !ok {
		return fmt.Errorf("%w press", store.ErrInvalid)
	}
	on, err := c.Decide(ctx, p.Caller(), press, shownAt(i), nil)
	return c.tellPressFailed(ctx, p, shownAt(i), on, err)
}

// tellPressFailed tells the person in private why a press had no effect. If the card shows
// the reason, a second press by the same person gets no reply.
func (c *cardPresses) tellPressFailed(ctx context.Context, p people.Person, at store.Address, on bots.Pressed, err error) error {
	if text := on.Told(err, p.Words(), p.Locale); text != "" {
		return c.posts.Tell(ctx, p, at.Channel, at.Thread, text)
	}
	if errors.Is(err, store.ErrDecided) || errors.Is(err, store.ErrExpired) {
		return nil
	}
	return err
}

// cardOf returns a card for a dialog, if the pressed message is one of the call's cards.
func (c *cardPresses) cardOf(ctx context.Context, i incoming.Interaction, value string) (store.Card, error) {
	press, ok := bots.ReadPress(value)
	if !ok {
		return store.Card{}, fmt.Errorf("%w press", store.ErrInvalid)
	}
	return c.Card(ctx, press, shownAt(i))
}

// choose handles an entry of a card's menu; each opens a dialog.
func (c *cardPresses) choose(ctx context.Context, p people.Person, i incoming.Interaction, a *incoming.Action) error {
	a.Value = a.SelectedOption.Value
	press, ok := bots.ReadPress(a.Value)
	if !ok {
		return fmt.Errorf("%w press", store.ErrInvalid)
	}
	switch press.Verb {
	case bots.VerbEdit:
		return c.openEdit(ctx, p, i, a)
	case bots.VerbAlways, bots.VerbNever:
		return c.openAlways(ctx, p, i, a)
	case bots.VerbReason:
		return c.openReason(ctx, p, i, a)
	case bots.VerbShow:
		return c.openAll(ctx, p, i, a)
	}
	return fmt.Errorf("%w press", store.ErrInvalid)
}

// openReason opens the dialog that asks for the reason of a refusal.
func (c *cardPresses) openReason(ctx context.Context, p people.Person, i incoming.Interaction, a *incoming.Action) error {
	card, err := c.cardOf(ctx, i, a.Value)
	if err != nil {
		return err
	}
	press, _ := bots.ReadPress(a.Value)
	s := view.Standing{Call: card.Call, Head: press.Head, Channel: i.Channel.ID, Thread: i.Message.ThreadTimestamp}
	_, err = c.wire.OpenView(ctx, i.TriggerID, view.ReasonModal(card, s, p.Words()))
	return err
}

// submitReason declines a call with a reason.
func (c *cardPresses) submitReason(ctx context.Context, p people.Person, i incoming.Interaction) error {
	s, reason, ok := view.ReadReason(i)
	if !ok {
		return store.Errorf("%w dialog", store.ErrInvalid)
	}
	call, err := c.Calls.GetCall(ctx, s.Call)
	if err != nil {
		return c.posts.TellError(ctx, p, s.Channel, s.Thread, store.ErrNotFound)
	}
	d := store.Decision{Verb: store.Deny, Digest: call.Digest, Reason: store.Plain(reason)}
	if call.By == p.Caller().User {
		d.Verb = store.Cancel
	}
	if !(bots.Press{Head: s.Head}).Shows(call.Digest) {
		d.Digest = bots.NotShown
	}
	card, err := c.Handler.Press(ctx, p.Caller(), s.Call, d)
	return c.tellPressFailed(ctx, p, store.Address{Channel: s.Channel, Thread: s.Thread}, bots.Pressed{Card: card, Seen: card.Call == s.Call}, err)
}

// openAll shows the complete card.
func (c *cardPresses) openAll(ctx context.Context, p people.Person, i incoming.Interaction, a *incoming.Action) error {
	card, err := c.cardOf(ctx, i, a.Value)
	if err != nil {
		return err
	}
	return c.openPage(ctx, p, i, view.Page{Kind: "all", Call: card.Call})
}

// openResult shows a call's result to its requester, and to admins if it is not private.
func (c *cardPresses) openResult(ctx context.Context, p people.Person, i incoming.Interaction, a *incoming.Action) error {
	call, ok := strings.CutPrefix(a.Value, "result ")
	if !ok || !store.ValidID(call) {
		return fmt.Errorf("%w press", store.ErrInvalid)
	}
	return c.openPage(ctx, p, i, view.Page{Kind: "result", Call: call})
}

func (c *cardPresses) openPage(ctx context.Context, p people.Person, i incoming.Interaction, at view.Page) error {
	view, images, err := c.pageView(ctx, p, at)
	if err != nil {
		return err
	}
	opened, err := c.wire.OpenView(ctx, i.TriggerID, view)
	if err != nil || images.Empty() {
		return err
	}
	// The trigger expires after three seconds, so files are uploaded afterwards.
	return c.updatePage(ctx, p, opened.View.ID, opened.View.Hash, view, images)
}

// updatePage replaces a dialog and adds images below its text. It omits the images if Slack
// rejects them, and does nothing if the person has turned the page or closed the dialog.
func (c *cardPresses) updatePage(ctx context.Context, p people.Person, id, hash string, dialog slackgo.ModalViewRequest, images bots.Images) error {
	text := dialog.Blocks.BlockSet
	blocks, err := c.posts.Images.Blocks(ctx, images, p.Words(), "")
	if err == nil {
		dialog.Blocks.BlockSet = append(slices.Clip(text), blocks...)
		err = c.posts.WithPicture(ctx, func() error { return c.wire.UpdateView(ctx, id, hash, dialog) })
	}
	switch wire.Code(err) {
	case "":
		return err
	case "hash_conflict", "not_found":
		return nil
	}
	c.log.Warn("Slack does not take the images of a call", "call", images.Call, "err", err)
	dialog.Blocks.BlockSet = append(slices.Clip(text), slackgo.NewSectionBlock(view.PlainText(p.Words().Say(phrases.CardNoFile)), nil, nil))
	return c.wire.UpdateView(ctx, id, hash, dialog)
}

// turnPage shows the next page in the same dialog.
func (c *cardPresses) turnPage(ctx context.Context, p people.Person, i incoming.Interaction, a *incoming.Action) error {
	var at view.Page
	if json.Unmarshal([]byte(i.View.PrivateMetadata), &at) != nil || !store.ValidID(at.Call) || at.N < 0 {
		return store.Errorf("%w dialog", store.ErrInvalid)
	}
	at.N++
	view, images, err := c.pageView(ctx, p, at)
	if err != nil {
		return err
	}
	return c.updatePage(ctx, p, i.View.ID, i.View.Hash, view, images)
}

// pageView returns one page of a long text with its images. The first page follows the
// last.
func (c *cardPresses) pageView(ctx context.Context, p people.Person, at view.Page) (slackgo.ModalViewRequest, bots.Images, error) {
	w := p.Words()
	title, text, images := w.Say(phrases.CardAllTitle), "", bots.Images{}
	switch at.Kind {
	case "result":
		title = w.Say(phrases.ResultTitle)
		text, images = c.Result(ctx, p.Caller(), at.Call)
	default:
		card, err := c.Approver.Card(ctx, at.Call)
		if err != nil {
			return slackgo.ModalViewRequest{}, images, err
		}
		text = strings.Join(bots.CardLines(card, bots.Reader{Locale: p.Locale, Zone: bots.Zone(p.Zone), Now: c.now()}), "\n")
	}
	if text == "" {
		text = w.Say(phrases.ResultNone)
	}
	return view.PageModal(title, text, at, w), images, nil
}
