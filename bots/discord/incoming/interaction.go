package incoming

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/bwmarrin/discordgo"

	"nize/store"
)

// Types of interactions.
const (
	Command      = 2
	Press        = 3
	Autocomplete = 4
	Submit       = 5
)

// tokenForm matches the token of an interaction, which becomes a part of a path. Its length
// is limited by maxToken instead: a repetition count in the expression would compile to 600
// KB.
var tokenForm = regexp.MustCompile(`^[A-Za-z0-9._~-]+$`)

const maxToken = 1000

// Interaction is a command, a press, a submitted dialog, or an autocompletion request.
type Interaction struct {
	ID      string            `json:"id"`
	App     string            `json:"application_id"`
	Type    int               `json:"type"`
	Token   string            `json:"token"`
	Guild   string            `json:"guild_id,omitempty"`
	Channel string            `json:"channel_id"`
	In      discordgo.Channel `json:"channel,omitzero"`
	Member  *Member           `json:"member,omitempty"`
	User    *User             `json:"user,omitempty"` // in a direct channel
	Locale  string            `json:"locale,omitempty"`
	Message struct {
		ID      string `json:"id"`
		Channel string `json:"channel_id"`
	} `json:"message,omitzero"`
	Data data `json:"data"`
	// Masked reports that a key in the author's words was masked; only nize sets it.
	Masked bool `json:"nize_masked,omitempty"`
}

type data struct {
	Name     string   `json:"name,omitempty"`
	Type     int      `json:"type,omitempty"`
	Options  []Option `json:"options,omitempty"`
	CustomID string   `json:"custom_id,omitempty"`
	Values   []string `json:"values,omitempty"`
	Target   string   `json:"target_id,omitempty"`
	Resolved struct {
		Messages map[string]Message `json:"messages,omitempty"`
	} `json:"resolved,omitzero"`
	Components []Component `json:"components,omitempty"`
}

// Option is a subcommand or one of its arguments.
type Option struct {
	Name    string   `json:"name"`
	Type    int      `json:"type"`
	Value   Text     `json:"value,omitzero"`
	Focused bool     `json:"focused,omitempty"`
	Options []Option `json:"options,omitempty"`
}

// Text is a string, or a number or boolean as text.
type Text string

func (t *Text) UnmarshalJSON(raw []byte) error {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		*t = Text(s)
		return nil
	}
	if len(raw) > 0 && raw[0] != '{' && raw[0] != '[' && string(raw) != "null" {
		*t = Text(raw)
	}
	return nil
}

// Component is a field of a dialog or its container.
type Component struct {
	CustomID   string      `json:"custom_id,omitempty"`
	Value      Text        `json:"value,omitzero"`
	Values     []string    `json:"values,omitempty"`
	Component  *Component  `json:"component,omitempty"`
	Components []Component `json:"components,omitempty"`
}

// maxIDText is the maximum length of a custom_id.
const maxIDText = 100

// DecodeInteraction decodes an interaction.
func DecodeInteraction(raw []byte) (i Interaction, err error) {
	if err := json.Unmarshal(raw, &i); err != nil {
		return i, fmt.Errorf("%w interaction: %w", store.ErrInvalid, err)
	}
	for what, id := range map[string]string{"id": i.ID, "application": i.App, "user": i.By().ID} {
		if !IDForm.MatchString(id) {
			return i, fmt.Errorf("%w interaction: %s", store.ErrInvalid, what)
		}
	}
	for what, id := range map[string]string{"guild": i.Guild, "channel": i.Channel, "message": i.Message.ID, "target": i.Data.Target, "parent": i.In.ParentID} {
		if id != "" && !IDForm.MatchString(id) {
			return i, fmt.Errorf("%w interaction: %s", store.ErrInvalid, what)
		}
	}
	if len(i.Token) > maxToken || !tokenForm.MatchString(i.Token) || len(i.Data.CustomID) > maxIDText {
		return i, fmt.Errorf("%w interaction: token or custom_id", store.ErrInvalid)
	}
	if i.In.ID == "" {
		i.In.ID = i.Channel
	}
	return i, nil
}

// By returns its author.
func (i *Interaction) By() User {
	switch {
	case i.Member != nil:
		return i.Member.User
	case i.User != nil:
		return *i.User
	}
	return User{}
}

// Direct reports whether it happened in a direct channel.
func (i *Interaction) Direct() bool { return i.Guild == "" }

// Line returns a command as it would be typed: the subcommand and its arguments.
func (i *Interaction) Line() string {
	if len(i.Data.Options) == 0 {
		return ""
	}
	sub := i.Data.Options[0]
	words := []string{sub.Name}
	for _, o := range sub.Options {
		if v := strings.TrimSpace(string(o.Value)); v != "" {
			words = append(words, v)
		}
	}
	return strings.Join(words, " ")
}

// Typing returns the subcommand and the text typed so far.
func (i *Interaction) Typing() (command, text string) {
	if len(i.Data.Options) == 0 {
		return "", ""
	}
	sub := i.Data.Options[0]
	for _, o := range sub.Options {
		if o.Focused {
			return sub.Name, string(o.Value)
		}
	}
	return sub.Name, ""
}

// Fields returns the values of a dialog, keyed by custom_id.
func (i *Interaction) Fields() map[string][]string {
	out := map[string][]string{}
	var walk func(list []Component, depth int)
	walk = func(list []Component, depth int) {
		for _, c := range list {
			if c.CustomID != "" && len(out) < 64 {
				values := c.Values
				if values == nil {
					values = []string{strings.ToValidUTF8(string(c.Value), "\uFFFD")}
				}
				out[c.CustomID] = values
			}
			if depth < 4 {
				if c.Component != nil {
					walk([]Component{*c.Component}, depth+1)
				}
				walk(c.Components, depth+1)
			}
		}
	}
	walk(i.Data.Components, 0)
	return out
}

// Subject returns the message that a message command was used on.
func (i *Interaction) Subject() (Message, bool) {
	m, ok := i.Data.Resolved.Messages[i.Data.Target]
	return m, ok && m.ID == i.Data.Target && IDForm.MatchString(m.ID)
}

// Mask masks keys in what the author typed and in quoted messages. Dialogs that ask for a
// key don't pass through it.
func (i *Interaction) Mask() {
	mask := func(s string) string {
		masked := store.RedactText(s)
		i.Masked = i.Masked || masked != s
		return masked
	}
	for n := range i.Data.Options {
		for k := range i.Data.Options[n].Options {
			o := &i.Data.Options[n].Options[k]
			o.Value = Text(mask(string(o.Value)))
		}
	}
	var walk func(list []Component, depth int)
	walk = func(list []Component, depth int) {
		for n := range list {
			list[n].Value = Text(mask(string(list[n].Value)))
			if depth < 4 {
				if list[n].Component != nil {
					one := []Component{*list[n].Component}
					walk(one, depth+1)
					list[n].Component = &one[0]
				}
				walk(list[n].Components, depth+1)
			}
		}
	}
	walk(i.Data.Components, 0)
	for id, m := range i.Data.Resolved.Messages {
		m.Mask()
		i.Data.Resolved.Messages[id] = m
	}
}
