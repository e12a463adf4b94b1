package discordtest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"nize/bots/chattest"
)

// The ids of the seeded guilds. Ids are decimal numbers; here the first digit shows the
// kind of object.
const (
	App = "1000000000000000001" // the application; its bot user has the same id
	Bot = App

	Guild      = "2000000000000000001"
	OtherGuild = "2000000000000000002" // a guild in which the bot is uninvited

	Ann      = "3000000000000000001" // administers the guild, English
	Ben      = "3000000000000000002" // member, German
	Cho      = "3000000000000000003" // member, Chinese
	Stranger = "3000000000000000004" // only in the other guild
	OtherBot = "3000000000000000005"

	General = "4000000000000000001" // everybody can read it
	Secret  = "4000000000000000002" // Ann, Ben and the bot
	Random  = "4000000000000000003" // without the bot
	Lobby   = "4000000000000000004" // of the other guild

	Everyone = Guild                 // the role of everybody
	Ops      = "5000000000000000001" // Ann's and Ben's role
)

// Permissions of roles and channels.
const (
	AddReactions   = 1 << 6
	ViewChannel    = 1 << 10
	SendMessages   = 1 << 11
	ManageMessages = 1 << 13
	AttachFiles    = 1 << 15
	ReadHistory    = 1 << 16
	UseCommands    = 1 << 31
	ManageThreads  = 1 << 34
	PublicThreads  = 1 << 35
	PrivateThreads = 1 << 36
	SendInThreads  = 1 << 38

	basic = AddReactions | ViewChannel | SendMessages | AttachFiles | ReadHistory | UseCommands | PublicThreads | PrivateThreads | SendInThreads
)

// Types of channels.
const (
	TextChannel   = 0
	DirectChannel = 1
	PublicThread  = 11
	PrivateThread = 12
)

// User is a user of the platform.
type User struct {
	ID     string `json:"id"`
	Name   string `json:"username"`
	Nick   string `json:"global_name,omitempty"`
	Bot    bool   `json:"bot,omitempty"`
	Locale string `json:"-"` // locale of their client
}

// Role is a role of a guild.
type Role struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Permissions int64  `json:"permissions,string"`
}

// member is a user's membership in a guild.
type member struct {
	id     string
	Roles  []string  `json:"roles"`
	Joined time.Time `json:"joined_at"`
}

// guild is a guild, which people call a server.
type guild struct {
	ID      string  `json:"id"`
	Name    string  `json:"name"`
	Owner   string  `json:"owner_id"`
	Locale  string  `json:"preferred_locale"`
	Roles   []*Role `json:"roles"`
	members []*member
}

// Channel is a channel of a guild, a thread, or a direct conversation.
type Channel struct {
	ID          string   `json:"id"`
	Guild       string   `json:"guild_id,omitempty"`
	Name        string   `json:"name,omitempty"`
	Type        int      `json:"type"`
	Parent      string   `json:"parent_id,omitempty"` // for a thread
	Owner       string   `json:"owner_id,omitempty"`  // who began a thread
	Private     bool     `json:"-"`                   // only listed members may see it
	Members     []string `json:"-"`                   // for a private channel, a thread or a direct channel
	Archived    bool     `json:"-"`
	Locked      bool     `json:"-"`
	AutoArchive int      `json:"-"`
}

func (c *Channel) thread() bool { return c.Type == PublicThread || c.Type == PrivateThread }

// File is an attachment of a message.
type File struct {
	ID          string `json:"id"`
	Name        string `json:"filename"`
	Description string `json:"description,omitempty"`
	Size        int    `json:"size"`
	URL         string `json:"url"`
	Content     []byte `json:"-"`
}

// Version is a message's content at some time.
type Version struct {
	Content    string
	Components json.RawMessage
	At         time.Time
}

// Message is a message in a channel.
type Message struct {
	ID          string          `json:"id"`
	Channel     string          `json:"channel_id"`
	Author      string          `json:"-"`
	Content     string          `json:"content"`
	Embeds      json.RawMessage `json:"embeds"`
	Components  json.RawMessage `json:"components"`
	Files       []File          `json:"attachments"`
	Type        int             `json:"type"`
	Flags       int             `json:"flags"`
	Created     time.Time       `json:"timestamp"`
	Edited      time.Time       `json:"edited_timestamp,omitzero"`
	Reply       string          `json:"-"` // the message that it replies to
	Thread      string          `json:"-"` // the thread that was begun from it
	Nonce       string          `json:"-"`
	Versions    []Version       `json:"-"` // every version, the current one last
	For         string          `json:"-"` // the only user who sees it
	Loading     bool            `json:"-"` // "nize is thinking…"
	Pinged      []string        `json:"-"`
	deleted     bool
	interaction *interaction // that it answers
	mentions    []string
}

// Flags of messages.
const (
	Ephemeral    = 1 << 6
	Loading      = 1 << 7
	HasThread    = 1 << 5
	NoEmbeds     = 1 << 2
	Silent       = 1 << 12
	ComponentsV2 = 1 << 15
)

// Types of messages.
const (
	replyType   = 19
	commandType = 20
	starterType = 21 // the first message of a thread, which refers to the one it was begun from
)

// world is the state guarded by the mutex.
type world struct {
	users    []*User
	guilds   []*guild
	channels []*Channel
	messages map[string][]*Message // keyed by channel, in order
	serial   int64
	last     int64 // milliseconds of the last id
	events   []Event
}

