// Package documents saves, reads and searches the documents of people, teams and projects.
// Assistants, programs and the command line use it.
//
// A document is its text alone, in pages; the rest of the file is not kept. Its [Scope] is its
// owner. Which scopes a caller may read is decided in one place (access.go), and every method
// of the store takes scopes. The records are in store.go and the index of words in index.go; both
// are sealed. The operations are in operations.go, the native tools in tools.go.
package documents

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"nize/daemon/module"
	"nize/mcp/native/filetext"
	"nize/store"
	"nize/store/kv"
	"nize/store/project"
)

// Options are the dependencies of the documents.
type Options struct {
	DB     kv.DB // opened with [Buckets]
	People interface {
		GetUser(ctx context.Context, id string) (store.User, error)
		ListMembers(ctx context.Context, team, user string) ([]store.Membership, error)
	}
	Projects interface {
		GetProject(ctx context.Context, id string) (project.Project, error)
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

// Documents implements the operations and the native tools.
type Documents struct {
	Options
	store Store
	saved chan Scope // 64 wait to be merged; if more are saved, the next save merges them too
}

// New returns the documents. Run keeps their index in order.
func New(opt Options) *Documents {
	return &Documents{Options: opt, store: Over(opt.DB), saved: make(chan Scope, 64)}
}

// Module returns the module.
func (d *Documents) Module() module.Module {
	return module.Module{Name: "documents", Buckets: Buckets, Settings: Settings, Operations: d.mount, Tools: d.tools(), Run: d.run, Erase: d.erase, Export: d.export}
}

const pruneEvery = time.Hour

// run merges the index of scopes in which documents were saved, and deletes documents that are
// too old, until ctx ends.
func (d *Documents) run(ctx context.Context) error {
	prune := time.NewTicker(pruneEvery)
	defer prune.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case scope := <-d.saved:
			err = d.store.Merge(ctx, scope)
		case <-prune.C:
			keep := store.GetSpan(d.Config, "", "retention.documents")
			_, err = d.store.Prune(ctx, d.Now().Add(-keep), d.hasProject)
		}
		if err != nil && ctx.Err() == nil {
			d.Log.Error("keeping the index of documents", "err", err)
		}
	}
}

func (d *Documents) hasProject(ctx context.Context, id string) (bool, error) {
	_, err := d.Projects.GetProject(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// save saves a text in a scope that the caller named.
func (d *Documents) save(ctx context.Context, r *reader, name, scope string, t filetext.Text) (none Document, err error) {
	one := Document{Name: name, Type: t.Type}
	if one.Scope, err = r.scope(scope); err != nil {
		return none, err
	}
	if err := d.checkSize(int64(len(t.Text))); err != nil {
		return none, err
	}
	limits := Limits{Count: store.GetInt(d.Config, "", "limits.documents.count"), Person: int64(store.GetInt(d.Config, "", "limits.user.documents")), Stored: int64(store.GetInt(d.Config, "", "limits.documents.stored"))}
	if one, err = d.store.Put(ctx, r.by, one, Split(t.Text), limits); err != nil {
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

// EraseProject deletes the documents of a removed project. If it is interrupted, run deletes the
// rest.
func (d *Documents) EraseProject(ctx context.Context, id string) error {
	_, err := d.store.eraseScope(ctx, ScopeOf(Project, id))
	return err
}

// erase deletes the documents that belong to a person.
func (d *Documents) erase(ctx context.Context, users []string, f *store.Forgotten) (err error) {
	f.Documents, err = d.store.EraseUsers(ctx, users)
	return err
}

// export passes a person's own documents page by page, since a whole one may exceed a line.
func (d *Documents) export(ctx context.Context, users []string, put func(kind string, record any) error) error {
	var scopes []Scope
	for _, id := range users {
		scopes = append(scopes, ScopeOf(User, id))
	}
	all, err := d.store.List(ctx, scopes)
	if err != nil {
		return fmt.Errorf("exporting each document: %w", err)
	}
	for _, one := range all {
		if err := put("document", one); err != nil {
			return err
		}
	}
	for _, one := range all {
		err := d.store.ReadPages(ctx, one, 1, func(p Page) error {
			return put("document_page", struct {
				Document string `json:"document"`
				Page     int    `json:"page"`
				Text     string `json:"text"`
			}{one.ID, p.Number, p.Text})
		})
		if err != nil && !errors.Is(err, store.ErrNotFound) { // removed in the meantime
			return fmt.Errorf("exporting the document %s: %w", one.ID, err)
		}
	}
	return nil
}
