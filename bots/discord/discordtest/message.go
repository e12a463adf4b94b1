package discordtest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"nize/bots/chattest"
)

const nonceLife = 5 * time.Minute

// draft is a message as sent by the bot; an edit doesn't change nil fields.
type draft struct {
	Content     *string            `json:"content"`
	Embeds      *[]embed           `json:"embeds"`
	Components  *[]json.RawMessage `json:"components"`
	Mentions    *allowedMentions   `json:"allowed_mentions"`
	Flags       *int               `json:"flags"`
	Nonce       json.RawMessage    `json:"nonce"`
	Enforce     bool               `json:"enforce_nonce"`
	Attachments *[]draftFile       `json:"attachments"`
	Reference   struct {
		MessageID string `json:"message_id"`
		FailIf    *bool  `json:"fail_if_not_exists"`
	} `json:"message_reference"`
}

type embed struct {
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	URL         string `json:"url,omitempty"`
	Color       int    `json:"color,omitempty"`
	Footer      struct {
		Text string `json:"text,omitempty"`
	} `json:"footer,omitzero"`
	Fields []struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"fields,omitempty"`
}

type draftFile struct {
	ID          json.RawMessage `json:"id"`
	Filename    string          `json:"filename"`
	Description string          `json:"description"`
}

type allowedMentions struct {
	Parse       []string `json:"parse"`
	Users       []string `json:"users"`
	Roles       []string `json:"roles"`
	RepliedUser bool     `json:"replied_user"`
}

var mentionRe = regexp.MustCompile(`<@(!|&)?(\d+)>|@everyone|@here`)

// mentionsIn returns the users mentioned in a text, and those that it pings. A mention that
// allowed_mentions excludes is shown without a ping.
func (s *Server) mentionsIn(text string, allowed *allowedMentions) (users, pinged []string) {
	may := func(kind, id string) bool {
		return allowed == nil || slices.Contains(allowed.Parse, kind) || slices.Contains(map[string][]string{"users": allowed.Users, "roles": allowed.Roles}[kind], id)
	}
	for _, m := range mentionRe.FindAllStringSubmatch(text, -1) {
		switch {
		case m[2] == "":
			if may("everyone", "") {
				pinged = append(pinged, m[0])
			}
		case m[1] == "&":
			if may("roles", m[2]) {
				pinged = append(pinged, m[2])
			}
		case s.world.user(m[2]) != nil && !slices.Contains(users, m[2]):
			users = append(users, m[2])
			if may("users", m[2]) {
				pinged = append(pinged, m[2])
			}
		}
	}
	return users, pinged
}

// applyLocked applies a checked draft to a message.
func (s *Server) applyLocked(m *Message, d draft, files map[string]chattest.Upload) {
	if d.Content != nil {
		m.Content = *d.Content
	}
	if d.Embeds != nil {
		m.Embeds = chattest.JSON(*d.Embeds)
	}
	if d.Components != nil {
		m.Components = chattest.JSON(*d.Components)
	}
	if d.Flags != nil {
		m.Flags = m.Flags&^(NoEmbeds|ComponentsV2|Silent) | *d.Flags&(NoEmbeds|ComponentsV2|Silent) | m.Flags&ComponentsV2
	}
	if d.Attachments != nil || len(files) > 0 {
		m.Files = s.filesLocked(m, d, files)
	}
	m.mentions, m.Pinged = s.mentionsIn(m.Content+" "+m.componentText(), d.Mentions)
	if m.Reply != "" && (d.Mentions == nil || d.Mentions.RepliedUser) {
		if to := s.world.message(m.Channel, m.Reply); to != nil {
			m.Pinged = append(m.Pinged, to.Author)
		}
	}
	m.Versions = append(m.Versions, Version{Content: m.Content, Components: m.Components, At: s.opt.Now()})
}

// filesLocked returns a message's files after a draft: those that it keeps, and new ones.
func (s *Server) filesLocked(m *Message, d draft, files map[string]chattest.Upload) []File {
	keep := m.Files
	said := map[string]draftFile{}
	if d.Attachments != nil {
		keep = nil
		for _, a := range *d.Attachments {
			id := strings.Trim(string(a.ID), `"`)
			said[id] = a
			if i := slices.IndexFunc(m.Files, func(f File) bool { return f.ID == id }); i >= 0 {
				keep = append(keep, m.Files[i])
			}
		}
	}
	for n := range 10 {
		if up, ok := files[fmt.Sprintf("files[%d]", n)]; ok {
			a := said[strconv.Itoa(n)]
			keep = append(keep, s.hostLocked(m.Channel, File{Name: cmp.Or(a.Filename, up.Name), Description: a.Description, Content: up.Content}))
		}
	}
	return keep
}

