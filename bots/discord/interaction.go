package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"nize/bots"
	"nize/bots/account"
	"nize/bots/discord/incoming"
	"nize/bots/discord/people"
	"nize/bots/discord/posting"
	"nize/bots/discord/view"
	"nize/bots/discord/wire"
	"nize/bots/phrases"
	"nize/store"
)

// acceptInteraction stores an interaction, or answers it at once if it only opens or
// completes something. A dialog that contains a secret is not stored.
func (l *live) acceptInteraction(ctx context.Context, data json.RawMessage, done func(bool)) error {
	i, err := incoming.DecodeInteraction(data)
	if err != nil {
		return err
	}
	if i.AppID != l.account.App || i.GuildID != "" && i.GuildID != l.guild {
		done(true)
		return nil
	}
	if i.Locale != "" {
		l.people.SetLocale(i.User.ID, string(i.Locale))
	}
	if i.Type == discordgo.InteractionApplicationCommandAutocomplete {
		done(true)
		l.intake.Soon(ctx, "completing a word", func(ctx context.Context) error { return l.commands.complete(ctx, i) })
		return nil
	}
	r := l.respond(ctx, i)
	head, _ := view.HeadOf(i.CustomID())
	if l.opens(i) || i.Type == discordgo.InteractionModalSubmit && head == view.SecretID {
		done(true)
		l.intake.Soon(ctx, "answering an interaction", func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, slow)
			defer cancel()
			return l.handleInteraction(ctx, i, r, "")
		})
		return nil
	}
	i.Mask()
	payload, err := json.Marshal(i)
	if err != nil {
		return fmt.Errorf("encoding an interaction: %w", err)
	}
	item := store.Item{Kind: keptInteraction, Payload: payload, Keys: []string{"discord:do:" + i.ID}}
	work := account.Work{Lane: laneOfInteraction(i), Run: func(ctx context.Context, act string) error { return l.handleInteraction(ctx, i, r, act) }}
	l.intake.AcceptWork(ctx, item, work, func(stored bool) {
		done(true)
		if !stored && ctx.Err() == nil { // too late for Discord to send it again
			l.intake.Soon(ctx, "answering an interaction", func(ctx context.Context) error {
				return r.tell(ctx, view.Notice(phrases.For(string(i.Locale)).Say(phrases.PressUnsaid)))
			})
		}
	})
	return nil
}

// opens reports whether an interaction only opens something. That can't wait, and the
// person can press again if the daemon dies in between.
func (l *live) opens(i incoming.Interaction) bool {
	head, _ := view.HeadOf(i.CustomID())
	switch i.Type {
	case discordgo.InteractionMessageComponent:
		p, ok := readPress(i)
		return head == view.ResultID || head == view.FormID || head == view.CallID && ok && opening[p.Verb]
	case discordgo.InteractionApplicationCommand:
		return i.OnMessage()
	}
	return false
}

// opening are the verbs of buttons that open a dialog or show something.
var opening = map[string]bool{bots.VerbEdit: true, bots.VerbAlways: true, bots.VerbReason: true, bots.VerbNever: true, bots.VerbShow: true}

// menu are the verbs in a card's menu.
var menu = map[string]bool{bots.VerbEdit: true, bots.VerbHour: true, bots.VerbHere: true, bots.VerbThese: true, bots.VerbAlways: true, bots.VerbReason: true, bots.VerbNever: true, bots.VerbShow: true}

// readPress reads a press of a card's button, or a choice in its menu.
func readPress(i incoming.Interaction) (p bots.Press, ok bool) {
	_, rest := view.HeadOf(i.CustomID())
	if p, ok = bots.ReadPress(rest); !ok || p.Verb != view.MenuVerb {
		return p, ok
	}
	if p.Verb = i.Chosen(); !menu[p.Verb] {
		return p, false
	}
	return p, true
}

// pressed returns where an interaction happened, with the pressed message.
func (l *live) pressed(ctx context.Context, i incoming.Interaction) (store.Address, error) {
	if c := i.In; c.ID == i.ChannelID && c.IsThread() && c.ParentID != "" {
		return store.Address{Surface: store.OnDiscord, Team: l.guild, Channel: c.ParentID, Thread: c.ID, Message: i.MessageID()}, nil
	}
	if i.Direct() { // a direct conversation with nize: its commands are not offered in others
		return store.Address{Surface: store.OnDiscord, Team: l.guild, Channel: i.ChannelID, Thread: i.ChannelID, Direct: true, Message: i.MessageID()}, nil
	}
	at, err := l.people.Place(ctx, i.ChannelID)
	at.Message = i.MessageID()
	return at, err
}

