package view

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"nize/bots"
	"nize/bots/phrases"
	"nize/store"
)

// Dialog is a modal as the response to an interaction. Its id carries its state.
type Dialog discordgo.InteractionResponseData

func newDialog(id, title string) Dialog {
	return Dialog{CustomID: id, Title: Clip(title, maxDialogTitle)}
}

// add adds a field with a label.
func (d *Dialog) add(label, hint string, field discordgo.MessageComponent) {
	if len(d.Components) < maxDialog {
		d.Components = append(d.Components, discordgo.Label{Label: Clip(label, maxDialogTitle), Description: Clip(hint, maxHint), Component: field})
	}
}

// say adds a text above the fields, if there is room.
func (d *Dialog) say(text string, fields int) {
	if text != "" && fields < maxDialog {
		d.Components = append(d.Components, discordgo.TextDisplay{Content: Clip(Escape(text), 1000)})
	}
}

func input(id, value string, long, required bool, limit int) discordgo.TextInput {
	style := discordgo.TextInputShort
	if long {
		style = discordgo.TextInputParagraph
	}
	return discordgo.TextInput{Style: style, CustomID: id, Value: value, MaxLength: limit, Required: &required}
}

// dialogSelect is a select of a dialog. discordgo's always has the field disabled, which
// Discord refuses in dialogs.
type dialogSelect struct{ discordgo.SelectMenu }

// MarshalJSON implements json.Marshaler.
func (s dialogSelect) MarshalJSON() ([]byte, error) {
	type fields discordgo.SelectMenu // without its methods
	return json.Marshal(struct {
		fields
		Type     discordgo.ComponentType `json:"type"`
		Disabled *bool                   `json:"disabled,omitempty"` // replaces that of fields
	}{fields: fields(s.SelectMenu), Type: s.Type()})
}

func choice(id string, required bool, options ...discordgo.SelectMenuOption) dialogSelect {
	least := 0
	if required {
		least = 1
	}
	for n := range options {
		options[n].Label, options[n].Value = Clip(options[n].Label, maxOption), Clip(options[n].Value, maxOption)
	}
	return dialogSelect{discordgo.SelectMenu{CustomID: id, Options: options[:min(len(options), maxOptions)], MinValues: &least, MaxValues: 1, Required: &required}}
}

// EditLimits are the limits of a dialog that edits a call.
var EditLimits = bots.EditLimits{Fields: maxDialog, Options: maxOptions, Option: maxOption, Input: maxInput}

// EditDialog returns the dialog that edits a call.
func EditDialog(card store.Card, e bots.CallEdit, p bots.Press, w phrases.Catalogue) Dialog {
	p.Verb = bots.VerbEdit
	words := bots.WordsOfForm(card, w)
	d := newDialog(EditID+":"+p.String()+":"+e.Form, words.Title)
	d.say(words.Hint, len(e.Fields))
	for _, f := range e.Fields {
		label, hint := bots.Escape(f.Label), bots.Escape(f.About)
		if f.List {
			hint = strings.TrimSpace(hint + " " + w.Say(phrases.EditLines))
		}
		if f.Options == nil {
			d.add(label, hint, input(f.Name, f.Value, f.Long, f.Required && !f.Long, maxInput))
			continue
		}
		var options []discordgo.SelectMenuOption
		for n, text := range f.Options {
			options = append(options, discordgo.SelectMenuOption{Label: bots.Escape(text), Value: strconv.Itoa(n), Default: n == f.Chosen || slices.Contains(f.Several, n)})
		}
		c := choice(f.Name, f.Required, options...)
		if f.Many {
			c.MaxValues = len(c.Options)
		}
		d.add(label, hint, c)
	}
	if e.Form == "" {
		d.add(words.JSON, "", input(bots.EditedJSON, e.JSON, true, true, maxInput))
	}
	return d
}

// ReadEdit parses its id.
func ReadEdit(rest string) (p bots.Press, form string, ok bool) {
	press, form, found := strings.Cut(rest, ":")
	p, ok = bots.ReadPress(press)
	return p, form, ok && found
}

// AlwaysDialog asks for whom, for which arguments and for how long a standing answer holds.
// Whether the person administers the channel is checked when the dialog is submitted.
func AlwaysDialog(card store.Card, p bots.Press, may bots.StandingScopes, w phrases.Catalogue) Dialog {
	title, hint := w.Say(phrases.ButtonAlways), phrases.AlwaysHint
	if p.Verb == bots.VerbNever {
		title, hint = w.Say(phrases.ButtonNever), phrases.NeverHint
	}
	d := newDialog(AlwaysID+":"+p.String(), title)
	d.say(w.Say(hint, bots.Escape(Clip(card.Tool, 200))), 4)
	for _, q := range bots.StandingQuestions(p.Verb == bots.VerbNever, may, w) {
		var options []discordgo.SelectMenuOption
		for i, o := range q.Choices {
			options = append(options, discordgo.SelectMenuOption{Value: o.Value, Label: o.Label, Description: Clip(o.Note, maxOption), Default: i == 0})
		}
		d.add(q.Label, "", choice(q.Name, true, options...))
		if q.Name == bots.StandingArgs {
			d.add(w.Say(phrases.AlwaysPattern), w.Say(phrases.AlwaysPatternHint), input(bots.StandingPattern, "", true, false, maxInput))
		}
	}
	return d
}