// hostLocked assigns a file its id and URL.
func (s *Server) hostLocked(channel string, f File) File {
	f.ID, f.Size = s.idLocked(), len(f.Content)
	f.URL = s.URL() + "/attachments/" + channel + "/" + f.ID + "/" + url.PathEscape(f.Name)
	return f
}

// addLocked adds a message to its channel, and sends the bot an event unless it is
// ephemeral.
func (s *Server) addLocked(m *Message) {
	c := s.world.channel(m.Channel)
	m.Created = s.opt.Now()
	s.world.messages[m.Channel] = append(s.world.messages[m.Channel], m)
	if m.For != "" {
		return
	}
	if c.Archived {
		c.Archived = false
		s.threadEventLocked(c, "THREAD_UPDATE")
	}
	if c.thread() && !slices.Contains(c.Members, m.Author) {
		c.Members = append(c.Members, m.Author)
	}
	s.messageEventLocked(c, "MESSAGE_CREATE", func(content bool) any {
		w := s.eventMessageLocked(m, content)
		w.Nonce = m.Nonce
		return w
	})
}

func (s *Server) updatedLocked(m *Message) {
	if m.For == "" {
		s.messageEventLocked(s.world.channel(m.Channel), "MESSAGE_UPDATE", func(content bool) any { return s.eventMessageLocked(m, content) })
	}
}

func (s *Server) createMessage(c *call) (any, error) {
	ch, err := s.myChannel(c, SendMessages)
	if err != nil {
		return nil, err
	}
	switch {
	case ch.Type == DirectChannel && !s.world.share(ch.Members[0], ch.Members[1]):
		return nil, errNoDM
	case ch.Locked:
		return nil, errLocked
	}
	d, err := c.draft(true, 0)
	if err != nil {
		return nil, err
	}
	nonce := strings.Trim(string(d.Nonce), `"`)
	if d.Enforce && nonce != "" {
		for _, old := range slices.Backward(s.world.messages[ch.ID]) {
			if old.Author == Bot && old.Nonce == nonce && !old.deleted && s.opt.Now().Sub(old.Created) < nonceLife {
				return s.wireLocked(old, true), nil
			}
		}
	}
	m := &Message{ID: s.idLocked(), Channel: ch.ID, Author: Bot, Nonce: nonce}
	if to := d.Reference.MessageID; s.world.message(ch.ID, to) != nil {
		m.Type, m.Reply = replyType, to
	} else if to != "" && (d.Reference.FailIf == nil || *d.Reference.FailIf) {
		return nil, formError(chattest.Wrong{At: "message_reference", Text: "REPLIES_UNKNOWN_MESSAGE Unknown message"})
	}
	s.applyLocked(m, d, c.files)
	s.addLocked(m)
	out := s.wireLocked(m, true)
	out.Nonce = nonce
	return out, nil
}

// draft decodes a message; flags are the allowed ones.
func (c *call) draft(fresh bool, flags int) (d draft, err error) {
	if err := c.decode(draftShape(flags), &d); err != nil {
		return d, err
	}
	if string(d.Nonce) == "null" {
		d.Nonce = nil
	}
	said := d.Content != nil && strings.TrimSpace(*d.Content) != "" || d.Embeds != nil && len(*d.Embeds) > 0 || d.Components != nil && len(*d.Components) > 0 || len(c.files) > 0
	textAlone := d.Content != nil && d.Embeds == nil && d.Components == nil && d.Attachments == nil
	switch {
	case len(c.files) > 10:
		return d, formError(chattest.Wrong{At: "attachments", Text: "BASE_TYPE_MAX_LENGTH Must be 10 or fewer in length."})
	case !said && (fresh || textAlone):
		return d, errEmpty
	}
	return d, nil
}

