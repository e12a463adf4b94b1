package slack

import (
	"encoding/json"
	"strings"

	"nize/bots"
	"nize/store"
)

// maxShared is how many files of one message are looked at at all.
const maxShared = 2 * store.MaxFiles

// maxFileName is how many bytes of a file's name are kept.
const maxFileName = 200

// shared is a file of a message, as Slack describes it. Of one in a channel
// that another organization shares it may say no more than its id.
type shared struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Title    string `json:"title"`
	Mode     string `json:"mode"`
	Access   string `json:"file_access"`
	External bool   `json:"is_external"`
	Size     int64  `json:"size"`
	Private  string `json:"url_private"`
	Download string `json:"url_private_download"`

	from *store.Speaker // who shared it, where that is not who asks
}

// decodeFiles reads the files of a message. What is of another shape is no
// file: it must not cost the message.
func decodeFiles(raw json.RawMessage) []shared {
	var list []json.RawMessage
	if len(raw) == 0 || json.Unmarshal(raw, &list) != nil {
		return nil
	}
	var files []shared
	for _, one := range list[:min(len(list), maxShared)] {
		var f shared
		if json.Unmarshal(one, &f) == nil && idForm.MatchString(f.ID) {
			files = append(files, f)
		}
	}
	return files
}

// name is how people call the file.
func (f shared) name() string {
	for _, name := range []string{f.Name, f.Title, f.ID} {
		if name = strings.TrimSpace(strings.ToValidUTF8(name, "\uFFFD")); name != "" {
			return bots.Escape(cut(name, maxFileName))
		}
	}
	return f.ID
}

// fileWords are what a message says that has no words.
const fileWords = "(file)"

// titleOf is the title of a conversation that begins with a message.
func titleOf(text string, files []shared) string {
	if text == fileWords && len(files) > 0 {
		text = files[0].name()
	}
	return title(text)
}

// title is the first words of a message.
func title(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	runes := []rune(bots.Escape(line))
	if len(runes) > 60 {
		return string(runes[:59]) + "…"
	}
	return string(runes)
}
