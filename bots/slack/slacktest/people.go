package slacktest

import (
	"encoding/json"
	"fmt"
	"nize/bots/chattest"
	"slices"
	"strings"
)

// Said is a person's message.
type Said struct {
	User, Channel string
	Thread        string // ts of the thread's root; empty for a new one
	Text          string // as sent by the client: see [Server.Typed]
	Blocks        json.RawMessage
	Attachments   json.RawMessage
	Files         []File
	BotID         string // for a message of another app; filled in for its user
	Subtype       string
}

// Post posts a message; the other methods for messages use it.
func (s *Server) Post(said Said) (Message, error) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	u, c := s.world.user(said.User), s.world.channel(said.Channel)
	switch {
	case u == nil:
		return Message{}, fmt.Errorf("slacktest: no user %s", said.User)
	case c == nil, !c.has(u.ID):
		return Message{}, fmt.Errorf("slacktest: %s is in no channel %s", said.User, said.Channel)
	case u.Deleted:
		return Message{}, fmt.Errorf("slacktest: %s was deactivated", said.User)
	}
	m := &Message{Channel: c.ID, ThreadTS: said.Thread, User: u.ID, BotID: said.BotID, Text: said.Text, Blocks: said.Blocks, Attachments: said.Attachments, Subtype: said.Subtype, Unfurl: true, Mrkdwn: true}
	if m.ThreadTS != "" && s.world.message(c.ID, m.ThreadTS) == nil && !s.opt.Assistant {
		return Message{}, fmt.Errorf("slacktest: no thread %s in %s", said.Thread, said.Channel)
	}
	if u.Bot && m.BotID == "" {
		m.BotID = botIDOf(u.ID)
	}
	if m.Blocks == nil && !u.Bot {
		m.Blocks = s.richLocked(said.Text)
	}
	for _, f := range said.Files {
		if f.ID == "" {
			f.ID = s.idLocked("F")
		}
		if f.Title == "" {
			f.Title = f.Name
		}
		f.User = u.ID
		s.world.files[f.ID] = &f
		m.Files = append(m.Files, f)
		if m.Subtype == "" {
			m.Subtype = "file_share"
		}
	}
	s.standLocked(m)
	return m.clone(), nil
}

// Say writes a message in a channel.
func (s *Server) Say(user, channel, text string) (Message, error) {
	return s.Post(Said{User: user, Channel: channel, Text: text})
}

// Reply writes in a message's thread.
func (s *Server) Reply(user string, to Message, text string) (Message, error) {
	return s.Post(Said{User: user, Channel: to.Channel, Thread: to.Root(), Text: text})
}

// Mention writes a message that mentions nize in a channel.
func (s *Server) Mention(user, channel, text string) (Message, error) {
	return s.Say(user, channel, "<@"+Bot+"> "+text)
}

// DM writes in the user's direct conversation with nize.
func (s *Server) DM(user, text string) (Message, error) {
	return s.Say(user, s.DMChannel(user), text)
}

// DMChannel returns a user's direct conversation with nize.
func (s *Server) DMChannel(user string) string {
	return chattest.Get(&s.Base, func() string { return s.world.direct(user, Bot).ID })
}

// Join adds a user to a channel; Leave removes them.
func (s *Server) Join(user, channel string) error { return s.member(user, channel, true) }

// Leave is Join's opposite.
func (s *Server) Leave(user, channel string) error { return s.member(user, channel, false) }

func (s *Server) member(user, channel string, in bool) error {
	return s.Try(func() error {
		c := s.world.channel(channel)
		if c == nil || s.world.user(user) == nil {
			return fmt.Errorf("slacktest: no user %s or no channel %s", user, channel)
		}
		name := "member_joined_channel"
		switch {
		case in == c.has(user):
			return nil
		case in:
			c.Members = append(c.Members, user)
		default:
			c.Members = slices.DeleteFunc(slices.Clone(c.Members), func(u string) bool { return u == user })
			name = "member_left_channel"
		}
		s.happenedLocked(name, event{User: user, Channel: c.ID, ChannelType: "C", Team: Team})
		return nil
	})
}

