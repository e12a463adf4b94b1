package discordtest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// Discord's JSON forms that have more than the world stores.

type wireMember struct {
	member
	User        *User  `json:"user,omitempty"`
	Permissions string `json:"permissions,omitempty"`
	GuildID     string `json:"guild_id,omitempty"`
}

func (w *world) wireMember(m *member) *wireMember {
	return &wireMember{member: *m, User: w.user(m.id)}
}

type overwrite struct {
	ID    string `json:"id"`
	Type  int    `json:"type"` // 0 for a role, 1 for a member
	Allow int64  `json:"allow,string"`
	Deny  int64  `json:"deny,string"`
}

type wireChannel struct {
	Channel
	Overwrites  []overwrite     `json:"permission_overwrites,omitempty"`
	Recipients  []*User         `json:"recipients,omitempty"`
	Metadata    *threadMetadata `json:"thread_metadata,omitempty"`
	Permissions string          `json:"permissions,omitempty"` // of the person, in interactions
}

type threadMetadata struct {
	Archived    bool `json:"archived"`
	Locked      bool `json:"locked"`
	AutoArchive int  `json:"auto_archive_duration"`
}

func (s *Server) wireChannelLocked(c *Channel) wireChannel {
	out := wireChannel{Channel: *c}
	switch {
	case c.Type == DirectChannel:
		out.Recipients = []*User{s.world.user(c.Members[1])}
	case c.thread():
		out.Metadata = &threadMetadata{Archived: c.Archived, AutoArchive: c.AutoArchive, Locked: c.Locked}
	case c.Private:
		out.Overwrites = []overwrite{{ID: c.Guild, Deny: ViewChannel}}
		for _, id := range c.Members {
			out.Overwrites = append(out.Overwrites, overwrite{ID: id, Type: 1, Allow: ViewChannel})
		}
	}
	return out
}

type wireGuild struct {
	*guild
	Members  []*wireMember `json:"members,omitempty"`
	Channels []wireChannel `json:"channels,omitempty"`
	Threads  []wireChannel `json:"threads,omitempty"`
}

type away struct {
	ID          string `json:"id"`
	Unavailable bool   `json:"unavailable,omitempty"`
}

type wireMessage struct {
	Message
	GuildID      string            `json:"guild_id,omitempty"`
	Author       *User             `json:"author"`
	Member       *wireMember       `json:"member,omitempty"`
	Everyone     bool              `json:"mention_everyone"`
	Mentions     []*User           `json:"mentions"`
	MentionRoles []string          `json:"mention_roles"`
	Nonce        string            `json:"nonce,omitempty"`
	Application  string            `json:"application_id,omitempty"`
	WebhookID    string            `json:"webhook_id,omitempty"`
	Reference    *messageReference `json:"message_reference,omitempty"`
	Referenced   *wireMessage      `json:"referenced_message,omitempty"`
	Thread       *wireChannel      `json:"thread,omitempty"`
}

type messageReference struct {
	MessageID string `json:"message_id"`
	ChannelID string `json:"channel_id"`
	GuildID   string `json:"guild_id,omitempty"`
}

var emptyList = json.RawMessage("[]")

// wireLocked returns the current version of a message; content reports whether the bot may
// read other users' content: otherwise it reads only its own, direct messages, and
// mentions. s.Mu must be held.
func (s *Server) wireLocked(m *Message, content bool) *wireMessage {
	c := s.world.channel(m.Channel)
	out := &wireMessage{Message: *m, Author: s.world.user(m.Author), Mentions: []*User{}, MentionRoles: []string{}}
	if !content && m.Author != Bot && c.Type != DirectChannel && !slices.Contains(m.mentions, Bot) {
		out.Content, out.Embeds, out.Components, out.Files = "", nil, nil, nil
	}
	if out.Files == nil {
		out.Files = []File{}
	}
	if out.Embeds == nil {
		out.Embeds = emptyList
	}
	if out.Components == nil {
		out.Components = emptyList
	}
	for _, id := range m.mentions {
		out.Mentions = append(out.Mentions, s.world.user(id))
	}
	if m.interaction != nil {
		out.Application, out.WebhookID = App, App
	}
	in, id := m.Channel, m.Reply
	if m.Type == starterType {
		in, id = c.Parent, c.ID
	}
	if id != "" {
		out.Reference = &messageReference{MessageID: id, ChannelID: in, GuildID: c.Guild}
		if to := s.world.message(in, id); to != nil {
			out.Referenced = s.wireLocked(to, content)
			out.Referenced.Referenced = nil
		}
	}
	if t := s.world.channel(m.Thread); t != nil {
		w := s.wireChannelLocked(t)
		out.Thread = &w
	}
	return out
}

// eventMessageLocked returns a message as in an event; s.Mu must be held.
func (s *Server) eventMessageLocked(m *Message, content bool) *wireMessage {
	out := s.wireLocked(m, content)
	out.GuildID = s.world.channel(m.Channel).Guild
	if in := s.world.guild(out.GuildID).member(m.Author); in != nil {
		out.Member = &wireMember{member: *in}
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
	errOtherApp       = refuse(403, 20012, "You are not authorized to perform this action on this application")
	errCommands       = refuse(400, 30032, "Maximum number of application commands reached (100)")
	errTooLarge       = refuse(413, 40005, "Request entity too large")
	errAcked          = refuse(400, 40060, "Interaction has already been acknowledged.")
	errAccess         = refuse(403, 50001, "Missing Access")
	errNotAuthor      = refuse(403, 50005, "Cannot edit a message authored by another user")
	errEmpty          = refuse(400, 50006, "Cannot send an empty message")
	errNoDM           = refuse(403, 50007, "Cannot send messages to this user")
	errPermissions    = refuse(403, 50013, "Missing Permissions")
	errChannelType    = refuse(400, 50024, "Cannot execute action on this channel type")
	errWebhookToken   = refuse(401, 50027, "Invalid Webhook Token")
	errRecipient      = refuse(400, 50033, "Invalid Recipient(s)")
	errBadForm        = refuse(400, 50035, "Invalid Form Body")
	errVersion        = refuse(400, 50041, "Invalid API version")
	errLocked         = refuse(400, 50083, "Thread is archived")
	errBadJSON        = refuse(400, 50109, "The request body contains invalid JSON.")
	errHasThread      = refuse(400, 160004, "A thread has already been created for this message")
)

func bits(p int64) string { return strconv.FormatInt(p, 10) }
