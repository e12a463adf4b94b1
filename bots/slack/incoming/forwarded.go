package incoming

import "encoding/json"

// forwarded is an attachment that contains a forwarded message. Attachments of programs and
// link previews are not marked as shared.
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

// Posted returns the forwarded message.
func (f forwarded) Posted() Posted {
	m := Posted{Message: Message{User: f.Author, Text: f.Text, TS: f.TS, Blocks: f.Blocks, Files: f.Files}, Username: f.Name}
	if !StampForm.MatchString(f.TS) {
		m.TS = ""
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
