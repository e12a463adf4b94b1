package discordtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Said is a message that a person writes.
type Said struct {
	User, Channel, Text string
	Files               []File
	Reply               string // the message that it answers; its author is mentioned
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
	m := &Message{ID: s.idLocked(), Channel: c.ID, Author: said.User, Reply: said.Reply}
	if m.Reply != "" {
		m.Type = replyType
	}
	for _, f := range said.Files {
		m.Files = append(m.Files, s.hostLocked(c.ID, f))
	}
	text := said.Text
	s.applyLocked(m, draft{Content: &text}, nil)
	if to := s.world.message(c.ID, m.Reply); to != nil && !slices.Contains(m.mentions, to.Author) {
		m.mentions = append(m.mentions, to.Author)
	}
	s.addLocked(m)
	s.TouchLocked()
	return m.clone(), nil
}

// Say writes a text in a channel or thread.
func (s *Server) Say(user, channel, text string) (Message, error) {
	return s.Post(Said{User: user, Channel: channel, Text: text})
}

// Mention writes a text that begins with nize's name.
func (s *Server) Mention(user, channel, text string) (Message, error) {
	return s.Say(user, channel, "<@"+Bot+"> "+text)
}

// DM writes to nize alone.
func (s *Server) DM(user, text string) (Message, error) { return s.Say(user, s.DMChannel(user), text) }

// DMChannel is a user's conversation with nize.
func (s *Server) DMChannel(user string) string {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.directLocked(Bot, user).ID
}

// Typed is a text as a client sends it: @names become mentions.
func (s *Server) Typed(text string) string {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for _, u := range s.world.users {
		text = strings.ReplaceAll(text, "@"+u.Name, "<@"+u.ID+">")
	}
	return text
}

// Edit changes what a person wrote.
func (s *Server) Edit(user string, at Message, text string) error {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	m := s.world.message(at.Channel, at.ID)
	if m == nil || m.Author != user {
		return noSuch("message of "+user, at.ID)
	}
	s.applyLocked(m, draft{Content: &text}, nil)
	m.Edited = s.opt.Now()
	s.updatedLocked(m)
	s.TouchLocked()
	return nil
}

// Delete takes a message away, as its author or a moderator would.
func (s *Server) Delete(at Message) error {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	m := s.world.message(at.Channel, at.ID)
	if m == nil {
		return noSuch("message", at.ID)
	}
	s.deleteLocked(m)
	s.TouchLocked()
	return nil
}

// BeginThread begins a thread below a message, as a person.
func (s *Server) BeginThread(user string, at Message, name string) (Channel, error) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	m, c := s.world.message(at.Channel, at.ID), s.world.channel(at.Channel)
	if m == nil || m.Thread != "" || c.Type != TextChannel {
		return Channel{}, noSuch("message for a thread", at.ID)
	}
	t := s.threadLocked(c, m.ID, threadRequest{Name: name}, user)
	m.Thread, m.Flags = t.ID, m.Flags|HasThread
	s.updatedLocked(m)
	s.TouchLocked()
	return t.clone(), nil
}

// Archive closes a thread; a new message opens it again unless it is locked.
func (s *Server) Archive(id string, locked bool) error {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	c := s.world.channel(id)
	if c == nil || !c.thread() {
		return noSuch("thread", id)
	}
	c.Archived, c.Locked = true, locked
	s.threadEventLocked(c, "THREAD_UPDATE")
	s.TouchLocked()
	return nil
}

// componentData is the data of a press.
type componentData struct {
	CustomID string    `json:"custom_id"`
	Type     int       `json:"component_type"`
	Values   []string  `json:"values,omitempty"`
	Resolved *resolved `json:"resolved,omitempty"`
}

// Press presses a button of a message and waits until the bot answered. The
// button is a custom id, the beginning of one that ends in *, or its label.
func (s *Server) Press(ctx context.Context, user string, at Message, button string) error {
	return s.Choose(ctx, user, at, button)
}

// Choose picks values in a select of a message.
func (s *Server) Choose(ctx context.Context, user string, at Message, what string, values ...string) error {
	s.Mu.Lock()
	m := s.world.message(at.Channel, at.ID)
	if m == nil || m.For != "" && m.For != user || !s.world.sees(s.world.channel(at.Channel), user) {
		s.Mu.Unlock()
		return fmt.Errorf("discordtest: %s sees no message %s", user, at.ID)
	}
	p, err := findPart(m.Components, what)
	s.Mu.Unlock()
	if err != nil {
		return err
	}
	return s.ask(ctx, &interaction{kind: pressKind, user: user, channel: at.Channel, message: at.ID}, componentData{CustomID: *p.CustomID, Type: p.Type, Values: values})
}

