package incoming

import "encoding/json"

// forwarded is an attachment by which Slack passes a message on. What a program
// attached, and previews of pages, are not marked as shared.
type forwarded struct {
	Share  bool            `json:"is_share"`
	Author string          `json:"author_id"`
	Name   string          `json:"author_name"`
	TS     string          `json:"ts"`
	Text   string          `json:"text"`
	Blocks json.RawMessage `json:"blocks"`
	Files  json.RawMessage `json:"files"`
}

func DecodeForwarded(raw json.RawMessage) []forwarded {
	var list []json.RawMessage
	if len(raw) == 0 || json.Unmarshal(raw, &list) != nil {
		return nil
	}
	var out []forwarded
	for _, one := range list[:min(len(list), maxParts)] {
		var f forwarded
		if json.Unmarshal(one, &f) == nil && f.Share {
			out = append(out, f)
		}
	}
	return out
}

// Posted is the message that was passed on.
func (f forwarded) Posted() Posted {
	m := Posted{Message: Message{User: f.Author, Text: f.Text, TS: f.TS, Blocks: f.Blocks, Files: f.Files}, Username: f.Name}
	if !StampForm.MatchString(f.TS) {
		m.TS = ""
	}
	return m
}

// Wordless is what a message says that has no words but brings something; ""
// if it brings nothing.
func Wordless(m *Message) string {
	switch {
	case len(DecodeFiles(m.Files)) > 0:
		return fileWords
	case len(DecodeForwarded(m.Attachments)) > 0:
		return "(forwarded message)"
	}
	return ""
}
