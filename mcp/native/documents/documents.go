// Package documents has the native tools list_documents, read_document, search_in_document
// and save_document.
//
// Documents may have been written by anyone, so each tool taints the conversation. Their
// results are only for the requester, because other participants of the conversation may
// not be allowed to read the document.
package documents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"nize/mcp/native"
	"nize/store"
	"nize/store/document"
)

// Library stores documents and checks access to them: it returns store.ErrNotFound for a
// document that the caller may not read.
type Library interface {
	// ListFor returns the documents that the caller may read, in one scope or, for "", in
	// all.
	ListFor(ctx context.Context, c native.Context, scope string) ([]document.Document, error)
	// FindFor returns a document by its id, or by its name if that is unique.
	FindFor(ctx context.Context, c native.Context, which string) (document.Document, error)
	ReadPages(ctx context.Context, d document.Document, from int, do func(document.Page) error) error
	SearchFor(ctx context.Context, c native.Context, query string, most int) ([]document.Hit, error)
	SaveFor(ctx context.Context, c native.Context, r SaveRequest) (document.Document, error)
}

// SaveRequest is the content to save: a text, or a file that was attached to a message.
type SaveRequest struct {
	Name       string `json:"name"`
	Content    string `json:"content"`
	Attachment string `json:"attachment"` // its name or id
	Scope      string `json:"scope"`
}

const (
	listMost    = 50
	matchesMost = 100
	contextMost = 10
	lineMost    = 500 // bytes of a line that are shown
)

// Tools returns the four tools.
func Tools(l Library) []native.Tool {
	yes, no := true, false
	reads := store.Annotations{ReadOnly: &yes, Destructive: &no, Idempotent: &yes, OpenWorld: &no}
	return []native.Tool{{
		Name: "list_documents", Title: "List documents",
		Description: "Lists documents accessible to the current user (personal, team, project).",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"scope":{"type":"string","description":"Only documents of this scope: user, team, team:TEAM, project or project:NAME"},"offset":{"type":"integer","minimum":0,"default":0,"description":"How many of the newest to leave out"}}}`),
		Annotations: reads, Untrusted: true, Private: true, Renderer: listRenderer,
		Run: run(l, list),
	}, {
		Name: "read_document", Title: "Read a document",
		Description: "Reads document content with pagination support.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"documentId":{"type":"string","description":"The document's id, or its name if only one has it"},"page":{"type":"integer","minimum":1,"default":1,"description":"Which page to read"}},"required":["documentId"]}`),
		Annotations: reads, Untrusted: true, Private: true, Renderer: readRenderer,
		Run: run(l, read),
	}, {
		Name: "search_in_document", Title: "Search in documents",
		Description: "Searches text within a document, returning matching lines with context. Without documentId, searches all documents accessible to the current user.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string","minLength":1,"maxLength":1000,"description":"The text or words to look for"},"documentId":{"type":"string","description":"The document's id, or its name if only one has it; all documents if not given"},"contextLines":{"type":"integer","minimum":0,"maximum":10,"default":2,"description":"Lines to show before and after each matching line"},"maxMatches":{"type":"integer","minimum":1,"maximum":100,"default":20,"description":"How many matches to return at most"}},"required":["query"]}`),
		Annotations: reads, Untrusted: true, Private: true, Renderer: searchRenderer,
		Run: run(l, search),
	}, {
		Name: "save_document", Title: "Save a document",
		Description: "Saves content as a new document for the current user.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string","minLength":1,"maxLength":200,"description":"The document's name, such as notes.md; its ending tells its kind. An attachment's own if not given"},"content":{"type":"string","description":"The text to save"},"attachment":{"type":"string","description":"Instead of content: the name or id of a file that came with a message of this conversation"},"scope":{"type":"string","default":"user","description":"Whose it is: user, team or project:NAME"}}}`),
		Annotations: store.Annotations{ReadOnly: &no, Destructive: &no, Idempotent: &no, OpenWorld: &no}, Untrusted: true, Renderer: saveRenderer,
		Run: run(l, save),
	}}
}