// event is an event other than a message, with the fields of those that nize may subscribe
// to.
type event struct {
	Type        string           `json:"type"`
	User        any              `json:"user,omitempty"`
	Channel     string           `json:"channel,omitempty"`
	ChannelType string           `json:"channel_type,omitempty"`
	Team        string           `json:"team,omitempty"`
	TeamID      string           `json:"team_id,omitempty"`
	ThreadTS    string           `json:"thread_ts,omitempty"`
	Streams     []string         `json:"streaming_message_ts,omitempty"`
	Title       string           `json:"title,omitempty"`
	Previous    string           `json:"previous_title,omitempty"`
	Tab         string           `json:"tab,omitempty"`
	View        *wireView        `json:"view,omitempty"`
	Tokens      *revoked         `json:"tokens,omitempty"`
	Thread      *assistantThread `json:"assistant_thread,omitempty"`
	Context     *appContext      `json:"context,omitempty"`
	EventTS     string           `json:"event_ts"`
}

type revoked struct {
	OAuth []string `json:"oauth"`
	Bot   []string `json:"bot"`
}

// assistantThread is the context of a thread in the older view.
type assistantThread struct {
	User     string     `json:"user_id"`
	Context  channelRef `json:"context"`
	Channel  string     `json:"channel_id"`
	ThreadTS string     `json:"thread_ts"`
}

type channelRef struct {
	Channel string `json:"channel_id"`
	Team    string `json:"team_id"`
}

// appContext is what a person is looking at.
type appContext struct {
	Entities []contextEntity `json:"entities"`
}

type contextEntity struct {
	Type  string `json:"type"`
	Value string `json:"value"`
	Team  string `json:"team_id"`
}

// happenedLocked sends the app an event that is not a message; s.Mu must be held.
func (s *Server) happenedLocked(name string, e event) {
	e.Type = name
	if e.EventTS == "" {
		e.EventTS = s.stampLocked()
	}
	s.eventLocked(name, e)
}

// Edit changes a person's message. As in Slack, if the edited message mentions the app,
// there is a new app_mention for the same message, with edited, in addition to the
// message_changed.
func (s *Server) Edit(m Message, text string) error {
	return s.onMessage(m, func(got *Message) {
		before := s.wireLocked(got)
		got.Text, got.Blocks = text, s.richLocked(text)
		s.changedLocked(got, before)
		if c := s.world.channel(got.Channel); c != nil && c.has(Bot) {
			w := s.wireLocked(got)
			w.Channel, w.EventTS = c.ID, w.Edited.TS
			s.mentionEventLocked(c, got, w)
		}
	})
}

// Delete removes a message.
func (s *Server) Delete(m Message) error { return s.onMessage(m, s.removeLocked) }

func (s *Server) onMessage(m Message, do func(*Message)) error {
	return s.Try(func() error {
		got := s.world.message(m.Channel, m.TS)
		if got == nil {
			return fmt.Errorf("slacktest: no message %s", m.TS)
		}
		do(got)
		return nil
	})
}

// LockThread makes an admin forbid replies to a message.
func (s *Server) LockThread(m Message) {
	s.Change(func() { s.world.locked[m.Channel+"/"+m.Root()] = true })
}

// OpenHome makes a user look at the app's Home tab.
func (s *Server) OpenHome(user string) { s.openTab(user, "home") }

// OpenDM makes a user open the direct conversation. With an older app this begins an
// assistant thread, whose ts is returned.
func (s *Server) OpenDM(user string) (ts string) {
	s.openTab(user, "messages")
	if !s.opt.Assistant {
		return ""
	}
	s.Change(func() {
		c := s.world.direct(user, Bot)
		ts = s.stampLocked()
		s.world.messages[c.ID] = append(s.world.messages[c.ID], &Message{Channel: c.ID, TS: ts, ThreadTS: ts, User: Bot, BotID: BotID, Text: "New Assistant Thread", Subtype: "assistant_app_thread"})
		s.happenedLocked("assistant_thread_started", event{EventTS: ts, Thread: &assistantThread{User: user, Channel: c.ID, ThreadTS: ts, Context: channelRef{General, Team}}})
	})
	return ts
}

