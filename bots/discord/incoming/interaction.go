package incoming

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/bwmarrin/discordgo"

	"nize/store"
)

// tokenForm matches the token of an interaction, which becomes a part of a path. Its length
// is limited by maxToken instead: a repetition count in the expression would compile to 600
// KB.
var tokenForm = regexp.MustCompile(`^[A-Za-z0-9._~-]+$`)

const maxToken = 1000

// Interaction is a command, a press, a submitted dialog, or an autocompletion request, with
// the fields that nize uses. User is its author.
type Interaction struct {
	discordgo.Interaction
	In discordgo.Channel // discordgo's type lacks it
	// Masked reports that a key in the author's words was masked; only nize sets it.
	Masked bool
}

// maxIDText is the maximum length of a custom_id.
const maxIDText = 100

// DecodeInteraction decodes an interaction.
func DecodeInteraction(raw []byte) (i Interaction, err error) {
	if err := json.Unmarshal(raw, &i); err != nil {
		return i, fmt.Errorf("%w interaction: %w", store.ErrInvalid, err)
	}
	for what, id := range map[string]string{"id": i.ID, "application": i.AppID, "user": i.User.ID} {
		if !IDForm.MatchString(id) {
			return i, fmt.Errorf("%w interaction: %s", store.ErrInvalid, what)
		}
	}
	for what, id := range map[string]string{"guild": i.GuildID, "channel": i.ChannelID, "message": i.MessageID(), "target": i.command().TargetID, "parent": i.In.ParentID} {
		if id != "" && !IDForm.MatchString(id) {
			return i, fmt.Errorf("%w interaction: %s", store.ErrInvalid, what)
		}
	}
	if len(i.Token) > maxToken || !tokenForm.MatchString(i.Token) || len(i.CustomID()) > maxIDText {
		return i, fmt.Errorf("%w interaction: token or custom_id", store.ErrInvalid)
	}
	if i.In.ID == "" {
		i.In.ID = i.ChannelID
	}
	return i, nil
}

// storedInteraction has the fields of a stored interaction that discordgo's type doesn't
// encode.
type storedInteraction struct {
	discordgo.Interaction
	Data   any               `json:"data"`
	In     discordgo.Channel `json:"channel"`
	Masked bool              `json:"nize_masked,omitempty"`
}

// MarshalJSON implements json.Marshaler. discordgo encodes a submitted dialog without its
// fields.
func (i Interaction) MarshalJSON() ([]byte, error) {
	stored := storedInteraction{i.Interaction, i.Data, i.In, i.Masked}
	if d, ok := i.Data.(discordgo.ModalSubmitInteractionData); ok {
		stored.Data = struct {
			discordgo.ModalSubmitInteractionData
			Components []discordgo.MessageComponent `json:"components"`
		}{d, d.Components}
	}
	return json.Marshal(stored)
}

// UnmarshalJSON implements json.Unmarshaler.
func (i *Interaction) UnmarshalJSON(raw []byte) error {
	var all discordgo.Interaction
	var own struct {
		In     discordgo.Channel `json:"channel"`
		Masked bool              `json:"nize_masked"`
	}
	if err := decode(raw, interactionFields, &all, &own); err != nil {
		return err
	}
	presentIn(&own.In)
	i.In, i.Masked = own.In, own.Masked
	i.Interaction = discordgo.Interaction{
		ID: all.ID, AppID: all.AppID, Type: all.Type, Token: all.Token, GuildID: all.GuildID, ChannelID: all.ChannelID, Locale: all.Locale, User: account(all.User),
	}
	if all.Member != nil {
		i.User = account(all.Member.User)
	}
	if all.Message != nil {
		i.Message = &discordgo.Message{ID: all.Message.ID}
	}
	switch d := all.Data.(type) {
	case discordgo.MessageComponentInteractionData:
		i.Data = discordgo.MessageComponentInteractionData{CustomID: d.CustomID, ComponentType: d.ComponentType, Values: d.Values}
	case discordgo.ModalSubmitInteractionData:
		i.Data = discordgo.ModalSubmitInteractionData{CustomID: d.CustomID, Components: inputsIn(d.Components)}
	case discordgo.ApplicationCommandInteractionData:
		i.Data = discordgo.ApplicationCommandInteractionData{Name: d.Name, CommandType: d.CommandType, TargetID: d.TargetID, Options: optionsIn(d.Options)}
	}
	return nil
}

