package slacktest

import (
	"encoding/json"
	"fmt"
	"nize/bots/chattest"
	"slices"
	"strings"
)

// Said is a message that a person writes.
type Said struct {
	User, Channel string
	Thread        string // ts of the thread's root; empty: a new one
	Text          string // as the client sends it: see [Server.Typed]
	Blocks        json.RawMessage
	Attachments   json.RawMessage
	Files         []File
	BotID         string // of a message by another app; filled in for its user
	Subtype       string
}

// Post is what all of saying comes down to.
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

// Reply writes in the thread of a message.
func (s *Server) Reply(user string, to Message, text string) (Message, error) {
	return s.Post(Said{User: user, Channel: to.Channel, Thread: to.Root(), Text: text})
}

// Mention writes to nize in a channel.
func (s *Server) Mention(user, channel, text string) (Message, error) {
	return s.Say(user, channel, "<@"+Bot+"> "+text)
}

// DM writes to nize alone.
func (s *Server) DM(user, text string) (Message, error) {
	return s.Say(user, s.DMChannel(user), text)
}

// DMChannel is a user's direct conversation with nize.
func (s *Server) DMChannel(user string) string {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.world.direct(user, Bot).ID
}

// Join puts a user into a channel, Leave takes them out.
func (s *Server) Join(user, channel string) error { return s.member(user, channel, true) }

// Leave is Join's opposite.
func (s *Server) Leave(user, channel string) error { return s.member(user, channel, false) }

func (s *Server) member(user, channel string, in bool) error {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	c := s.world.channel(channel)
	if c == nil || s.world.user(user) == nil {
		return fmt.Errorf("slacktest: no user %s or no channel %s", user, channel)
	}
	name := "member_joined_channel"
	if in == c.has(user) {
		return nil
	}
	if in {
		c.Members = append(c.Members, user)
	} else {
		c.Members = slices.DeleteFunc(slices.Clone(c.Members), func(u string) bool { return u == user })
		name = "member_left_channel"
	}
	s.eventLocked(name, membership{Type: name, User: user, Channel: c.ID, ChannelType: "C", Team: Team, EventTS: s.stampLocked()})
	s.TouchLocked()
	return nil
}

type membership struct {
	Type        string `json:"type"`
	User        string `json:"user"`
	Channel     string `json:"channel"`
	ChannelType string `json:"channel_type"`
	Team        string `json:"team"`
	EventTS     string `json:"event_ts"`
}

// Edit changes what a person wrote, Delete takes it away. As in Slack, an edit
// that leaves the app mentioned is a new app_mention of the same message, with
// edited, besides the message_changed.
func (s *Server) Edit(m Message, text string) error {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	got := s.world.message(m.Channel, m.TS)
	if got == nil {
		return fmt.Errorf("slacktest: no message %s", m.TS)
	}
	before := s.wireLocked(got)
	got.Text, got.Blocks = text, s.richLocked(text)
	s.changedLocked(got, before)
	if c := s.world.channel(got.Channel); c != nil && c.has(Bot) {
		w := s.wireLocked(got)
		w.Channel, w.EventTS = c.ID, w.Edited.TS
		s.mentionEventLocked(c, got, w)
	}
	return nil
}

// Delete removes a message.
func (s *Server) Delete(m Message) error {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	got := s.world.message(m.Channel, m.TS)
	if got == nil {
		return fmt.Errorf("slacktest: no message %s", m.TS)
	}
	s.removeLocked(got)
	return nil
}

// homeOpened is the app_home_opened event.
type homeOpened struct {
	Type    string    `json:"type"`
	User    string    `json:"user"`
	Channel string    `json:"channel"`
	Tab     string    `json:"tab"`
	View    *wireView `json:"view,omitempty"`
	EventTS string    `json:"event_ts"`
}

// LockThread is an admin who lets nobody reply to a message any more.
func (s *Server) LockThread(m Message) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.world.locked[m.Channel+"/"+m.Root()] = true
	s.TouchLocked()
}

// OpenHome is a user who looks at the app's Home tab.
func (s *Server) OpenHome(user string) {
	s.openTab(user, "home")
}

