package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
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

// cardPresses do what the buttons and dialogs of cards are for.
type cardPresses struct {
	approver bots.Approver
	calls    bots.Calls
	handler  bots.Handler
	store    places
	people   *people.Directory
	posts    *posting.Poster
	wire     *wire.Client
	log      *slog.Logger
	now      func() time.Time
	schema   func(ctx context.Context, tool string) (json.RawMessage, error) // see [Options]
	fits     func(tool string, args json.RawMessage) error
}

// places are where cards stand.
type places interface {
	GetPlace(ctx context.Context, owner, name string) (store.Address, error)
	ListPlaces(ctx context.Context, owner string) (map[string]store.Address, error)
}

// decisions are what the buttons mean, but for what a dialog asks.
var decisions = map[string]store.Decision{
	view.VerbRun: {Verb: store.Approve}, view.VerbCancel: {Verb: store.Deny},
	view.VerbAlways: {Verb: store.Approve, Always: true}, view.VerbNever: {Verb: store.Deny, Always: true},
	view.VerbRunAll: {Verb: store.RunAll}, view.VerbRetry: {Verb: store.Retry}, view.VerbAgain: {Verb: store.Again},
}

// noteRefused leaves a press on a card in the audit whose author has no access
// to nize: the gateway refuses anyone who is no user, and notes so.
func (c *cardPresses) noteRefused(ctx context.Context, p people.Person, i incoming.Interaction) {
	for _, a := range i.Actions {
		verb, id, _, ok := view.ReadPress(a.Value)
		d, known := decisions[verb]
		if !ok || !known || p.ID == "" {
			continue
		}
		by := store.Caller{User: p.Identity(), Name: p.Name, Role: store.Member, Guest: true, Surface: store.OnSlack, Identity: p.Identity()}
		if _, err := c.handler.Press(ctx, by, id, d); err == nil {
			c.log.Error("a press without access was taken", "call", id, "by", by.Identity)
		}
	}
}

// decide is a press on one of the buttons that need no dialog.
func (c *cardPresses) decide(ctx context.Context, p people.Person, i incoming.Interaction, a incoming.Action) error {
	verb, id, head, ok := view.ReadPress(a.Value)
	d, known := decisions[verb]
	if !ok || !known {
		return fmt.Errorf("%w press", store.ErrInvalid)
	}
	call, err := c.calls.GetCall(ctx, id)
	if err != nil {
		return c.posts.TellError(ctx, p, i.Channel.ID, i.Message.Thread, store.ErrNotFound)
	}
	here, err := c.isCardHere(ctx, call, i)
	if err != nil {
		return err
	}
	d.Digest = call.Digest
	if !here || !strings.HasPrefix(call.Digest, head) || head == "" {
		d.Digest = notShown
	}
	if verb == view.VerbCancel && call.By == p.User.ID {
		d.Verb = store.Cancel
	}
	card, err := c.handler.Press(ctx, p.Caller(), id, d)
	return c.tellPressFailed(ctx, p, press{channel: i.Channel.ID, thread: i.Message.Thread, seen: here && card.Call == id, card: card}, err)
}

// notShown is no digest: with it the gateway refuses what was pressed where it
// is not shown, and notes so.
const notShown = "not shown"

// press is what was pressed, and where.
type press struct {
	channel, thread string
	seen            bool // card is the card that they see there
	card            store.Card
}

// tellPressFailed tells in private why a press did nothing.
func (c *cardPresses) tellPressFailed(ctx context.Context, p people.Person, on press, err error) error {
	if errors.Is(err, store.ErrNotFound) && on.seen { // they see it, though it is not theirs
		text := p.Words().Say(phrases.CardNotYou) + "\n" + bots.WhoMay(on.card, p.Locale)
		return c.posts.Tell(ctx, p, on.channel, on.thread, strings.TrimSpace(text))
	}
	if errors.Is(err, store.ErrDecided) || errors.Is(err, store.ErrExpired) || err == nil {
		// The card shows it; a second press of the same person says no more.
		return nil
	}
	if wire.Lasting(err) || errors.Is(err, store.ErrConflict) {
		return c.posts.TellError(ctx, p, on.channel, on.thread, err)
	}
	return err
}

