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
		text = blockText(m.Blocks, name)
	}
	var parts []json.RawMessage
	if len(m.Attachments) > 0 && json.Unmarshal(m.Attachments, &parts) == nil {
		for _, raw := range parts[:min(len(parts), maxParts)] {
			if part := attachmentText(raw, self, name); part != "" && !strings.Contains(text, part) {
				text += "\n" + part
			}
		}
	}
	return strings.TrimSpace(text)
}

// attachmentText is what an attachment says.
func attachmentText(raw json.RawMessage, self string, name func(string) string) string {
	var a struct {
		Pretext  string          `json:"pretext"`
		Title    string          `json:"title"`
		Text     string          `json:"text"`
		Fallback string          `json:"fallback"`
		Blocks   json.RawMessage `json:"blocks"`
	}
	if json.Unmarshal(raw, &a) != nil {
		return ""
	}
	var lines []string
	for _, text := range []string{a.Pretext, a.Title, a.Text} {
		if text = ReadText(text, self, name); text != "" {
			lines = append(lines, text)
		}
	}
	if len(lines) == 0 {
		lines = append(lines, blockText(a.Blocks, name))
	}
	if text := strings.TrimSpace(strings.Join(lines, "\n")); text != "" {
		return text
	}
	return ReadText(a.Fallback, self, name)
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
