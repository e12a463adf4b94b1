package incoming

import (
	"encoding/json"
	"slices"

	slackgo "github.com/slack-go/slack"
)

// Attachment is what a program added to a message, or a forwarded message (IsShare).
type Attachment struct {
	slackgo.Attachment
	Blocks json.RawMessage `json:"blocks"`
	Files  json.RawMessage `json:"files"`
}

// UnmarshalJSON implements [json.Unmarshaler].
func (a *Attachment) UnmarshalJSON(raw []byte) error {
	type plain Attachment
	return tolerant(json.Unmarshal(raw, (*plain)(a)))
}

// DecodeForwarded returns the messages that were forwarded with a message.
func DecodeForwarded(raw json.RawMessage) []Attachment {
	return slices.DeleteFunc(decodeList[Attachment](raw, maxParts), func(a Attachment) bool { return !a.IsShare })
}

// Forwarded returns the forwarded message.
func (a *Attachment) Forwarded() Message {
	m := Message{Msg: slackgo.Msg{User: a.AuthorID, Username: a.AuthorName, Text: a.Text}, Blocks: a.Blocks, Files: a.Files}
	if ts := a.Ts.String(); StampForm.MatchString(ts) {
		m.Timestamp = ts
	}
	return m
}

// Wordless returns a text for a message that has attachments but no words; "" if it has
// neither.
func Wordless(m *Message) string {
	switch {
	case len(DecodeFiles(m.Files)) > 0:
		return fileWords
	case len(DecodeForwarded(m.Attachments)) > 0:
		return "(forwarded message)"
	}
	return ""
}
