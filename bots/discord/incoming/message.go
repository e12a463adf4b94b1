// Package incoming decodes what Discord sends: messages, presses, dialogs, commands and
// guilds. It is pure: it turns bytes into checked values, and masks keys that people
// pasted.
//
// It decodes only the few fields that are used, so that an unknown type of component
// doesn't empty its message.
package incoming

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"nize/bots"
	"nize/store"
)

// IDForm matches a snowflake.
var IDForm = regexp.MustCompile(`^[0-9]{1,20}$`)

// User is a Discord account.
type User struct {
	ID     string `json:"id"`
	Name   string `json:"username"`
	Global string `json:"global_name,omitempty"`
	Bot    bool   `json:"bot,omitempty"`
}

// Member is a user's membership in a guild.
type Member struct {
	User  User     `json:"user,omitzero"`
	Nick  string   `json:"nick,omitempty"`
	Roles []string `json:"roles,omitempty"`
	// Pending reports that they have not accepted the guild's rules yet.
	Pending bool `json:"pending,omitempty"`
}

// DisplayName returns the name shown in the guild.
func (m Member) DisplayName() string {
	for _, name := range []string{m.Nick, m.User.Global, m.User.Name} {
		if name != "" {
			return name
		}
	}
	return m.User.ID
}

// File is an attachment of a message.
type File struct {
	ID   string `json:"id"`
	Name string `json:"filename"`
	Type string `json:"content_type,omitempty"`
	Size int64  `json:"size"`
	URL  string `json:"url"`
}

// Message is a message in a channel.
type Message struct {
	ID         string          `json:"id"`
	Channel    string          `json:"channel_id"`
	Guild      string          `json:"guild_id,omitempty"` // "" in a direct channel
	Author     User            `json:"author"`
	Member     *Member         `json:"member,omitempty"` // the author's membership, without the account
	Type       int             `json:"type"`
	Text       string          `json:"content"`
	Webhook    string          `json:"webhook_id,omitempty"`
	Mentions   []User          `json:"mentions,omitempty"`
	RoleIDs    []string        `json:"mention_roles,omitempty"`
	Everyone   bool            `json:"mention_everyone,omitempty"`
	Files      []File          `json:"attachments,omitempty"`
	Components json.RawMessage `json:"components,omitempty"`
	Embeds     []Embed         `json:"embeds,omitempty"`
	// Reply is the message that it replies to; the message of a press has none.
	Reply *Message `json:"referenced_message,omitempty"`
	// Masked reports that a key in the author's words was masked; only nize sets it.
	Masked bool `json:"nize_masked,omitempty"`
}

// Embed holds the text of many programs' messages.
type Embed struct {
	Title string `json:"title,omitempty"`
	Text  string `json:"description,omitempty"`
	// Footer has nize's own mark if the embed is nize's.
	Footer struct {
		Text string `json:"text,omitempty"`
	} `json:"footer,omitzero"`
}

// Types of messages written by a person.
const (
	typeDefault = 0
	typeReply   = 19
)

// Spoken reports whether a person wrote it.
func (m *Message) Spoken() bool {
	return (m.Type == typeDefault || m.Type == typeReply) && m.Webhook == "" && !m.Author.Bot
}

// Direct reports whether it is in a direct channel.
func (m *Message) Direct() bool { return m.Guild == "" }

// DecodeMessage decodes a message.
func DecodeMessage(raw []byte) (m Message, err error) {
	if err := json.Unmarshal(raw, &m); err != nil {
		return m, fmt.Errorf("%w message: %w", store.ErrInvalid, err)
	}
	return m, m.check()
}

func (m *Message) check() error {
	for what, id := range map[string]string{"id": m.ID, "channel": m.Channel, "author": m.Author.ID} {
		if !IDForm.MatchString(id) {
			return fmt.Errorf("%w message: %s", store.ErrInvalid, what)
		}
	}
	if m.Guild != "" && !IDForm.MatchString(m.Guild) {
		return fmt.Errorf("%w message: guild", store.ErrInvalid)
	}
	m.Text = strings.ToValidUTF8(m.Text, "\uFFFD")
	if m.Reply != nil {
		m.Reply.Reply = nil
	}
	return nil
}

// Mask masks keys in the texts.
func (m *Message) Mask() {
	masked := store.RedactText(m.Text)
	m.Masked = m.Masked || masked != m.Text
	m.Text = masked
	if m.Reply != nil {
		m.Reply.Text = store.RedactText(m.Reply.Text)
	}
	for i := range m.Embeds {
		m.Embeds[i].Title, m.Embeds[i].Text = store.RedactText(m.Embeds[i].Title), store.RedactText(m.Embeds[i].Text)
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
	return len(m.RoleIDs) > 0
}

var mentionForm = regexp.MustCompile(`<(@!?|@&|#|a?:[A-Za-z0-9_]{1,40}:)([0-9]{1,20})>`)

// maxNames is how many mentions of a message are replaced by names.
const maxNames = 40

// Words returns a message's text, without the mention of nize and with names instead of
// ids.
func (m *Message) Words(self string, channel func(string) string) string {
	names := map[string]string{}
	for _, u := range m.Mentions[:min(len(m.Mentions), maxNames)] {
		names[u.ID] = Member{User: u}.DisplayName()
	}
	text := mentionForm.ReplaceAllStringFunc(m.Text, func(found string) string {
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
		text += "\n" + strings.TrimSpace(e.Title+"\n"+e.Text)
	}
	var names []string
	for _, f := range m.Files {
		names = append(names, bots.Escape(store.Clip(f.Name, 100)))
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
func TitleOf(text string, files []File) string {
	if text = strings.Join(strings.Fields(text), " "); text == "" && len(files) > 0 {
		text = files[0].Name
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
