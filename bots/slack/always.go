package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	slackgo "github.com/slack-go/slack"

	"nize/bots"
	"nize/bots/phrases"
	"nize/store"
)

// Standing answers: "always allow" and "deny always" ask in a dialog
// for whose calls, with which arguments and for how long they hold. The answer
// to the call itself and the standing one are one press.

const alwaysView = "always"

// Blocks of the dialog, and what is chosen in them.
const (
	alwaysFor     = "for"
	alwaysArgs    = "args"
	alwaysPattern = "pattern"
	alwaysUntil   = "until"

	anyArgs   = "any"
	theseArgs = "these"
	forEver   = "ever"
)

// alwaysSpans are for how long a standing answer may hold.
var alwaysSpans = []string{"1h", "8h", "1d", "7d", "30d"}

// standing travels in the dialog.
type standing struct {
	Call    string `json:"call"`
	Head    string `json:"head"` // of the digest of the call that is answered
	Deny    bool   `json:"deny,omitempty"`
	Channel string `json:"channel,omitempty"`
	Thread  string `json:"thread,omitempty"`
}

// openAlways opens the dialog of a standing answer.
func openAlways(ctx context.Context, l *live, p person, i interaction, a action) error {
	verb, id, head, _ := readPress(a.Value)
	card, err := l.cardOf(ctx, i, a.Value)
	if errors.Is(err, store.ErrNotFound) { // made up: the gateway refuses it and notes so
		d := decisions[verb]
		d.Digest = notShown
		_, err = l.handler.Press(ctx, p.by(), id, d)
		return l.sayWrong(ctx, p, i.Channel.ID, i.Message.Thread, err)
	}
	if err != nil {
		return err
	}
	s := standing{Call: card.Call, Head: head, Deny: verb == verbNever, Channel: i.Channel.ID, Thread: i.Message.Thread}
	return l.openView(ctx, i.Trigger, alwaysModal(card, s, p.by().IsAdmin(), p.words()))
}

// alwaysModal is the dialog. What its reader may not choose is not offered; who
// administers the channel is looked at when it is sent in.
func alwaysModal(card store.Card, s standing, admin bool, w phrases.Catalogue) slackgo.ModalViewRequest {
	title, hint := w.Say(phrases.ButtonAlways), phrases.AlwaysHint
	if s.Deny {
		title, hint = w.Say(phrases.ButtonNever), phrases.NeverHint
	}
	scopes := []choice{{string(store.ForMe), w.Say(phrases.AlwaysForMe)}}
	if s.Channel != "" && s.Channel[0] != 'D' {
		scopes = append(scopes, choice{string(store.ForChannel), w.Say(phrases.AlwaysForChannel)})
	}
	if admin {
		scopes = append(scopes, choice{string(store.ForEveryone), w.Say(phrases.AlwaysForEveryone)})
	}
	blocks := []slackgo.Block{
		slackgo.NewSectionBlock(plainText(w.Say(hint, bots.Escape(clip(card.Tool, 200)))), nil, nil),
		selectOne(alwaysFor, w.Say(phrases.AlwaysFor), scopes),
	}
	if !s.Deny {
		pattern := slackgo.NewPlainTextInputBlockElement(nil, "value").WithMultiline(true).WithMaxLength(maxInput)
		input := slackgo.NewInputBlock(alwaysPattern, plainText(w.Say(phrases.AlwaysPattern)), plainText(clip(w.Say(phrases.AlwaysPatternHint), maxPlaceholder)), pattern)
		input.Optional = true
		blocks = append(blocks, selectOne(alwaysArgs, w.Say(phrases.AlwaysArgs), []choice{{anyArgs, w.Say(phrases.AlwaysArgsAny)}, {theseArgs, w.Say(phrases.AlwaysArgsThese)}}), input)
	}
	spans := []choice{{forEver, w.Say(phrases.AlwaysForEver)}}
	for _, span := range alwaysSpans {
		spans = append(spans, choice{span, w.Say(phrases.AlwaysSpan, w.Translate(span))})
	}
	view := modal(title, w.Say(phrases.ButtonClose), append(blocks, selectOne(alwaysUntil, w.Say(phrases.AlwaysUntil), spans))...)
	view.Submit, view.CallbackID = plainText(clip(title, maxTitle)), alwaysView
	metadata, _ := json.Marshal(s) // strings always encode
	view.PrivateMetadata = string(metadata)
	return view
}