// whose shows the kind of a document's scope, because the id in it is meaningless to
// people.
const whose = `{{if lt (len .scope) 5}}{{else if eq (slice .scope 0 5) \"user:\"}}user{{else if eq (slice .scope 0 5) \"team:\"}}team{{else}}project{{end}}`

// Renderers of the results. An empty list has no title, so its text is shown.
const (
	listRenderer = `{"title":"{{if .documents}}Documents: {{.total}}{{end}}","table":{"rows":"documents","columns":[
		{"name":"Name","value":"{{.name}}"},{"name":"Whose","value":"` + whose + `"},{"name":"Kind","value":"{{.type}}"},
		{"name":"Pages","value":"{{.pages}}"},{"name":"Saved","value":"{{slice .created 0 10}}"}]}}`
	readRenderer   = `{"title":"{{.name}}","fields":[{"name":"Page","value":"{{.page}} / {{.pages}}"}],"text":"{{.text}}"}`
	searchRenderer = `{"title":"{{if .matches}}{{default \"Documents\" .name}}: {{args.query}}{{end}}",
		"text":"{{range .matches}}{{if .name}}{{.name}}, {{end}}{{.page}}{{if .line}}:{{.line}}{{end}}  {{default \"\" .text}}\n{{end}}"}`
	saveRenderer = `{"title":"{{.name}}","fields":[{"name":"Whose","value":"` + whose + `"},{"name":"Kind","value":"{{.type}}"},{"name":"Pages","value":"{{.pages}}"}]}`
)

// run decodes arguments, which the gateway has checked against the schema, and converts
// errors to those that the caller may see.
func run[T any](l Library, do func(context.Context, Library, native.Context, T) (native.Result, error)) func(context.Context, native.Context, json.RawMessage) (native.Result, error) {
	return func(ctx context.Context, c native.Context, input json.RawMessage) (native.Result, error) {
		var args T
		if err := json.Unmarshal(input, &args); err != nil {
			return native.Failed("The arguments are not of the form that the tool's schema has."), nil
		}
		r, err := do(ctx, l, c, args)
		for _, known := range []error{store.ErrNotFound, store.ErrInvalid, store.ErrRefused, store.ErrDiskFull} {
			if errors.Is(err, known) {
				return native.Failed(err.Error()), nil
			}
		}
		return r, err
	}
}

// result returns a text together with the structured content that it is made from.
func result(text string, structured any) (r native.Result, err error) {
	r = native.Text(text)
	r.StructuredContent, err = json.Marshal(structured)
	return r, err
}

func list(ctx context.Context, l Library, c native.Context, args struct {
	Scope  string
	Offset int
}) (none native.Result, _ error) {
	all, err := l.ListFor(ctx, c, args.Scope)
	if err != nil {
		return none, err
	}
	shown := all[min(max(args.Offset, 0), len(all)):]
	shown = shown[:min(listMost, len(shown))]
	var b strings.Builder
	if len(all) == 0 {
		b.WriteString("There are no documents yet.")
	}
	for _, d := range shown {
		fmt.Fprintf(&b, "- %s (id %s, %s, %s, pages: %d, saved %s)\n", d.Name, d.ID, d.Scope.Kind(), d.Type, d.Pages, d.Created.UTC().Format("2006-01-02"))
	}
	if rest := len(all) - args.Offset - len(shown); len(shown) > 0 && rest > 0 {
		fmt.Fprintf(&b, "[%d more: offset %d]", rest, args.Offset+len(shown))
	}
	return result(strings.TrimSpace(b.String()), struct {
		Documents []document.Document `json:"documents"`
		Total     int                 `json:"total"`
	}{append([]document.Document{}, shown...), len(all)})
}

var errRead = errors.New("read")

func read(ctx context.Context, l Library, c native.Context, args struct {
	DocumentID string `json:"documentId"`
	Page       int
}) (none native.Result, _ error) {
	d, err := l.FindFor(ctx, c, args.DocumentID)
	if err != nil {
		return none, err
	}
	n := max(args.Page, 1)
	if n > d.Pages {
		return native.Failed(fmt.Sprintf("%s has no page %d; its last is page %d", d.Name, n, d.Pages)), nil
	}
	var text string
	err = l.ReadPages(ctx, d, n, func(p document.Page) error {
		text = p.Text
		return errRead
	})
	if err != nil && !errors.Is(err, errRead) {
		return none, err
	}
	said := text
	if d.Pages > 1 {
		said += fmt.Sprintf("\n\n[Page %d of %d]", n, d.Pages)
	}
	return result(said, struct {
		ID    string `json:"id"`
		Name  string `json:"name"`
		Page  int    `json:"page"`
		Pages int    `json:"pages"`
		Text  string `json:"text"`
	}{d.ID, d.Name, n, d.Pages, text})
}

