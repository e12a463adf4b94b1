package discordtest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// The ids of the seeded guilds. Ids are decimal numbers there; these say what
// they are of by their first digits.
const (
	App = "1000000000000000001" // the application; its bot user has the same id
	Bot = App

	Guild      = "2000000000000000001"
	OtherGuild = "2000000000000000002" // where the bot is too, and was not asked to be

	Ann      = "3000000000000000001" // administers the guild, English
	Ben      = "3000000000000000002" // member, German
	Cho      = "3000000000000000003" // member, Chinese
	Stranger = "3000000000000000004" // of the other guild alone
	OtherBot = "3000000000000000005"

	General = "4000000000000000001" // everybody reads it
	Secret  = "4000000000000000002" // Ann, Ben and the bot
	Random  = "4000000000000000003" // without the bot
	Lobby   = "4000000000000000004" // of the other guild

	Everyone = Guild                 // the role of everybody
	Ops      = "5000000000000000001" // Ann's and Ben's role
	Stewards = "5000000000000000002" // with Manage Channels; nobody's
)

// Permissions of roles and channels.
const (
	Administrator  = 1 << 3
	ManageChannels = 1 << 4
	ManageGuild    = 1 << 5
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

// User is somebody on the platform.
type User struct {
	ID, Name, Nick string
	Locale         string // of their client
	Bot            bool
	Closed         bool // takes no direct messages
}

// Role is a role of a guild.
type Role struct {
	ID, Guild, Name string
	Permissions     int64
}

// Member is somebody in a guild.
type Member struct {
	User    string
	Roles   []string
	Joined  time.Time
	Pending bool // has not passed the guild's screening
}

// guild is one server, as people call it.
type guild struct {
	id, name, owner, locale string
	roles                   []*Role
	members                 []*Member
}

// Channel is a channel of a guild, a thread, or a direct conversation.
type Channel struct {
	ID, Guild, Name string
	Type            int
	Parent          string   // of a thread
	Owner           string   // who began a thread
	Private         bool     // who may see it is listed
	Members         []string // of a private channel, a thread or a direct conversation
	Managers        []string // who has Manage Channels there beyond their roles
	Archived        bool
	Locked          bool
	AutoArchive     int
	deleted         bool
}

func (c *Channel) thread() bool { return c.Type == PublicThread || c.Type == PrivateThread }

// File is what goes with a message.
type File struct {
	ID, Name, Description string
	Content               []byte
	url                   string
}

// Version is how a message looked at some time.
type Version struct {
	Content    string
	Components json.RawMessage
	At         time.Time
}

// Message is what stands in a channel.
type Message struct {
	ID, Channel, Author string
	Content             string
	Embeds, Components  json.RawMessage
	Files               []File
	Type, Flags         int
	Reply               string // the message that it answers
	Thread              string // that was begun from it
	Nonce               string
	Created, Edited     time.Time
	Versions            []Version // every look it had, the present one last
	For                 string    // the only one who sees it
	Loading             bool      // "nize is thinking…"
	Pinged              []string
	deleted             bool
	interaction         *interaction // that it answers
	mentions            []string
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

// world is what the mutex guards.
type world struct {
	users    []*User
	guilds   []*guild
	channels []*Channel
	messages map[string][]*Message // by channel, in order
	serial   int64
	last     int64 // milliseconds of the last id
	links    linkSet
	events   []Event
}

func (w *world) seed() {
	*w = world{messages: map[string][]*Message{}, links: linkSet{}}
	w.users = []*User{
		{ID: Bot, Name: "nize", Bot: true},
		{ID: Ann, Name: "ann", Nick: "Ann Lee", Locale: "en-US"},
		{ID: Ben, Name: "ben", Nick: "Ben Roth", Locale: "de"},
		{ID: Cho, Name: "cho", Nick: "Cho Wang", Locale: "zh-CN"},
		{ID: Stranger, Name: "stranger", Nick: "Sam Stranger", Locale: "en-US"},
		{ID: OtherBot, Name: "otherbot", Bot: true},
	}
	joined := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(users ...string) (list []*Member) {
		for _, u := range users {
			list = append(list, &Member{User: u, Roles: []string{}, Joined: joined})
		}
		return list
	}
	w.guilds = []*guild{
		{id: Guild, name: "Fake Inc", owner: Ann, locale: "en-US", members: at(Bot, Ann, Ben, Cho, OtherBot), roles: []*Role{
			{ID: Everyone, Guild: Guild, Name: "@everyone", Permissions: basic},
			{ID: Ops, Guild: Guild, Name: "ops", Permissions: 0},
			{ID: Stewards, Guild: Guild, Name: "stewards", Permissions: ManageChannels},
		}},
		{id: OtherGuild, name: "Elsewhere", owner: Stranger, locale: "en-US", members: at(Bot, Stranger), roles: []*Role{
			{ID: OtherGuild, Guild: OtherGuild, Name: "@everyone", Permissions: basic},
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

func find[T any](list []*T, is func(*T) bool) *T {
	if i := slices.IndexFunc(list, is); i >= 0 {
		return list[i]
	}
	return nil
}

func (w *world) user(id string) *User { return find(w.users, func(u *User) bool { return u.ID == id }) }

func (w *world) guild(id string) *guild {
	return find(w.guilds, func(g *guild) bool { return g.id == id })
}

func (w *world) channel(id string) *Channel {
	return find(w.channels, func(c *Channel) bool { return c.ID == id && !c.deleted })
}

func (w *world) message(channel, id string) *Message {
	return find(w.messages[channel], func(m *Message) bool { return m.ID == id && !m.deleted })
}

func (g *guild) member(user string) *Member {
	if g == nil {
		return nil
	}
	return find(g.members, func(m *Member) bool { return m.User == user })
}

func (g *guild) role(id string) *Role { return find(g.roles, func(r *Role) bool { return r.ID == id }) }

// permissions of somebody in a channel, as Discord computes them: 0 for who
// does not see it.
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
	if g.owner == user {
		return 1<<50 - 1
	}
	var p int64
	for _, r := range g.roles {
		if r.ID == g.id || slices.Contains(m.Roles, r.ID) {
			p |= r.Permissions
		}
	}
	if p&Administrator != 0 {
		return 1<<50 - 1
	}
	if c.Type == PrivateThread && !slices.Contains(c.Members, user) && p&ManageThreads == 0 {
		return 0
	}
	if c.thread() {
		parent := w.channel(c.Parent)
		if parent == nil {
			return 0
		}
		c = parent
	}
	if slices.Contains(c.Managers, user) {
		p |= ManageChannels
	}
	if c.Private && !slices.Contains(c.Members, user) {
		return 0
	}
	return p
}

func (w *world) sees(c *Channel, user string) bool { return w.permissions(c, user)&ViewChannel != 0 }

// share says whether two have a guild in common.
func (w *world) share(a, b string) bool {
	return slices.ContainsFunc(w.guilds, func(g *guild) bool { return g.member(a) != nil && g.member(b) != nil })
}

// epoch is when Discord's ids begin.
const epoch = 1420070400000

// idLocked makes a new id, later than every one before; s.Mu must be held.
func (s *Server) idLocked() string {
	w := &s.world
	w.serial++
	w.last = max(w.last, s.opt.Now().UnixMilli(), epoch+1) // a bubble's clock stands before it
	if w.serial&0x3fffff == 0 {
		w.last++
	}
	// The lower 22 bits count, where Discord has workers and a count.
	return strconv.FormatInt((w.last-epoch)<<22|w.serial&0x3fffff, 10)
}

// number is an id to compare by; 0 where it is none.
func number(id string) uint64 {
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// stamp is a time as Discord writes it.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000+00:00") }

// direct is the direct conversation of two, made if needed; s.Mu must be held.
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

// mustJSON is for our own structs.
func mustJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
