package bots

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"nize/bots/phrases"
	"nize/store"
)

// The buttons of a card and what pressing them does, on every platform.

// Verbs of a card's buttons.
const (
	VerbRun     = "run"
	VerbDecline = "cancel"
	VerbEdit    = "edit"
	VerbHour    = "hour"   // run, and don't ask for an hour
	VerbHere    = "here"   // run, and don't ask in this conversation
	VerbThese   = "these"  // run, and don't ask for these arguments
	VerbAlways  = "always" // run, and don't ask under the dialog's conditions
	VerbReason  = "reason" // decline, with a reason
	VerbNever   = "never"
	VerbShow    = "show"
	VerbRunAll  = "runall"
	VerbRetry   = "retry"
	VerbAgain   = "again"
	VerbDismiss = "dismiss" // give a question no answer
)

// CardButton is a button or a menu entry of a card.
type CardButton struct {
	Verb, Label string
	Strong      bool   // what is likely wanted
	Menu        bool   // it stands in the menu
	Preset      bool   // the dialog of VerbAlways can say the same
	URL         string // an address that the button opens as well; "" for none
}

// CardButtons returns the possible actions for a call in its current state: a few buttons
// and a menu with the rest.
func CardButtons(card store.Card, words phrases.Catalogue) (buttons []CardButton) {
	add := func(verb string, key phrases.Key, args ...any) {
		buttons = append(buttons, CardButton{Verb: verb, Label: words.Say(key, args...), Strong: verb == VerbRun})
	}
	menu := func(verb string, key phrases.Key) {
		buttons = append(buttons, CardButton{Verb: verb, Label: words.Say(key), Menu: true, Preset: slices.Contains([]string{VerbHour, VerbHere, VerbThese}, verb)})
	}
	if asks(card) {
		return questionButtons(card, words)
	}
	waits := card.State == store.Pending && !card.Approved
	if waits {
		add(VerbRun, phrases.ButtonRun)
		if card.Together > 0 {
			add(VerbRunAll, phrases.ButtonRunAll, strconv.Itoa(card.Together+1))
		}
		add(VerbDecline, phrases.ButtonDecline)
		menu(VerbEdit, phrases.ButtonEdit)
		if card.Always {
			menu(VerbHour, phrases.ButtonHour)
			if card.Here {
				menu(VerbHere, phrases.ButtonHere)
			}
			menu(VerbThese, phrases.ButtonThese)
			menu(VerbAlways, phrases.ButtonAlways)
		}
		menu(VerbReason, phrases.ButtonReason)
		menu(VerbNever, phrases.ButtonNever)
	}
	switch card.RepeatVerb {
	case store.Retry:
		add(VerbRetry, phrases.ButtonRetry)
	case store.Again:
		add(VerbAgain, phrases.ButtonAgain)
	}
	if waits {
		menu(VerbShow, phrases.ButtonDetails)
	} else {
		add(VerbShow, phrases.ButtonDetails)
	}
	return buttons
}

// digestChars is how much of the digest a button carries: if it doesn't match the call's
// digest, the press is refused.
const digestChars = 16

// Press is the payload of a button: a verb, the call's id, and the beginning of the digest
// shown on the card. No part of it is executed.
type Press struct{ Verb, Call, Head string }

// PressOf returns the payload of a card's button.
func PressOf(verb string, card store.Card) Press {
	return Press{verb, card.Call, card.Digest[:min(len(card.Digest), digestChars)]}
}

// String returns at most 64 bytes.
func (p Press) String() string { return p.Verb + " " + p.Call + " " + p.Head }

// ReadPress parses the payload of a button.
func ReadPress(value string) (p Press, ok bool) {
	parts := strings.Split(value, " ")
	if len(value) > 64 || len(parts) != 3 || !store.ValidID(parts[1]) {
		return p, false
	}
	return Press{parts[0], parts[1], parts[2]}, true
}

// Shows reports whether the pressed card has that digest.
func (p Press) Shows(digest string) bool { return p.Head != "" && strings.HasPrefix(digest, p.Head) }

