package slack

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
	"nize/store"
)

const shareAction = "share"

// sayIn is a phrase about a channel, as mrkdwn: the reader sees its name.
func sayIn(w phrases.Catalogue, key phrases.Key, channel string) string {
	const mark = "\x00"
	return strings.Replace(escape(w.Say(key, mark)), mark, "<#"+channel+">", 1)
}

// offerContent is the message by which an answer is shared, or that says that
// it was.
func offerContent(m store.Message, w phrases.Catalogue) content {
	s := *m.Share
	if s.Done || !idForm.MatchString(s.In.Channel) {
		return notice(store.Message{ID: m.ID, Text: w.Say(phrases.ShareDone)})
	}
	text := sayIn(w, phrases.ShareOfferIn, s.In.Channel)
	press := button(shareAction, w.Say(phrases.ButtonShare), fmt.Sprintf("share %s %d", s.Thread, s.N))
	press.Confirm = slackgo.NewConfirmationBlockObject(
		plainText(clip(w.Say(phrases.ShareTitle), 100)), mrkdwn(sayIn(w, phrases.ShareConfirm, s.In.Channel)),
		plainText(clip(w.Say(phrases.ButtonShare), 30)), plainText(clip(w.Say(phrases.ButtonKeep), 30)))
	return same(slackgo.MsgOptionText(text, false), slackgo.MsgOptionBlocks(
		slackgo.NewSectionBlock(mrkdwn(text), nil, nil, slackgo.SectionBlockOptionBlockID(blockOf(m.ID))), slackgo.NewActionBlock("", press)))
}

// readShare reads the value of the button.
func readShare(value string) (thread string, n int, ok bool) {
	parts := strings.Split(value, " ")
	if len(value) > maxValue || len(parts) != 3 || parts[0] != "share" || !store.ValidID(parts[1]) {
		return "", 0, false
	}
	n, err := strconv.Atoi(parts[2])
	return parts[1], n, err == nil && n >= 0
}

// blockOf is the block_id of the message of that id.
func blockOf(id string) string {
	sum := sha256.Sum256([]byte(id))
	return "nize-" + hex.EncodeToString(sum[:12])
}

func stamp(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) + ".000000" }

// marked says whether a message carries that block_id.
func marked(m slackgo.Message, id string) bool {
	return slices.ContainsFunc(m.Blocks.BlockSet, func(b slackgo.Block) bool { return b.ID() == id })
}

// isText says whether a message can be an assistant's text: what nize lays out
// itself has blocks of these types, a file has a file.
func isText(m slackgo.Message) bool {
	return len(m.Files) == 0 && !slices.ContainsFunc(m.Blocks.BlockSet, func(b slackgo.Block) bool {
		t := b.BlockType()
		return t == slackgo.MBTSection || t == slackgo.MBTContext || t == slackgo.MBTAction || t == slackgo.MBTHeader
	})
}

// content is what a message says: once as it is posted, and as an edit makes it
// say, which has less room for the plain form.
type content struct{ post, edit []slackgo.MsgOption }

// same is a content that is short enough for an edit.
func same(options ...slackgo.MsgOption) content { return content{options, options} }

// words is nize's own text as the content of a message: it formats nothing.
func words(text string) content { return notice(store.Message{Text: text}) }

// notice is words that can be found again, and that may mention who asked.
func notice(m store.Message) content {
	head := mention(m)
	return content{
		post: []slackgo.MsgOption{slackgo.MsgOptionText(head+fallback(m.Text, maxFallback), false), slackgo.MsgOptionBlocks(noticeBlocks(m, wordsBlock)...)},
		edit: []slackgo.MsgOption{slackgo.MsgOptionText(head+fallback(m.Text, maxEdited-len(head)), false), slackgo.MsgOptionBlocks(noticeBlocks(m, richBlock)...)},
	}
}

func noticeBlocks(m store.Message, block func(id, text string) slackgo.Block) []slackgo.Block {
	var blocks []slackgo.Block
	id := func() string { // of the first
		if m.ID != "" && len(blocks) == 0 {
			return blockOf(m.ID)
		}
		return ""
	}
	head := mention(m)
	if head != "" {
		var options []slackgo.SectionBlockOption
		if first := id(); first != "" {
			options = append(options, slackgo.SectionBlockOptionBlockID(first))
		}
		blocks = append(blocks, slackgo.NewSectionBlock(slackgo.NewTextBlockObject(slackgo.MarkdownType, head, false, true), nil, nil, options...))
	}
	for _, piece := range pieces(m.Text, maxSection) {
		blocks = append(blocks, block(id(), piece))
	}
	return blocks[:min(len(blocks), maxBlocks)]
}

// mention is what heads a message that mentions who asked, "" for another.
func mention(m store.Message) string {
	who := slackID(m.For)
	if !m.Mention || who == "" {
		return ""
	}
	return "<@" + who + "> "
}

// slackID is who asked, as Slack knows them; "" for somebody of another surface.
func slackID(a *store.Asker) string {
	if a == nil {
		return ""
	}
	parts := strings.Split(a.Identity, ":")
	if len(parts) != 3 || parts[0] != "slack" || !idForm.MatchString(parts[2]) {
		return ""
	}
	return parts[2]
}
