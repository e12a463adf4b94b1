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

// SayIn is a phrase about a channel, as mrkdwn: the reader sees its name.
func SayIn(w phrases.Catalogue, key phrases.Key, channel string) string {
	const mark = "\x00"
	return strings.Replace(incoming.Escape(w.Say(key, mark)), mark, "<#"+channel+">", 1)
}

// OfferContent is the message by which an answer is shared, or that says that
// it was.
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

// ReadShare reads the value of the button.
func ReadShare(value string) (thread string, n int, ok bool) {
	parts := strings.Split(value, " ")
	if len(value) > MaxValue || len(parts) != 3 || parts[0] != "share" || !store.ValidID(parts[1]) {
		return "", 0, false
	}
	n, err := strconv.Atoi(parts[2])
	return parts[1], n, err == nil && n >= 0
}

// BlockOf is the block_id of the message of that id.
func BlockOf(id string) string {
	sum := sha256.Sum256([]byte(id))
	return blockHead + hex.EncodeToString(sum[:12])
}

// IsMarked says whether a message carries a block_id of nize's, as its words and
// lines about tools do.
func IsMarked(m slackgo.Message) bool {
	return slices.ContainsFunc(m.Blocks.BlockSet, func(b slackgo.Block) bool { return strings.HasPrefix(b.ID(), blockHead) })
}

// blockHead heads the ids of blocks by which messages are found again.
const blockHead = "nize-"

func Stamp(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) + ".000000" }

// Marked says whether a message carries that block_id.
func Marked(m slackgo.Message, id string) bool {
	return slices.ContainsFunc(m.Blocks.BlockSet, func(b slackgo.Block) bool { return b.ID() == id })
}

// IsText says whether a message can be an assistant's text: what nize lays out
// itself has blocks of these types or with an id of nize's, a file has a file.
func IsText(m slackgo.Message) bool {
	return len(m.Files) == 0 && !IsMarked(m) && !slices.ContainsFunc(m.Blocks.BlockSet, func(b slackgo.Block) bool {
		t := b.BlockType()
		return t == slackgo.MBTSection || t == slackgo.MBTContext || t == slackgo.MBTAction || t == slackgo.MBTHeader || t == slackgo.MBTImage
	})
}

// Content is what a message says: once as it is posted, and as an edit makes it
// say, which has less room for the plain form.
type Content struct{ Post, Edit []slackgo.MsgOption }

// Same is a content that is short enough for an edit.
func Same(options ...slackgo.MsgOption) Content { return Content{options, options} }

// Words is nize's own text as the content of a message: it formats nothing.
func Words(text string) Content { return Notice(store.Message{Text: text}) }

// Notice is words that can be found again, and that may mention who asked.
func Notice(m store.Message) Content {
	head := Mention(m)
	return Content{
		Post: []slackgo.MsgOption{slackgo.MsgOptionText(head+Fallback(m.Text, MaxFallback), false), slackgo.MsgOptionBlocks(noticeBlocks(m, WordsBlock)...)},
		Edit: []slackgo.MsgOption{slackgo.MsgOptionText(head+Fallback(m.Text, maxEdited-len(head)), false), slackgo.MsgOptionBlocks(noticeBlocks(m, richBlock)...)},
	}
}

func noticeBlocks(m store.Message, block func(id, text string) slackgo.Block) []slackgo.Block {
	var blocks []slackgo.Block
	id := func() string { // of the first
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

// Mention is what heads a message that mentions who asked, "" for another.
func Mention(m store.Message) string {
	who := SlackID(m.For)
	if !m.Mention || who == "" {
		return ""
	}
	return "<@" + who + "> "
}

// SlackID is who asked, as Slack knows them; "" for somebody of another surface.
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
