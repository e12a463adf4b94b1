package incoming

import (
	"encoding/json"
	"strings"

	"nize/bots"
	"nize/store"
)

// MaxShared is how many files of one message are considered.
const MaxShared = 2 * store.MaxFiles

// maxFileName is the maximum length of a file name, in bytes.
const maxFileName = 200

// File is a file of a message as described by Slack. For a file in a channel shared with
// another organization, that may be only its id.
type File struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Title    string `json:"title"`
	Mode     string `json:"mode"`
	Access   string `json:"file_access"`
	External bool   `json:"is_external"`
	Size     int64  `json:"size"`
	Private  string `json:"url_private"`
	Download string `json:"url_private_download"`

	From *store.Speaker // who shared it, if not the requester
}

// DecodeFiles decodes the files of a message. It skips anything of another shape, so that
// the message isn't lost.
func DecodeFiles(raw json.RawMessage) []File {
	var list []json.RawMessage
	if len(raw) == 0 || json.Unmarshal(raw, &list) != nil {
		return nil
	}
	var files []File
	for _, one := range list[:min(len(list), MaxShared)] {
		var f File
		if json.Unmarshal(one, &f) == nil && IDForm.MatchString(f.ID) {
			files = append(files, f)
		}
	}
	return files
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