// decisions maps the buttons to their decisions, without what a dialog adds.
var decisions = map[string]store.Decision{
	VerbRun: {Verb: store.Approve}, VerbDecline: {Verb: store.Deny}, VerbReason: {Verb: store.Deny},
	VerbHour: {Verb: store.Approve, Always: true}, VerbHere: {Verb: store.Approve, Always: true, For: store.ForConversation},
	VerbThese:  {Verb: store.Approve, Always: true, Exact: true},
	VerbAlways: {Verb: store.Approve, Always: true}, VerbNever: {Verb: store.Deny, Always: true},
	VerbRunAll: {Verb: store.RunAll}, VerbRetry: {Verb: store.Retry}, VerbAgain: {Verb: store.Again}, VerbDismiss: {Verb: store.Cancel},
}

// NotShown is not a valid digest: the gateway refuses a decision with it and records that
// the card was not shown there.
const NotShown = "not shown"

// Presses decides calls by the buttons of their cards.
type Presses struct {
	Handler  Handler
	Calls    Calls
	Approver Approver
	Places   interface {
		GetPlace(ctx context.Context, owner, name string) (store.Address, error)
		ListPlaces(ctx context.Context, owner string) (map[string]store.Address, error)
	}
	Log *slog.Logger
	Now func() time.Time
}

// Here reports whether the message at at is a card of the call. A platform sends a press
// together with the message of its button, so a press with another message is forged,
// possibly by a user who may not see the call. A card without a known message matches too:
// its place is about to be recorded.
func (ps *Presses) Here(ctx context.Context, call store.Call, at store.Address) (bool, error) {
	places, err := ps.Places.ListPlaces(ctx, call.ID) // the places of its copies
	if err != nil {
		return false, fmt.Errorf("reading where copies of a card stand: %w", err)
	}
	list := slices.Collect(maps.Values(places))
	if call.Thread != "" {
		own, err := ps.Places.GetPlace(ctx, call.Thread, call.ID)
		if err == nil {
			list = append(list, own)
		} else if !errors.Is(err, store.ErrNotFound) {
			return false, fmt.Errorf("reading where a card stands: %w", err)
		}
	}
	return slices.ContainsFunc(list, func(p store.Address) bool {
		return p.Surface == at.Surface && p.Channel == at.Channel && (p.Message == at.Message || p.Message == "")
	}), nil
}

// Card returns the card of a press for a dialog, if the message is one of the call's cards.
func (ps *Presses) Card(ctx context.Context, p Press, at store.Address) (store.Card, error) {
	call, err := ps.Calls.GetCall(ctx, p.Call)
	if err != nil {
		return store.Card{}, err
	}
	if here, err := ps.Here(ctx, call, at); err != nil || !here {
		return store.Card{}, errors.Join(err, fmt.Errorf("a card of call %s here: %w", p.Call, store.ErrNotFound))
	}
	return ps.Approver.Card(ctx, p.Call)
}

// Result returns a call's result, made harmless, to the call's owner, and to admins if it
// is not private. Others get "" and no images.
func (ps *Presses) Result(ctx context.Context, by store.Caller, id string) (string, Images) {
	call, err := ps.Calls.GetCall(ctx, id)
	if err != nil || call.Result == nil || call.By != by.User && (call.Private || !by.IsAdmin()) {
		return "", Images{}
	}
	images := ImagesOf(call)
	images.View = nil // the complete text is shown instead
	return Plain(call.Result.Whole()), images
}

// Share shares an answer; the store checks that it belongs to the caller. told is a private
// reply to the caller, "" for none.
func (ps *Presses) Share(ctx context.Context, by store.Caller, thread string, n int, w phrases.Catalogue) (told string, err error) {
	err = ps.Handler.Share(ctx, by, thread, n)
	switch {
	case errors.Is(err, store.ErrDecided):
		return "", nil // the button's message already says so
	case errors.Is(err, store.ErrRefused), errors.Is(err, store.ErrNotFound):
		return w.Say(phrases.ShareNotYours), nil
	}
	return "", err
}

