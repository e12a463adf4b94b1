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
	listStarters = api.Op[reading, starters]{Method: "GET", Path: "/v1/chat/starters", Summary: "suggest what to ask for first"}
	checkFile    = api.Upload[checkRequest, checkedFile]{Method: "POST", Path: "/v1/chat/files", Summary: "say whether a file can be read"}
)

// starter is a tool of the person's with which they could begin.
type starter struct {
	Tool   string `json:"tool"`
	Title  string `json:"title"`
	Server string `json:"server"`
	About  string `json:"about,omitempty"`
}

// starters are what somebody could ask for first. Model says that a language model
// answers them; without one, the offline planner does.
type starters struct {
	Items []starter `json:"items"`
	Model bool      `json:"model"`
}

// maxStarters is how many tools are suggested.
const maxStarters = 3

// starters suggests tools of the caller's.
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

// firstSentence is the first sentence of a tool's description, in short.
func firstSentence(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	if sentence, _, ok := strings.Cut(text, ". "); ok {
		text = sentence
	}
	return bots.Brief(strings.TrimSuffix(strings.TrimSpace(text), "."), 90)
}

// checkRequest says what the file is called and who reads.
type checkRequest struct {
	Name string `query:"name" json:"-"`
	reading
}

// checkedFile is what nize makes of a file: nothing of it is kept.
type checkedFile struct {
	Kind store.FileKind `json:"kind"`
	Note string         `json:"note,omitempty"` // why it can't be read, in the reader's language
}

// checkFile says whether a file could be read if it were sent.
func (b *Browser) checkFile(_ context.Context, by store.Caller, req checkRequest, from api.File) (none checkedFile, err error) {
	if from.Size == 0 || from.Size > store.MaxFile {
		return none, fmt.Errorf("%w file: %d bytes; 1 to %d are taken", store.ErrInvalid, from.Size, store.MaxFile)
	}
	data, err := io.ReadAll(from)
	if err != nil || int64(len(data)) != from.Size {
		return none, fmt.Errorf("%w file: it broke off", store.ErrInvalid)
	}
	f := bots.ReadFile(store.File{Name: bots.Escape(req.Name)}, data, store.MaxFileText)
	words := phrases.For(b.reader(by, req.Locale, req.Zone).Locale)
	return checkedFile{Kind: f.Kind, Note: bots.UnreadLine(words, []store.File{f})}, nil
}
