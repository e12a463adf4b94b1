// Package incoming decodes what Discord sends: messages, presses, dialogs, commands and
// guilds. It is pure: it turns bytes into checked values, and masks keys that people
// pasted.
//
// The values are discordgo's types. discordgo refuses a whole message or interaction if it
// has a component of a type that the library doesn't know, or a field of another JSON type
// than it expects; such components, and the fields that nize doesn't use, are removed here
// before it decodes. TestLibraryIncoming and TestUnusedFields show what it would lose.
package incoming

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/bwmarrin/discordgo"

	"nize/bots"
	"nize/store"
)

// IDForm matches a snowflake.
var IDForm = regexp.MustCompile(`^[0-9]{1,20}$`)

// NameOf returns the name of an account.
func NameOf(u *discordgo.User) string { return cmp.Or(u.DisplayName(), u.ID) }

// Message is a message in a channel, with the fields that nize uses; the others are empty,
// since what people wrote in them would be stored unmasked.
type Message struct {
	discordgo.Message
	// Masked reports that a key in the author's words was masked; only nize sets it.
	Masked bool
}

// Spoken reports whether a person wrote it.
func (m *Message) Spoken() bool {
	return (m.Type == discordgo.MessageTypeDefault || m.Type == discordgo.MessageTypeReply) && m.WebhookID == "" && !m.Author.Bot
}

// Direct reports whether it is in a direct channel.
func (m *Message) Direct() bool { return m.GuildID == "" }

// Reply returns the message that it replies to, nil if there is none.
func (m *Message) Reply() *Message {
	if m.ReferencedMessage == nil {
		return nil
	}
	return &Message{Message: *m.ReferencedMessage}
}

// DecodeMessage decodes a message.
func DecodeMessage(raw []byte) (m Message, err error) {
	if err := json.Unmarshal(raw, &m); err != nil {
		return m, fmt.Errorf("%w message: %w", store.ErrInvalid, err)
	}
	return m, m.check()
}

// MarshalJSON implements json.Marshaler.
func (m Message) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		discordgo.Message
		Masked bool `json:"nize_masked,omitempty"`
	}{m.Message, m.Masked})
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *Message) UnmarshalJSON(raw []byte) error {
	var all discordgo.Message
	var own struct {
		Masked bool `json:"nize_masked"`
	}
	if err := decode(raw, messageFields, &all, &own); err != nil {
		return err
	}
	m.Message, m.Masked = used(&all), own.Masked
	if to := all.ReferencedMessage; to != nil {
		reply := used(to)
		m.ReferencedMessage = &reply
	}
	return nil
}

// used returns a message with the fields that nize uses, except for the message that it
// replies to. No pointer in it is nil.
func used(m *discordgo.Message) discordgo.Message {
	out := discordgo.Message{
		ID: m.ID, ChannelID: m.ChannelID, GuildID: m.GuildID, Author: account(m.Author), Type: m.Type, Content: strings.ToValidUTF8(m.Content, "\uFFFD"),
		WebhookID: m.WebhookID, MentionRoles: m.MentionRoles, MentionEveryone: m.MentionEveryone, Components: m.Components,
	}
	for _, u := range present(m.Mentions) {
		out.Mentions = append(out.Mentions, account(u))
	}
	for _, f := range present(m.Attachments) {
		out.Attachments = append(out.Attachments, &discordgo.MessageAttachment{ID: f.ID, Filename: f.Filename, ContentType: f.ContentType, Size: f.Size, URL: f.URL})
	}
	for _, e := range present(m.Embeds) {
		kept := &discordgo.MessageEmbed{Title: e.Title, Description: e.Description, Footer: &discordgo.MessageEmbedFooter{}}
		if e.Footer != nil {
			kept.Footer.Text = e.Footer.Text // has nize's own mark if the embed is nize's
		}
		out.Embeds = append(out.Embeds, kept)
	}
	return out
}

func account(u *discordgo.User) *discordgo.User {
	if u == nil {
		return &discordgo.User{}
	}
	return &discordgo.User{ID: u.ID, Username: u.Username, GlobalName: u.GlobalName, Bot: u.Bot}
}