// Seal passes a typed credential to the keeper, which seals it. told is the reply to its
// author.
func Seal(ctx context.Context, k Keeper, by store.Caller, p Prompt, typed store.Secret, w phrases.Catalogue) (told string, sealed bool, err error) {
	err = k.PutSecret(ctx, by, p, typed)
	switch {
	case err == nil:
		return w.Say(phrases.KeyPut, p.Service), true, nil
	case errors.Is(err, store.ErrInvalid), errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrRefused):
		return Plain(w.Problem(err)), false, nil
	}
	return w.Say(phrases.ConnectFailed), false, fmt.Errorf("sealing a credential of %s: %w", p.Service, err)
}

// Pressed is the outcome of a press.
type Pressed struct {
	Card store.Card
	Seen bool           // the message shows this card
	Kept store.Decision // the decision, with its standing approval or refusal
}

// Decide carries out a press. change adds the input of a dialog; it is nil for a button
// without one.
func (ps *Presses) Decide(ctx context.Context, by store.Caller, p Press, at store.Address, change func(*store.Decision)) (Pressed, error) {
	d, known := decisions[p.Verb]
	if !known && change == nil {
		return Pressed{}, fmt.Errorf("%w press", store.ErrInvalid)
	}
	call, err := ps.Calls.GetCall(ctx, p.Call)
	if errors.Is(err, store.ErrNotFound) {
		return Pressed{}, store.ErrNotFound
	}
	if err != nil {
		return Pressed{}, fmt.Errorf("reading call %s: %w", p.Call, err)
	}
	here, err := ps.Here(ctx, call, at)
	if err != nil {
		return Pressed{}, err
	}
	d.Digest = call.Digest
	if !here || !p.Shows(call.Digest) {
		d.Digest = NotShown
	}
	if (p.Verb == VerbDecline || p.Verb == VerbReason) && call.By == by.User && call.Question == nil {
		d.Verb = store.Cancel
	}
	if p.Verb == VerbHour {
		d.Until = ps.Now().Add(time.Hour)
	}
	if change != nil {
		change(&d)
	}
	card, err := ps.Handler.Press(ctx, by, p.Call, d)
	return Pressed{Card: card, Seen: here && card.Call == p.Call, Kept: d}, err
}

// Refused records in the audit trail a press by a person without access to nize: the
// gateway refuses callers who are not users and records it.
func (ps *Presses) Refused(ctx context.Context, by store.Caller, p Press) {
	d, known := decisions[p.Verb]
	if !known {
		return
	}
	by.User, by.Role, by.Guest = by.Identity, store.Member, true
	if _, err := ps.Handler.Press(ctx, by, p.Call, d); err == nil {
		ps.Log.Error("a press without access was taken", "call", p.Call, "by", by.Identity)
	}
}

// Told returns the private reply to a press that had no effect, or "" if the card shows the
// reason or err is not meant for people.
func (on Pressed) Told(err error, words phrases.Catalogue, locale string) (text string) {
	switch {
	case errors.Is(err, store.ErrNotFound) && on.Seen: // they can see the card but may not decide
		return strings.TrimSpace(words.Say(phrases.CardNotYou) + "\n" + WhoMay(on.Card, locale))
	case err == nil, errors.Is(err, store.ErrDecided), errors.Is(err, store.ErrExpired):
		return ""
	}
	for _, known := range []error{store.ErrNotFound, store.ErrRefused, store.ErrInvalid, store.ErrConflict} {
		if errors.Is(err, known) {
			return ErrorText(words, err)
		}
	}
	return ""
}

// ErrorText returns the text of an error that is meant for people; a refusal is shown as a
// sentence of its own.
func ErrorText(words phrases.Catalogue, err error) string {
	if errors.Is(err, store.ErrRefused) {
		return sentence(words, err)
	}
	return words.Say(phrases.CardTold, words.Problem(err))
}

// sentence returns an error's text. In English, a refusal begins with a capital letter
// unless its first word may be a name.
func sentence(words phrases.Catalogue, err error) string {
	s := words.Problem(err)
	first, _, _ := strings.Cut(s, " ")
	if !words.English() || !errors.Is(err, store.ErrRefused) || strings.Trim(first, "abcdefghijklmnopqrstuvwxyz") != "" || first == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