// maxReason is the maximum length of a reason, in characters.
const maxReason = 500

// ReasonDialog asks why a call is declined.
func ReasonDialog(card store.Card, p bots.Press, w phrases.Catalogue) Dialog {
	d := newDialog(ReasonID+":"+p.String(), w.Say(phrases.ButtonReason))
	d.say(bots.Escape(Clip(card.Tool, 200)), 1)
	d.add(w.Say(phrases.ReasonLabel), "", input(ReasonID, "", true, true, maxReason))
	return d
}

// ReadAlways reads that dialog.
func ReadAlways(fields map[string][]string, now time.Time) (store.Decision, error) {
	one := func(name string) string {
		if v := fields[name]; len(v) > 0 {
			return v[0]
		}
		return ""
	}
	return bots.ReadStanding(one, now)
}

// fieldLimits are Discord's limits.
var fieldLimits = bots.FieldLimits{Options: maxOptions, Option: maxOption, Input: maxInput}

// pagesOf returns the fields of a form by dialog. A dialog has at most five components; if
// there are several dialogs, one of the five is a text above the fields.
func pagesOf(f bots.Form) [][]bots.Field {
	n := 1
	if len(f.Fields) > maxDialog {
		n = (len(f.Fields) + maxDialog - 2) / (maxDialog - 1)
	}
	return slices.Collect(slices.Chunk(f.Fields, max(1, (len(f.Fields)+n-1)/n)))
}

// FormMenu returns a choice of the dialogs of a form that doesn't fit into one, named by
// their fields; ok is false if it fits into one.
func FormMenu(f bots.Form, command string, w phrases.Catalogue) (m Message, ok bool) {
	var buttons []discordgo.MessageComponent
	pages := pagesOf(f)
	for n, page := range pages {
		var names []string
		for _, field := range page {
			names = append(names, bots.Escape(field.Label))
		}
		buttons = append(buttons, Button(strings.Join(names, ", "), formID(command, n)))
	}
	text := Escape(strings.TrimSpace(f.Title+"\n"+f.About)) + "\n" + w.Say(phrases.FormMenu, maxDialog)
	return Text(text, Rows(buttons...)...), len(pages) > 1
}

func formID(command string, page int) string {
	return FormID + ":" + command + ":" + strconv.Itoa(page)
}

// ReadForm parses the id of a form's dialog, or of the button that opens it.
func ReadForm(rest string) (command string, page int, ok bool) {
	command, number, _ := strings.Cut(rest, ":")
	page, err := strconv.Atoi(number)
	return command, page, err == nil && page >= 0
}

// FormDialog returns the nth dialog of a command's form, false if there is none. The
// initial values of the fields travel in their ids, as marks.
func FormDialog(f bots.Form, command string, n int) (Dialog, bool) {
	pages := pagesOf(f)
	if n >= len(pages) {
		return Dialog{}, false
	}
	d := newDialog(formID(command, n), f.Title)
	d.say(f.About, len(pages[n]))
	for _, field := range pages[n] {
		id := field.Name + ":" + field.Mark(fieldLimits)
		if !field.Chooses(fieldLimits) {
			d.add(field.Label, field.Hint, input(id, field.Written(fieldLimits), field.Long, false, maxInput))
			continue
		}
		var options []discordgo.SelectMenuOption
		for _, o := range field.Options {
			options = append(options, discordgo.SelectMenuOption{Label: bots.Escape(o.Label), Value: o.Value, Default: slices.Contains(field.Value, o.Value)})
		}
		c := choice(id, !field.Many && len(field.Shown(fieldLimits)) > 0, options...)
		if field.Many {
			c.MaxValues = len(c.Options)
		}
		d.add(field.Label, field.Hint, c)
	}
	return d, true
}

// Changed returns the fields of such a dialog whose values differ from the initial ones,
// keyed by name.
func Changed(fields map[string][]string) map[string][]string {
	values := map[string][]string{}
	for id, given := range fields {
		name, was, ok := strings.Cut(id, ":")
		var now []string
		for _, v := range given {
			if v = strings.TrimSpace(v); v != "" {
				now = append(now, v)
			}
		}
		if ok && bots.MarkOf(now) != was {
			values[name] = now
		}
	}
	return values
}

// Wrong lists the mistakes in a submitted dialog by field.
func Wrong(wrong map[string]string) string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(wrong)) {
		line := bots.Escape(wrong[name])
		if name != "" && name != bots.EditedJSON {
			line = bots.Escape(name) + ": " + line
		}
		lines = append(lines, Escape(line))
	}
	return strings.Join(lines, "\n")
}