// OpenDM is a user who opens the direct conversation. With an older app it
// begins an assistant thread, whose ts is returned.
func (s *Server) OpenDM(user string) string {
	s.openTab(user, "messages")
	if !s.opt.Assistant {
		return ""
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	c := s.world.direct(user, Bot)
	root := &Message{Channel: c.ID, TS: s.stampLocked(), User: Bot, BotID: BotID, Text: "New Assistant Thread", Subtype: "assistant_app_thread"}
	root.ThreadTS = root.TS
	s.world.messages[c.ID] = append(s.world.messages[c.ID], root)
	s.eventLocked("assistant_thread_started", assistantThread{Type: "assistant_thread_started", EventTS: root.TS,
		Thread: threadInfo{User: user, Channel: c.ID, ThreadTS: root.TS, Context: threadContext{Channel: General, Team: Team}}})
	s.TouchLocked()
	return root.TS
}

func (s *Server) openTab(user, tab string) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	e := homeOpened{Type: "app_home_opened", User: user, Channel: s.world.direct(user, Bot).ID, Tab: tab, EventTS: s.stampLocked()}
	if v := s.world.homes[user]; v != nil && tab == "home" {
		w := v.sent()
		e.View = &w
	}
	s.eventLocked("app_home_opened", e)
	s.TouchLocked()
}

type assistantThread struct {
	Type    string     `json:"type"`
	Thread  threadInfo `json:"assistant_thread"`
	EventTS string     `json:"event_ts"`
}

type threadInfo struct {
	User     string        `json:"user_id"`
	Context  threadContext `json:"context"`
	Channel  string        `json:"channel_id"`
	ThreadTS string        `json:"thread_ts"`
}

type threadContext struct {
	Channel string `json:"channel_id"`
	Team    string `json:"team_id"`
}

// Look is a user with the agent open beside a channel: app_context_changed, or
// the older assistant_thread_context_changed of a thread.
func (s *Server) Look(user, channel, thread string) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	dm, at := s.world.direct(user, Bot).ID, s.stampLocked()
	if s.opt.Assistant {
		s.eventLocked("assistant_thread_context_changed", assistantThread{Type: "assistant_thread_context_changed", EventTS: at,
			Thread: threadInfo{User: user, Channel: dm, ThreadTS: thread, Context: threadContext{Channel: channel, Team: Team}}})
		return
	}
	s.eventLocked("app_context_changed", contextChanged{Type: "app_context_changed", User: user, Channel: dm, EventTS: at,
		Context: appContext{Entities: []contextEntity{{Type: "slack#/types/channel_id", Value: channel, Team: Team}}}})
}

type contextChanged struct {
	Type    string     `json:"type"`
	Context appContext `json:"context"`
	Channel string     `json:"channel"`
	User    string     `json:"user"`
	EventTS string     `json:"event_ts"`
}

type appContext struct {
	Entities []contextEntity `json:"entities"`
}

type contextEntity struct {
	Type  string `json:"type"`
	Value string `json:"value"`
	Team  string `json:"team_id"`
}

// sessionStopped is the agent_session_stopped event.
type sessionStopped struct {
	Type     string   `json:"type"`
	Channel  string   `json:"channel"`
	ThreadTS string   `json:"thread_ts"`
	User     string   `json:"user"`
	Streams  []string `json:"streaming_message_ts,omitempty"`
	EventTS  string   `json:"event_ts"`
}

// StopSession presses Slack's own Stop button, which is there while a session
// is processing: Slack ends the thread's streams, and tells the app.
func (s *Server) StopSession(user, channel, thread string) error {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.world.session(channel, thread).Status != "processing" || !slices.Contains(s.opt.Events, "agent_session_stopped") {
		return fmt.Errorf("slacktest: thread %s has no Stop button", thread)
	}
	e := sessionStopped{Type: "agent_session_stopped", Channel: channel, ThreadTS: thread, User: user, EventTS: s.stampLocked()}
	for _, m := range s.world.messages[channel] {
		if m.Root() == thread && m.Stream != nil && m.Stream.Open {
			s.endLocked(m, "user")
			e.Streams = append(e.Streams, m.TS)
		}
	}
	s.eventLocked("agent_session_stopped", e)
	s.TouchLocked()
	return nil
}

type titleChanged struct {
	Type     string `json:"type"`
	Channel  string `json:"channel"`
	ThreadTS string `json:"thread_ts"`
	User     string `json:"user"`
	Team     string `json:"team_id"`
	Title    string `json:"title"`
	Previous string `json:"previous_title,omitempty"`
	EventTS  string `json:"event_ts"`
}

// RenameSession is a user who gives a thread another title.
func (s *Server) RenameSession(user, channel, thread, title string) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	session := s.world.session(channel, thread)
	s.eventLocked("agent_session_title_changed", titleChanged{Type: "agent_session_title_changed", Channel: channel, ThreadTS: thread, User: user, Team: Team,
		Title: title, Previous: session.Title, EventTS: s.stampLocked()})
	session.Title = title
	s.TouchLocked()
}

// rich is one element of the block that the client makes of a typed text.
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

// richLocked is the rich_text block that the client sends with a text; s.Mu
// must be held.
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