// PressRaw presses a button that the message may not show any more, as a client
// that did not hear of it yet.
func (s *Server) PressRaw(ctx context.Context, user string, at Message, customID string) error {
	return s.ask(ctx, &interaction{kind: pressKind, user: user, channel: at.Channel, message: at.ID}, componentData{CustomID: customID, Type: button})
}

func findPart(raw json.RawMessage, what string) (component, error) {
	var have []string
	for _, p := range parts(raw) {
		if p.CustomID == nil || p.Type == labelBox {
			continue
		}
		prefix, star := strings.CutSuffix(what, "*")
		if *p.CustomID == what || p.Label == what || star && strings.HasPrefix(*p.CustomID, prefix) {
			if p.Disabled {
				return p, fmt.Errorf("discordtest: %q is greyed out", what)
			}
			return p, nil
		}
		have = append(have, p.Label+"="+*p.CustomID)
	}
	return component{}, fmt.Errorf("discordtest: nothing to press is called %q; there are %s", what, strings.Join(have, ", "))
}

// Buttons are the labels of what one can press on a message.
func (m Message) Buttons() []string {
	var list []string
	for _, p := range parts(m.Components) {
		if p.Type == button && !p.Disabled {
			list = append(list, p.Label)
		}
	}
	return list
}

// Part is one thing of a message's components: a text, a line, the beginning of a
// row, or what one can press.
type Part struct {
	ID, Label, Text, URL, Placeholder string
	Style                             int
	Row, Line, Disabled               bool
	Options                           []Choice
}

// Parts are what the components of a message show, in order.
func (m Message) Parts() []Part {
	var list []Part
	for _, p := range parts(m.Components) {
		switch p.Type {
		case textDisplay:
			list = append(list, Part{Text: p.Content})
		case separator:
			list = append(list, Part{Line: true})
		case actionRow:
			list = append(list, Part{Row: true})
		case button, stringSelect:
			one := Part{Label: p.Label, URL: p.URL, Placeholder: p.Placeholder, Style: p.Style, Disabled: p.Disabled, Options: choicesOf(p)}
			if p.CustomID != nil {
				one.ID = *p.CustomID
			}
			list = append(list, one)
		}
	}
	return list
}

func choicesOf(p component) (list []Choice) {
	for _, o := range p.Options {
		list = append(list, Choice{Name: o.Label, Value: mustJSON(o.Value)})
	}
	return list
}

// EmbedText is what a message's embeds say, in Markdown.
func (m Message) EmbedText() string {
	var embeds []embed
	_ = json.Unmarshal(m.Embeds, &embeds) // our own
	var text []string
	add := func(before, s, after string) {
		if s != "" {
			text = append(text, before+s+after)
		}
	}
	for _, e := range embeds {
		add("**", e.Title, "**")
		add("", e.Description, "")
		for _, f := range e.Fields {
			add("**", f.Name, "**")
			add("", f.Value, "")
		}
		if e.Footer != nil {
			add("", e.Footer.Text, "")
		}
	}
	return strings.Join(text, "\n")
}

// Text is everything that a message says: its content, embeds and components.
func (m Message) Text() string {
	text := []string{m.Content, m.EmbedText(), textOf(m.Components)}
	return strings.TrimSpace(strings.Join(slices.DeleteFunc(text, func(t string) bool { return t == "" }), "\n"))
}

// Dialog is a modal that somebody sees.
type Dialog struct {
	ID, User, Channel, CustomID, Title string
	Fields                             []Field
	from                               string
}

// Field is a part of a dialog.
type Field struct {
	ID, Label, Description, Text string
	Value, Placeholder           string
	Type                         int
	Long, Required               bool
	Min, Max                     int
	Options                      []Choice
	chosen                       []string // of a list, as the bot filled it in
	labelled                     bool
}

func fieldsOf(list []json.RawMessage) []Field {
	var fields []Field
	for _, raw := range list {
		var label component
		for _, p := range parts(raw) {
			f := Field{Type: p.Type, Label: p.Label, Value: p.Value, Placeholder: p.Placeholder, Long: p.Style == 2, Min: p.MinLength, Max: 4000,
				Required: p.Required == nil || *p.Required}
			if p.CustomID != nil {
				f.ID = *p.CustomID
			}
			if p.MaxLength != nil {
				f.Max = *p.MaxLength
			}
			switch p.Type {
			case labelBox:
				label = p
				continue
			case textDisplay:
				fields = append(fields, Field{Type: p.Type, Text: p.Content})
				continue
			case actionRow:
				continue
			}
			if label.Type != 0 {
				f.Label, f.Description, f.labelled = label.Label, label.Description, true
			}
			f.Options = choicesOf(p)
			for _, o := range p.Options {
				if o.Default {
					f.Value = o.Value
					f.chosen = append(f.chosen, o.Value)
				}
			}
			fields = append(fields, f)
		}
	}
	return fields
}