// handleInteraction handles one interaction.
func (l *live) handleInteraction(ctx context.Context, i incoming.Interaction, r *response, act string) error {
	p, err := l.people.Who(ctx, i.User.ID, people.Fresh)
	if err != nil {
		return err
	}
	p.Act = act
	at, err := l.pressed(ctx, i)
	if err != nil {
		return err
	}
	head, _ := view.HeadOf(i.CustomID())
	if p.User.ID == "" {
		if press, ok := readPress(i); ok && head == view.CallID {
			l.presses.Refused(ctx, p.Caller(), press)
		}
		if i.Type == discordgo.InteractionApplicationCommand {
			if done, err := l.commands.runClaim(ctx, p, at, i.Line(), r); done || err != nil {
				return err
			}
		}
		return l.tellNoAccess(ctx, p, r)
	}
	if i.Masked {
		defer l.tellMasked(ctx, p, r, i.ID)
	}
	defer l.welcome(ctx, p, r)
	switch i.Type {
	case discordgo.InteractionApplicationCommand:
		err = l.commands.handleCommand(ctx, p, at, i, r)
	case discordgo.InteractionMessageComponent:
		err = l.cards.handlePress(ctx, p, at, i, r)
	case discordgo.InteractionModalSubmit:
		err = l.cards.handleSubmit(ctx, p, at, i, r)
	}
	if err != nil && ctx.Err() == nil && wire.Lasting(err) && !wire.Refused(err) { // the error is meant for people
		return l.tell(ctx, p, r, bots.ErrorText(p.Words(), err))
	}
	if wire.Refused(err) {
		return errors.Join(err, unlessRefused(l.tell(ctx, p, r, p.Words().Say(phrases.CommandFailed))))
	}
	if err != nil {
		return err
	}
	return r.close(ctx)
}

// presser handles buttons and dialogs.
type presser struct{ *live }

// handlePress handles a press.
func (l presser) handlePress(ctx context.Context, p people.Person, at store.Address, i incoming.Interaction, r *response) error {
	head, rest := view.HeadOf(i.CustomID())
	switch head {
	case view.CallID:
		press, ok := readPress(i)
		switch {
		case !ok:
			return fmt.Errorf("%w press", store.ErrInvalid)
		case opening[press.Verb]:
			return l.openCall(ctx, p, at, press, r)
		}
		return l.decide(ctx, p, at, press, nil, r)
	case view.ResultID:
		return l.showResult(ctx, p, rest, r)
	case view.ShareID:
		thread, n, ok := view.ReadShare(rest)
		if !ok {
			return fmt.Errorf("%w press", store.ErrInvalid)
		}
		told, err := l.presses.Share(ctx, p.Caller(), thread, n, p.Words())
		if told != "" {
			return l.tell(ctx, p, r, told)
		}
		return err
	case view.FormID:
		return l.commands.openPage(ctx, p, at, rest, r)
	case view.WordsID:
		return l.commands.runLine(ctx, p, at, i, rest, r)
	}
	return fmt.Errorf("%w press", store.ErrInvalid)
}

// decide decides a call, and tells the person in private if that had no effect.
func (l presser) decide(ctx context.Context, p people.Person, at store.Address, press bots.Press, change func(*store.Decision), r *response) error {
	on, err := l.presses.Decide(ctx, p.Caller(), press, at, change)
	if err == nil && on.Kept.Always && change == nil {
		return l.tellKept(ctx, p, on.Card, on.Kept, r)
	}
	if text := on.Told(err, p.Words(), p.Locale); text != "" {
		return l.tell(ctx, p, r, text)
	}
	if errors.Is(err, store.ErrDecided) || errors.Is(err, store.ErrExpired) {
		if change != nil { // the card doesn't show that nothing was stored
			return err
		}
		return nil // the card shows it
	}
	return err
}

