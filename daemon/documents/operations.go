package documents

import (
	"context"
	"fmt"
	"io"

	"nize/daemon/api"
	"nize/daemon/mux"
	"nize/mcp/native/filetext"
	"nize/store"
)

func (d *Documents) mount(m *mux.Mux) {
	mux.HandleUpload(m, api.AddDocument, d.Add)
	mux.Handle(m, api.ListDocuments, d.List)
	mux.Handle(m, api.EraseDocuments, d.Erase)
	mux.Handle(m, api.GetDocument, d.Get)
	mux.Handle(m, api.RemoveDocument, d.Remove)
	mux.Handle(m, api.SearchDocuments, d.Search)
}

// reader returns the caller of an operation as a reader.
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

// shown returns a document as nizectl gets it.
func shown(d Document) api.Document {
	return api.Document{ID: d.ID, Scope: string(d.Scope), Name: d.Name, Type: d.Type, Size: d.Size, Pages: d.Pages, Lines: d.Lines, By: d.By, Created: d.Created}
}

func (r *reader) view(one Document, names map[string]string) api.DocumentView {
	return api.DocumentView{Document: shown(one), ScopeName: r.names[one.Scope], ByName: names[one.By]}
}

// List lists the documents that the caller may read.
func (d *Documents) List(ctx context.Context, by store.Caller, req api.ListDocumentsRequest) (none api.List[api.DocumentView], _ error) {
	r, err := d.reader(ctx, by)
	if err != nil {
		return none, err
	}
	scopes, err := r.within(req.Scope)
	if err != nil {
		return none, err
	}
	all, err := d.store.List(ctx, scopes)
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

// Get returns a document with one page.
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
	err = d.store.ReadPages(ctx, one, n, func(p Page) error {
		page.Text = p.Text
		return io.EOF
	})
	if err == io.EOF {
		err = nil
	}
	return page, err
}

func (r *reader) hit(h Hit) api.DocumentHit {
	return api.DocumentHit{Document: shown(h.Document), Page: h.Page, Line: h.Line, Text: h.Text, Score: h.Score, ScopeName: r.names[h.Scope]}
}

const (
	defaultHits = 20
	mostHits    = 1000
)

// Search returns documents that match, or lines of one document.
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
		found, err := d.store.Search(ctx, r.scopes, req.Query, most)
		for _, h := range found {
			hits = append(hits, r.hit(h))
		}
		return api.Items(hits), err
	}
	one, err := d.find(ctx, r, req.In)
	if err != nil {
		return none, err
	}
	fits := matcher(req.Query)
	err = eachLine(func(do func(Page) error) error { return d.store.ReadPages(ctx, one, 1, do) }, func(page, n int, line string) error {
		if !fits(line) {
			return nil
		}
		hits = append(hits, r.hit(Hit{Document: one, Page: page, Line: n, Text: store.Line(line)}))
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

// Remove removes a document.
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
	return none, d.store.Delete(ctx, by, one)
}

// Erase removes all documents of a scope.
func (d *Documents) Erase(ctx context.Context, by store.Caller, req api.EraseDocumentsRequest) (none api.ErasedDocuments, _ error) {
	r, err := d.reader(ctx, by)
	if err != nil {
		return none, err
	}
	scope, err := r.scope(req.Scope)
	if err != nil {
		return none, err
	}
	if !r.mayRemove(Document{Scope: scope}) {
		return none, store.Mark(fmt.Errorf("only an admin, or the owner of the project, may remove all"), store.ErrRefused)
	}
	n, err := d.store.Erase(ctx, by, scope)
	return api.ErasedDocuments{Documents: n}, err
}
