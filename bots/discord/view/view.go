// Package view makes Discord messages and dialogs out of values, and reads submitted
// dialogs. It makes no requests.
//
// Cards are plain messages with buttons below them instead of the newer layout components:
// a message with those has no text of its own, so a notification would be empty, and screen
// readers read plain text best. What doesn't fit into a message is attached as a file.
//
// Messages, components, embeds, dialogs and commands are discordgo's types. Beside them are
// three small ones, each because discordgo's has no correct form: [Message] has a nonce,
// [Completion] keeps an empty list, and a select of a dialog has no field disabled.
// TestLibraryOutgoing shows what discordgo's would send.
package view

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/bwmarrin/discordgo"

	"nize/bots"
	"nize/bots/markdown"
	"nize/bots/phrases"
	"nize/store"
)

// Discord's limits.
const (
	MaxText        = 2000 // characters of a message
	maxRows        = 5
	maxRowButtons  = 5
	maxButton      = 80
	maxCustomID    = 100
	maxOptions     = 25
	maxOption      = 100
	maxDialog      = 5 // fields of a dialog
	maxDialogTitle = 45
	maxInput       = 4000
	maxHint        = 100
	maxLink        = 512 // characters of a link button's address
)

// Message is a message to be sent: discordgo's, with the nonce that it lacks.
type Message struct {
	discordgo.MessageSend
	Nonce   string `json:"nonce,omitempty"`
	Enforce bool   `json:"enforce_nonce,omitempty"`
}

// Text returns a message of text and buttons. A text that exceeds Discord's limit is cut;
// callers split it earlier if they have something better.
func Text(content string, components ...discordgo.MessageComponent) Message {
	if components == nil {
		components = []discordgo.MessageComponent{} // in an edit, this removes the existing ones
	}
	return Message{MessageSend: discordgo.MessageSend{
		Content: Clip(content, MaxText), Components: components[:min(len(components), maxRows)],
		AllowedMentions: &discordgo.MessageAllowedMentions{Parse: []discordgo.AllowedMentionType{}}, // it notifies no one, whatever its text is
		Flags:           discordgo.MessageFlagsSuppressEmbeds,
	}}
}

// Edit returns the message as the new content of one that was sent before. The fields are
// the same for every kind of message; discordgo.MessageEdit also has the ids, which are in
// the path.
func (m Message) Edit() *discordgo.WebhookEdit {
	e := &discordgo.WebhookEdit{Content: &m.Content, Components: &m.Components, AllowedMentions: m.AllowedMentions, Flags: m.Flags}
	if m.Embeds != nil {
		e.Embeds = &m.Embeds
	}
	return e
}

// Answer returns the message as the first response to an interaction.
func (m Message) Answer() *discordgo.InteractionResponseData {
	return &discordgo.InteractionResponseData{Content: m.Content, Components: m.Components, Embeds: m.Embeds, AllowedMentions: m.AllowedMentions, Flags: m.Flags}
}

// FollowUp returns the message as a further response to an interaction.
func (m Message) FollowUp() *discordgo.WebhookParams {
	return &discordgo.WebhookParams{Content: m.Content, Components: m.Components, Embeds: m.Embeds, AllowedMentions: m.AllowedMentions, Flags: m.Flags}
}

// Alone returns the message as one that only the author of the interaction sees.
func (m Message) Alone() Message {
	m.Flags |= discordgo.MessageFlagsEphemeral
	return m
}

// WithNonce returns a message that is created once, however often it is sent within a few
// minutes.
func (m Message) WithNonce(id string) Message {
	m.Nonce, m.Enforce = digest([]byte(id))[:24], true
	return m
}

