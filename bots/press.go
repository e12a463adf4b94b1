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

// The buttons of a card, and what a press on one means, wherever it stands.

// Verbs of a card's buttons.
const (
	VerbRun     = "run"
	VerbDecline = "cancel"
	VerbEdit    = "edit"
	VerbHour    = "hour"   // run, and for an hour without asking
	VerbHere    = "here"   // run, and in this conversation without asking
	VerbThese   = "these"  // run, and with these arguments without asking
	VerbAlways  = "always" // run, and without asking as a dialog says
	VerbReason  = "reason" // decline, with a reason
	VerbNever   = "never"
	VerbShow    = "show"
	VerbRunAll  = "runall"
	VerbRetry   = "retry"
	VerbAgain   = "again"
)

// CardButton is one of a card's, or an entry of its menu.
type CardButton struct {
	Verb, Label string
	Strong      bool // what is likely wanted
	Menu        bool // it stands in the menu
	Preset      bool // the dialog of VerbAlways can say the same
}

// CardButtons are what can be done about a call as it stands: a few buttons, and the
// rest in a menu.
func CardButtons(card store.Card, words phrases.Catalogue) (buttons []CardButton) {
	add := func(verb string, key phrases.Key, args ...any) {
		buttons = append(buttons, CardButton{Verb: verb, Label: words.Say(key, args...), Strong: verb == VerbRun})
	}
	menu := func(verb string, key phrases.Key) {
		buttons = append(buttons, CardButton{Verb: verb, Label: words.Say(key), Menu: true, Preset: slices.Contains([]string{VerbHour, VerbHere, VerbThese}, verb)})
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

// digestChars is how much of the digest a button carries: the press is refused
// where it is not the call's any more.
const digestChars = 16

// Press is what a button carries: a verb, the call's id, the head of the digest
// that the card shows. Nothing of it is ever executed.
type Press struct{ Verb, Call, Head string }

// PressOf is that of a card's button.
func PressOf(verb string, card store.Card) Press {
	return Press{verb, card.Call, card.Digest[:min(len(card.Digest), digestChars)]}
}

// String is at most 64 bytes.
func (p Press) String() string { return p.Verb + " " + p.Call + " " + p.Head }

// ReadPress takes what a button carries apart.
func ReadPress(value string) (p Press, ok bool) {
	parts := strings.Split(value, " ")
	if len(value) > 64 || len(parts) != 3 || !store.ValidID(parts[1]) {
		return p, false
	}
	return Press{parts[0], parts[1], parts[2]}, true
}

// Shows says whether the press is on a card of that digest.
func (p Press) Shows(digest string) bool { return p.Head != "" && strings.HasPrefix(digest, p.Head) }

// decisions are what the buttons mean, but for what a dialog asks.
var decisions = map[string]store.Decision{
	VerbRun: {Verb: store.Approve}, VerbDecline: {Verb: store.Deny}, VerbReason: {Verb: store.Deny},
	VerbHour: {Verb: store.Approve, Always: true}, VerbHere: {Verb: store.Approve, Always: true, For: store.ForConversation},
	VerbThese:  {Verb: store.Approve, Always: true, Exact: true},
	VerbAlways: {Verb: store.Approve, Always: true}, VerbNever: {Verb: store.Deny, Always: true},
	VerbRunAll: {Verb: store.RunAll}, VerbRetry: {Verb: store.Retry}, VerbAgain: {Verb: store.Again},
}

// NotShown is no digest: with it the gateway refuses what was pressed where it
// is not shown, and notes so.
const NotShown = "not shown"

// Presses decide about calls by the buttons of their cards.
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

// Here says whether the message at at is a card of the call. A press comes with
// the message that its button stands in, so any other was made up, by somebody
// who may not be allowed to see the call. One whose place is not known yet is
// about to be noted.
func (ps *Presses) Here(ctx context.Context, call store.Call, at store.Address) (bool, error) {
	places, err := ps.Places.ListPlaces(ctx, call.ID) // its copies
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

// Card reads the card of a press for a dialog, for those who see its message.
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

// Result is what a call returned, made harmless, for who made it, and for admins
// where it is not private; "" and no images for others.
func (ps *Presses) Result(ctx context.Context, by store.Caller, id string) (string, Images) {
	call, err := ps.Calls.GetCall(ctx, id)
	if err != nil || call.Result == nil || call.By != by.User && (call.Private || !by.IsAdmin()) {
		return "", Images{}
	}
	images := ImagesOf(call)
	images.View = nil // this is the result whole
	return Plain(call.Result.Whole()), images
}

// Share shares an answer; whose it is the store knows. told is what who pressed
// reads alone, "" for nothing.
func (ps *Presses) Share(ctx context.Context, by store.Caller, thread string, n int, w phrases.Catalogue) (told string, err error) {
	err = ps.Handler.Share(ctx, by, thread, n)
	switch {
	case errors.Is(err, store.ErrDecided):
		return "", nil // it says so where the button was
	case errors.Is(err, store.ErrRefused), errors.Is(err, store.ErrNotFound):
		return w.Say(phrases.ShareNotYours), nil
	}
	return "", err
}

// Seal gives a credential that was typed to the keeper, which seals it. told is what
// its author reads.
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

// Pressed is what a press led to.
type Pressed struct {
	Card store.Card
	Seen bool           // it is the card that they see there
	Kept store.Decision // what was decided, with its standing answer
}

// Decide presses. change completes what a dialog asked, nil for a button alone.
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
	if (p.Verb == VerbDecline || p.Verb == VerbReason) && call.By == by.User {
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

// Refused leaves a press on a card in the audit whose author has no access to
// nize: the gateway refuses anyone who is no user, and notes so.
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

// Told is what who pressed reads alone of a press that did nothing; "" where the
// card shows it, or where err is not for people.
func (on Pressed) Told(err error, words phrases.Catalogue, locale string) (text string) {
	switch {
	case errors.Is(err, store.ErrNotFound) && on.Seen: // they see it, though it is not theirs
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

// ErrorText is what a person reads of an error that is meant for people: a refusal
// is a sentence of its own.
func ErrorText(words phrases.Catalogue, err error) string {
	if errors.Is(err, store.ErrRefused) {
		return sentence(words, err)
	}
	return words.Say(phrases.CardTold, words.Problem(err))
}

// sentence is what an error says; a refusal is one, with a capital letter in
// English unless its first word may be a name.
func sentence(words phrases.Catalogue, err error) string {
	s := words.Problem(err)
	first, _, _ := strings.Cut(s, " ")
	if !words.English() || !errors.Is(err, store.ErrRefused) || strings.Trim(first, "abcdefghijklmnopqrstuvwxyz") != "" || first == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
