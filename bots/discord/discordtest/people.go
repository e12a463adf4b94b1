package discordtest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"nize/bots/chattest"
)

// Said is a person's message.
type Said struct {
	User, Channel, Text string
	Files               []File
}

// Post writes a message as a person, or as another bot.
func (s *Server) Post(said Said) (Message, error) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	c := s.world.channel(said.Channel)
	if c == nil || s.world.permissions(c, said.User)&SendMessages == 0 {
		return Message{}, fmt.Errorf("discordtest: %s is in no channel %s", said.User, said.Channel)
	}
	if utf8.RuneCountInString(said.Text) > maxContent {
		return Message{}, fmt.Errorf("discordtest: a message has at most %d characters", maxContent)
	}
	m := &Message{ID: s.idLocked(), Channel: c.ID, Author: said.User}
	for _, f := range said.Files {
		m.Files = append(m.Files, s.hostLocked(c.ID, f))
	}
	s.applyLocked(m, draft{Content: &said.Text}, nil)
	s.addLocked(m)
	s.TouchLocked()
	return m.clone(), nil
}

// Say writes a text in a channel or thread.
func (s *Server) Say(user, channel, text string) (Message, error) {
	return s.Post(Said{User: user, Channel: channel, Text: text})
}

// Mention writes a text that begins with a mention of nize.
func (s *Server) Mention(user, channel, text string) (Message, error) {
	return s.Say(user, channel, "<@"+Bot+"> "+text)
}

// DM writes in the user's direct channel with nize.
func (s *Server) DM(user, text string) (Message, error) { return s.Say(user, s.DMChannel(user), text) }

// DMChannel returns a user's direct channel with nize.
func (s *Server) DMChannel(user string) string {
	return chattest.Get(&s.Base, func() string { return s.directLocked(Bot, user).ID })
}

// Typed returns a text as a client sends it: @names become mentions.
func (s *Server) Typed(text string) string {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for _, u := range s.world.users {
		text = strings.ReplaceAll(text, "@"+u.Name, "<@"+u.ID+">")
	}
	return text
}

// BeginThread begins a thread below a message, as a person.
func (s *Server) BeginThread(user string, at Message, name string) (out Channel, err error) {
	err = s.Try(func() error {
		m := s.world.message(at.Channel, at.ID)
		if m == nil || m.Thread != "" || s.world.channel(at.Channel).Type != TextChannel {
			return noSuch("message for a thread", at.ID)
		}
		out = s.threadLocked(m, threadEdit{Name: &name}, user).clone()
		return nil
	})
	return out, err
}

// Archive archives a thread; a new message unarchives it unless it is locked.
func (s *Server) Archive(id string, locked bool) error {
	return s.Try(func() error {
		c := s.world.channel(id)
		if c == nil || !c.thread() {
			return noSuch("thread", id)
		}
		c.Archived, c.Locked = true, locked
		s.threadEventLocked(c, "THREAD_UPDATE")
		return nil
	})
}

// componentData is the data of a press.
type componentData struct {
	CustomID string   `json:"custom_id"`
	Type     int      `json:"component_type"`
	Values   []string `json:"values,omitempty"`
}

// Press presses a button of a message and waits for the bot's answer. The button is a
// custom id, a prefix that ends in *, or its label.
func (s *Server) Press(ctx context.Context, user string, at Message, button string) error {
	return s.Choose(ctx, user, at, button)
}

// Choose selects values in a select of a message.
func (s *Server) Choose(ctx context.Context, user string, at Message, what string, values ...string) error {
	return s.ask(ctx, &interaction{kind: pressKind, user: user, channel: at.Channel, message: at.ID}, func(*Channel) (any, error) {
		m := s.world.message(at.Channel, at.ID)
		if m == nil || m.For != "" && m.For != user {
			return nil, fmt.Errorf("discordtest: %s sees no message %s", user, at.ID)
		}
		p, err := m.part(what)
		return componentData{CustomID: p.ID, Type: p.Type, Values: values}, err
	})
}

// PressRaw presses a button that the message may no longer show, like a client that hasn't
// received the update yet.
func (s *Server) PressRaw(ctx context.Context, user string, at Message, customID string) error {
	return s.ask(ctx, &interaction{kind: pressKind, user: user, channel: at.Channel, message: at.ID}, func(*Channel) (any, error) {
		return componentData{CustomID: customID, Type: button}, nil
	})
}

// part returns the component with that name.
func (m *Message) part(what string) (Component, error) {
	var have []string
	for _, p := range m.Parts() {
		if p.ID == "" {
			continue
		}
		prefix, star := strings.CutSuffix(what, "*")
		switch is := p.ID == what || p.Label == what || star && strings.HasPrefix(p.ID, prefix); {
		case is && p.Disabled:
			return p, fmt.Errorf("discordtest: %q is greyed out", what)
		case is:
			return p, nil
		}
		have = append(have, p.Label+"="+p.ID)
	}
	return Component{}, fmt.Errorf("discordtest: nothing to press is called %q; there are %s", what, strings.Join(have, ", "))
}

