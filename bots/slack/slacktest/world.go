package slacktest

import (
	"encoding/json"
	"fmt"
	"nize/bots/chattest"
	"slices"
	"strings"
	"time"
)

// The ids of the seeded workspace.
const (
	Team      = "T0FAKE"
	OtherTeam = "T0OTHER"
	App       = "A0NIZE"
	Bot       = "U0NIZE" // nize's user
	BotID     = "B0NIZE"

	Ann      = "U0ANN"      // admin of the workspace, English
	Ben      = "U0BEN"      // member, German
	Cho      = "U0CHO"      // member, Chinese
	Guest    = "U0GUEST"    // guest of one channel
	Stranger = "U0STRANGER" // in another workspace, by Slack Connect
	OtherBot = "U0OTHERBOT" // another app's bot

	General = "C0GENERAL" // public, with the bot and everybody
	Random  = "C0RANDOM"  // public, without the bot
	Secret  = "C0SECRET"  // private, with the bot, Ann and Ben
	Shared  = "C0SHARED"  // public, with the bot and the stranger
)

// User is a user of the workspace.
type User struct {
	ID, Name, RealName  string
	Team, Locale, Zone  string
	Admin, Bot, Deleted bool
	Guest, SingleGuest  bool // is_restricted, is_ultra_restricted
	Stranger            bool // from another workspace
	// Workspaces are the user's workspaces in an organization; Team is then the one that
	// they come from.
	Workspaces []string
}

// Channel is a conversation of any kind.
type Channel struct {
	ID, Name      string
	Private       bool
	IM, MPIM      bool
	External      bool // shared with another workspace
	Archived      bool
	Members       []string
	PinnedPrompts []Prompt // assistant.threads.setSuggestedPrompts without a thread
}

func (c *Channel) has(user string) bool { return slices.Contains(c.Members, user) }

// kind returns the channel_type for its events.
func (c *Channel) kind() string {
	switch {
	case c.IM:
		return "im"
	case c.MPIM:
		return "mpim"
	case c.Private:
		return "group"
	}
	return "channel"
}

// UserGroup is a @group.
type UserGroup struct {
	ID, Handle, Name string
	Users            []string
	Disabled         bool
}

// Version is a message's content at some time.
type Version struct {
	Text   string
	Blocks json.RawMessage
	At     time.Time
}

// Message is a message in a channel.
type Message struct {
	Channel, TS, ThreadTS string
	User, BotID, Text     string
	Blocks                json.RawMessage
	Attachments           json.RawMessage
	Subtype               string
	Versions              []Version // every version, the current one last
	Deleted               bool
	Files                 []File
	Reactions             []Reaction
	Stream                *Stream // for a streamed message
	For                   string  // the only user who sees it: an ephemeral message
	Unseen                bool    // not even they see it: its thread has no replies
	Unfurl                bool    // links in it are unfurled
	Mrkdwn                bool    // its text is formatted
	Plain                 bool    // with parse=none: text is not linked
}

// Root returns the ts of the thread that m is in or would begin.
func (m Message) Root() string {
	if m.ThreadTS != "" {
		return m.ThreadTS
	}
	return m.TS
}

// Reaction is an emoji below a message.
type Reaction struct {
	Name  string
	Users []string
}

// Prompt is a suggested prompt of the agent view.
type Prompt struct {
	Title   string `json:"title"`
	Message string `json:"message"`
}

// Session is a thread's status and title as set by the app.
type Session struct {
	Channel, ThreadTS string
	Status            string // agents.sessions.setStatus: processing, suspended, active…
	Loading           string // assistant.threads.setStatus: free text
	LoadingUntil      time.Time
	LoadingMessages   []string
	Title             string
	Prompts           []Prompt
	Statuses          []string // every status that it had
	Initiator         string
}

// world is the state guarded by the mutex.
type world struct {
	users    []*User
	channels []*Channel
	groups   []*UserGroup
	messages map[string][]*Message // keyed by channel, in order
	sessions map[string]*Session   // keyed by channel and thread
	homes    map[string]*View      // keyed by user
	stacks   map[string][]*View    // open dialogs, keyed by user, the top one last
	files    map[string]*File
	locked   map[string]bool // threads that accept no more replies, keyed by channel and thread
	events   []Event
}

