package discordtest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// The forms in which Discord writes things.

type wireUser struct {
	ID            string  `json:"id"`
	Username      string  `json:"username"`
	Discriminator string  `json:"discriminator"`
	GlobalName    *string `json:"global_name"`
	Avatar        *string `json:"avatar"`
	Bot           bool    `json:"bot,omitempty"`
	Locale        string  `json:"locale,omitempty"`
	Verified      *bool   `json:"verified,omitempty"`
	MFA           *bool   `json:"mfa_enabled,omitempty"`
	Flags         *int    `json:"flags,omitempty"`
}

func (u *User) wire() wireUser {
	w := wireUser{ID: u.ID, Username: u.Name, Discriminator: "0", Bot: u.Bot}
	if u.Bot {
		w.Discriminator = "0001"
	}
	if u.Nick != "" {
		w.GlobalName = &u.Nick
	}
	return w
}

type wireMember struct {
	User        *wireUser `json:"user,omitempty"`
	Nick        *string   `json:"nick"`
	Avatar      *string   `json:"avatar"`
	Roles       []string  `json:"roles"`
	JoinedAt    string    `json:"joined_at"`
	Premium     *string   `json:"premium_since"`
	Deaf        bool      `json:"deaf"`
	Mute        bool      `json:"mute"`
	Flags       int       `json:"flags"`
	Pending     bool      `json:"pending"`
	Permissions string    `json:"permissions,omitempty"`
	GuildID     string    `json:"guild_id,omitempty"`
}

func (w *world) wireMember(m *Member, with bool) *wireMember {
	out := &wireMember{Roles: append([]string{}, m.Roles...), JoinedAt: stamp(m.Joined), Pending: m.Pending}
	if with {
		u := w.user(m.User).wire()
		out.User = &u
	}
	return out
}

type wireRole struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Color       int    `json:"color"`
	Hoist       bool   `json:"hoist"`
	Position    int    `json:"position"`
	Permissions string `json:"permissions"`
	Managed     bool   `json:"managed"`
	Mentionable bool   `json:"mentionable"`
	Flags       int    `json:"flags"`
}

func (r *Role) wire(position int) wireRole {
	return wireRole{ID: r.ID, Name: r.Name, Position: position, Permissions: strconv.FormatInt(r.Permissions, 10)}
}

func (g *guild) wireRoles() []wireRole {
	list := []wireRole{}
	for i, r := range g.roles {
		list = append(list, r.wire(i))
	}
	return list
}

type overwrite struct {
	ID    string `json:"id"`
	Type  int    `json:"type"` // 0 a role, 1 a member
	Allow string `json:"allow"`
	Deny  string `json:"deny"`
}

type wireChannel struct {
	ID            string          `json:"id"`
	Type          int             `json:"type"`
	GuildID       string          `json:"guild_id,omitempty"`
	Name          string          `json:"name,omitempty"`
	Topic         *string         `json:"topic,omitempty"`
	Position      int             `json:"position"`
	ParentID      *string         `json:"parent_id"`
	OwnerID       string          `json:"owner_id,omitempty"`
	LastMessageID *string         `json:"last_message_id"`
	Overwrites    []overwrite     `json:"permission_overwrites,omitempty"`
	Recipients    []wireUser      `json:"recipients,omitempty"`
	Metadata      *threadMetadata `json:"thread_metadata,omitempty"`
	MessageCount  int             `json:"message_count,omitempty"`
	MemberCount   int             `json:"member_count,omitempty"`
	Member        *threadMember   `json:"member,omitempty"`
	Fresh         bool            `json:"newly_created,omitempty"`
	Permissions   string          `json:"permissions,omitempty"` // of who pressed, in interactions
}

type threadMetadata struct {
	Archived         bool   `json:"archived"`
	AutoArchive      int    `json:"auto_archive_duration"`
	ArchiveTimestamp string `json:"archive_timestamp"`
	Locked           bool   `json:"locked"`
	CreateTimestamp  string `json:"create_timestamp,omitempty"`
}

type threadMember struct {
	ID            string `json:"id,omitempty"`
	UserID        string `json:"user_id,omitempty"`
	JoinTimestamp string `json:"join_timestamp"`
	Flags         int    `json:"flags"`
}

