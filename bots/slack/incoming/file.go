package incoming

import (
	"encoding/json"
	"slices"
	"strings"

	slackgo "github.com/slack-go/slack"

	"nize/bots"
	"nize/store"
)

// MaxShared is how many files of one message are considered.
const MaxShared = 2 * store.MaxFiles

// maxFileName is the maximum length of a file name, in bytes.
const maxFileName = 200

// File is a file of a message. For a file in a channel shared with another organization,
// that may be only its id.
type File struct {
	slackgo.File
	From *store.Speaker `json:"-"` // who shared it, if not the requester
}

// UnmarshalJSON implements [json.Unmarshaler].
func (f *File) UnmarshalJSON(raw []byte) error { return tolerant(json.Unmarshal(raw, &f.File)) }

// DecodeFiles decodes the files of a message, without those of another shape.
func DecodeFiles(raw json.RawMessage) []File {
	return slices.DeleteFunc(decodeList[File](raw, MaxShared), func(f File) bool { return !IDForm.MatchString(f.ID) })
}

// decodeList decodes at most most parts of a list, without those of another shape.
func decodeList[T any](raw json.RawMessage, most int) []T {
	list := listOf(raw)
	var out []T
	for _, one := range list[:min(len(list), most)] {
		var part T
		if json.Unmarshal(one, &part) == nil {
			out = append(out, part)
		}
	}
	return out
}

// Label returns the file's title, or its name.
func (f File) Label() string {
	for _, name := range []string{f.Name, f.Title, f.ID} {
		if name = strings.TrimSpace(strings.ToValidUTF8(name, "\uFFFD")); name != "" {
			return bots.Escape(Cut(name, maxFileName))
		}
	}
	return f.ID
}

// fileWords is the text for a message that has only files.
const fileWords = "(file)"

// TitleOf returns the title of a conversation that begins with a message.
func TitleOf(text string, files []File) string {
	if text == fileWords && len(files) > 0 {
		text = files[0].Label()
	}
	return Title(text)
}

// Title returns the first words of a message.
func Title(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	runes := []rune(bots.Escape(line))
	if len(runes) > 60 {
		return string(runes[:59]) + "…"
	}
	return string(runes)
}
