// Package view makes messages and dialogs of Discord's out of values, and reads
// what is sent in with dialogs. It asks nobody.
//
// Cards are plain messages with buttons below them, and not the newer layout
// components: a message with those has no text of its own, so that nothing of it
// would stand in a notification, and screen readers read plain text best. What a
// message has no room for goes with it as a file.
package view

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

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
	maxDialog      = 5 // fields of one
	maxDialogTitle = 45
	maxInput       = 4000
	maxHint        = 100
)

// Flags of messages.
const (
	noEmbeds  = 1 << 2
	ephemeral = 1 << 6
)

// Kinds of components.
const (
	kindRow    = 1
	kindButton = 2
	kindSelect = 3
	kindInput  = 4
	kindWords  = 10
	kindLabel  = 18
)

// Styles of buttons and inputs.
const (
	stylePrimary   = 1
	styleSecondary = 2
	styleLink      = 5
	styleShort     = 1
	styleLong      = 2
)

// Component is a button, a select, an input, or what they stand in.
type Component struct {
	Type        int         `json:"type"`
	Style       int         `json:"style,omitempty"`
	Label       string      `json:"label,omitempty"`
	Description string      `json:"description,omitempty"`
	Content     string      `json:"content,omitempty"`
	CustomID    string      `json:"custom_id,omitempty"`
	Placeholder string      `json:"placeholder,omitempty"`
	URL         string      `json:"url,omitempty"`
	Components  []Component `json:"components,omitempty"`
	Component   *Component  `json:"component,omitempty"`
	Options     []Option    `json:"options,omitempty"`
	MinValues   *int        `json:"min_values,omitempty"`
	MaxValues   int         `json:"max_values,omitempty"`
	Required    *bool       `json:"required,omitempty"`
	Value       string      `json:"value,omitempty"`
	MaxLength   int         `json:"max_length,omitempty"`
}

// Option is one of a select.
type Option struct {
	Label       string `json:"label"`
	Value       string `json:"value"`
	Description string `json:"description,omitempty"`
	Default     bool   `json:"default,omitempty"`
}

// Mentions are whom a message notifies: nobody, whatever it says.
type Mentions struct {
	Parse []string `json:"parse"`
}

// Message is one as it is sent.
type Message struct {
	Content    string      `json:"content"`
	Components []Component `json:"components"`
	Embeds     []Embed     `json:"embeds,omitempty"`
	Mentions   Mentions    `json:"allowed_mentions"`
	Flags      int         `json:"flags,omitempty"`
	Nonce      string      `json:"nonce,omitempty"`
	Enforce    bool        `json:"enforce_nonce,omitempty"`
	Reference  *Reference  `json:"message_reference,omitempty"`
}

// Reference is the message that a message replies to. Without it, it is an ordinary one.
type Reference struct {
	Message string `json:"message_id"`
	Fail    bool   `json:"fail_if_not_exists"`
}

// Text is a message of text and buttons. What is longer than Discord takes is
// cut: callers cut before, where something better can be done.
func Text(content string, components ...Component) Message {
	if components == nil {
		components = []Component{} // an edit takes away those that stand there
	}
	return Message{Content: Clip(content, MaxText), Components: components[:min(len(components), maxRows)], Mentions: Mentions{[]string{}}, Flags: noEmbeds}
}

// Alone makes a message one for who did something alone.
func (m Message) Alone() Message {
	m.Flags |= ephemeral
	return m
}

// WithNonce makes a message one that is posted once, however often it is sent
// within minutes.
func (m Message) WithNonce(id string) Message {
	m.Nonce, m.Enforce = digest([]byte(id))[:24], true
	return m
}

func digest(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// sizes are of an answer's messages: with what is opened and closed again none is
// longer than Discord takes.
var sizes = markdown.Sizes{Part: 1_600, Soft: 1_300, Word: 1_500, Lead: 350, Size: sizeOf}

// Part is one message of a long text.
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

// Split cuts a text into what stands in one message each.
func Split(text string) []string { return sizes.Split(text) }

// quiet begins a line in small letters: nize's own words, and lines of tools.
const quiet = "-# "

// special are the characters that mean something anywhere in Discord's Markdown.
// Without brackets no link is formed, so parentheses may stay.
var special = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `_`, `\_`, "`", "\\`", `~`, `\~`, `|`, `\|`, `>`, `\>`, `<`, `\<`, `[`, `\[`, `]`, `\]`, `@`, `\@`, `://`, `\://`)

// Escape makes outside text stand for itself; headings, lists and small letters
// begin a line.
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

// Notice is nize's own words, in small letters, with names of nize's own in code.
func Notice(text string, components ...Component) Message {
	var out []string
	for line := range strings.SplitSeq(strings.TrimSpace(bots.Plain(text)), "\n") {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, quiet+line)
		}
	}
	return Text(strings.Join(out, "\n"), components...)
}

// IsNotice says whether a text begins as a notice does; lines of tools do, too.
func IsNotice(content string) bool { return strings.HasPrefix(content, quiet) }

// Pages cuts words that one person reads into messages.
func Pages(text string) []string {
	var pages []string
	before := ""
	for _, body := range sizes.Split(bots.Plain(text)) {
		pages = append(pages, sizes.Dress(before, body, true))
		before += body
	}
	return pages
}

// Clip shortens a text to so many characters, as Discord counts them.
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

// sizeOf counts a character as Discord's clients do, in UTF-16, which is never less
// than the one that its API counts.
func sizeOf(r rune) int { return max(utf16.RuneLen(r), 1) }

// Rows puts buttons below a message.
func Rows(buttons ...Component) (rows []Component) {
	for len(buttons) > 0 && len(rows) < maxRows {
		n := min(len(buttons), maxRowButtons)
		rows = append(rows, Component{Type: kindRow, Components: buttons[:n]})
		buttons = buttons[n:]
	}
	return rows
}

// Button is one that sends that id.
func Button(label, id string) Component {
	return Component{Type: kindButton, Style: styleSecondary, Label: Clip(label, maxButton), CustomID: id}
}

// Link is one that leads to an address.
func Link(label, url string) Component {
	return Component{Type: kindButton, Style: styleLink, Label: Clip(label, maxButton), URL: url}
}

// Heads of custom_ids, before a colon.
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

// HeadOf takes a custom_id apart.
func HeadOf(id string) (head, rest string) {
	head, rest, _ = strings.Cut(id, ":")
	return head, rest
}

// AnswerButtons are those of a command's answer.
func AnswerButtons(a bots.Answer, words phrases.Catalogue) []Component {
	var buttons []Component
	for _, b := range a.Buttons {
		if len(WordsID)+1+len(b.Words) <= maxCustomID {
			buttons = append(buttons, Button(words.Say(b.Label), WordsID+":"+b.Words))
		}
	}
	return Rows(buttons...)
}

// IsText says whether a message of nize's, without files and buttons, can be an
// assistant's text.
func IsText(content string) bool { return !strings.HasPrefix(content, quiet) }

// IsPostOf says whether a message with those buttons is the post of a card, a
// notice or a line about tools.
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

// firstRunes is the beginning of a text.
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
