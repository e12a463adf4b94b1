package chat

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"os"
	"path/filepath"
	"strings"

	"nize/bots"
	"nize/bots/phrases"
	"nize/daemon/api"
	"nize/store"
)

// part is one item of a tool's result: text, or a file.
type part struct {
	text string
	kind string // media type of data
	data []byte
}

// cmdResult shows the result of a call whole, of the last one where no id is
// given, or saves it: [ID] [save [FILE]].
func (s *session) cmdResult(ctx context.Context, arg string) (reply, error) {
	id, rest, _ := strings.Cut(arg, " ")
	if !store.ValidID(id) {
		id, rest = s.lastResult, arg
	}
	verb, path, _ := strings.Cut(strings.TrimSpace(rest), " ")
	if id == "" || verb != "" && verb != "save" {
		return reply{}, errors.New(s.words().Say(phrases.TermNoResult))
	}
	c, err := api.GetCall.Call(ctx, s.opt.Client, api.CallRequest{ID: id})
	if err != nil {
		return reply{}, err
	}
	parts := resultParts(c.Result)
	if len(parts) == 0 {
		return reply{}, errors.New(s.words().Say(phrases.TermNoResult))
	}
	if verb == "save" {
		return s.saveParts(c, parts, strings.TrimSpace(path))
	}
	var lines []string
	for _, p := range parts {
		if p.data != nil {
			lines = append(lines, s.words().Say(phrases.TermResultFile, bots.Escape(p.kind), fmt.Sprint(len(p.data))))
			continue
		}
		for line := range strings.Lines(p.text) {
			lines = append(lines, bots.Escape(strings.TrimRight(line, "\r\n")))
		}
	}
	return reply{lines: lines}, nil
}

// resultParts are a result's items; a result that is none of the protocol is one
// text.
func resultParts(r *store.Result) (parts []part) {
	if r == nil {
		return nil
	}
	var doc struct {
		Content []struct {
			Text, Data, MimeType string
			Resource             *struct{ Text, Blob, MimeType string }
		}
	}
	if r.Error != nil || json.Unmarshal(r.Raw, &doc) != nil || len(doc.Content) == 0 {
		if text := r.Whole(); text != "" {
			parts = append(parts, part{text: text})
		}
		return parts
	}
	for _, c := range doc.Content {
		text, data, kind := c.Text, c.Data, c.MimeType
		if c.Resource != nil {
			text, data, kind = c.Resource.Text, c.Resource.Blob, c.Resource.MimeType
		}
		if data == "" {
			if text != "" {
				parts = append(parts, part{text: text})
			}
			continue
		}
		if raw, err := base64.StdEncoding.DecodeString(data); err == nil {
			parts = append(parts, part{kind: cmp.Or(kind, "application/octet-stream"), data: raw})
		} else {
			parts = append(parts, part{text: data})
		}
	}
	return parts
}

// saveParts writes each part into a file of its own, never over one that is there.
func (s *session) saveParts(c store.Call, parts []part, path string) (reply, error) {
	if home, err := os.UserHomeDir(); err == nil && strings.HasPrefix(path, "~/") {
		path = filepath.Join(home, path[2:])
	}
	var texts []string
	var files []part
	for _, p := range parts {
		if p.data != nil {
			files = append(files, p)
		} else {
			texts = append(texts, p.text)
		}
	}
	if len(texts) > 0 {
		files = append([]part{{kind: "text/plain", data: []byte(strings.TrimRight(strings.Join(texts, "\n"), "\n") + "\n")}}, files...)
	}
	var lines []string
	for i, f := range files {
		name := path
		if name == "" {
			name = fileName(c) + extension(f.kind)
		}
		if i > 0 {
			ext := filepath.Ext(name)
			if path != "" {
				ext = extension(f.kind)
			}
			name = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, filepath.Ext(name)), i+1, ext)
		}
		if err := writeNew(name, f.data); err != nil {
			return reply{lines: lines}, err
		}
		lines = append(lines, s.words().Say(phrases.TermResultSaved, bots.Escape(name), fmt.Sprint(len(f.data))))
	}
	return reply{lines: lines}, nil
}

// fileName is what a call's result is called without its ending: its tool, as far
// as that is a name of a file, and when it ended.
func fileName(c store.Call) string {
	tool := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, c.Tool)
	return tool[:min(len(tool), 64)] + "-" + c.Finished.Local().Format("20060102-150405")
}

// extension is the usual one of a media type; the server names the type.
func extension(kind string) string {
	switch kind, _, _ = strings.Cut(kind, ";"); kind {
	case "text/plain":
		return ".txt"
	case "image/jpeg":
		return ".jpg"
	}
	if list, err := mime.ExtensionsByType(kind); err == nil && len(list) > 0 {
		return list[0]
	}
	return ".bin"
}

// writeNew writes a file that isn't there yet, for its owner alone.
func writeNew(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("saving the result: %w", err)
	}
	if _, err := f.Write(data); err != nil {
		return errors.Join(fmt.Errorf("saving the result: %w", err), f.Close(), os.Remove(path))
	}
	return f.Close()
}
