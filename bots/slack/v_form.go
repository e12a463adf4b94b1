package slack

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	slackgo "github.com/slack-go/slack"

	"nize/bots"
	"nize/bots/phrases"
	"nize/store"
)

const formView = "form"

// filling travels in the dialog: whose command it is, where, and what stood in
// its fields, so that only what was changed is set.
type filling struct {
	Command string            `json:"command"`
	Channel string            `json:"channel"`
	Thread  string            `json:"thread,omitempty"`
	Was     map[string]string `json:"was"`
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
