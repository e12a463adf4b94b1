package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"mime"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"nize/bots"
	"nize/bots/phrases"
	"nize/daemon/api"
	"nize/store"
)

// cmdResult shows the whole result of a call, the last one if no id is given, or saves it:
// [ID] [save [FILE]].
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
	parts := bots.ResultParts(c.Result)
	if len(parts) == 0 {
		return reply{}, errors.New(s.words().Say(phrases.TermNoResult))
	}
	if verb == "save" {
		return s.saveParts(c, parts, strings.TrimSpace(path))
	}
	var lines []string
	for _, p := range parts {
		if p.Data != nil {
			lines = append(lines, s.words().Say(phrases.TermResultFile, bots.Escape(p.Kind), fmt.Sprint(len(p.Data))))
			continue
		}
		for line := range strings.Lines(p.Text) {
			lines = append(lines, bots.Escape(strings.TrimRight(line, "\r\n")))
		}
	}
	return reply{lines: lines}, nil
}

// saveParts writes each part into a file of its own and never overwrites one.
func (s *session) saveParts(c store.Call, parts []bots.ResultPart, path string) (reply, error) {
	if home, err := api.Home(); err == nil && strings.HasPrefix(path, "~/") {
		path = filepath.Join(home, path[2:])
	}
	var texts []string
	var files []bots.ResultPart
	for _, p := range parts {
		if p.Data != nil {
			files = append(files, p)
		} else {
			texts = append(texts, p.Text)
		}
	}
	if len(texts) > 0 {
		files = append([]bots.ResultPart{{Kind: "text/plain", Data: []byte(strings.TrimRight(strings.Join(texts, "\n"), "\n") + "\n")}}, files...)
	}
	// The part that matches the name comes first.
	slices.SortStableFunc(files, func(a, b bots.ResultPart) int {
		return cmp.Compare(otherKind(path, a.Kind), otherKind(path, b.Kind))
	})
	var lines []string
	for i, f := range files {
		name := path
		if name == "" {
			name = cmp.Or(f.Name, fileName(c)+bots.Extension(f.Kind))
		}
		if i > 0 && (path != "" || f.Name == "") {
			ext := filepath.Ext(name)
			if path != "" {
				ext = bots.Extension(f.Kind)
			}
			name = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, filepath.Ext(name)), i+1, ext)
		}
		if err := writeNew(name, f.Data); err != nil {
			return reply{lines: lines}, err
		}
		lines = append(lines, s.words().Say(phrases.TermResultSaved, bots.Escape(name), fmt.Sprint(len(f.Data))))
	}
	return reply{lines: lines}, nil
}

// fileName returns the file name of a call's result without its extension: the tool, in
// characters allowed in a file name, and the time of its end.
func fileName(c store.Call) string {
	tool := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, c.Tool)
	return tool[:min(len(tool), 64)] + "-" + c.Finished.Local().Format("20060102-150405")
}

// otherKind returns 0 for a media type that matches the file name, and 1 for others.
func otherKind(path, kind string) int {
	if ext := filepath.Ext(path); ext != "" && mime.TypeByExtension(ext) == mime.TypeByExtension(bots.Extension(kind)) {
		return 0
	}
	return 1
}

// writeNew creates a file that only its owner can read. It returns an error if the file
// exists.
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