// openCall opens a dialog about a call, or shows all of the call.
func (l presser) openCall(ctx context.Context, p people.Person, at store.Address, press bots.Press, r *response) error {
	card, err := l.presses.Card(ctx, press, at)
	if errors.Is(err, store.ErrNotFound) && press.Verb != bots.VerbShow { // forged: the gateway refuses it and records that
		return l.decide(ctx, p, at, press, func(d *store.Decision) {
			if press.Verb == bots.VerbEdit {
				d.Verb = store.Edit
			}
		}, r)
	}
	if err != nil {
		return err
	}
	w := p.Words()
	var d view.Dialog
	switch press.Verb {
	case bots.VerbShow:
		text := joinLines(bots.CardLines(card, bots.Reader{Locale: p.Locale, Zone: bots.Zone(p.Zone), Now: l.b.o.Now()}))
		return l.showWhole(ctx, p, r, text, "call-"+card.Call+".txt")
	case bots.VerbEdit:
		edit := bots.EditCall(card, l.schema(ctx, card), view.EditLimits)
		if edit.TooLong {
			return l.tell(ctx, p, r, w.Say(phrases.EditElsewhere, len(card.Args), card.Call))
		}
		d = view.EditDialog(card, edit, press, w)
	case bots.VerbReason:
		d = view.ReasonDialog(card, press, w)
	default:
		d = view.AlwaysDialog(card, press, bots.ScopesOf(card, !at.Direct, p.Caller().IsAdmin()), w)
	}
	ok, err := r.openDialog(ctx, d)
	if !ok && (err == nil || wire.Refused(err)) {
		return l.tell(ctx, p, r, w.Say(phrases.DialogTooLate))
	}
	return err
}

// schema returns the schema of a card's form, or nil if it is not known: then the dialog
// edits JSON.
func (l presser) schema(ctx context.Context, card store.Card) json.RawMessage {
	raw, err := bots.FormSchema(card, func(tool string) (json.RawMessage, error) {
		if l.b.o.Schema == nil {
			return nil, nil
		}
		return l.b.o.Schema(ctx, tool)
	})
	if err != nil {
		return nil
	}
	return raw
}

// showResult shows a call's result to its requester, and to admins if it is not private.
func (l presser) showResult(ctx context.Context, p people.Person, rest string, r *response) error {
	id, ok := view.ReadResult(rest)
	if !ok {
		return fmt.Errorf("%w press", store.ErrInvalid)
	}
	text, images := l.presses.Result(ctx, p.Caller(), id)
	if text == "" {
		return l.tell(ctx, p, r, p.Words().Say(phrases.ResultNone))
	}
	if left := images.OnlyLeft(); !left.Empty() {
		text += "\n" + left.Text(p.Words())
	}
	return l.showWhole(ctx, p, r, text, "result-"+id+".txt", posting.Files(images)...)
}

// showWhole shows a text to one person unchanged, as a file if it is long, with further
// files.
func (l presser) showWhole(ctx context.Context, p people.Person, r *response, text, name string, files ...wire.File) error {
	m, fits := view.Verbatim(text)
	if !fits {
		files = append(files, wire.File{Name: name, Data: []byte(text)})
	}
	if len(files) == 0 {
		return r.tell(ctx, m)
	}
	err := r.tell(ctx, m, files...)
	if !wire.Refused(err) {
		return err
	}
	if fits {
		if err := r.tell(ctx, m); err != nil {
			return err
		}
	}
	return l.tell(ctx, p, r, p.Words().Say(phrases.CardNoFile))
}