func (w *world) seed() {
	*w = world{messages: map[string][]*Message{}, sessions: map[string]*Session{}, homes: map[string]*View{}, stacks: map[string][]*View{}, files: map[string]*File{}, locked: map[string]bool{}}
	w.users = []*User{
		{ID: Bot, Name: "nize", RealName: "nize", Bot: true},
		{ID: Ann, Name: "ann", RealName: "Ann Lee", Admin: true, Locale: "en-US", Zone: "America/New_York"},
		{ID: Ben, Name: "ben", RealName: "Ben Roth", Locale: "de-DE", Zone: "Europe/Berlin"},
		{ID: Cho, Name: "cho", RealName: "Cho Wang", Locale: "zh-CN", Zone: "Asia/Shanghai"},
		{ID: Guest, Name: "guest", RealName: "Gil Guest", Guest: true, SingleGuest: true},
		{ID: Stranger, Name: "stranger", RealName: "Sam Stranger", Stranger: true, Team: OtherTeam},
		{ID: OtherBot, Name: "otherbot", RealName: "Other Bot", Bot: true},
	}
	for _, u := range w.users {
		u.fill()
	}
	w.channels = []*Channel{
		{ID: General, Name: "general", Members: []string{Bot, Ann, Ben, Cho, Guest, OtherBot}},
		{ID: Random, Name: "random", Members: []string{Ann, Ben, Cho}},
		{ID: Secret, Name: "secret", Private: true, Members: []string{Bot, Ann, Ben}},
		{ID: Shared, Name: "shared", External: true, Members: []string{Bot, Ann, Stranger}},
	}
	w.groups = []*UserGroup{{ID: "S0OPS", Handle: "ops", Name: "Operators", Users: []string{Ann, Ben}}}
}

func (u *User) fill() {
	if u.Team == "" {
		u.Team = Team
	}
	if u.Locale == "" {
		u.Locale = "en-US"
	}
	if u.Zone == "" {
		u.Zone = "Etc/UTC"
	}
	if u.RealName == "" {
		u.RealName = u.Name
	}
}

func (w *world) user(id string) *User {
	return chattest.Find(w.users, func(u *User) bool { return u.ID == id })
}

func (w *world) channel(id string) *Channel {
	return chattest.Find(w.channels, func(c *Channel) bool { return c.ID == id })
}

func (w *world) message(channel, ts string) *Message {
	return chattest.Find(w.messages[channel], func(m *Message) bool { return m.TS == ts && !m.Deleted })
}

// direct returns the direct conversation of exactly these people, creating it if needed.
func (w *world) direct(ids ...string) *Channel {
	slices.Sort(ids)
	ids = slices.Compact(ids)
	for _, c := range w.channels {
		if (c.IM || c.MPIM) && slices.Equal(c.Members, ids) {
			return c
		}
	}
	c := &Channel{Members: ids}
	if len(ids) <= 2 {
		c.IM, c.ID = true, "D0"+strings.TrimPrefix(w.other(ids), "U0")
	} else {
		c.MPIM, c.Private, c.ID, c.Name = true, true, fmt.Sprintf("G0MPDM%d", len(w.channels)), fmt.Sprintf("mpdm-%d", len(w.channels))
	}
	w.channels = append(w.channels, c)
	return c
}

// other returns the other person in a bot's direct conversation.
func (w *world) other(ids []string) string {
	for _, id := range ids {
		if id != Bot {
			return id
		}
	}
	return Bot
}

// session returns the session of a thread, creating it if needed.
func (w *world) session(channel, thread string) *Session {
	key := channel + "/" + thread
	if w.sessions[key] == nil {
		w.sessions[key] = &Session{Channel: channel, ThreadTS: thread}
	}
	return w.sessions[key]
}

// idLocked returns a new id; s.Mu must be held.
func (s *Server) idLocked(prefix string) string {
	s.serial++
	return fmt.Sprintf("%s0%06d", prefix, s.serial)
}