// choice is an option of a select: what it stands for, and what it says.
type choice struct{ value, label string }

// selectOne is an input whose first choice stands in it.
func selectOne(id, label string, choices []choice) slackgo.Block {
	var options []*slackgo.OptionBlockObject
	for _, c := range choices {
		options = append(options, slackgo.NewOptionBlockObject(c.value, plainText(clip(c.label, maxOption)), nil))
	}
	s := slackgo.NewOptionsSelectBlockElement(slackgo.OptTypeStatic, nil, "value", options...)
	s.InitialOption = options[0]
	return slackgo.NewInputBlock(id, plainText(label), nil, s)
}

// answeredAlways reads a dialog that was sent in: the decision, or what is
// wrong by block.
func answeredAlways(i interaction, now time.Time, w phrases.Catalogue) (s standing, d store.Decision, wrong map[string]string, err error) {
	if len(i.View.Metadata) > maxMetadata || json.Unmarshal([]byte(i.View.Metadata), &s) != nil || !store.ValidID(s.Call) {
		return s, d, nil, fmt.Errorf("%w dialog", store.ErrInvalid)
	}
	given := func(block string) string { return i.View.State.Values[block]["value"].text() }
	d = store.Decision{Verb: store.Approve, Always: true, For: store.GrantScope(given(alwaysFor))}
	if s.Deny {
		d.Verb = store.Deny
	}
	if until := given(alwaysUntil); until != forEver {
		if !slices.Contains(alwaysSpans, until) {
			return s, d, nil, fmt.Errorf("%w dialog: no such time", store.ErrInvalid)
		}
		span, err := store.ParseSpan(until)
		if err != nil {
			return s, d, nil, err
		}
		d.Until = now.Add(span)
	}
	switch pattern := strings.TrimSpace(given(alwaysPattern)); {
	case s.Deny:
	case pattern != "":
		d.Pattern, err = store.CheckPattern([]byte(pattern))
		if err != nil {
			return s, d, map[string]string{alwaysPattern: clip(w.Say(phrases.CardBadJSON, bots.Escape(errorText(err))), maxPlaceholder)}, nil
		}
	default:
		d.Exact = given(alwaysArgs) == theseArgs
	}
	return s, d, nil, nil
}

// checkAlways says at once what is wrong with a dialog.
func checkAlways(ctx context.Context, l *live, i interaction) map[string]string {
	w := phrases.For("")
	if p, err := l.look(ctx, i.User.ID, keepPerson); err == nil {
		w = p.words()
	}
	_, _, wrong, err := answeredAlways(i, l.b.o.Now(), w)
	if err != nil {
		return nil // said when it is worked on
	}
	return wrong
}

// submitAlways answers the call and keeps the standing answer.
func submitAlways(ctx context.Context, l *live, p person, i interaction) error {
	s, d, wrong, err := answeredAlways(i, l.b.o.Now(), p.words())
	if err == nil && len(wrong) > 0 {
		err = fmt.Errorf("%w dialog", store.ErrInvalid)
	}
	if err != nil {
		return l.sayWrong(ctx, p, s.Channel, s.Thread, err)
	}
	call, err := l.b.o.Calls.GetCall(ctx, s.Call)
	if err != nil {
		return l.sayWrong(ctx, p, s.Channel, s.Thread, store.ErrNotFound)
	}
	if d.Digest = call.Digest; s.Head == "" || !strings.HasPrefix(call.Digest, s.Head) {
		d.Digest = notShown
	}
	card, err := l.handler.Press(ctx, p.by(), s.Call, d)
	if errors.Is(err, store.ErrDecided) || errors.Is(err, store.ErrExpired) { // the card does not tell that nothing was kept
		return l.sayWrong(ctx, p, s.Channel, s.Thread, err)
	}
	if err == nil {
		return l.tell(ctx, p, s.Channel, s.Thread, p.words().Say(phrases.AlwaysKept, bots.Escape(card.Tool)))
	}
	return l.pressed(ctx, p, press{channel: s.Channel, thread: s.Thread, seen: card.Call == s.Call, card: card}, err)
}