// myMessage returns the message in the path, unless it is ephemeral.
func (s *Server) myMessage(c *call, need int64) (*Channel, *Message, error) {
	ch, err := s.myChannel(c, need)
	if err != nil {
		return nil, nil, err
	}
	m := s.world.message(ch.ID, c.PathValue("message"))
	if m == nil || m.For != "" {
		return nil, nil, errUnknownMessage
	}
	return ch, m, nil
}

func (s *Server) getMessage(c *call) (any, error) {
	_, m, err := s.myMessage(c, ReadHistory)
	if err != nil {
		return nil, err
	}
	return s.wireLocked(m, !s.opt.NoContent), nil
}

func (s *Server) editMessage(c *call) (any, error) {
	ch, m, err := s.myMessage(c, ViewChannel)
	if err != nil {
		return nil, err
	}
	if m.Author != Bot {
		return nil, errNotAuthor
	}
	if ch.Archived {
		return nil, errLocked
	}
	return s.editLocked(m, c)
}

func (s *Server) editLocked(m *Message, c *call) (any, error) {
	d, err := c.draft(false, m.Flags&ComponentsV2)
	if err != nil {
		return nil, err
	}
	s.applyLocked(m, d, c.files)
	m.Edited = s.opt.Now()
	m.Loading, m.Flags = false, m.Flags&^Loading
	s.updatedLocked(m)
	return s.wireLocked(m, true), nil
}

type messageGone struct {
	ID        string `json:"id"`
	ChannelID string `json:"channel_id"`
	GuildID   string `json:"guild_id,omitempty"`
}

func (s *Server) deleteMessage(c *call) (any, error) {
	ch, m, err := s.myMessage(c, ViewChannel)
	if err != nil {
		return nil, err
	}
	if m.Author != Bot && s.world.permissions(ch, Bot)&ManageMessages == 0 {
		return nil, errPermissions
	}
	s.deleteLocked(m)
	return nil, nil
}

// Delete deletes a message as its author or a moderator would.
func (s *Server) Delete(m Message) error {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	found := s.world.message(m.Channel, m.ID)
	if found == nil {
		return fmt.Errorf("discordtest: no message %s in %s", m.ID, m.Channel)
	}
	s.deleteLocked(found)
	return nil
}

func (s *Server) deleteLocked(m *Message) {
	m.deleted = true
	c := s.world.channel(m.Channel)
	if m.For == "" {
		s.messageEventLocked(c, "MESSAGE_DELETE", same(messageGone{ID: m.ID, ChannelID: m.Channel, GuildID: c.Guild}))
	}
}

// listMessages returns a channel's messages, newest first.
func (s *Server) listMessages(c *call) (any, error) {
	ch, err := s.myChannel(c, ViewChannel)
	if err != nil {
		return nil, err
	}
	list := []*wireMessage{}
	if s.world.permissions(ch, Bot)&ReadHistory == 0 {
		return list, nil
	}
	q, most := c.URL.Query(), c.limit(100)
	after, before, around := ordinal(q.Get("after")), ordinal(q.Get("before")), ordinal(q.Get("around"))
	var found []*Message
	for _, m := range s.world.messages[ch.ID] {
		n := ordinal(m.ID)
		if !m.deleted && m.For == "" && (after == 0 || n > after) && (before == 0 || n < before) {
			found = append(found, m)
		}
	}
	switch {
	case around != 0:
		at := slices.IndexFunc(found, func(m *Message) bool { return ordinal(m.ID) >= around })
		if at < 0 {
			at = len(found)
		}
		first := max(0, at-most/2)
		found = found[first:min(len(found), first+most)]
	case after != 0:
		found = found[:min(len(found), most)]
	default:
		found = found[max(0, len(found)-most):]
	}
	for _, m := range slices.Backward(found) {
		list = append(list, s.wireLocked(m, !s.opt.NoContent))
	}
	return list, nil
}
