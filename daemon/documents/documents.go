// Package documents saves, reads and searches documents, and decides who may read which
// (access.go). The command line and the native tools use it.
package documents

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path"
	"slices"
	"strings"
	"time"

	"nize/daemon/api"
	"nize/mcp/native"
	"nize/mcp/native/documents"
	"nize/mcp/native/filetext"
	"nize/store"
	"nize/store/document"
	"nize/store/project"
)

// Options are what the documents need of the house.
type Options struct {
	Store  document.Store
	People interface {
		GetUser(ctx context.Context, id string) (store.User, error)
		ListMembers(ctx context.Context, team, user string) ([]store.Membership, error)
	}
	Projects interface {
		ListProjects(ctx context.Context) ([]project.Project, error)
	}
	// Chats have the files that came with messages.
	Chats interface {
		Turns(ctx context.Context, thread string) ([]store.Turn, error)
		GetFile(ctx context.Context, thread, id string) ([]byte, error)
	}
	Config store.Config
	Names  func(ctx context.Context) (map[string]string, error) // of users by id
	Now    func() time.Time
	Log    *slog.Logger
}

// Documents are the operations on documents, and the library of the native tools.
type Documents struct {
	Options
	saved chan document.Scope // 64 wait to be merged; of more, the next save tells
}

var _ documents.Library = (*Documents)(nil)

// New returns them. Run keeps their index in order.
func New(opt Options) *Documents {
	return &Documents{Options: opt, saved: make(chan document.Scope, 64)}
}

const pruneEvery = time.Hour

// Run merges the index of what was saved, and removes what is too old, until ctx ends.
func (d *Documents) Run(ctx context.Context) error {
	prune := time.NewTicker(pruneEvery)
	defer prune.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case scope := <-d.saved:
			err = d.Store.MergeDocuments(ctx, scope)
		case <-prune.C:
			keep := store.GetSpan(d.Config, "", "retention.documents")
			_, err = d.Store.PruneDocuments(ctx, d.Now().Add(-keep))
		}
		if err != nil && ctx.Err() == nil {
			d.Log.Error("keeping the index of documents", "err", err)
		}
	}
}

// save keeps a text under a scope that somebody named.
func (d *Documents) save(ctx context.Context, r *reader, name, scope string, t filetext.Text) (none document.Document, err error) {
	one := document.Document{Name: name, Type: t.Type}
	if one.Scope, err = r.scope(scope); err != nil {
		return none, err
	}
	if err := d.checkSize(int64(len(t.Text))); err != nil {
		return none, err
	}
	limits := document.Limits{Count: store.GetInt(d.Config, "", "limits.documents.count"), Person: int64(store.GetInt(d.Config, "", "limits.user.documents")), Stored: int64(store.GetInt(d.Config, "", "limits.documents.stored"))}
	if one, err = d.Store.PutDocument(ctx, r.by, one, document.Split(t.Text), limits); err != nil {
		return none, err
	}
	select {
	case d.saved <- one.Scope:
	default:
	}
	return one, nil
}

func (d *Documents) largest() int { return store.GetInt(d.Config, "", "limits.documents.size") }

func (d *Documents) checkSize(n int64) error {
	if most := int64(d.largest()); n > most {
		return store.Mark(fmt.Errorf("it has %s, and a document has at most %s", store.Size(n).String(), store.Size(most).String()), store.ErrInvalid)
	}
	return nil
}

// reader is the caller of an operation.
func (d *Documents) reader(ctx context.Context, by store.Caller) (*reader, error) {
	return d.readerOf(ctx, by, store.TeamOf(by, store.Address{}))
}

// Add saves a file.
func (d *Documents) Add(ctx context.Context, by store.Caller, req api.AddDocumentRequest, f api.File) (none api.DocumentView, _ error) {
	r, err := d.reader(ctx, by)
	if err != nil {
		return none, err
	}
	if err := d.checkSize(f.Size); err != nil {
		return none, err
	}
	data, err := io.ReadAll(io.LimitReader(f, f.Size))
	if err != nil {
		return none, fmt.Errorf("receiving the file: %w", err)
	}
	text, err := filetext.Read(ctx, req.Name, data, d.largest())
	if err != nil {
		return none, err
	}
	one, err := d.save(ctx, r, req.Name, req.Scope, text)
	if err != nil {
		return none, err
	}
	names, err := d.Names(ctx)
	return r.view(one, names), err
}

func (r *reader) view(one document.Document, names map[string]string) api.DocumentView {
	return api.DocumentView{Document: one, ScopeName: r.names[one.Scope], ByName: names[one.By]}
}

// List lists what the caller may read.
func (d *Documents) List(ctx context.Context, by store.Caller, req api.ListDocumentsRequest) (none api.List[api.DocumentView], _ error) {
	r, err := d.reader(ctx, by)
	if err != nil {
		return none, err
	}
	scopes, err := r.within(req.Scope)
	if err != nil {
		return none, err
	}
	all, err := d.Store.ListDocuments(ctx, scopes)
	if err != nil {
		return none, err
	}
	names, err := d.Names(ctx)
	views := make([]api.DocumentView, len(all))
	for i, one := range all {
		views[i] = r.view(one, names)
	}
	return api.Items(views), err
}