// decode decodes a payload into several values. If the library refuses it, it is decoded
// without the fields that nize doesn't use and the components that the library doesn't know.
func decode(raw []byte, uses fields, into ...any) error {
	for _, v := range into {
		err := json.Unmarshal(raw, v)
		if err != nil {
			err = json.Unmarshal(known(uses.keep(raw), maxDepth), v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fields are those of a payload that nize uses, with those of the objects in them; nil means
// all.
type fields map[string]fields

var (
	userFields    = fields{"id": nil, "username": nil, "global_name": nil, "bot": nil}
	channelFields = fields{
		"id": nil, "guild_id": nil, "type": nil, "name": nil, "parent_id": nil, "recipients": userFields,
		"permission_overwrites": {"id": nil, "type": nil, "allow": nil, "deny": nil},
	}
	guildFields = fields{
		"id": nil, "name": nil, "owner_id": nil, "preferred_locale": nil, "unavailable": nil, "channels": channelFields, "threads": channelFields,
		"roles": {"id": nil, "name": nil, "permissions": nil},
	}
	replyFields = fields{
		"id": nil, "channel_id": nil, "guild_id": nil, "author": userFields, "type": nil, "content": nil, "webhook_id": nil,
		"mentions": userFields, "mention_roles": nil, "mention_everyone": nil, "components": nil,
		"attachments": {"id": nil, "filename": nil, "content_type": nil, "size": nil, "url": nil},
		"embeds":      {"title": nil, "description": nil, "footer": {"text": nil}},
	}
	messageFields = replyFields.with(fields{"referenced_message": replyFields, "nize_masked": nil})

	interactionFields = fields{
		"id": nil, "application_id": nil, "type": nil, "token": nil, "guild_id": nil, "channel_id": nil, "channel": channelFields, "locale": nil,
		"user": userFields, "member": {"user": userFields}, "message": {"id": nil}, "nize_masked": nil,
		"data": {"name": nil, "type": nil, "target_id": nil, "options": nil, "custom_id": nil, "component_type": nil, "values": nil, "components": nil},
	}
)

func (f fields) with(more fields) fields {
	all := maps.Clone(f)
	maps.Copy(all, more)
	return all
}

// keep returns a payload, or each payload in a list, with these fields only.
func (f fields) keep(raw json.RawMessage) json.RawMessage {
	var list []json.RawMessage
	var has map[string]json.RawMessage
	switch {
	case f == nil:
		return raw
	case json.Unmarshal(raw, &list) == nil && list != nil:
		for i, v := range list {
			list[i] = f.keep(v)
		}
		return encode(list)
	case json.Unmarshal(raw, &has) == nil && has != nil:
		kept := map[string]json.RawMessage{}
		for name, inner := range f {
			if v, ok := has[name]; ok {
				kept[name] = inner.keep(v)
			}
		}
		return encode(kept)
	}
	return raw
}

// maxDepth is how many levels of a payload are searched for components. Discord's payloads
// have fewer.
const maxDepth = 20

// known returns a payload without the components that discordgo doesn't know.
func known(raw json.RawMessage, depth int) json.RawMessage {
	var list []json.RawMessage
	var fields map[string]json.RawMessage
	switch {
	case depth == 0:
		return raw
	case json.Unmarshal(raw, &list) == nil && list != nil:
		for i, v := range list {
			list[i] = known(v, depth-1)
		}
		return encode(list)
	case json.Unmarshal(raw, &fields) == nil && fields != nil:
		for name, v := range fields {
			switch v = known(v, depth-1); name {
			case "components":
				var all, kept []json.RawMessage
				if json.Unmarshal(v, &all) == nil {
					for _, c := range all {
						if c = typed(c); isKnown(c) {
							kept = append(kept, c)
						}
					}
					v = encode(kept)
				}
			case "component", "accessory":
				if v = typed(v); !isKnown(v) {
					delete(fields, name)
					continue
				}
			}
			fields[name] = v
		}
		return encode(fields)
	}
	return raw
}

// typed returns a component with its type, which nize left out of the dialogs that it stored
// before it used discordgo's types.
func typed(component json.RawMessage) json.RawMessage {
	var c map[string]json.RawMessage
	if json.Unmarshal(component, &c) != nil || c == nil || c["type"] != nil {
		return component
	}
	kind := discordgo.TextInputComponent
	for field, k := range map[string]discordgo.ComponentType{"component": discordgo.LabelComponent, "components": discordgo.ActionsRowComponent, "values": discordgo.SelectMenuComponent} {
		if c[field] != nil {
			kind = k
		}
	}
	c["type"] = encode(kind)
	return encode(c)
}

func isKnown(component json.RawMessage) bool {
	_, err := discordgo.MessageComponentFromJSON(component)
	return err == nil
}

func encode(v any) json.RawMessage {
	raw, _ := json.Marshal(v) // never fails: its parts were decoded from JSON
	return raw
}

func (m *Message) check() error {
	for what, id := range map[string]string{"id": m.ID, "channel": m.ChannelID, "author": m.Author.ID} {
		if !IDForm.MatchString(id) {
			return fmt.Errorf("%w message: %s", store.ErrInvalid, what)
		}
	}
	if m.GuildID != "" && !IDForm.MatchString(m.GuildID) {
		return fmt.Errorf("%w message: guild", store.ErrInvalid)
	}
	return nil
}

// Mask masks keys in the texts.
func (m *Message) Mask() {
	masked := store.RedactText(m.Content)
	m.Masked = m.Masked || masked != m.Content
	m.Content = masked
	embeds := m.Embeds
	if m.ReferencedMessage != nil {
		m.ReferencedMessage.Content = store.RedactText(m.ReferencedMessage.Content)
		embeds = slices.Concat(embeds, m.ReferencedMessage.Embeds)
	}
	for _, e := range embeds {
		e.Title, e.Description = store.RedactText(e.Title), store.RedactText(e.Description)
	}
}

// Addresses reports whether the message is for nize, whose user id is self.
func (m *Message) Addresses(self string) bool {
	if m.Direct() {
		return true
	}
	for _, u := range m.Mentions {
		if u.ID == self {
			return true
		}
	}
	return false
}

// Others reports whether it mentions someone other than nize.
func (m *Message) Others(self string) bool {
	for _, u := range m.Mentions {
		if u.ID != self {
			return true
		}
	}
	return len(m.MentionRoles) > 0
}

var mentionForm = regexp.MustCompile(`<(@!?|@&|#|a?:[A-Za-z0-9_]{1,40}:)([0-9]{1,20})>`)

// maxNames is how many mentions of a message are replaced by names.
const maxNames = 40

// Words returns a message's text, without the mention of nize and with names instead of
// ids.
func (m *Message) Words(self string, channel func(string) string) string {
	names := map[string]string{}
	for _, u := range m.Mentions[:min(len(m.Mentions), maxNames)] {
		names[u.ID] = NameOf(u)
	}
	text := mentionForm.ReplaceAllStringFunc(m.Content, func(found string) string {
		parts := mentionForm.FindStringSubmatch(found)
		kind, id := parts[1], parts[2]
		switch {
		case (kind == "@" || kind == "@!") && id == self:
			return " "
		case kind == "@" || kind == "@!":
			if name := names[id]; name != "" {
				return "@" + name
			}
		case kind == "#":
			return "#" + channel(id)
		case strings.HasSuffix(kind, ":"):
			return strings.TrimPrefix(kind, "a")
		}
		return found
	})
	return strings.TrimSpace(text)
}

// Quoted returns a message's text as a quote: programs often put all of it in embeds.
func (m *Message) Quoted(self string, channel func(string) string) string {
	text := m.Words(self, channel)
	for _, e := range m.Embeds[:min(len(m.Embeds), 8)] {
		text += "\n" + strings.TrimSpace(e.Title+"\n"+e.Description)
	}
	var names []string
	for _, f := range m.Attachments {
		names = append(names, bots.Escape(store.Clip(f.Filename, 100)))
	}
	if len(names) > 0 {
		text += "\n[files: " + strings.Join(names, ", ") + "]"
	}
	return Cut(strings.TrimSpace(text), store.MaxQuote)
}

// Cut shortens a text to at most limit bytes.
func Cut(text string, limit int) string {
	const mark = "… [cut]"
	if len(text) <= limit {
		return text
	}
	n := limit - len(mark)
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + mark
}

// maxTitle is the maximum length of a conversation's title: Discord accepts 100 characters
// as a thread's name.
const maxTitle = 80

// TitleOf returns the title of a conversation that begins with a text.
func TitleOf(text string, files []*discordgo.MessageAttachment) string {
	if text = strings.Join(strings.Fields(text), " "); text == "" && len(files) > 0 {
		text = files[0].Filename
	}
	return bots.Brief(text, maxTitle)
}

// epoch is Discord's epoch, in milliseconds.
const epoch = 1420070400000

// TimeOf returns the time of a snowflake.
func TimeOf(id string) time.Time {
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(int64(n>>22) + epoch).UTC()
}

// IDAt returns the first snowflake of a time.
func IDAt(t time.Time) string {
	ms := t.UnixMilli() - epoch
	return strconv.FormatUint(uint64(max(ms, 0))<<22, 10)
}

// Later reports whether snowflake a is newer than b.
func Later(a, b string) bool { return len(a) > len(b) || len(a) == len(b) && a > b }
