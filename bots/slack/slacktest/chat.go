package slacktest

import (
	"encoding/json"
	"nize/bots/chattest"
	"slices"
	"unicode/utf8"
)

// Limits of messages, in characters.
const (
	maxText       = 40_000 // of a post: longer text is truncated
	maxUpdateText = 4_000  // of an update: longer text is refused
	maxMarkdown   = 12_000 // of markdown_text, and of all markdown blocks of a message
	maxAllBlocks  = 13_200 // text of all blocks, as observed
)

// wireMessage is a message in responses and events.
type wireMessage struct {
	Type        string          `json:"type"`
	Subtype     string          `json:"subtype,omitempty"`
	Hidden      bool            `json:"hidden,omitempty"`
	User        string          `json:"user,omitempty"`
	BotID       string          `json:"bot_id,omitempty"`
	AppID       string          `json:"app_id,omitempty"`
	Text        string          `json:"text"`
	TS          string          `json:"ts"`
	ThreadTS    string          `json:"thread_ts,omitempty"`
	ParentUser  string          `json:"parent_user_id,omitempty"`
	ClientMsgID string          `json:"client_msg_id,omitempty"`
	Team        string          `json:"team,omitempty"`
	UserTeam    string          `json:"user_team,omitempty"`
	SourceTeam  string          `json:"source_team,omitempty"`
	Blocks      json.RawMessage `json:"blocks,omitempty"`
	Attachments json.RawMessage `json:"attachments,omitempty"`
	Files       []wireFile      `json:"files,omitempty"`
	Upload      *bool           `json:"upload,omitempty"`
	Edited      *edited         `json:"edited,omitempty"`
	ReplyCount  int             `json:"reply_count,omitempty"`
	Metadata    json.RawMessage `json:"metadata,omitempty"`

	// Only in events.
	Channel     string       `json:"channel,omitempty"`
	ChannelType string       `json:"channel_type,omitempty"`
	EventTS     string       `json:"event_ts,omitempty"`
	Message     *wireMessage `json:"message,omitempty"`
	Previous    *wireMessage `json:"previous_message,omitempty"`
	DeletedTS   string       `json:"deleted_ts,omitempty"`
}

type edited struct {
	User string `json:"user"`
	TS   string `json:"ts"`
}

// wireLocked returns m in Slack's form; s.Mu must be held.
func (s *Server) wireLocked(m *Message) wireMessage {
	w := wireMessage{Type: "message", Subtype: m.Subtype, User: m.User, BotID: m.BotID, Text: m.Text, TS: m.TS, Team: Team,
		Blocks: m.Blocks, Attachments: m.Attachments, Files: wireFiles(s.URL(), m.Files)}
	if m.BotID == BotID {
		w.AppID = App
	}
	if m.ThreadTS != "" && m.ThreadTS != m.TS {
		w.ThreadTS = m.ThreadTS
		if root := s.world.message(m.Channel, m.ThreadTS); root != nil {
			w.ParentUser = root.User
		}
	}
	for _, other := range s.world.messages[m.Channel] {
		if other.ThreadTS == m.TS && other.TS != m.TS && !other.Deleted && other.For == "" {
			w.ReplyCount++
			w.ThreadTS = m.TS
		}
	}
	if u := s.world.user(m.User); u != nil && u.Stranger {
		w.Team, w.UserTeam, w.SourceTeam = u.Team, u.Team, u.Team
	}
	if n := len(m.Versions); n > 1 {
		w.Edited = &edited{User: m.User, TS: m.TS}
	}
	return w
}

// targetLocked returns the channel of a posting call if the bot may post in it; s.Mu must
// be held.
func (s *Server) targetLocked(id string) (*Channel, error) {
	if id == "" {
		return nil, fail("channel_not_found")
	}
	if u := s.world.user(id); u != nil { // a user's id means the direct conversation
		if id == Bot {
			return nil, fail("cannot_dm_bot")
		}
		return s.world.direct(Bot, id), nil
	}
	c := s.world.channel(id)
	switch {
	case c == nil, (c.Private || c.IM) && !c.has(Bot):
		return nil, fail("channel_not_found")
	case c.Archived:
		return nil, fail("is_archived")
	case !c.has(Bot):
		return nil, fail("not_in_channel")
	}
	return c, nil
}