// Buttons returns the labels of a message's buttons and selects.
func (m Message) Buttons() (list []string) {
	for _, p := range m.Parts() {
		if p.Type == button && !p.Disabled {
			list = append(list, p.Label)
		}
	}
	return list
}

// Parts returns a message's components in order, outer ones first.
func (m Message) Parts() []Component { return parts(m.Components) }

// componentText returns the text of a message's components.
func (m Message) componentText() string {
	var b strings.Builder
	for _, p := range m.Parts() {
		if p.Content != "" {
			b.WriteString(p.Content + "\n")
		}
	}
	return b.String()
}

// EmbedText returns the text of a message's embeds, in Markdown.
func (m Message) EmbedText() string {
	var embeds []embed
	_ = json.Unmarshal(m.Embeds, &embeds) // our own
	var text []string
	for _, e := range embeds {
		text = append(text, "**"+e.Title+"**", e.Description)
		for _, f := range e.Fields {
			text = append(text, "**"+f.Name+"**", f.Value)
		}
		text = append(text, e.Footer.Text)
	}
	return strings.Join(slices.DeleteFunc(text, func(t string) bool { return t == "" || t == "****" }), "\n")
}

// Text returns all text of a message: its content, embeds and components.
func (m Message) Text() string {
	text := []string{m.Content, m.EmbedText(), m.componentText()}
	return strings.TrimSpace(strings.Join(slices.DeleteFunc(text, func(t string) bool { return t == "" }), "\n"))
}

// Dialog is a modal shown to a user.
type Dialog struct {
	ID, User, Channel, CustomID, Title string
	Fields                             []Component // with the texts of their labels
	from                               string
}

func fieldsOf(roots []Component) (list []Component) {
	for _, p := range roots {
		switch p.Type {
		case actionRow:
			list = append(list, p.Components...)
		case labelBox:
			p.Component.Label, p.Component.Description, p.Component.labelled = p.Label, p.Description, true
			list = append(list, *p.Component)
		default:
			list = append(list, p)
		}
	}
	return list
}

// Chosen returns the preselected values of a list.
func (p Component) Chosen() (list []string) {
	for _, o := range p.Options {
		if o.Default {
			list = append(list, o.Value)
		}
	}
	return list
}

// offers reports whether all of these are options of a list.
func (p Component) offers(values []string) bool {
	return !slices.ContainsFunc(values, func(v string) bool {
		return !slices.ContainsFunc(p.Options, func(o SelectOption) bool { return o.Value == v })
	})
}

// Needed reports whether it must be filled in.
func (p Component) Needed() bool { return p.Required == nil || *p.Required }

// Dialog returns the modal that a user sees, and whether there is one.
func (s *Server) Dialog(user string) (Dialog, bool) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if d := s.dialogs[user]; d != nil {
		return *d, true
	}
	return Dialog{}, false
}

// CloseDialog closes it without an event.
func (s *Server) CloseDialog(user string) { s.Change(func() { delete(s.dialogs, user) }) }

// modalData is the data of a submitted modal.
type modalData struct {
	CustomID   string     `json:"custom_id"`
	Components []modalRow `json:"components"`
}

type modalRow struct {
	Type       int          `json:"type"`
	Components []modalField `json:"components,omitempty"`
	Component  *modalField  `json:"component,omitempty"`
}

type modalField struct {
	Type     int      `json:"type"`
	CustomID string   `json:"custom_id"`
	Value    *string  `json:"value,omitempty"`
	Values   []string `json:"values,omitempty"`
}

// Submit submits the dialog that the user sees. A field is named by its custom id or its
// label; other fields keep the bot's values.
func (s *Server) Submit(ctx context.Context, user string, values map[string][]string) error {
	d, open := s.Dialog(user)
	if !open {
		return fmt.Errorf("discordtest: %s has no open dialog", user)
	}
	if err := s.ask(ctx, &interaction{kind: submitKind, user: user, channel: d.Channel, message: d.from}, func(*Channel) (any, error) { return d.fill(values) }); err != nil {
		return err // the client keeps it open and reports an error
	}
	s.Change(func() {
		if now := s.dialogs[user]; now != nil && now.ID == d.ID {
			delete(s.dialogs, user)
		}
	})
	return nil
}

func (d *Dialog) fill(values map[string][]string) (any, error) {
	out := modalData{CustomID: d.CustomID, Components: []modalRow{}}
	for name := range values {
		if !slices.ContainsFunc(d.Fields, func(f Component) bool { return name == f.ID || name == f.Label }) {
			return out, fmt.Errorf("discordtest: the dialog has no field %s", name)
		}
	}
	for _, f := range d.Fields {
		given, ok := values[f.ID]
		if !ok {
			given, ok = values[f.Label]
		}
		if !ok {
			given = f.Chosen()
			if f.Value != "" {
				given = []string{f.Value}
			}
		}
		field, row := modalField{Type: f.Type, CustomID: f.ID, Values: given}, modalRow{Type: actionRow}
		text := strings.Join(given, "")
		switch n := utf8.RuneCountInString(text); {
		case f.Type == textDisplay:
			out.Components = append(out.Components, modalRow{Type: textDisplay})
			continue
		case f.Needed() && text == "", f.Type == textInput && (n > f.most() || n > 0 && n < f.MinLength), f.Type == stringSelect && !f.offers(given):
			return out, fmt.Errorf("discordtest: %s does not take this", f.ID)
		case f.Type == textInput:
			field.Value, field.Values = &text, nil
		}
		if f.labelled {
			row.Type, row.Component = labelBox, &field
		} else {
			row.Components = []modalField{field}
		}
		out.Components = append(out.Components, row)
	}
	return out, nil
}

