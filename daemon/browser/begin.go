package browser

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"nize/bots"
	"nize/bots/phrases"
	"nize/daemon/api"
	"nize/store"
)

var (
	listStarters = api.Op[reading, starters]{Method: "GET", Path: "/v1/chat/starters", Summary: "suggest first requests"}
	checkFile    = api.Upload[checkRequest, checkedFile]{Method: "POST", Path: "/v1/chat/files", Summary: "check whether a file can be read"}
)

// starter is a tool that is suggested to a person who starts.
type starter struct {
	Tool   string `json:"tool"`
	Title  string `json:"title"`
	Server string `json:"server"`
	About  string `json:"about,omitempty"`
}

// starters are suggestions for a first request. Model is true if a language model answers
// it; otherwise the offline planner does.
type starters struct {
	Items []starter `json:"items"`
	Model bool      `json:"model"`
}

// maxStarters is how many tools are suggested.
const maxStarters = 3

// starters suggests some of the caller's tools.
func (b *Browser) starters(ctx context.Context, by store.Caller, req reading) (none starters, err error) {
	tools, err := b.Tools.Starters(ctx, by, maxStarters)
	if err != nil {
		return none, err
	}
	models, err := b.Models.List(ctx, by, api.Empty{})
	if err != nil {
		return none, err
	}
	out := starters{Items: []starter{}, Model: slices.ContainsFunc(models.Items, func(m api.ModelView) bool { return m.Available })}
	for _, t := range tools {
		title := cmp.Or(strings.TrimSpace(t.Title), strings.TrimSpace(t.Annotations.Title), strings.ReplaceAll(t.Name, "_", " "))
		out.Items = append(out.Items, starter{Tool: t.ID(), Title: bots.Brief(title, 60), Server: bots.Escape(t.Server), About: firstSentence(t.Description)})
	}
	return out, nil
}

// firstSentence returns the first sentence of a tool's description, shortened.
func firstSentence(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	if sentence, _, ok := strings.Cut(text, ". "); ok {
		text = sentence
	}
	return bots.Brief(strings.TrimSuffix(strings.TrimSpace(text), "."), 90)
}

// checkRequest is the file's name and its reader.
type checkRequest struct {
	Name string `query:"name" json:"-"`
	reading
}

// checkedFile is the result of reading a file, which is not stored.
type checkedFile struct {
	Kind store.FileKind `json:"kind"`
	Note string         `json:"note,omitempty"` // why it can't be read, in the reader's language
}

// checkFile reports whether a file could be read if it were sent.
func (b *Browser) checkFile(_ context.Context, by store.Caller, req checkRequest, from api.File) (none checkedFile, err error) {
	if from.Size == 0 || from.Size > store.MaxFile {
		return none, fmt.Errorf("%w file: %d bytes; 1 to %d are taken", store.ErrInvalid, from.Size, store.MaxFile)
	}
	data, err := io.ReadAll(from)
	if err != nil || int64(len(data)) != from.Size {
		return none, fmt.Errorf("%w file: the upload was cut off", store.ErrInvalid)
	}
	f := bots.ReadFile(store.File{Name: bots.Escape(req.Name)}, data, store.MaxFileText)
	words := phrases.For(b.reader(by, req.Locale, req.Zone).Locale)
	return checkedFile{Kind: f.Kind, Note: bots.UnreadLine(words, []store.File{f})}, nil
}