// content is what a post, an update or an ephemeral message shows.
type content struct {
	text        string
	blocks      json.RawMessage
	attachments json.RawMessage
}

// readContent decodes and checks text, markdown_text, blocks and attachments.
func (s *Server) readContent(a args) (content, error) {
	c := content{text: a["text"], blocks: a.raw("blocks"), attachments: a.raw("attachments")}
	if md := a["markdown_text"]; md != "" {
		if c.text != "" || c.blocks != nil {
			return c, fail("markdown_text_conflict")
		}
		if utf8.RuneCountInString(md) > maxMarkdown {
			return c, fail("msg_too_long")
		}
		c.text = md
		c.blocks = chattest.JSON([]markdownBlock{{Type: "markdown", Text: md}})
	}
	if c.blocks != nil {
		if err := checkBlocksIn(c.blocks, s.opt.CountBytes); err != nil {
			return c, err
		}
		if string(c.blocks) == "[]" {
			c.blocks = nil
		}
	}
	if c.attachments != nil {
		var list []json.RawMessage
		if json.Unmarshal(c.attachments, &list) != nil {
			return c, fail("invalid_attachments")
		}
		if len(list) > 100 {
			return c, fail("too_many_attachments")
		}
		if len(list) == 0 {
			c.attachments = nil
		}
	}
	if c.text == "" && c.blocks == nil && c.attachments == nil {
		return c, fail("no_text")
	}
	return c, nil
}

type markdownBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type posted struct {
	Channel string      `json:"channel"`
	TS      string      `json:"ts"`
	Message wireMessage `json:"message"`
}

func (s *Server) postMessage(a args) (any, error) {
	c, err := s.targetLocked(a["channel"])
	if err != nil {
		return nil, err
	}
	body, err := s.readContent(a)
	if err != nil {
		return nil, err
	}
	if runes := []rune(body.text); len(runes) > maxText {
		body.text = string(runes[:maxText])
	}
	thread, err := s.threadLocked(c, a["thread_ts"])
	if err != nil {
		return nil, err
	}
	m := &Message{Channel: c.ID, ThreadTS: thread, User: Bot, BotID: BotID, Text: body.text, Blocks: body.blocks, Attachments: body.attachments,
		Unfurl: a.flag("unfurl_links", c.IM), Mrkdwn: a.flag("mrkdwn", true), Plain: a["parse"] == "none"}
	if a.flag("reply_broadcast", false) && thread != "" {
		m.Subtype = "thread_broadcast"
	}
	s.standLocked(m)
	s.clearLoadingLocked(c.ID, thread)
	return posted{Channel: c.ID, TS: m.TS, Message: s.wireLocked(m)}, nil
}

// threadLocked checks a thread_ts; s.Mu must be held.
func (s *Server) threadLocked(c *Channel, ts string) (string, error) {
	if ts == "" {
		return "", nil
	}
	root := s.world.message(c.ID, ts)
	if root == nil {
		return "", fail("thread_not_found")
	}
	if s.world.locked[c.ID+"/"+root.Root()] {
		return "", fail("restricted_action_thread_locked")
	}
	return root.Root(), nil
}

// standLocked adds a message to its channel and sends the app an event; s.Mu must be held.
func (s *Server) standLocked(m *Message) {
	if m.TS == "" {
		m.TS = s.stampLocked()
	}
	m.Versions = append(m.Versions, Version{Text: m.Text, Blocks: m.Blocks, At: s.opt.Now()})
	m.Unseen = m.For != "" && m.ThreadTS != "" && !slices.ContainsFunc(s.world.messages[m.Channel], func(other *Message) bool {
		return other.ThreadTS == m.ThreadTS && other.TS != m.ThreadTS && !other.Deleted && other.For == ""
	})
	s.world.messages[m.Channel] = append(s.world.messages[m.Channel], m)
	if m.For == "" {
		s.messageEventLocked(m, wireMessage{})
	}
	s.TouchLocked()
}