func digest(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// sizes fit an answer's messages: with what is opened and closed again, none exceeds
// Discord's limit.
var sizes = markdown.Sizes{Part: 1_600, Soft: 1_300, Word: 1_500, Lead: 350, Size: sizeOf}

// Part returns one message of a long text.
func Part(before, body string, more bool) Message {
	text := strings.TrimRight(sizes.Dress(before, body, more), " \t\r\n")
	if strings.HasPrefix(text, quiet) {
		text = `\` + text
	}
	if text == "" {
		text = "\u200b"
	}
	return Text(text)
}

// Split splits a text into messages.
func Split(text string) []string { return sizes.Split(text) }

// quiet begins a line in small letters: nize's own texts and lines of tools.
const quiet = "-# "

// special escapes the characters with a meaning anywhere in Discord's Markdown. Without
// brackets there are no links, so parentheses may stay.
var special = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `_`, `\_`, "`", "\\`", `~`, `\~`, `|`, `\|`, `>`, `\>`, `<`, `\<`, `[`, `\[`, `]`, `\]`, `@`, `\@`, `://`, `\://`)

// Escape escapes outside text, including the marks of headings, lists and small letters at
// the beginning of a line.
func Escape(s string) string {
	lines := strings.Split(special.Replace(bots.Plain(s)), "\n")
	for i, line := range lines {
		text := strings.TrimLeft(line, " \t")
		if text != "" && strings.ContainsRune("#-+", rune(text[0])) {
			lines[i] = line[:len(line)-len(text)] + `\` + text
		}
	}
	return strings.Join(lines, "\n")
}

// Notice returns nize's own text in small letters, with nize's names as code.
func Notice(text string, components ...discordgo.MessageComponent) Message {
	var out []string
	for line := range strings.SplitSeq(strings.TrimSpace(bots.Plain(text)), "\n") {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, quiet+line)
		}
	}
	return Text(strings.Join(out, "\n"), components...)
}

// IsNotice reports whether a text begins like a notice; lines of tools do too.
func IsNotice(content string) bool { return strings.HasPrefix(content, quiet) }

// Pages splits a text for one person into messages.
func Pages(text string) []string {
	var pages []string
	before := ""
	for _, body := range sizes.Split(bots.Plain(text)) {
		pages = append(pages, sizes.Dress(before, body, true))
		before += body
	}
	return pages
}

// Clip shortens a text to at most limit characters, as Discord counts them.
func Clip(text string, limit int) string {
	if size(text) <= limit {
		return text
	}
	n := 0
	for i, r := range text {
		if n += sizeOf(r); n > limit-1 {
			return text[:i] + "…"
		}
	}
	return text
}

func size(text string) (n int) {
	for _, r := range text {
		n += sizeOf(r)
	}
	return n
}

// sizeOf returns the size of a character in UTF-16, as Discord's clients count it; the
// API's count is never larger.
func sizeOf(r rune) int { return max(utf16.RuneLen(r), 1) }

// Rows returns buttons as rows below a message.
func Rows(buttons ...discordgo.MessageComponent) (rows []discordgo.MessageComponent) {
	for row := range slices.Chunk(buttons, maxRowButtons) {
		rows = append(rows, discordgo.ActionsRow{Components: row})
	}
	return rows[:min(len(rows), maxRows)]
}

// Button returns a button that sends an id.
func Button(label, id string) discordgo.Button {
	return discordgo.Button{Style: discordgo.SecondaryButton, Label: Clip(label, maxButton), CustomID: id}
}

// Link returns a button that opens a URL.
func Link(label, url string) discordgo.Button {
	return discordgo.Button{Style: discordgo.LinkButton, Label: Clip(label, maxButton), URL: url}
}

// Prefixes of custom_ids, before a colon.
const (
	CallID   = "call"
	ResultID = "result"
	WordsID  = "words"
	ShareID  = "share"
	EditID   = "edit"
	AlwaysID = "always"
	ReasonID = "reason"
	FormID   = "form"
	SecretID = "secret"
	AboutID  = "about"
)

// HeadOf splits a custom_id.
func HeadOf(id string) (head, rest string) {
	head, rest, _ = strings.Cut(id, ":")
	return head, rest
}

// AnswerButtons returns the buttons of a reply.
func AnswerButtons(a bots.Answer, words phrases.Catalogue) []discordgo.MessageComponent {
	var buttons []discordgo.MessageComponent
	for _, b := range a.Buttons {
		if len(WordsID)+1+len(b.Words) <= maxCustomID {
			buttons = append(buttons, Button(words.Say(b.Label), WordsID+":"+b.Words))
		}
	}
	return Rows(buttons...)
}

// IsText reports whether one of nize's messages, without files and buttons, can be an
// assistant's text.
func IsText(content string) bool { return !strings.HasPrefix(content, quiet) }

// IsPostOf reports whether a message with those buttons is the post of a card, a notice or
// a line about tools.
func IsPostOf(content string, buttons []string, want store.Message, locale string) bool {
	switch {
	case want.Kind == store.CardMessage && want.Card != nil:
		return slices.ContainsFunc(buttons, func(id string) bool {
			head, rest := HeadOf(id)
			p, ok := bots.ReadPress(rest)
			return ok && head == CallID && p.Call == want.Card.Call
		})
	case want.Tool != nil:
		head, _, _ := strings.Cut(toolLine(*want.Tool, locale), ": ")
		return strings.HasPrefix(content, quiet) && strings.Contains(content, quiet+head)
	}
	return content == Notice(want.Text).Content
}

// firstRunes returns the beginning of a text.
func firstRunes(text string, n int) string {
	for i := range text {
		if n == 0 {
			return text[:i]
		}
		n--
	}
	return text
}

func runes(text string) int { return utf8.RuneCountInString(text) }
