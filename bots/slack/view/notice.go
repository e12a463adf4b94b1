package view

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	slackgo "github.com/slack-go/slack"

	"nize/bots/phrases"
	"nize/bots/slack/incoming"
	"nize/store"
)

const ShareAction = "share"

// SayIn returns a phrase about a channel as mrkdwn: Slack shows the channel's name.
func SayIn(w phrases.Catalogue, key phrases.Key, channel string) string {
	const mark = "\x00"
	return strings.Replace(incoming.Escape(w.Say(key, mark)), mark, "<#"+channel+">", 1)
}

// OfferContent returns the message that offers to share an answer, or that says that it was
// shared.
func OfferContent(m store.Message, w phrases.Catalogue) Content {
	s := *m.Share
	if s.Done || !incoming.IDForm.MatchString(s.In.Channel) {
		return Notice(store.Message{ID: m.ID, Text: w.Say(phrases.ShareDone)})
	}
	text := SayIn(w, phrases.ShareOfferIn, s.In.Channel)
	press := button(ShareAction, w.Say(phrases.ButtonShare), fmt.Sprintf("share %s %d", s.Thread, s.N))
	press.Confirm = slackgo.NewConfirmationBlockObject(
		PlainText(Clip(w.Say(phrases.ShareTitle), 100)), Mrkdwn(SayIn(w, phrases.ShareConfirm, s.In.Channel)),
		PlainText(Clip(w.Say(phrases.ButtonShare), 30)), PlainText(Clip(w.Say(phrases.ButtonKeep), 30)))
	return Same(slackgo.MsgOptionText(text, false), slackgo.MsgOptionBlocks(
		slackgo.NewSectionBlock(Mrkdwn(text), nil, nil, slackgo.SectionBlockOptionBlockID(BlockOf(m.ID))), slackgo.NewActionBlock("", press)))
}

// ReadShare decodes the value of the button.
func ReadShare(value string) (thread string, n int, ok bool) {
	parts := strings.Split(value, " ")
	if len(value) > MaxValue || len(parts) != 3 || parts[0] != "share" || !store.ValidID(parts[1]) {
		return "", 0, false
	}
	n, err := strconv.Atoi(parts[2])
	return parts[1], n, err == nil && n >= 0
}

// BlockOf returns the block_id of the message with that id.
func BlockOf(id string) string {
	sum := sha256.Sum256([]byte(id))
	return blockHead + hex.EncodeToString(sum[:12])
}

// IsMarked reports whether a message has one of nize's block_ids, as its own texts and
// lines about tools do.
func IsMarked(m slackgo.Message) bool {
	return slices.ContainsFunc(m.Blocks.BlockSet, func(b slackgo.Block) bool { return strings.HasPrefix(b.ID(), blockHead) })
}

// blockHead is the prefix of the block ids by which messages are found.
const blockHead = "nize-"

func Stamp(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) + ".000000" }

// Marked reports whether a message has that block_id.
func Marked(m slackgo.Message, id string) bool {
	return slices.ContainsFunc(m.Blocks.BlockSet, func(b slackgo.Block) bool { return b.ID() == id })
}

// IsText reports whether a message can be an assistant's text: nize's own layouts have
// blocks of these types or with one of nize's ids, and a file message has a file.
func IsText(m slackgo.Message) bool {
	return len(m.Files) == 0 && !IsMarked(m) && !slices.ContainsFunc(m.Blocks.BlockSet, func(b slackgo.Block) bool {
		t := b.BlockType()
		return t == slackgo.MBTSection || t == slackgo.MBTContext || t == slackgo.MBTAction || t == slackgo.MBTHeader || t == slackgo.MBTImage
	})
}

// Content is the content of a message: as it is posted, and for an edit, in which the plain
// form is shorter.
type Content struct{ Post, Edit []slackgo.MsgOption }

// Same returns a content that is short enough for an edit.
func Same(options ...slackgo.MsgOption) Content { return Content{options, options} }

// Words returns nize's own text as the content of a message, without formatting.
func Words(text string) Content { return Notice(store.Message{Text: text}) }

// Notice returns a text that can be found again and may mention the requester.
func Notice(m store.Message) Content {
	head := Mention(m)
	return Content{
		Post: []slackgo.MsgOption{slackgo.MsgOptionText(head+Fallback(m.Text, MaxFallback), false), slackgo.MsgOptionBlocks(noticeBlocks(m, WordsBlock)...)},
		Edit: []slackgo.MsgOption{slackgo.MsgOptionText(head+Fallback(m.Text, maxEdited-len(head)), false), slackgo.MsgOptionBlocks(noticeBlocks(m, richBlock)...)},
	}
}

func noticeBlocks(m store.Message, block func(id, text string) slackgo.Block) []slackgo.Block {
	var blocks []slackgo.Block
	id := func() string { // for the first block only
		if m.ID != "" && len(blocks) == 0 {
			return BlockOf(m.ID)
		}
		return ""
	}
	head := Mention(m)
	if head != "" {
		var options []slackgo.SectionBlockOption
		if first := id(); first != "" {
			options = append(options, slackgo.SectionBlockOptionBlockID(first))
		}
		blocks = append(blocks, slackgo.NewSectionBlock(slackgo.NewTextBlockObject(slackgo.MarkdownType, head, false, true), nil, nil, options...))
	}
	for _, piece := range pieces(m.Text, MaxSection) {
		blocks = append(blocks, block(id(), piece))
	}
	return blocks[:min(len(blocks), maxBlocks)]
}

// Mention returns the mention that begins a message, "" for none.
func Mention(m store.Message) string {
	who := SlackID(m.For)
	if !m.Mention || who == "" {
		return ""
	}
	return "<@" + who + "> "
}

// SlackID returns the requester's Slack id, "" for another surface.
func SlackID(a *store.Asker) string {
	if a == nil {
		return ""
	}
	parts := strings.Split(a.Identity, ":")
	if len(parts) != 3 || parts[0] != "slack" || !incoming.IDForm.MatchString(parts[2]) {
		return ""
	}
	return parts[2]
}