// Slash runs a typed command: see typedLocked.
func (s *Server) Slash(ctx context.Context, user, channel, text string) error {
	return s.ask(ctx, &interaction{kind: slashKind, user: user, channel: channel}, func(c *Channel) (any, error) { return s.typedLocked(c, text, false) })
}

// Complete returns the choices that the bot offers while a command is typed.
func (s *Server) Complete(ctx context.Context, user, channel, text string) ([]Choice, error) {
	in := &interaction{kind: typingKind, user: user, channel: channel}
	err := s.ask(ctx, in, func(c *Channel) (any, error) { return s.typedLocked(c, text, true) })
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return slices.Clone(in.choices), err
}

// Menu runs a command on a message.
func (s *Server) Menu(ctx context.Context, user string, at Message, name string) error {
	return s.ask(ctx, &interaction{kind: slashKind, user: user, channel: at.Channel}, func(c *Channel) (any, error) {
		m := s.world.message(at.Channel, at.ID)
		if m == nil {
			return nil, noSuch("message", at.ID)
		}
		data, _, err := s.commandLocked(c, 3, name)
		data.TargetID, data.Resolved.Messages = m.ID, map[string]*wireMessage{m.ID: s.wireLocked(m, true)}
		return data, err
	})
}

// Messages returns the messages of a channel or thread in order, without ephemeral ones.
func (s *Server) Messages(channel string) []Message {
	return s.read(channel, func(m *Message) bool { return m.For == "" && m.Type != starterType })
}

// Ephemerals returns the messages of a channel that only this user sees.
func (s *Server) Ephemerals(channel, user string) []Message {
	return s.read(channel, func(m *Message) bool { return m.For == user })
}

// Visible returns everything that a user sees in a channel.
func (s *Server) Visible(channel, user string) []Message {
	return s.read(channel, func(m *Message) bool { return (m.For == "" || m.For == user) && m.Type != starterType })
}

func (s *Server) read(channel string, want func(*Message) bool) []Message {
	return chattest.Read(&s.Base, func() []*Message { return s.world.messages[channel] }, func(m *Message) bool { return !m.deleted && want(m) }, (*Message).clone)
}

func (m *Message) clone() Message {
	out := *m
	out.Versions, out.Files = slices.Clone(m.Versions), slices.Clone(m.Files)
	return out
}

// Message returns the current version of a message, and whether it exists.
func (s *Server) Message(channel, id string) (Message, bool) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if m := s.world.message(channel, id); m != nil {
		return m.clone(), true
	}
	return Message{}, false
}

func (c *Channel) clone() Channel {
	out := *c
	out.Members = slices.Clone(c.Members)
	return out
}

// Channel returns a channel, thread or direct channel by its id.
func (s *Server) Channel(id string) (Channel, bool) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if c := s.world.channel(id); c != nil {
		return c.clone(), true
	}
	return Channel{}, false
}

// Channels returns the channels, threads and direct channels that a user sees.
func (s *Server) Channels(user string) []Channel {
	return chattest.Read(&s.Base, func() []*Channel { return s.world.channels }, func(c *Channel) bool { return s.world.sees(c, user) }, (*Channel).clone)
}

// Users returns all users, including bots.
func (s *Server) Users() []User {
	return chattest.Read(&s.Base, func() []*User { return s.world.users }, nil, func(u *User) User { return *u })
}

// AddChannel adds a channel to its guild, or replaces it.
func (s *Server) AddChannel(c Channel) {
	c = c.clone()
	s.Change(func() {
		name := "CHANNEL_UPDATE"
		if chattest.Put(&s.world.channels, c, func(old *Channel) bool { return old.ID == c.ID }) {
			name = "CHANNEL_CREATE"
		}
		if s.world.sees(&c, Bot) {
			s.eventLocked(Guilds, name, same(s.wireChannelLocked(&c)))
		}
	})
}

// Leave removes a user from a guild; for nize, as if it had been kicked.
func (s *Server) Leave(guild, user string) error {
	return s.Try(func() error {
		g := s.world.guild(guild)
		if g.member(user) == nil {
			return noSuch("member", user)
		}
		s.leaveLocked(g, user)
		return nil
	})
}

// InGuild reports whether a user is in a guild.
func (s *Server) InGuild(guild, user string) bool {
	return chattest.Get(&s.Base, func() bool { return s.world.guild(guild).member(user) != nil })
}