func (s *Server) wireChannelLocked(c *Channel) wireChannel {
	out := wireChannel{ID: c.ID, Type: c.Type, GuildID: c.Guild, Name: c.Name}
	list := s.world.messages[c.ID]
	for _, m := range slices.Backward(list) {
		if m.For == "" {
			out.LastMessageID = &m.ID
			break
		}
	}
	switch {
	case c.Type == DirectChannel:
		for _, id := range c.Members {
			if id != Bot {
				out.Recipients = append(out.Recipients, s.world.user(id).wire())
			}
		}
	case c.thread():
		out.ParentID, out.OwnerID = &c.Parent, c.Owner
		out.MessageCount, out.MemberCount = min(len(list), 50), min(len(c.Members), 50)
		now := stamp(s.opt.Now())
		out.Metadata = &threadMetadata{Archived: c.Archived, AutoArchive: c.AutoArchive, ArchiveTimestamp: now, CreateTimestamp: now, Locked: c.Locked}
		if slices.Contains(c.Members, Bot) {
			out.Member = &threadMember{ID: c.ID, UserID: Bot, JoinTimestamp: now}
		}
	}
	if c.Private {
		out.Overwrites = append(out.Overwrites, overwrite{ID: c.Guild, Deny: strconv.Itoa(ViewChannel), Allow: "0"})
		for _, id := range c.Members {
			out.Overwrites = append(out.Overwrites, overwrite{ID: id, Type: 1, Allow: strconv.Itoa(ViewChannel), Deny: "0"})
		}
	}
	for _, id := range c.Managers {
		out.Overwrites = append(out.Overwrites, overwrite{ID: id, Type: 1, Allow: strconv.Itoa(ManageChannels | ViewChannel), Deny: "0"})
	}
	return out
}

type wireGuild struct {
	ID              string        `json:"id"`
	Name            string        `json:"name"`
	Icon            *string       `json:"icon"`
	OwnerID         string        `json:"owner_id"`
	Owner           bool          `json:"owner"`
	Permissions     string        `json:"permissions,omitempty"`
	PreferredLocale string        `json:"preferred_locale"`
	Roles           []wireRole    `json:"roles"`
	Emojis          []struct{}    `json:"emojis"`
	Features        []string      `json:"features"`
	Verification    int           `json:"verification_level"`
	JoinedAt        string        `json:"joined_at,omitempty"`
	Large           bool          `json:"large"`
	Unavailable     bool          `json:"unavailable"`
	MemberCount     int           `json:"member_count,omitempty"`
	Members         []*wireMember `json:"members,omitempty"`
	Channels        []wireChannel `json:"channels,omitempty"`
	Threads         []wireChannel `json:"threads,omitempty"`
	Presences       []struct{}    `json:"presences,omitempty"`
	VoiceStates     []struct{}    `json:"voice_states,omitempty"`
}

func (g *guild) wire() wireGuild {
	return wireGuild{ID: g.id, Name: g.name, OwnerID: g.owner, PreferredLocale: g.locale, Roles: g.wireRoles(), Emojis: []struct{}{}, Features: []string{"COMMUNITY"}}
}

type away struct {
	ID          string `json:"id"`
	Unavailable bool   `json:"unavailable,omitempty"`
}

type wireFile struct {
	ID          string `json:"id"`
	Filename    string `json:"filename"`
	Size        int    `json:"size"`
	URL         string `json:"url"`
	ProxyURL    string `json:"proxy_url"`
	Description string `json:"description,omitempty"`
	ContentType string `json:"content_type,omitempty"`
	Ephemeral   bool   `json:"ephemeral,omitempty"`
}

type wireMessage struct {
	ID           string            `json:"id"`
	ChannelID    string            `json:"channel_id"`
	GuildID      string            `json:"guild_id,omitempty"`
	Author       wireUser          `json:"author"`
	Member       *wireMember       `json:"member,omitempty"`
	Content      string            `json:"content"`
	Timestamp    string            `json:"timestamp"`
	Edited       *string           `json:"edited_timestamp"`
	TTS          bool              `json:"tts"`
	Everyone     bool              `json:"mention_everyone"`
	Mentions     []wireUser        `json:"mentions"`
	MentionRoles []string          `json:"mention_roles"`
	Attachments  []wireFile        `json:"attachments"`
	Embeds       json.RawMessage   `json:"embeds"`
	Components   json.RawMessage   `json:"components"`
	Nonce        string            `json:"nonce,omitempty"`
	Pinned       bool              `json:"pinned"`
	Type         int               `json:"type"`
	Flags        int               `json:"flags"`
	Application  string            `json:"application_id,omitempty"`
	WebhookID    string            `json:"webhook_id,omitempty"`
	Reference    *messageReference `json:"message_reference,omitempty"`
	Referenced   *wireMessage      `json:"referenced_message,omitempty"`
	Thread       *wireChannel      `json:"thread,omitempty"`
	Position     int               `json:"position,omitempty"`
}

type messageReference struct {
	Type      int    `json:"type"`
	MessageID string `json:"message_id,omitempty"`
	ChannelID string `json:"channel_id"`
	GuildID   string `json:"guild_id,omitempty"`
}

var emptyList = json.RawMessage("[]")