func (s *Server) openTab(user, tab string) {
	s.Change(func() {
		e := event{User: user, Channel: s.world.direct(user, Bot).ID, Tab: tab}
		if v := s.world.homes[user]; v != nil && tab == "home" {
			w := v.sent()
			e.View = &w
		}
		s.happenedLocked("app_home_opened", e)
	})
}

// Look makes a user open the agent beside a channel: app_context_changed, or the older
// assistant_thread_context_changed of a thread.
func (s *Server) Look(user, at, thread string) {
	s.Change(func() {
		dm := s.world.direct(user, Bot).ID
		if s.opt.Assistant {
			s.happenedLocked("assistant_thread_context_changed", event{Thread: &assistantThread{User: user, Channel: dm, ThreadTS: thread, Context: channelRef{at, Team}}})
			return
		}
		s.happenedLocked("app_context_changed", event{User: user, Channel: dm, Context: &appContext{Entities: []contextEntity{{Type: "slack#/types/channel_id", Value: at, Team: Team}}}})
	})
}

// StopSession presses Slack's own Stop button, which exists while a session is processing:
// Slack ends the thread's streams and informs the app.
func (s *Server) StopSession(user, channel, thread string) error {
	return s.Try(func() error {
		if s.world.session(channel, thread).Status != "processing" || !slices.Contains(s.opt.Events, "agent_session_stopped") {
			return fmt.Errorf("slacktest: thread %s has no Stop button", thread)
		}
		e := event{Channel: channel, ThreadTS: thread, User: user, EventTS: s.stampLocked()}
		for _, m := range s.world.messages[channel] {
			if m.Root() == thread && m.Stream != nil && m.Stream.Open {
				s.endLocked(m, "user")
				e.Streams = append(e.Streams, m.TS)
			}
		}
		s.happenedLocked("agent_session_stopped", e)
		return nil
	})
}

// RenameSession makes a user change a thread's title.
func (s *Server) RenameSession(user, channel, thread, title string) {
	s.Change(func() {
		session := s.world.session(channel, thread)
		s.happenedLocked("agent_session_title_changed", event{Channel: channel, ThreadTS: thread, User: user, TeamID: Team, Title: title, Previous: session.Title})
		session.Title = title
	})
}

// rich is an element of the block that the client makes from typed text.
type rich struct {
	Type   string `json:"type"`
	Text   string `json:"text,omitempty"`
	User   string `json:"user_id,omitempty"`
	Group  string `json:"usergroup_id,omitempty"`
	Chan   string `json:"channel_id,omitempty"`
	Range  string `json:"range,omitempty"`
	URL    string `json:"url,omitempty"`
	Inside []rich `json:"elements,omitempty"`
}

// richLocked returns the rich_text block that the client sends with a text; s.Mu must be
// held.
func (s *Server) richLocked(typed string) json.RawMessage {
	unescape := strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")
	var parts []rich
	add := func(plain string) {
		if plain != "" {
			parts = append(parts, rich{Type: "text", Text: unescape.Replace(plain)})
		}
	}
	at := 0
	for _, m := range angle.FindAllStringSubmatchIndex(typed, -1) {
		add(typed[at:m[0]])
		at = m[1]
		target, label, _ := strings.Cut(typed[m[2]:m[3]], "|")
		switch {
		case strings.HasPrefix(target, "@"):
			parts = append(parts, rich{Type: "user", User: target[1:]})
		case strings.HasPrefix(target, "#"):
			parts = append(parts, rich{Type: "channel", Chan: target[1:]})
		case strings.HasPrefix(target, "!subteam^"):
			parts = append(parts, rich{Type: "usergroup", Group: strings.TrimPrefix(target, "!subteam^")})
		case strings.HasPrefix(target, "!"):
			parts = append(parts, rich{Type: "broadcast", Range: target[1:]})
		default:
			parts = append(parts, rich{Type: "link", URL: target, Text: label})
		}
	}
	add(typed[at:])
	if len(parts) == 0 {
		return nil
	}
	return chattest.JSON([]richBlock{{Type: "rich_text", BlockID: s.idLocked("b"), Elements: []rich{{Type: "rich_text_section", Inside: parts}}}})
}

type richBlock struct {
	Type     string `json:"type"`
	BlockID  string `json:"block_id"`
	Elements []rich `json:"elements"`
}