// SecretDialog asks one person for a credential; false if its names don't fit.
func SecretDialog(p bots.Prompt, w phrases.Catalogue) (Dialog, bool) {
	id := SecretID + ":" + p.Service + "/" + p.Name
	if p.Team != "" {
		id = SecretID + ":" + p.Service + "@" + p.Team + "/" + p.Name
	}
	d := newDialog(id, w.Say(phrases.ConnectTitle))
	d.say(bots.Escape(p.About), 1)
	d.add(w.Say(phrases.ConnectLabel, bots.Escape(p.Name), bots.Escape(p.Service)), w.Say(phrases.ConnectSealed), input(SecretID, "", false, true, maxInput))
	return d, len(id) <= maxCustomID
}

// ReadSecret parses its id.
func ReadSecret(rest string) (p bots.Prompt, ok bool) {
	p.Service, p.Name, ok = strings.Cut(rest, "/")
	p.Service, p.Team, _ = strings.Cut(p.Service, "@") // a service's id never contains one
	return p, ok
}

// AboutDialog asks for a question about a message.
func AboutDialog(message string, w phrases.Catalogue) Dialog {
	d := newDialog(AboutID+":"+message, w.Say(phrases.AboutMessageTitle))
	d.add(w.Say(phrases.AboutMessageLabel), "", input(AboutID, "", true, true, 1500))
	return d
}

// Verbatim returns an unchanged text for one person. If it doesn't fit, the message has its
// beginning, and the caller attaches the whole text as a file.
func Verbatim(text string) (m Message, fits bool) {
	safe := strings.ReplaceAll(bots.Plain(text), "```", "`\u200b``")
	const frame = "```\n\n```"
	if size(safe)+len(frame) <= MaxText {
		return Text("```\n" + safe + "\n```"), true
	}
	return Text("```\n" + Clip(safe, MaxText-200) + "\n```"), false
}

// languages maps Discord's names of nize's languages, other than English.
var languages = map[discordgo.Locale]string{discordgo.ChineseCN: "zh-Hans", discordgo.ChineseTW: "zh-Hant"}

// completed lists the commands whose arguments are completed with names of existing things.
var completed = []string{"agent", "model", "servers", "credentials", "tokens", "approve", "deny", "settings", "streaming", "channel"}

// Commands returns the commands of /nize and the message command.
func Commands(list []bots.Command) []*discordgo.ApplicationCommand {
	local := func(key phrases.Key, limit int) (string, map[discordgo.Locale]string) {
		all := map[discordgo.Locale]string{}
		for theirs, ours := range languages {
			all[theirs] = Clip(phrases.For(ours).Say(key), limit)
		}
		return Clip(phrases.For("").Say(key), limit), all
	}
	text, texts := local(phrases.AboutAsk, maxHint)
	nize := &discordgo.ApplicationCommand{Name: "nize", Type: discordgo.ChatApplicationCommand, Description: text, DescriptionLocalizations: &texts}
	for _, c := range list[:min(len(list), maxOptions)] {
		sub := &discordgo.ApplicationCommandOption{Name: c.Name, Type: discordgo.ApplicationCommandOptionSubCommand}
		sub.Description, sub.DescriptionLocalizations = local(c.About, maxHint)
		if c.Args != "" {
			sub.Options = []*discordgo.ApplicationCommandOption{{
				Name: "words", Type: discordgo.ApplicationCommandOptionString, Description: Clip(c.Args, maxHint),
				Required: !strings.HasPrefix(c.Args, "["), Autocomplete: slices.Contains(completed, c.Name),
			}}
		}
		nize.Options = append(nize.Options, sub)
	}
	name, names := local(phrases.AskAboutThis, 32)
	return []*discordgo.ApplicationCommand{nize, {Name: name, NameLocalizations: &names, Type: discordgo.MessageApplicationCommand}}
}

// Completion is the response to an autocompletion request. discordgo's response omits an
// empty list of choices, which Discord requires.
type Completion struct {
	Type discordgo.InteractionResponseType `json:"type"`
	Data struct {
		Choices []discordgo.ApplicationCommandOptionChoice `json:"choices"`
	} `json:"data"`
}

// Complete offers the words that begin with, or contain, the typed text.
func Complete(words []string, typed string) Completion {
	choices := []discordgo.ApplicationCommandOptionChoice{}
	typed = strings.ToLower(strings.TrimSpace(typed))
	for _, begins := range []bool{true, false} {
		for _, w := range words {
			low := strings.ToLower(w)
			if strings.HasPrefix(low, typed) == begins && strings.Contains(low, typed) && len(choices) < maxOptions && size(w) <= maxOption {
				choices = append(choices, discordgo.ApplicationCommandOptionChoice{Name: w, Value: w})
			}
		}
	}
	c := Completion{Type: discordgo.InteractionApplicationCommandAutocompleteResult}
	c.Data.Choices = choices
	return c
}
