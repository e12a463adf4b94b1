package incoming

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"nize/bots"
	"nize/store"
)

// maxParts is how many attachments of one message are read.
const maxParts = 8

// Posted is a message as a list of messages tells it.
type Posted struct {
	Message
	Username string `json:"username"` // under which a program wrote
	Profile  struct {
		Name string `json:"name"`
	} `json:"bot_profile"`
}

// Quoted are the subtypes of messages that say something.
var Quoted = map[string]bool{"": true, "file_share": true, "thread_broadcast": true, "me_message": true, "bot_message": true}

const cutMark = "… [cut]"

// Quote is a message as a quote, and the files that it has.
func (m *Posted) Quote(self string, name func(string) string, speaker func(Posted) store.Speaker) (store.Quote, []File) {
	text := m.Words(self, name)
	files := DecodeFiles(m.Files)
	if text == "" && len(files) == 0 {
		return store.Quote{}, nil
	}
	who := speaker(*m)
	var names []string
	for i := range files {
		files[i].From = &who
		names = append(names, files[i].Label())
	}
	if len(names) > 0 {
		text = strings.TrimSpace(text + "\n[files: " + strings.Join(names, ", ") + "]")
	}
	return store.Quote{Speaker: who, Text: CutQuote(text), At: StampTime(m.TS)}, files
}

// CutQuote shortens a quote to its bound, and shows it.
func CutQuote(text string) string {
	if len(text) <= store.MaxQuote {
		return text
	}
	return Cut(text, store.MaxQuote-len(cutMark)) + cutMark
}

// Words is what a message says. Programs often say all in blocks or attachments.
func (m *Posted) Words(self string, name func(string) string) string {
	text := ReadText(m.Text, self, name)
	if text == "" {
		text = blockText(m.Blocks, self, name)
	}
	for _, raw := range m.parts() {
		if part := attachmentText(raw, self, name); part != "" && !strings.Contains(text, part) {
			text += "\n" + part
		}
	}
	return strings.TrimSpace(text)
}

// parts are the attachments of a message that are read.
func (m *Message) parts() []json.RawMessage {
	list := listOf(m.Attachments)
	return list[:min(len(list), maxParts)]
}

// attachmentsText is what the attachments of a message say, without messages that were
// passed on: those have other authors.
func attachmentsText(m *Message, self string, name func(string) string) string {
	var said []string
	for _, raw := range m.parts() {
		var shared forwarded
		if json.Unmarshal(raw, &shared) == nil && shared.Share {
			continue
		}
		if part := attachmentText(raw, self, name); part != "" {
			said = append(said, part)
		}
	}
	return strings.Join(said, "\n")
}

// attachmentText is what an attachment says.
func attachmentText(raw json.RawMessage, self string, name func(string) string) string {
	a := readBlock(raw)
	var lines []string
	for _, key := range []string{"pretext", "title", "text"} {
		if text := ReadText(a.text(key), self, name); text != "" {
			lines = append(lines, text)
		}
	}
	for _, raw := range a.list("fields") {
		field := readBlock(raw)
		title, value := ReadText(field.text("title"), self, name), ReadText(field.text("value"), self, name)
		if title != "" && value != "" {
			title += ": "
		}
		if title+value != "" {
			lines = append(lines, title+value)
		}
	}
	if len(lines) == 0 {
		lines = append(lines, blockText(a["blocks"], self, name))
	}
	if text := strings.TrimSpace(Cut(strings.Join(lines, "\n"), maxBlockText)); text != "" {
		return text
	}
	return ReadText(a.text("fallback"), self, name)
}

func SpeakerName(name string) string {
	return bots.Escape(Cut(strings.ToValidUTF8(name, "\uFFFD"), 80))
}

// lastSecond is the last one of the year 9999: JSON has no later time (RFC 3339).
const lastSecond = 253402300799

// StampTime is when a message was written, to the second; the zero time for none.
func StampTime(ts string) time.Time {
	seconds, _, _ := strings.Cut(ts, ".")
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil || n > lastSecond {
		return time.Time{}
	}
	return time.Unix(n, 0).UTC()
}

// StampOf is a time as Slack stamps a message that was written then, "" for
// none.
func StampOf(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return fmt.Sprintf("%d.%06d", at.Unix(), at.Nanosecond()/1000)
}