// Dialog is the modal that a user sees, and whether there is one.
func (s *Server) Dialog(user string) (Dialog, bool) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if d := s.dialogs[user]; d != nil {
		return *d, true
	}
	return Dialog{}, false
}

// CloseDialog closes it; nobody is told.
func (s *Server) CloseDialog(user string) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	delete(s.dialogs, user)
	s.TouchLocked()
}

// modalData is the data of a modal that was sent.
type modalData struct {
	CustomID   string     `json:"custom_id"`
	Components []modalRow `json:"components"`
}

type modalRow struct {
	Type       int          `json:"type"`
	ID         int          `json:"id"`
	Components []modalField `json:"components,omitempty"`
	Component  *modalField  `json:"component,omitempty"`
}

type modalField struct {
	Type     int      `json:"type"`
	ID       int      `json:"id"`
	CustomID string   `json:"custom_id"`
	Value    *string  `json:"value,omitempty"`
	Values   []string `json:"values,omitempty"`
}

// ErrField is what Discord's client itself does not send: a field that is too
// long or empty.
var ErrField = errors.New("discordtest: the field does not take this")

// Submit sends the dialog that the user sees. A field is named by its custom id or
// its label; what is not named stays as the bot filled it in.
func (s *Server) Submit(ctx context.Context, user string, values map[string][]string) error {
	s.Mu.Lock()
	d := s.dialogs[user]
	if d == nil {
		s.Mu.Unlock()
		return fmt.Errorf("discordtest: %s has no open dialog", user)
	}
	out, err := d.fill(values)
	s.Mu.Unlock()
	if err != nil {
		return err
	}
	if err := s.ask(ctx, &interaction{kind: submitKind, user: user, channel: d.Channel, message: d.from}, out); err != nil {
		return err // the client keeps it open and says that something went wrong
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.dialogs[user] == d {
		delete(s.dialogs, user)
		s.TouchLocked()
	}
	return nil
}

func (f *Field) named(name string) bool { return name == f.ID || name == f.Label }

func (d *Dialog) fill(values map[string][]string) (modalData, error) {
	out := modalData{CustomID: d.CustomID, Components: []modalRow{}}
	for name := range values {
		if !slices.ContainsFunc(d.Fields, func(f Field) bool { return f.named(name) }) {
			return out, fmt.Errorf("discordtest: the dialog has no field %s", name)
		}
	}
	for n, f := range d.Fields {
		row := modalRow{Type: actionRow, ID: 2*n + 1}
		field := modalField{Type: f.Type, ID: 2*n + 2, CustomID: f.ID}
		given, ok := values[f.ID]
		if !ok {
			given, ok = values[f.Label]
		}
		if !ok && f.Value != "" {
			if given = f.chosen; given == nil {
				given = []string{f.Value}
			}
		}
		text := strings.Join(given, "")
		switch length := utf8.RuneCountInString(text); {
		case f.Type == textDisplay:
			out.Components = append(out.Components, modalRow{Type: textDisplay, ID: row.ID})
			continue
		case f.Required && len(given) == 0 || f.Type == textInput && (f.Required && text == "" || length > f.Max || text != "" && length < f.Min):
			return out, fmt.Errorf("%w: %s", ErrField, f.ID)
		case f.Type == textInput:
			field.Value = &text
		default:
			field.Values = append([]string{}, given...)
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

// Slash runs a command, as people type it: see typedLocked.
func (s *Server) Slash(ctx context.Context, user, channel, text string) error {
	data, err := s.typed(channel, text, false)
	if err != nil {
		return err
	}
	return s.ask(ctx, &interaction{kind: slashKind, user: user, channel: channel}, data)
}

func (s *Server) typed(channel, text string, focus bool) (commandData, error) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	c := s.world.channel(channel)
	if c == nil {
		return commandData{}, noSuch("channel", channel)
	}
	return s.typedLocked(c, text, focus)
}

// Complete are the choices that the bot offers while a command is typed.
func (s *Server) Complete(ctx context.Context, user, channel, text string) ([]Choice, error) {
	data, err := s.typed(channel, text, true)
	if err != nil {
		return nil, err
	}
	in := &interaction{kind: typingKind, user: user, channel: channel}
	if err := s.ask(ctx, in, data); err != nil {
		return nil, err
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return slices.Clone(in.choices), nil
}

// Menu runs a command on a message.
func (s *Server) Menu(ctx context.Context, user string, at Message, name string) error {
	s.Mu.Lock()
	m, c := s.world.message(at.Channel, at.ID), s.world.channel(at.Channel)
	if m == nil {
		s.Mu.Unlock()
		return noSuch("message", at.ID)
	}
	cmd, ok := s.commandLocked(c, 3, name)
	data := commandData{ID: cmd.ID, Name: name, Type: 3, GuildID: cmd.GuildID, TargetID: m.ID, Resolved: &resolved{Messages: map[string]wireMessage{m.ID: s.wireLocked(m, true)}}}
	s.Mu.Unlock()
	if !ok {
		return errNoCommand
	}
	return s.ask(ctx, &interaction{kind: slashKind, user: user, channel: at.Channel}, data)
}

// Messages are those that stand in a channel or thread in order, those for one
// alone not.
func (s *Server) Messages(channel string) []Message {
	return s.read(channel, func(m *Message) bool { return m.For == "" && m.Type != starterType })
}

// Ephemerals are the messages of a channel that only this user sees.
func (s *Server) Ephemerals(channel, user string) []Message {
	return s.read(channel, func(m *Message) bool { return m.For == user })
}

// Visible is everything that a user sees in a channel.
func (s *Server) Visible(channel, user string) []Message {
	return s.read(channel, func(m *Message) bool { return (m.For == "" || m.For == user) && m.Type != starterType })
}

func (s *Server) read(channel string, want func(*Message) bool) []Message {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	var list []Message
	for _, m := range s.world.messages[channel] {
		if !m.deleted && want(m) {
			list = append(list, m.clone())
		}
	}
	return list
}

func (m *Message) clone() Message {
	out := *m
	out.Versions, out.Files = slices.Clone(m.Versions), slices.Clone(m.Files)
	return out
}

// Message is one message as it stands, and whether it does.
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
	out.Members, out.Managers = slices.Clone(c.Members), slices.Clone(c.Managers)
	return out
}

// Channel is a channel, thread or direct conversation by its id.
func (s *Server) Channel(id string) (Channel, bool) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if c := s.world.channel(id); c != nil {
		return c.clone(), true
	}
	return Channel{}, false
}

// Channels are what a user sees: channels, threads and direct conversations.
func (s *Server) Channels(user string) []Channel {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	var list []Channel
	for _, c := range s.world.channels {
		if !c.deleted && s.world.sees(c, user) {
			list = append(list, c.clone())
		}
	}
	return list
}

// Users are everybody, bots too.
func (s *Server) Users() []User {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	var list []User
	for _, u := range s.world.users {
		list = append(list, *u)
	}
	return list
}

// AddUser puts somebody on the platform, or replaces who has that id.
func (s *Server) AddUser(u User) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if old := s.world.user(u.ID); old != nil {
		*old = u
	} else {
		s.world.users = append(s.world.users, &u)
	}
	s.TouchLocked()
}

// AddChannel puts a channel into its guild, or replaces it.
func (s *Server) AddChannel(c Channel) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	c = c.clone()
	name := "CHANNEL_CREATE"
	if old := s.world.channel(c.ID); old != nil {
		*old, name = c, "CHANNEL_UPDATE"
	} else {
		s.world.channels = append(s.world.channels, &c)
	}
	if s.world.sees(&c, Bot) {
		s.eventLocked(Guilds, name, same(s.wireChannelLocked(&c)))
	}
	s.TouchLocked()
}