func search(ctx context.Context, l Library, c native.Context, args struct {
	Query        string
	DocumentID   string `json:"documentId"`
	ContextLines *int
	MaxMatches   int
}) (none native.Result, _ error) {
	around, most := 2, 20
	if args.ContextLines != nil {
		around = min(max(*args.ContextLines, 0), contextMost)
	}
	if args.MaxMatches > 0 {
		most = min(args.MaxMatches, matchesMost)
	}
	if args.DocumentID != "" {
		d, err := l.FindFor(ctx, c, args.DocumentID)
		if err != nil {
			return none, err
		}
		return searchLines(ctx, l, d, args.Query, around, most)
	}
	hits, err := l.SearchFor(ctx, c, args.Query, most)
	if err != nil {
		return none, err
	}
	if len(hits) == 0 {
		return result("No document matches.", map[string][]document.Hit{"matches": {}})
	}
	var b strings.Builder
	for _, h := range hits {
		fmt.Fprintf(&b, "- %s (id %s, page %d", h.Name, h.ID, h.Page)
		if h.Line > 0 {
			fmt.Fprintf(&b, ", line %d): %s\n", h.Line, h.Text)
		} else {
			b.WriteString(")\n")
		}
	}
	return result(b.String(), map[string][]document.Hit{"matches": hits})
}

// match is a matching line of a document.
type match struct {
	Page int    `json:"page"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

func searchLines(ctx context.Context, l Library, d document.Document, query string, around, most int) (none native.Result, _ error) {
	var (
		b       strings.Builder
		matches = []match{}
		before  []string // the preceding lines that were not shown yet
		after   int      // remaining lines to show after the last match
		last    int      // the last line that was shown
		fits    = document.Matcher(query)
	)
	show := func(n int, mark byte, line string) {
		if last > 0 && n > last+1 {
			b.WriteString("--\n")
		}
		fmt.Fprintf(&b, "%d%c %s\n", n, mark, line)
		last = n
	}
	more := false
	err := document.Lines(func(do func(document.Page) error) error { return l.ReadPages(ctx, d, 1, do) }, func(page, n int, line string) error {
		line = store.Clip(strings.TrimRight(line, "\r"), lineMost)
		switch {
		case fits(line) && len(matches) == most:
			more = true
			return errRead
		case fits(line):
			for i, text := range before {
				show(n-len(before)+i, '-', text)
			}
			show(n, ':', line)
			before, after = nil, around
			matches = append(matches, match{page, n, line})
		case after > 0:
			after--
			show(n, '-', line)
		case around > 0:
			if before = append(before, line); len(before) > around {
				before = before[1:]
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, errRead) {
		return none, err
	}
	switch {
	case len(matches) == 0:
		b.WriteString("No line matches.")
	case more:
		fmt.Fprintf(&b, "[There are more than %d matches]", most)
	}
	return result(b.String(), struct {
		ID      string  `json:"id"`
		Name    string  `json:"name"`
		Matches []match `json:"matches"`
		More    bool    `json:"more,omitempty"`
	}{d.ID, d.Name, matches, more})
}

func save(ctx context.Context, l Library, c native.Context, args SaveRequest) (none native.Result, _ error) {
	if (args.Content == "") == (args.Attachment == "") {
		return native.Failed("Give either content or attachment."), nil
	}
	if args.Name == "" && args.Attachment == "" {
		return native.Failed("Give the document a name."), nil
	}
	d, err := l.SaveFor(ctx, c, args)
	if err != nil {
		return none, err
	}
	return result(fmt.Sprintf("Saved as %s (id %s, %s, pages: %d).", d.Name, d.ID, d.Scope.Kind(), d.Pages), d)
}
