package documents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"nize/mcp/native"
	"nize/mcp/native/filetext"
	"nize/store"
)

// saveRequest is the content to save: a text, or a file that was attached to a message.
type saveRequest struct {
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

// tools returns the native tools. Documents may have been written by anyone, so each tool taints
// the conversation. Their results are only for the requester, because other participants of the
// conversation may not be allowed to read the document.
func (d *Documents) tools() []native.Tool {
	yes, no := true, false
	reads := store.Annotations{ReadOnly: &yes, Destructive: &no, Idempotent: &yes, OpenWorld: &no}
	return []native.Tool{{
		Name: "list_documents", Title: "List documents",
		Description: "Lists documents accessible to the current user (personal, team, project).",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"scope":{"type":"string","description":"Only documents of this scope: user, team, team:TEAM, project or project:NAME"},"offset":{"type":"integer","minimum":0,"default":0,"description":"How many of the newest to leave out"}}}`),
		Annotations: reads, Untrusted: true, Private: true, Renderer: listRenderer,
		Run: run(d.listTool),
	}, {
		Name: "read_document", Title: "Read a document",
		Description: "Reads document content with pagination support.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"documentId":{"type":"string","description":"The document's id, or its name if only one has it"},"page":{"type":"integer","minimum":1,"default":1,"description":"Which page to read"}},"required":["documentId"]}`),
		Annotations: reads, Untrusted: true, Private: true, Renderer: readRenderer,
		Run: run(d.readTool),
	}, {
		Name: "search_in_document", Title: "Search in documents",
		Description: "Searches text within a document, returning matching lines with context. Without documentId, searches all documents accessible to the current user.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string","minLength":1,"maxLength":1000,"description":"The text or words to look for"},"documentId":{"type":"string","description":"The document's id, or its name if only one has it; all documents if not given"},"contextLines":{"type":"integer","minimum":0,"maximum":10,"default":2,"description":"Lines to show before and after each matching line"},"maxMatches":{"type":"integer","minimum":1,"maximum":100,"default":20,"description":"How many matches to return at most"}},"required":["query"]}`),
		Annotations: reads, Untrusted: true, Private: true, Renderer: searchRenderer,
		Run: run(d.searchTool),
	}, {
		Name: "save_document", Title: "Save a document",
		Description: "Saves content as a new document for the current user.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string","minLength":1,"maxLength":200,"description":"The document's name, such as notes.md; its ending tells its kind. An attachment's own if not given"},"content":{"type":"string","description":"The text to save"},"attachment":{"type":"string","description":"Instead of content: the name or id of a file that came with a message of this conversation"},"scope":{"type":"string","default":"user","description":"Whose it is: user, team or project:NAME"}}}`),
		Annotations: store.Annotations{ReadOnly: &no, Destructive: &no, Idempotent: &no, OpenWorld: &no}, Untrusted: true, Renderer: saveRenderer,
		Run: run(d.saveTool),
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
func run[T any](do func(context.Context, native.Context, T) (native.Result, error)) func(context.Context, native.Context, json.RawMessage) (native.Result, error) {
	return func(ctx context.Context, c native.Context, input json.RawMessage) (native.Result, error) {
		var args T
		if err := json.Unmarshal(input, &args); err != nil {
			return native.Failed("The arguments are not of the form that the tool's schema has."), nil
		}
		r, err := do(ctx, c, args)
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

func (d *Documents) listTool(ctx context.Context, c native.Context, args struct {
	Scope  string
	Offset int
}) (none native.Result, _ error) {
	all, err := d.listFor(ctx, c, args.Scope)
	if err != nil {
		return none, err
	}
	few := all[min(max(args.Offset, 0), len(all)):]
	few = few[:min(listMost, len(few))]
	var b strings.Builder
	if len(all) == 0 {
		b.WriteString("There are no documents yet.")
	}
	for _, one := range few {
		fmt.Fprintf(&b, "- %s (id %s, %s, %s, pages: %d, saved %s)\n", one.Name, one.ID, one.Scope.Kind(), one.Type, one.Pages, one.Created.UTC().Format("2006-01-02"))
	}
	if rest := len(all) - args.Offset - len(few); len(few) > 0 && rest > 0 {
		fmt.Fprintf(&b, "[%d more: offset %d]", rest, args.Offset+len(few))
	}
	return result(strings.TrimSpace(b.String()), struct {
		Documents []Document `json:"documents"`
		Total     int        `json:"total"`
	}{append([]Document{}, few...), len(all)})
}

var errRead = errors.New("read")

func (d *Documents) readTool(ctx context.Context, c native.Context, args struct {
	DocumentID string `json:"documentId"`
	Page       int
}) (none native.Result, _ error) {
	one, err := d.findFor(ctx, c, args.DocumentID)
	if err != nil {
		return none, err
	}
	n := max(args.Page, 1)
	if n > one.Pages {
		return native.Failed(fmt.Sprintf("%s has no page %d; its last is page %d", one.Name, n, one.Pages)), nil
	}
	var text string
	err = d.store.ReadPages(ctx, one, n, func(p Page) error {
		text = p.Text
		return errRead
	})
	if err != nil && !errors.Is(err, errRead) {
		return none, err
	}
	said := text
	if one.Pages > 1 {
		said += fmt.Sprintf("\n\n[Page %d of %d]", n, one.Pages)
	}
	return result(said, struct {
		ID    string `json:"id"`
		Name  string `json:"name"`
		Page  int    `json:"page"`
		Pages int    `json:"pages"`
		Text  string `json:"text"`
	}{one.ID, one.Name, n, one.Pages, text})
}

func (d *Documents) searchTool(ctx context.Context, c native.Context, args struct {
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
		one, err := d.findFor(ctx, c, args.DocumentID)
		if err != nil {
			return none, err
		}
		return d.searchLines(ctx, one, args.Query, around, most)
	}
	hits, err := d.searchFor(ctx, c, args.Query, most)
	if err != nil {
		return none, err
	}
	if len(hits) == 0 {
		return result("No document matches.", map[string][]Hit{"matches": {}})
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
	return result(b.String(), map[string][]Hit{"matches": hits})
}

// match is a matching line of a document.
type match struct {
	Page int    `json:"page"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

func (d *Documents) searchLines(ctx context.Context, one Document, query string, around, most int) (none native.Result, _ error) {
	var (
		b       strings.Builder
		matches = []match{}
		before  []string // the preceding lines that were not shown yet
		after   int      // remaining lines to show after the last match
		last    int      // the last line that was shown
		fits    = matcher(query)
	)
	show := func(n int, mark byte, line string) {
		if last > 0 && n > last+1 {
			b.WriteString("--\n")
		}
		fmt.Fprintf(&b, "%d%c %s\n", n, mark, line)
		last = n
	}
	more := false
	err := eachLine(func(do func(Page) error) error { return d.store.ReadPages(ctx, one, 1, do) }, func(page, n int, line string) error {
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
	}{one.ID, one.Name, matches, more})
}

func (d *Documents) saveTool(ctx context.Context, c native.Context, args saveRequest) (none native.Result, _ error) {
	if (args.Content == "") == (args.Attachment == "") {
		return native.Failed("Give either content or attachment."), nil
	}
	if args.Name == "" && args.Attachment == "" {
		return native.Failed("Give the document a name."), nil
	}
	one, err := d.saveFor(ctx, c, args)
	if err != nil {
		return none, err
	}
	return result(fmt.Sprintf("Saved as %s (id %s, %s, pages: %d).", one.Name, one.ID, one.Scope.Kind(), one.Pages), one)
}

// listFor returns the documents that the caller may read, in one scope or, for "", in all.
func (d *Documents) listFor(ctx context.Context, c native.Context, scope string) ([]Document, error) {
	r, err := d.readerOf(ctx, callerOf(c), c.Team)
	if err != nil {
		return nil, err
	}
	scopes, err := r.within(scope)
	if err != nil {
		return nil, err
	}
	return d.store.List(ctx, scopes)
}

// findFor returns a document by its id, or by its name if that is unique.
func (d *Documents) findFor(ctx context.Context, c native.Context, which string) (Document, error) {
	r, err := d.readerOf(ctx, callerOf(c), c.Team)
	if err != nil {
		return Document{}, err
	}
	return d.find(ctx, r, which)
}

// searchFor searches the documents that the caller may read.
func (d *Documents) searchFor(ctx context.Context, c native.Context, query string, most int) ([]Hit, error) {
	r, err := d.readerOf(ctx, callerOf(c), c.Team)
	if err != nil {
		return nil, err
	}
	return d.store.Search(ctx, r.scopes, query, most)
}

// saveFor saves a text or an attached file as a new document.
func (d *Documents) saveFor(ctx context.Context, c native.Context, req saveRequest) (none Document, _ error) {
	r, err := d.readerOf(ctx, callerOf(c), c.Team)
	if err != nil {
		return none, err
	}
	data := []byte(req.Content)
	if req.Attachment != "" {
		f, content, err := d.attachment(ctx, c, req.Attachment)
		if err != nil {
			return none, err
		}
		data = content
		if req.Name == "" {
			req.Name = f.Name
		}
		if !strings.Contains(req.Name, ".") {
			req.Name += path.Ext(f.Name)
		}
	}
	text, err := filetext.Read(ctx, req.Name, data, d.largest())
	if err != nil {
		return none, err
	}
	return d.save(ctx, r, req.Name, req.Scope, text)
}

// attachment returns the newest file with that name or id among the messages of the
// conversation in which a tool runs.
func (d *Documents) attachment(ctx context.Context, c native.Context, which string) (none store.File, _ []byte, _ error) {
	if c.Thread == "" {
		return none, nil, fmt.Errorf("attachment %q %w: this is no conversation", which, store.ErrNotFound)
	}
	turns, err := d.Chats.Turns(ctx, c.Thread)
	if err != nil {
		return none, nil, fmt.Errorf("reading the conversation: %w", err)
	}
	var names []string
	for _, t := range slices.Backward(turns) {
		if t.For != "" && t.For != c.User {
			continue // it is only for another person
		}
		for _, f := range t.Files {
			if f.ID != which && f.Name != which {
				names = append(names, f.Name)
				continue
			}
			data, err := d.Chats.GetFile(ctx, c.Thread, f.ID)
			switch {
			case err == nil:
				return f, data, nil
			case !errors.Is(err, store.ErrNotFound):
				return none, nil, fmt.Errorf("reading an attachment: %w", err)
			case f.Kind == store.TextFile && f.Cut == 0:
				return f, []byte(f.Text), nil
			}
			return none, nil, store.Mark(fmt.Errorf("the content of %s is not kept; attach it again", f.Name), store.ErrRefused)
		}
	}
	return none, nil, store.Unknown("attachment", which, names)
}