// stampLocked returns a unique ts; s.Mu must be held.
func (s *Server) stampLocked() string {
	s.lastTS = max(s.opt.Now().UnixMicro(), s.lastTS+1)
	return fmt.Sprintf("%d.%06d", s.lastTS/1e6, s.lastTS%1e6)
}

// AddUser adds a user to the workspace, or replaces the one with that id.
func (s *Server) AddUser(u User) {
	u.fill()
	s.Change(func() { chattest.Put(&s.world.users, u, func(old *User) bool { return old.ID == u.ID }) })
}

// AddChannel adds a conversation to the workspace, or replaces it.
func (s *Server) AddChannel(c Channel) {
	s.Change(func() { chattest.Put(&s.world.channels, c.clone(), func(old *Channel) bool { return old.ID == c.ID }) })
}

// AddGroup adds a user group to the workspace, or replaces it.
func (s *Server) AddGroup(g UserGroup) {
	g.Users = slices.Clone(g.Users)
	s.Change(func() { chattest.Put(&s.world.groups, g, func(old *UserGroup) bool { return old.ID == g.ID }) })
}

// Deactivate deactivates a user's account, and informs an app that listens for user_change.
func (s *Server) Deactivate(user string) error {
	return s.Try(func() error {
		u := s.world.user(user)
		if u == nil {
			return fmt.Errorf("slacktest: no user %s", user)
		}
		u.Deleted = true
		s.happenedLocked("user_change", event{User: u.wire()})
		return nil
	})
}

// Users returns the people of the workspace, including bots.
func (s *Server) Users() []User {
	return chattest.Read(&s.Base, func() []*User { return s.world.users }, nil, func(u *User) User { return *u })
}

// Groups returns the user groups of the workspace.
func (s *Server) Groups() []UserGroup {
	return chattest.Read(&s.Base, func() []*UserGroup { return s.world.groups }, nil, func(g *UserGroup) UserGroup { return *g })
}

// Channels returns the conversations of a user.
func (s *Server) Channels(user string) []Channel {
	return chattest.Read(&s.Base, func() []*Channel { return s.world.channels }, func(c *Channel) bool { return c.has(user) }, (*Channel).clone)
}

func (c *Channel) clone() Channel {
	out := *c
	out.Members = slices.Clone(c.Members)
	out.PinnedPrompts = slices.Clone(c.PinnedPrompts)
	return out
}

// Messages returns a channel's messages in order, including threads, without ephemeral
// ones.
func (s *Server) Messages(channel string) []Message {
	return s.read(channel, func(m *Message) bool { return m.For == "" })
}

// Thread returns the messages of a thread, its root first.
func (s *Server) Thread(channel, root string) []Message {
	return s.read(channel, func(m *Message) bool { return m.For == "" && m.Root() == root })
}

// Ephemerals returns the messages of a channel that only this user sees. Slack shows none
// in a thread without replies (chat.postEphemeral, thread_ts).
func (s *Server) Ephemerals(channel, user string) []Message {
	return s.read(channel, func(m *Message) bool { return m.For == user && !m.Unseen })
}

func (s *Server) read(channel string, want func(*Message) bool) []Message {
	return chattest.Read(&s.Base, func() []*Message {
		s.endStreamsLocked()
		return s.world.messages[channel]
	}, func(m *Message) bool { return !m.Deleted && want(m) }, (*Message).clone)
}

func (m *Message) clone() Message {
	out := *m
	out.Versions = slices.Clone(m.Versions)
	out.Files = slices.Clone(m.Files)
	out.Reactions = slices.Clone(m.Reactions)
	if m.Stream != nil {
		st := m.Stream.clone()
		out.Stream = &st
	}
	return out
}

// Message returns the current version of a message, and whether it exists.
func (s *Server) Message(channel, ts string) (Message, bool) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.endStreamsLocked()
	if m := s.world.message(channel, ts); m != nil {
		return m.clone(), true
	}
	return Message{}, false
}

// Session returns a thread's status and title as set by the app.
func (s *Server) Session(channel, thread string) Session {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	got := *s.world.session(channel, thread)
	got.Statuses = slices.Clone(got.Statuses)
	if !got.LoadingUntil.IsZero() && s.opt.Now().After(got.LoadingUntil) {
		got.Loading = ""
	}
	return got
}