// messageEventLocked sends the app an event about a message in a conversation that it is
// in; change is the outer part of a message_changed or message_deleted; s.Mu must be held.
func (s *Server) messageEventLocked(m *Message, change wireMessage) {
	c := s.world.channel(m.Channel)
	if c == nil || !c.has(Bot) {
		return
	}
	w := s.wireLocked(m)
	if change.Subtype != "" {
		change.Type, change.Hidden = "message", true
		change.TS = s.stampLocked()
		w = change
	} else if m.BotID == "" {
		w.ClientMsgID = "client-" + m.TS
	}
	w.Channel, w.ChannelType, w.EventTS = c.ID, c.kind(), w.TS
	plural := map[string]string{"channel": "channels", "group": "groups", "im": "im", "mpim": "mpim"}
	if s.scopeLocked(scopeOf(c, "history")) {
		s.eventLocked("message."+plural[c.kind()], w)
	}
	if change.Subtype == "" {
		s.mentionEventLocked(c, m, w)
	}
}

// mentionEventLocked sends the app an event about a message that mentions it; s.Mu must be
// held.
func (s *Server) mentionEventLocked(c *Channel, m *Message, w wireMessage) {
	if m.User == Bot || c.IM || !mentions(m, Bot) || !s.scopeLocked("app_mentions:read") {
		return
	}
	w.Type, w.ChannelType = "app_mention", ""
	s.eventLocked("app_mention", w)
}

// ownLocked returns a message that the bot may edit; s.Mu must be held.
func (s *Server) ownLocked(a args, cannot string) (*Message, error) {
	c, err := s.targetLocked(a["channel"])
	if err != nil {
		return nil, err
	}
	m := s.world.message(c.ID, a["ts"])
	switch {
	case m == nil, m.For != "": // ephemeral messages can't be found
		return nil, fail("message_not_found")
	case m.User != Bot:
		return nil, fail(cannot)
	}
	return m, nil
}

type updated struct {
	Channel string      `json:"channel"`
	TS      string      `json:"ts"`
	Text    string      `json:"text"`
	Message wireMessage `json:"message"`
}

func (s *Server) update(a args) (any, error) {
	m, err := s.ownLocked(a, "cant_update_message")
	if err != nil {
		return nil, err
	}
	if m.Stream != nil && m.Stream.Open {
		return nil, fail("streaming_state_conflict")
	}
	body, err := s.readContent(a)
	if err != nil {
		return nil, err
	}
	if utf8.RuneCountInString(body.text) > maxUpdateText && a["markdown_text"] == "" {
		return nil, fail("msg_too_long")
	}
	if s.opt.FixedStreams && m.Stream != nil || holdsRichText(m.Blocks) && body.blocks != nil && !holdsRichText(body.blocks) {
		return nil, fail("block_mismatch")
	}
	before := s.wireLocked(m)
	m.Text = body.text
	if a.raw("blocks") != nil || a["markdown_text"] != "" || body.text != "" {
		m.Blocks = body.blocks // text without blocks removes the blocks
	}
	if a.raw("attachments") != nil {
		m.Attachments = body.attachments
	}
	s.changedLocked(m, before)
	return updated{Channel: m.Channel, TS: m.TS, Text: m.Text, Message: s.wireLocked(m)}, nil
}

// holdsRichText reports whether blocks contain rich text, which Slack replaces only by rich
// text. Slack creates some from all Markdown, streamed or not.
func holdsRichText(blocks json.RawMessage) bool {
	var list []struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal(blocks, &list) // checked before
	for _, b := range list {
		if b.Type == "rich_text" || b.Type == "markdown" {
			return true
		}
	}
	return false
}

