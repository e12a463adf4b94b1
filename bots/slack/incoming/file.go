package incoming

import (
	"encoding/json"
	"strings"

	"nize/bots"
	"nize/store"
)

// MaxShared is how many files of one message are looked at at all.
const MaxShared = 2 * store.MaxFiles

// maxFileName is how many bytes of a file's name are kept.
const maxFileName = 200

// File is a file of a message, as Slack describes it. Of one in a channel
// that another organization shares it may say no more than its id.
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

	From *store.Speaker // who shared it, where that is not who asks
}

// DecodeFiles reads the files of a message. What is of another shape is no
// file: it must not cost the message.
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

// Title is how people call the file.
func (f File) Label() string {
	for _, name := range []string{f.Name, f.Title, f.ID} {
		if name = strings.TrimSpace(strings.ToValidUTF8(name, "\uFFFD")); name != "" {
			return bots.Escape(Cut(name, maxFileName))
		}
	}
	return f.ID
}

// fileWords are what a message says that has no words.
const fileWords = "(file)"

// TitleOf is the title of a conversation that begins with a message.
func TitleOf(text string, files []File) string {
	if text == fileWords && len(files) > 0 {
		text = files[0].Label()
	}
	return Title(text)
}

// Title is the first words of a message.
func Title(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	runes := []rune(bots.Escape(line))
	if len(runes) > 60 {
		return string(runes[:59]) + "…"
	}
	return string(runes)
}