// inputsIn returns the fields of a dialog without their containers.
func inputsIn(list []discordgo.MessageComponent) (inputs []discordgo.MessageComponent) {
	for _, c := range list {
		switch c := c.(type) {
		case *discordgo.ActionsRow:
			inputs = append(inputs, inputsIn(c.Components)...)
		case *discordgo.Label:
			inputs = append(inputs, inputsIn([]discordgo.MessageComponent{c.Component})...)
		case *discordgo.TextInput, *discordgo.SelectMenu:
			inputs = append(inputs, c)
		}
	}
	return inputs
}

func optionsIn(list []*discordgo.ApplicationCommandInteractionDataOption) []*discordgo.ApplicationCommandInteractionDataOption {
	list = present(list)
	for _, o := range list {
		o.Options = present(o.Options)
	}
	return list
}

func (i *Interaction) command() discordgo.ApplicationCommandInteractionData {
	d, _ := i.Data.(discordgo.ApplicationCommandInteractionData)
	return d
}

func (i *Interaction) dialog() discordgo.ModalSubmitInteractionData {
	d, _ := i.Data.(discordgo.ModalSubmitInteractionData)
	return d
}

// CustomID returns the id of the pressed component or of the dialog, "" for a command.
func (i *Interaction) CustomID() string {
	if d, ok := i.Data.(discordgo.MessageComponentInteractionData); ok {
		return d.CustomID
	}
	return i.dialog().CustomID
}

// Chosen returns the first choice in the pressed menu.
func (i *Interaction) Chosen() string {
	if d, ok := i.Data.(discordgo.MessageComponentInteractionData); ok && len(d.Values) > 0 {
		return d.Values[0]
	}
	return ""
}

// MessageID returns the id of the message with the pressed component, "" for a command.
func (i *Interaction) MessageID() string {
	if i.Message == nil {
		return ""
	}
	return i.Message.ID
}

// Direct reports whether it happened in a direct channel.
func (i *Interaction) Direct() bool { return i.GuildID == "" }

// OnMessage reports whether it is a command on a message.
func (i *Interaction) OnMessage() bool {
	return i.command().CommandType == discordgo.MessageApplicationCommand
}

// Target returns the id of the message that a command was used on.
func (i *Interaction) Target() string { return i.command().TargetID }

// Line returns a command as it would be typed: the subcommand and its arguments.
func (i *Interaction) Line() string {
	options := i.command().Options
	if len(options) == 0 {
		return ""
	}
	words := []string{options[0].Name}
	for _, o := range options[0].Options {
		if v := strings.TrimSpace(valueOf(o)); v != "" {
			words = append(words, v)
		}
	}
	return strings.Join(words, " ")
}

// Typing returns the subcommand and the text typed so far.
func (i *Interaction) Typing() (command, text string) {
	options := i.command().Options
	if len(options) == 0 {
		return "", ""
	}
	for _, o := range options[0].Options {
		if o.Focused {
			return options[0].Name, valueOf(o)
		}
	}
	return options[0].Name, ""
}

func valueOf(o *discordgo.ApplicationCommandInteractionDataOption) string {
	if o.Value == nil {
		return ""
	}
	return fmt.Sprint(o.Value)
}

// Fields returns the values of a dialog, keyed by custom_id.
func (i *Interaction) Fields() map[string][]string {
	out := map[string][]string{}
	for _, c := range i.dialog().Components {
		switch c := c.(type) {
		case *discordgo.TextInput:
			out[c.CustomID] = []string{strings.ToValidUTF8(c.Value, "\uFFFD")}
		case *discordgo.SelectMenu:
			out[c.CustomID] = c.Values
		}
	}
	delete(out, "") // no input of nize's
	return out
}

// Mask masks keys in what the author typed. Dialogs that ask for a key don't pass through
// it.
func (i *Interaction) Mask() {
	mask := func(s string) string {
		masked := store.RedactText(s)
		i.Masked = i.Masked || masked != s
		return masked
	}
	for _, sub := range i.command().Options {
		for _, o := range sub.Options {
			o.Value = mask(valueOf(o))
		}
	}
	for _, c := range i.dialog().Components {
		if input, ok := c.(*discordgo.TextInput); ok {
			input.Value = mask(input.Value)
		}
	}
}