// Get shows one with a page.
func (d *Documents) Get(ctx context.Context, by store.Caller, req api.GetDocumentRequest) (none api.DocumentPage, _ error) {
	r, err := d.reader(ctx, by)
	if err != nil {
		return none, err
	}
	one, err := d.find(ctx, r, req.ID)
	if err != nil {
		return none, err
	}
	n := max(req.Page, 1)
	if n > one.Pages {
		return none, fmt.Errorf("page %d of %s %w; its last is page %d", n, one.Name, store.ErrNotFound, one.Pages)
	}
	names, err := d.Names(ctx)
	if err != nil {
		return none, err
	}
	page := api.DocumentPage{DocumentView: r.view(one, names), Page: n}
	err = d.Store.ReadPages(ctx, one, n, func(p document.Page) error {
		page.Text = p.Text
		return io.EOF
	})
	if err == io.EOF {
		err = nil
	}
	return page, err
}

const (
	defaultHits = 20
	mostHits    = 1000
)

// Search finds documents, or lines of one.
func (d *Documents) Search(ctx context.Context, by store.Caller, req api.SearchDocumentsRequest) (none api.List[api.DocumentHit], _ error) {
	r, err := d.reader(ctx, by)
	if err != nil {
		return none, err
	}
	most := defaultHits
	if req.Limit > 0 {
		most = min(req.Limit, mostHits)
	}
	var hits []api.DocumentHit
	if req.In == "" {
		found, err := d.Store.SearchDocuments(ctx, r.scopes, req.Query, most)
		for _, h := range found {
			hits = append(hits, api.DocumentHit{Hit: h, ScopeName: r.names[h.Scope]})
		}
		return api.Items(hits), err
	}
	one, err := d.find(ctx, r, req.In)
	if err != nil {
		return none, err
	}
	fits := document.Matcher(req.Query)
	err = document.Lines(func(do func(document.Page) error) error { return d.Store.ReadPages(ctx, one, 1, do) }, func(page, n int, line string) error {
		if !fits(line) {
			return nil
		}
		hits = append(hits, api.DocumentHit{Hit: document.Hit{Document: one, Page: page, Line: n, Text: store.Line(line)}, ScopeName: r.names[one.Scope]})
		if len(hits) == most {
			return io.EOF
		}
		return nil
	})
	if err == io.EOF {
		err = nil
	}
	return api.Items(hits), err
}

// Remove removes one.
func (d *Documents) Remove(ctx context.Context, by store.Caller, req api.RemoveDocumentRequest) (none api.Empty, _ error) {
	r, err := d.reader(ctx, by)
	if err != nil {
		return none, err
	}
	one, err := d.find(ctx, r, req.ID)
	if err != nil {
		return none, err
	}
	if !r.mayRemove(one) {
		return none, store.Mark(fmt.Errorf("only who saved it, an admin, or the owner of its project may remove it"), store.ErrRefused)
	}
	return none, d.Store.DeleteDocument(ctx, by, one)
}

// Erase removes all of a scope.
func (d *Documents) Erase(ctx context.Context, by store.Caller, req api.EraseDocumentsRequest) (none api.ErasedDocuments, _ error) {
	r, err := d.reader(ctx, by)
	if err != nil {
		return none, err
	}
	scope, err := r.scope(req.Scope)
	if err != nil {
		return none, err
	}
	if !r.mayRemove(document.Document{Scope: scope}) {
		return none, store.Mark(fmt.Errorf("only an admin, or the owner of the project, may remove all"), store.ErrRefused)
	}
	n, err := d.Store.EraseDocuments(ctx, by, scope)
	return api.ErasedDocuments{Documents: n}, err
}

// ListFor implements [documents.Library].
func (d *Documents) ListFor(ctx context.Context, c native.Context, scope string) ([]document.Document, error) {
	r, err := d.readerOf(ctx, callerOf(c), c.Team)
	if err != nil {
		return nil, err
	}
	scopes, err := r.within(scope)
	if err != nil {
		return nil, err
	}
	return d.Store.ListDocuments(ctx, scopes)
}

// FindFor implements [documents.Library].
func (d *Documents) FindFor(ctx context.Context, c native.Context, which string) (document.Document, error) {
	r, err := d.readerOf(ctx, callerOf(c), c.Team)
	if err != nil {
		return document.Document{}, err
	}
	return d.find(ctx, r, which)
}

// ReadPages implements [documents.Library].
func (d *Documents) ReadPages(ctx context.Context, one document.Document, from int, do func(document.Page) error) error {
	return d.Store.ReadPages(ctx, one, from, do)
}

// SearchFor implements [documents.Library].
func (d *Documents) SearchFor(ctx context.Context, c native.Context, query string, most int) ([]document.Hit, error) {
	r, err := d.readerOf(ctx, callerOf(c), c.Team)
	if err != nil {
		return nil, err
	}
	return d.Store.SearchDocuments(ctx, r.scopes, query, most)
}

// SaveFor implements [documents.Library].
func (d *Documents) SaveFor(ctx context.Context, c native.Context, req documents.SaveRequest) (none document.Document, _ error) {
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

// attachment is the newest file of that name or id that came with a message of the
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
			continue // it is for somebody else alone
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