// wireLocked is a message as it stands; content says whether the bot may read
// what others wrote. s.Mu must be held.
func (s *Server) wireLocked(m *Message, content bool) wireMessage {
	c := s.world.channel(m.Channel)
	out := wireMessage{
		ID: m.ID, ChannelID: m.Channel, Author: s.world.user(m.Author).wire(), Content: m.Content, Timestamp: stamp(m.Created), Mentions: []wireUser{},
		MentionRoles: []string{}, Attachments: []wireFile{}, Embeds: m.Embeds, Components: m.Components, Type: m.Type, Flags: m.Flags,
	}
	if !m.Edited.IsZero() {
		at := stamp(m.Edited)
		out.Edited = &at
	}
	for _, id := range m.mentions {
		if u := s.world.user(id); u != nil {
			out.Mentions = append(out.Mentions, u.wire())
		}
	}
	for _, f := range m.Files {
		out.Attachments = append(out.Attachments, wireFile{ID: f.ID, Filename: f.Name, Size: len(f.Content), URL: f.url, ProxyURL: f.url, Description: f.Description, Ephemeral: m.For != ""})
	}
	if out.Embeds == nil {
		out.Embeds = emptyList
	}
	if out.Components == nil {
		out.Components = emptyList
	}
	if m.interaction != nil {
		out.Application, out.WebhookID = App, App
	}
	if m.Reply != "" {
		out.Reference = &messageReference{MessageID: m.Reply, ChannelID: m.Channel, GuildID: c.Guild}
		if r := s.world.message(m.Channel, m.Reply); r != nil {
			w := s.wireLocked(r, content)
			w.Referenced = nil
			out.Referenced = &w
		}
	}
	if m.Type == starterType {
		if parent := s.world.message(c.Parent, c.ID); parent != nil {
			w := s.wireLocked(parent, content)
			out.Reference, out.Referenced = &messageReference{MessageID: parent.ID, ChannelID: c.Parent, GuildID: c.Guild}, &w
		}
	}
	if t := s.world.channel(m.Thread); t != nil {
		w := s.wireChannelLocked(t)
		out.Thread = &w
	}
	if !content && !s.readableLocked(m, c) {
		out.Content, out.Embeds, out.Components, out.Attachments = "", emptyList, emptyList, []wireFile{}
	}
	return out
}

// readableLocked says whether a bot without the Message Content intent reads
// what a message says: its own, in a direct conversation, or one that mentions
// it. s.Mu must be held.
func (s *Server) readableLocked(m *Message, c *Channel) bool {
	return m.Author == Bot || c != nil && c.Type == DirectChannel || slices.Contains(m.mentions, Bot)
}

// eventMessageLocked is a message as an event has it; s.Mu must be held.
func (s *Server) eventMessageLocked(m *Message, content bool) wireMessage {
	out := s.wireLocked(m, content)
	if c := s.world.channel(m.Channel); c != nil && c.Guild != "" {
		out.GuildID = c.Guild
		if member := s.world.guild(c.Guild).member(m.Author); member != nil {
			out.Member = s.world.wireMember(member, false)
		}
	}
	return out
}

// problem is Discord's error form.
type problem struct {
	status  int
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Errors  json.RawMessage `json:"errors,omitempty"`
}

func (p *problem) Error() string {
	return fmt.Sprintf("%d %d %s %s", p.status, p.Code, p.Message, p.Errors)
}

func refuse(status, code int, message string) *problem {
	return &problem{status: status, Code: code, Message: message}
}

var (
	errUnauthorized   = refuse(401, 0, "401: Unauthorized")
	errNotFound       = refuse(404, 0, "404: Not Found")
	errUnknownChannel = refuse(404, 10003, "Unknown Channel")
	errUnknownGuild   = refuse(404, 10004, "Unknown Guild")
	errUnknownMember  = refuse(404, 10007, "Unknown Member")
	errUnknownMessage = refuse(404, 10008, "Unknown Message")
	errUnknownUser    = refuse(404, 10013, "Unknown User")
	errUnknownWebhook = refuse(404, 10015, "Unknown Webhook")
	errUnknownInter   = refuse(404, 10062, "Unknown interaction")
	errTooLarge       = refuse(413, 40005, "Request entity too large")
	errAcked          = refuse(400, 40060, "Interaction has already been acknowledged.")
	errAccess         = refuse(403, 50001, "Missing Access")
	errNotAuthor      = refuse(403, 50005, "Cannot edit a message authored by another user")
	errEmpty          = refuse(400, 50006, "Cannot send an empty message")
	errNoDM           = refuse(403, 50007, "Cannot send messages to this user")
	errPermissions    = refuse(403, 50013, "Missing Permissions")
	errWebhookToken   = refuse(401, 50027, "Invalid Webhook Token")
	errBadJSON        = refuse(400, 50109, "The request body contains invalid JSON.")
	errLocked         = refuse(400, 50083, "Thread is archived")
	errHasThread      = refuse(400, 160004, "A thread has already been created for this message")
)