// Join puts somebody into a guild; nize too.
func (s *Server) Join(guild, user string, roles ...string) error {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	g := s.world.guild(guild)
	if g == nil || s.world.user(user) == nil {
		return noSuch("guild or user", guild+" "+user)
	}
	if g.member(user) != nil {
		return fmt.Errorf("discordtest: %s is in %s already", user, g.name)
	}
	m := &Member{User: user, Roles: append([]string{}, roles...), Joined: s.opt.Now()}
	g.members = append(g.members, m)
	if user == Bot {
		s.eventLocked(Guilds, "GUILD_CREATE", same(s.guildCreateLocked(g)))
	} else {
		s.memberEventLocked(g, m, "GUILD_MEMBER_ADD")
	}
	s.TouchLocked()
	return nil
}

func (s *Server) memberEventLocked(g *guild, m *Member, name string) {
	w := s.world.wireMember(m, true)
	w.GuildID = g.id
	s.guildEventLocked(g, GuildMembers, name, w)
}

// Leave takes somebody out of a guild; nize too, as if it had been kicked.
func (s *Server) Leave(guild, user string) error {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	g := s.world.guild(guild)
	if g == nil || g.member(user) == nil {
		return noSuch("member", user)
	}
	s.leaveLocked(g, user)
	s.TouchLocked()
	return nil
}

// InGuild says whether somebody is in a guild.
func (s *Server) InGuild(guild, user string) bool {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.world.guild(guild).member(user) != nil
}
