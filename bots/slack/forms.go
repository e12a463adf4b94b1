package slack

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	slackgo "github.com/slack-go/slack"

	"nize/bots"
	"nize/bots/phrases"
	"nize/store"
)

// Dialogs that stand for a command (bots.Form).

const formView = "form"

// formWait is how long a form may take to be made: the trigger that opens
// the dialog lives for three seconds.
const formWait = 1500 * time.Millisecond

func (b *Bot) addFormViews() {
	b.views.addSubmit(formView, onSubmit{check: checkForm, do: submitForm})
}

// filling travels in the dialog: whose command it is, where, and what stood in
// its fields, so that only what was changed is set.
type filling struct {
	Command string            `json:"command"`
	Channel string            `json:"channel"`
	Thread  string            `json:"thread,omitempty"`
	Was     map[string]string `json:"was"`
}

// runForm shows a command's dialog, and says whether it did; where it did not
// the command runs.
func (l *live) runForm(ctx context.Context, p person, g given) bool {
	if g.cmd.Form == nil || g.asked.Words != "" || g.trigger == "" {
		return false
	}
	made := make(chan *bots.Form, 1) // so that a late one leaves
	l.wg.Go(func() {
		defer close(made)
		err := bots.Guard(func() error {
			form, err := g.cmd.Form.Form(ctx, g.asked)
			if form != nil {
				made <- form
			}
			return err
		})
		if err != nil && ctx.Err() == nil {
			l.log.Error("making a dialog", "command", g.cmd.Name, "err", err)
		}
	})
	timer := time.NewTimer(formWait)
	defer timer.Stop()
	var form *bots.Form
	select {
	case form = <-made:
	case <-timer.C:
	case <-ctx.Done():
	}
	if form == nil {
		return false
	}
	view, err := formModal(*form, filling{Command: g.cmd.Name, Channel: g.asked.At.Channel, Thread: g.asked.At.Thread}, p.words())
	if err == nil {
		err = l.openView(ctx, g.trigger, view)
	}
	if err != nil {
		l.log.Info("a dialog was not opened", "command", g.cmd.Name, "err", err)
	}
	return err == nil
}

// formModal is the dialog.
func formModal(form bots.Form, f filling, w phrases.Catalogue) (slackgo.ModalViewRequest, error) {
	var blocks []slackgo.Block
	if form.About != "" {
		blocks = append(blocks, slackgo.NewSectionBlock(plainText(clip(form.About, maxSection)), nil, nil))
	}
	f.Was = map[string]string{}
	for _, field := range form.Fields {
		f.Was[field.Name] = markOf(shownIn(field))
		blocks = append(blocks, fieldBlock(field))
	}
	view := modal(form.Title, w.Say(phrases.ButtonClose), blocks...)
	view.Submit = plainText(clip(w.Say(phrases.ButtonSave), maxTitle))
	view.CallbackID = formView + ":" + f.Command
	metadata, err := json.Marshal(f)
	if err == nil && len(metadata) > maxMetadata {
		err = fmt.Errorf("%w form: its metadata is too long", store.ErrInvalid)
	}
	view.PrivateMetadata = string(metadata)
	return view, err
}

// chooses says whether the options of a field fit into one of Slack's lists;
// where they don't, people write.
func chooses(f bots.Field) bool {
	return len(f.Options) > 0 && len(f.Options) <= maxOptions && !slices.ContainsFunc(f.Options, func(o bots.Option) bool {
		return utf8.RuneCountInString(o.Value) > maxOption || o.Value == ""
	})
}

// shownIn is what a field comes back with if nobody touches it.
func shownIn(f bots.Field) []string {
	if chooses(f) {
		return slices.DeleteFunc(slices.Clone(f.Value), func(v string) bool {
			return !slices.ContainsFunc(f.Options, func(o bots.Option) bool { return o.Value == v })
		})
	}
	if text := strings.TrimSpace(clip(strings.Join(f.Value, ", "), maxInput)); text != "" {
		return []string{text}
	}
	return nil
}

// markOf tells some values from others, in whatever order, without holding them.
func markOf(values []string) string {
	return sum([]byte(strings.Join(slices.Sorted(slices.Values(values)), "\x00")))[:8]
}