// isCardHere says whether the message that was pressed is a card of the call.
// Slack sends with a press what the message of that button holds, so any other
// was made up, by somebody who may not be allowed to see the call. One whose
// place is not known yet is about to be noted.
func (c *cardPresses) isCardHere(ctx context.Context, call store.Call, i incoming.Interaction) (bool, error) {
	places, err := c.store.ListPlaces(ctx, call.ID) // its copies
	if err != nil {
		return false, fmt.Errorf("reading where copies of a card stand: %w", err)
	}
	list := slices.Collect(maps.Values(places))
	if call.Thread != "" {
		at, err := c.store.GetPlace(ctx, call.Thread, call.ID)
		if err == nil {
			list = append(list, at)
		} else if !errors.Is(err, store.ErrNotFound) {
			return false, fmt.Errorf("reading where a card stands: %w", err)
		}
	}
	return slices.ContainsFunc(list, func(at store.Address) bool {
		return at.Surface == store.OnSlack && at.Channel == i.Channel.ID && (at.Message == i.Message.TS || at.Message == "")
	}), nil
}

// cardOf reads a card for a dialog, for those who see its message.
func (c *cardPresses) cardOf(ctx context.Context, i incoming.Interaction, value string) (store.Card, error) {
	_, id, _, ok := view.ReadPress(value)
	if !ok {
		return store.Card{}, fmt.Errorf("%w press", store.ErrInvalid)
	}
	call, err := c.calls.GetCall(ctx, id)
	if err != nil {
		return store.Card{}, err
	}
	if here, err := c.isCardHere(ctx, call, i); err != nil || !here {
		return store.Card{}, errors.Join(err, fmt.Errorf("a card of call %s here: %w", id, store.ErrNotFound))
	}
	return c.approver.Card(ctx, id)
}

// openAll shows the whole card.
func (c *cardPresses) openAll(ctx context.Context, p people.Person, i incoming.Interaction, a incoming.Action) error {
	card, err := c.cardOf(ctx, i, a.Value)
	if err != nil {
		return err
	}
	return c.openPage(ctx, p, i, view.Page{Kind: "all", Call: card.Call})
}

// openResult shows what a call returned to who made it, and to admins where it
// is not private.
func (c *cardPresses) openResult(ctx context.Context, p people.Person, i incoming.Interaction, a incoming.Action) error {
	call, ok := strings.CutPrefix(a.Value, "result ")
	if !ok || !store.ValidID(call) {
		return fmt.Errorf("%w press", store.ErrInvalid)
	}
	return c.openPage(ctx, p, i, view.Page{Kind: "result", Call: call})
}

func (c *cardPresses) openPage(ctx context.Context, p people.Person, i incoming.Interaction, at view.Page) error {
	view, err := c.pageView(ctx, p, at)
	if err != nil {
		return err
	}
	_, err = c.wire.OpenView(ctx, i.Trigger, view)
	return err
}

// turnPage shows the next page in the same dialog.
func (c *cardPresses) turnPage(ctx context.Context, p people.Person, i incoming.Interaction, a incoming.Action) error {
	var at view.Page
	if json.Unmarshal([]byte(i.View.Metadata), &at) != nil || !store.ValidID(at.Call) || at.N < 0 {
		return store.Errorf("%w dialog", store.ErrInvalid)
	}
	at.N++
	view, err := c.pageView(ctx, p, at)
	if err != nil {
		return err
	}
	return c.wire.UpdateView(ctx, i.View.ID, i.View.Hash, view)
}

// pageView is one page of a long text. After the last comes the first.
func (c *cardPresses) pageView(ctx context.Context, p people.Person, at view.Page) (slackgo.ModalViewRequest, error) {
	w := p.Words()
	title, text := w.Say(phrases.CardAllTitle), ""
	switch at.Kind {
	case "result":
		title = w.Say(phrases.ResultTitle)
		text = c.resultText(ctx, p, at.Call)
	default:
		card, err := c.approver.Card(ctx, at.Call)
		if err != nil {
			return slackgo.ModalViewRequest{}, err
		}
		text = strings.Join(bots.CardLines(card, bots.Reader{Locale: p.Locale, Zone: view.Zone(p.Zone), Now: c.now()}), "\n")
	}
	if text == "" {
		text = w.Say(phrases.ResultNone)
	}
	return view.PageModal(title, text, at, w), nil
}

// resultText is what a call returned, made harmless; "" for those who may not
// see it.
func (c *cardPresses) resultText(ctx context.Context, p people.Person, id string) string {
	call, err := c.calls.GetCall(ctx, id)
	if err != nil || call.Result == nil || call.By != p.User.ID && (call.Private || !p.Caller().IsAdmin()) {
		return ""
	}
	return bots.Plain(call.Result.Whole())
}