// changedLocked records a new version of m; s.Mu must be held.
func (s *Server) changedLocked(m *Message, before wireMessage) {
	m.Versions = append(m.Versions, Version{Text: m.Text, Blocks: m.Blocks, At: s.opt.Now()})
	after := s.wireLocked(m)
	s.messageEventLocked(m, wireMessage{Subtype: "message_changed", Message: &after, Previous: &before})
	s.TouchLocked()
}

type channelTS struct {
	Channel string `json:"channel"`
	TS      string `json:"ts"`
}

func (s *Server) deleteMessage(a args) (any, error) {
	m, err := s.ownLocked(a, "cant_delete_message")
	if err != nil {
		return nil, err
	}
	s.removeLocked(m)
	return channelTS{Channel: m.Channel, TS: m.TS}, nil
}

// removeLocked deletes a message; s.Mu must be held.
func (s *Server) removeLocked(m *Message) {
	before := s.wireLocked(m)
	m.Deleted = true
	s.messageEventLocked(m, wireMessage{Subtype: "message_deleted", DeletedTS: m.TS, Previous: &before})
	s.TouchLocked()
}

func (s *Server) postEphemeral(a args) (any, error) {
	c, err := s.targetLocked(a["channel"])
	if err != nil {
		return nil, err
	}
	if !c.has(a["user"]) {
		return nil, fail("user_not_in_channel")
	}
	body, err := s.readContent(a)
	if err != nil {
		return nil, err
	}
	thread, err := s.threadLocked(c, a["thread_ts"])
	if err != nil {
		return nil, err
	}
	m := &Message{Channel: c.ID, ThreadTS: thread, User: Bot, BotID: BotID, For: a["user"], Text: body.text, Blocks: body.blocks, Mrkdwn: true}
	s.standLocked(m)
	return ephemeral{TS: m.TS}, nil
}

type ephemeral struct {
	TS string `json:"message_ts"`
}

type permanent struct {
	Channel   string `json:"channel"`
	Permalink string `json:"permalink"`
}

func (s *Server) permalink(a args) (any, error) {
	m := s.world.message(a["channel"], a["message_ts"])
	if m == nil {
		return nil, fail("message_not_found")
	}
	return permanent{Channel: m.Channel, Permalink: s.URL() + "/archives/" + m.Channel + "/p" + m.TS}, nil
}

type nothing struct{}

func (s *Server) addReaction(a args) (any, error) { return s.react(a, true) }

func (s *Server) removeReaction(a args) (any, error) { return s.react(a, false) }

func (s *Server) react(a args, add bool) (any, error) {
	c, err := s.targetLocked(a["channel"])
	if err != nil {
		return nil, err
	}
	m := s.world.message(c.ID, a["timestamp"])
	if m == nil {
		return nil, fail("message_not_found")
	}
	name := a["name"]
	if name == "" || utf8.RuneCountInString(name) > 100 {
		return nil, fail("invalid_name")
	}
	i := slices.IndexFunc(m.Reactions, func(r Reaction) bool { return r.Name == name })
	has := i >= 0 && slices.Contains(m.Reactions[i].Users, Bot)
	switch {
	case add && has:
		return nil, fail("already_reacted")
	case !add && !has:
		return nil, fail("no_reaction")
	case !add:
		m.Reactions[i].Users = slices.DeleteFunc(slices.Clone(m.Reactions[i].Users), func(u string) bool { return u == Bot })
		if len(m.Reactions[i].Users) == 0 {
			m.Reactions = slices.Delete(slices.Clone(m.Reactions), i, i+1)
		}
	case i >= 0:
		m.Reactions[i].Users = append(slices.Clone(m.Reactions[i].Users), Bot)
	default:
		m.Reactions = append(m.Reactions, Reaction{Name: name, Users: []string{Bot}})
	}
	return nothing{}, nil
}
