package incoming

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"nize/bots"
	"nize/store"
)

// maxParts is how many attachments of one message are read.
const maxParts = 8

// Quoted are the subtypes of messages with content.
var Quoted = map[string]bool{"": true, "file_share": true, "thread_broadcast": true, "me_message": true, "bot_message": true}

const cutMark = "… [cut]"

// Quote returns a message as a quote, and its files.
func (m *Message) Quote(self string, name func(string) string, speaker func(*Message) store.Speaker) (store.Quote, []File) {
	text := m.Words(self, name)
	files := DecodeFiles(m.Files)
	if text == "" && len(files) == 0 {
		return store.Quote{}, nil
	}
	who := speaker(m)
	var names []string
	for i := range files {
		files[i].From = &who
		names = append(names, files[i].Label())
	}
	if len(names) > 0 {
		text = strings.TrimSpace(text + "\n[files: " + strings.Join(names, ", ") + "]")
	}
	return store.Quote{Speaker: who, Text: CutQuote(text), At: StampTime(m.Timestamp)}, files
}

// CutQuote shortens a quote to its limit and marks the cut.
func CutQuote(text string) string {
	if len(text) <= store.MaxQuote {
		return text
	}
	return Cut(text, store.MaxQuote-len(cutMark)) + cutMark
}

// Words returns a message's text. Programs often put all of it in blocks or attachments.
func (m *Message) Words(self string, name func(string) string) string {
	text := ReadText(m.Text, self, name)
	if text == "" {
		text = blockText(m.Blocks, self, name)
	}
	for _, a := range decodeList[Attachment](m.Attachments, maxParts) {
		if part := a.words(self, name); part != "" && !strings.Contains(text, part) {
			text += "\n" + part
		}
	}
	return strings.TrimSpace(text)
}

// attachmentsText returns the text of a message's attachments, without forwarded messages,
// which have other authors.
func attachmentsText(m *Message, self string, name func(string) string) string {
	var said []string
	for _, a := range decodeList[Attachment](m.Attachments, maxParts) {
		if part := a.words(self, name); part != "" && !a.IsShare {
			said = append(said, part)
		}
	}
	return strings.Join(said, "\n")
}

// words returns the text of an attachment.
func (a *Attachment) words(self string, name func(string) string) string {
	var lines []string
	for _, text := range []string{a.Pretext, a.Title, a.Text} {
		if text = ReadText(text, self, name); text != "" {
			lines = append(lines, text)
		}
	}
	for _, field := range a.Fields {
		title, value := ReadText(field.Title, self, name), ReadText(field.Value, self, name)
		if title != "" && value != "" {
			title += ": "
		}
		if title+value != "" {
			lines = append(lines, title+value)
		}
	}
	if len(lines) == 0 {
		lines = append(lines, blockText(a.Blocks, self, name))
	}
	if text := strings.TrimSpace(Cut(strings.Join(lines, "\n"), maxBlockText)); text != "" {
		return text
	}
	return ReadText(a.Fallback, self, name)
}

func SpeakerName(name string) string {
	return bots.Escape(Cut(strings.ToValidUTF8(name, "\uFFFD"), 80))
}

// lastSecond is the last second of the year 9999: JSON can't represent a later time (RFC
// 3339).
const lastSecond = 253402300799

// StampTime returns a message's time from its ts, to the second; zero if there is none.
func StampTime(ts string) time.Time {
	seconds, _, _ := strings.Cut(ts, ".")
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil || n > lastSecond {
		return time.Time{}
	}
	return time.Unix(n, 0).UTC()
}

// StampOf returns a time as a Slack ts, "" for the zero time.
func StampOf(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return fmt.Sprintf("%d.%06d", at.Unix(), at.Nanosecond()/1000)
}