func (w *world) seed() {
	*w = world{messages: map[string][]*Message{}}
	w.users = []*User{
		{ID: Bot, Name: "nize", Bot: true},
		{ID: Ann, Name: "ann", Nick: "Ann Lee", Locale: "en-US"},
		{ID: Ben, Name: "ben", Nick: "Ben Roth", Locale: "de"},
		{ID: Cho, Name: "cho", Nick: "Cho Wang", Locale: "zh-CN"},
		{ID: Stranger, Name: "stranger", Nick: "Sam Stranger", Locale: "en-US"},
		{ID: OtherBot, Name: "otherbot", Bot: true},
	}
	joined := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(users ...string) (list []*member) {
		for _, u := range users {
			list = append(list, &member{id: u, Roles: []string{}, Joined: joined})
		}
		return list
	}
	w.guilds = []*guild{
		{ID: Guild, Name: "Fake Inc", Owner: Ann, Locale: "en-US", members: at(Bot, Ann, Ben, Cho, OtherBot), Roles: []*Role{
			{ID: Everyone, Name: "@everyone", Permissions: basic},
			{ID: Ops, Name: "ops"},
		}},
		{ID: OtherGuild, Name: "Elsewhere", Owner: Stranger, Locale: "en-US", members: at(Bot, Stranger), Roles: []*Role{
			{ID: OtherGuild, Name: "@everyone", Permissions: basic},
		}},
	}
	for _, who := range []string{Ann, Ben} {
		m := w.guilds[0].member(who)
		m.Roles = append(m.Roles, Ops)
	}
	w.channels = []*Channel{
		{ID: General, Guild: Guild, Name: "general"},
		{ID: Secret, Guild: Guild, Name: "secret", Private: true, Members: []string{Bot, Ann, Ben}},
		{ID: Random, Guild: Guild, Name: "random", Private: true, Members: []string{Ann, Ben, Cho}},
		{ID: Lobby, Guild: OtherGuild, Name: "lobby"},
	}
}

func (w *world) user(id string) *User {
	return chattest.Find(w.users, func(u *User) bool { return u.ID == id })
}

func (w *world) guild(id string) *guild {
	return chattest.Find(w.guilds, func(g *guild) bool { return g.ID == id })
}

func (w *world) channel(id string) *Channel {
	return chattest.Find(w.channels, func(c *Channel) bool { return c.ID == id })
}

func (w *world) message(channel, id string) *Message {
	return chattest.Find(w.messages[channel], func(m *Message) bool { return m.ID == id && !m.deleted })
}

func (g *guild) member(user string) *member {
	if g == nil {
		return nil
	}
	return chattest.Find(g.members, func(m *member) bool { return m.id == user })
}

// permissions returns a user's permissions in a channel as Discord computes them: 0 if they
// can't see it.
func (w *world) permissions(c *Channel, user string) int64 {
	if c.Type == DirectChannel {
		if slices.Contains(c.Members, user) {
			return basic
		}
		return 0
	}
	g := w.guild(c.Guild)
	m := g.member(user)
	if m == nil {
		return 0
	}
	if g.Owner == user {
		return 1<<50 - 1
	}
	var p int64
	for _, r := range g.Roles {
		if r.ID == g.ID || slices.Contains(m.Roles, r.ID) {
			p |= r.Permissions
		}
	}
	if c.Type == PrivateThread && !slices.Contains(c.Members, user) && p&ManageThreads == 0 {
		return 0
	}
	if c.thread() {
		c = w.channel(c.Parent)
	}
	if c.Private && !slices.Contains(c.Members, user) {
		return 0
	}
	return p
}

func (w *world) sees(c *Channel, user string) bool { return w.permissions(c, user)&ViewChannel != 0 }

// share reports whether two users have a guild in common.
func (w *world) share(a, b string) bool {
	return slices.ContainsFunc(w.guilds, func(g *guild) bool { return g.member(a) != nil && g.member(b) != nil })
}

// epoch is the epoch of Discord's ids.
const epoch = 1420070400000

// idLocked returns a new id, later than all earlier ones; s.Mu must be held.
func (s *Server) idLocked() string {
	w := &s.world
	w.serial++
	w.last = max(w.last, s.opt.Now().UnixMilli(), epoch+1) // a synctest bubble's clock is earlier
	if w.serial&0x3fffff == 0 {
		w.last++
	}
	// The lower 22 bits are a counter; Discord has workers and a counter there.
	return strconv.FormatInt((w.last-epoch)<<22|w.serial&0x3fffff, 10)
}

// ordinal returns an id as a number for comparison; 0 if it is invalid.
func ordinal(id string) uint64 {
	n, _ := strconv.ParseUint(id, 10, 64) // an invalid id is 0
	return n
}

// directLocked returns the direct channel of two users, creating it if needed; s.Mu must be
// held.
func (s *Server) directLocked(a, b string) *Channel {
	for _, c := range s.world.channels {
		if c.Type == DirectChannel && slices.Contains(c.Members, a) && slices.Contains(c.Members, b) {
			return c
		}
	}
	c := &Channel{ID: s.idLocked(), Type: DirectChannel, Members: []string{a, b}}
	s.world.channels = append(s.world.channels, c)
	return c
}

func noSuch(what, id string) error { return fmt.Errorf("discordtest: no %s %s", what, id) }