// fieldBlock is the input of a field.
func fieldBlock(f bots.Field) slackgo.Block {
	var hint *slackgo.TextBlockObject
	if f.Hint != "" {
		hint = plainText(clip(f.Hint, maxHint))
	}
	block := slackgo.NewInputBlock("field-"+f.Name, plainText(clip(f.Label, maxPlaceholder)), hint, fieldInput(f))
	block.Optional = true
	return block
}

func fieldInput(f bots.Field) slackgo.BlockElement {
	if !chooses(f) {
		text := slackgo.NewPlainTextInputBlockElement(nil, "value").WithMaxLength(maxInput)
		text.InitialValue = clip(strings.Join(f.Value, ", "), maxInput)
		return text
	}
	var options, chosen []*slackgo.OptionBlockObject
	for _, o := range f.Options {
		option := slackgo.NewOptionBlockObject(o.Value, plainText(clip(bots.Escape(o.Label), maxOption)), nil)
		options = append(options, option)
		if slices.Contains(f.Value, o.Value) {
			chosen = append(chosen, option)
		}
	}
	if f.Many {
		s := slackgo.NewOptionsMultiSelectBlockElement(slackgo.MultiOptTypeStatic, nil, "value", options...)
		s.InitialOptions = chosen
		return s
	}
	s := slackgo.NewOptionsSelectBlockElement(slackgo.OptTypeStatic, nil, "value", options...)
	if len(chosen) > 0 {
		s.InitialOption = chosen[0]
	}
	return s
}

// filled reads a dialog that was sent in: its command as it was asked, and the
// values that were changed.
func (l *live) filled(i interaction, p person) (cmd bots.Command, asked bots.Asked, values map[string][]string, err error) {
	bad := fmt.Errorf("%w dialog", store.ErrInvalid)
	f, ok := readFilling(i)
	if !ok {
		return cmd, asked, nil, bad
	}
	cmd, _, _, ok = l.b.o.Commands.Find(p.by(), f.Command, false)
	if !ok || cmd.Form == nil || i.View.Callback != formView+":"+cmd.Name {
		return cmd, asked, nil, bad
	}
	return cmd, l.asked(p, l.place(f.Channel, f.Thread), ""), f.changed(i), nil
}

// readFilling reads what a dialog that stands for a command carries.
func readFilling(i interaction) (f filling, ok bool) {
	ok = len(i.View.Metadata) <= maxMetadata && json.Unmarshal([]byte(i.View.Metadata), &f) == nil &&
		idForm.MatchString(f.Channel) && (f.Thread == "" || stampForm.MatchString(f.Thread))
	return f, ok
}

// changed are the fields in which something else stands than was shown.
func (f filling) changed(i interaction) map[string][]string {
	values := map[string][]string{}
	for name, was := range f.Was {
		given, ok := i.View.State.Values["field-"+name]["value"]
		if !ok {
			continue
		}
		if now := given.values(); markOf(now) != was {
			values[name] = now
		}
	}
	return values
}

// values are what was typed or chosen.
func (f field) values() []string {
	var out []string
	for _, s := range f.SelectedMany {
		out = append(out, s.Value)
	}
	if text := strings.TrimSpace(f.text()); text != "" {
		out = append(out, text)
	}
	return out
}

// checkForm says at once what is wrong with a dialog.
func checkForm(ctx context.Context, l *live, i interaction) map[string]string {
	p, err := l.who(ctx, i.User.ID, keepPerson)
	if err != nil || p.user.ID == "" {
		return nil // said when it is worked on
	}
	cmd, asked, values, err := l.filled(i, p)
	if err != nil {
		return nil
	}
	wrong := map[string]string{}
	for name, text := range cmd.Form.Check(ctx, asked, values) {
		if _, ok := i.View.State.Values["field-"+name]; ok {
			wrong["field-"+name] = text
		}
	}
	return wrong
}

// submitForm does what a dialog asks for.
func submitForm(ctx context.Context, l *live, p person, i interaction) error {
	cmd, asked, values, err := l.filled(i, p)
	if err != nil {
		return l.sayWrong(ctx, p, "", "", err)
	}
	if len(values) == 0 {
		return nil
	}
	filler := cmd.Form
	cmd.Run = func(ctx context.Context, a bots.Asked) (bots.Answer, error) { return filler.Fill(ctx, a, values) }
	cmd.Form, cmd.Secret = nil, nil
	return l.run(ctx, p, given{cmd: cmd, asked: asked})
}