// handleSubmit handles a submitted dialog.
func (l presser) handleSubmit(ctx context.Context, p people.Person, at store.Address, i incoming.Interaction, r *response) error {
	head, rest := view.HeadOf(i.CustomID())
	switch head {
	case view.SecretID:
		return l.putSecret(ctx, p, rest, i, r)
	case view.FormID:
		return l.commands.fillForm(ctx, p, at, rest, i, r)
	case view.AboutID:
		return l.askAbout(ctx, p, at, rest, i, r)
	case view.ReasonID:
		press, ok := bots.ReadPress(rest)
		if !ok || press.Verb != bots.VerbReason {
			return store.Errorf("%w dialog", store.ErrInvalid)
		}
		reason := strings.TrimSpace(first(i.Fields()[view.ReasonID]))
		return l.decide(ctx, p, at, press, func(d *store.Decision) { d.Reason = store.Plain(reason) }, r)
	case view.AlwaysID:
		press, ok := bots.ReadPress(rest)
		if !ok {
			return store.Errorf("%w dialog", store.ErrInvalid)
		}
		d, err := view.ReadAlways(i.Fields(), l.b.o.Now())
		if err != nil {
			return err
		}
		err = l.decide(ctx, p, at, press, func(to *store.Decision) {
			to.For, to.Until, to.Pattern, to.Exact, to.Line, to.Here = d.For, d.Until, d.Pattern, d.Exact, d.Line, d.Here
		}, r)
		if err != nil || r.told() {
			return err
		}
		card, err := l.b.o.Approver.Card(ctx, press.Call)
		if err != nil {
			return err
		}
		if d.Verb = store.Approve; press.Verb == bots.VerbNever {
			d.Verb = store.Deny
		}
		return l.tellKept(ctx, p, card, d, r)
	case view.EditID:
		return l.submitEdit(ctx, p, at, rest, i, r)
	}
	return fmt.Errorf("%w dialog", store.ErrInvalid)
}

// tellKept tells a person which standing answer was stored.
func (l presser) tellKept(ctx context.Context, p people.Person, card store.Card, d store.Decision, r *response) error {
	return l.tell(ctx, p, r, p.Words().Say(phrases.AlwaysKept, bots.KeptWords(card.Tool, card.Asked, d, bots.Reader{Locale: p.Locale, Zone: bots.Zone(p.Zone), Now: l.b.o.Now()})))
}

// told reports whether the person got a reply.
func (r *response) told() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.said
}

// misfit returns what is wrong with the values of a card's form.
func (l presser) misfit(ctx context.Context, card store.Card, values json.RawMessage) error {
	call, err := l.b.o.Calls.GetCall(ctx, card.Call)
	if err != nil {
		return err
	}
	return l.b.o.Fits(call, values)
}

// submitEdit replaces a call by the edited one.
func (l presser) submitEdit(ctx context.Context, p people.Person, at store.Address, rest string, i incoming.Interaction, r *response) error {
	press, form, ok := view.ReadEdit(rest)
	if !ok {
		return store.Errorf("%w dialog", store.ErrInvalid)
	}
	card, err := l.presses.Card(ctx, press, at)
	if err != nil {
		return err
	}
	w, fields := p.Words(), i.Fields()
	args, wrong, err := bots.ReadEdit(card, l.schema(ctx, card), form, view.EditLimits, func(name string) ([]string, bool) {
		v, ok := fields[name]
		return v, ok
	}, w)
	if err != nil {
		return err
	}
	if len(wrong) == 0 && i.Masked {
		wrong = map[string]string{"": w.Say(phrases.KeyRefused)}
	}
	if len(wrong) == 0 && l.b.o.Fits != nil {
		if err := l.misfit(ctx, card, args); err != nil {
			wrong = map[string]string{"": w.Problem(err)}
		}
	}
	if len(wrong) > 0 {
		return l.tell(ctx, p, r, view.Wrong(wrong))
	}
	return l.decide(ctx, p, at, press, func(d *store.Decision) {
		d.Verb, d.Args = store.Edit, args
	}, r)
}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// secretTime limits sealing: Discord waits three seconds.
const secretTime = 2500 * time.Millisecond

// putSecret seals a typed credential, which goes from the frame directly into the sealed
// store and nowhere else.
func (l presser) putSecret(ctx context.Context, p people.Person, rest string, i incoming.Interaction, r *response) error {
	w := p.Words()
	ask, ok := view.ReadSecret(rest)
	if !ok || l.b.o.Keeper == nil {
		return l.tell(ctx, p, r, w.Say(phrases.ConnectFailed))
	}
	ctx, cancel := context.WithTimeout(ctx, secretTime)
	defer cancel()
	told, _, err := bots.Seal(ctx, l.b.o.Keeper, p.Caller(), ask, store.NewSecret(first(i.Fields()[view.SecretID])), w)
	if err != nil {
		l.log.Error("a credential was not sealed", "err", err)
	}
	return l.tell(ctx, p, r, told)
}
