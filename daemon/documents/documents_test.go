package documents

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"nize/daemon/api"
	"nize/mcp/native"
	"nize/mcp/native/filetext"
	"nize/store"
	"nize/store/database/databasetest"
	"nize/store/project"
)

func TestMain(m *testing.M) {
	filetext.ChildMain()
	os.Exit(m.Run())
}

// fixture has three people: ann and ben are in a Slack workspace, eve in another one;
// ann owns the project sales, and ben is in it.
type fixture struct{}

func (fixture) GetUser(_ context.Context, id string) (store.User, error) {
	u := store.User{ID: id, Name: id}
	if id == "ann" {
		u.Aliases = []string{"anna"} // who was joined with her
	}
	return u, nil
}

func (fixture) ListMembers(_ context.Context, _, user string) ([]store.Membership, error) {
	team := map[string]string{"ann": "slack:T1", "ben": "slack:T1", "eve": "slack:T2"}[user]
	return []store.Membership{{Team: team, User: user}}, nil
}

func (fixture) ListProjects(context.Context) ([]project.Project, error) {
	return []project.Project{{ID: "P1", Name: "sales", Owner: "ann", Members: []string{"ben"}}, {ID: "P2", Name: "other", Owner: "eve"}}, nil
}

func (fixture) GetProject(_ context.Context, id string) (project.Project, error) {
	return project.Project{}, store.ErrNotFound
}

func (fixture) Turns(context.Context, string) ([]store.Turn, error) {
	return []store.Turn{
		{Files: []store.File{{ID: "F1", Name: "a.txt", Kind: store.TextFile, Text: "attached"}}},
		{For: "ben", Files: []store.File{{ID: "F2", Name: "private.txt", Kind: store.TextFile, Text: "ben's"}}},
		{Files: []store.File{{ID: "F3", Name: "gone.pdf", Kind: store.DocumentFile}}},
	}, nil
}

func (fixture) GetFile(context.Context, string, string) ([]byte, error) {
	return nil, store.ErrNotFound
}

type config map[string]string

func (c config) Get(_, key string) string {
	if v, ok := c[key]; ok {
		return v
	}
	for _, k := range Settings {
		if k.Name == key {
			return k.Default
		}
	}
	return ""
}

func open(t *testing.T) *Documents {
	return New(Options{
		DB: databasetest.Open(t, Buckets...), People: fixture{}, Projects: fixture{}, Chats: fixture{}, Config: config{"limits.documents.size": "1024"},
		Names: func(context.Context) (map[string]string, error) { return nil, nil }, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
}

func of(who string) native.Context {
	if id, ok := strings.CutPrefix(who, "project:"); ok {
		return native.Context{Project: id, Thread: "T"}
	}
	return native.Context{User: who, Team: "slack:T1", Thread: "T"}
}

// TestAccess: each reads their own, their team's and their projects' documents, and
// nobody another's; what one may not read is not there.
func TestAccess(t *testing.T) {
	d, ctx := open(t), t.Context()
	ids := map[string]string{}
	for name, scope := range map[string]Scope{"ann's": "user:ann", "anna's": "user:anna", "ben's": "user:ben", "team's": "team:slack:T1", "other team's": "team:slack:T2", "sales'": "project:P1", "other's": "project:P2"} {
		one, err := d.store.Put(ctx, store.Caller{User: "ann"}, Document{Scope: scope, Name: name}, []string{"word"}, Limits{Count: 9, Stored: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		ids[name] = one.ID
	}
	for who, want := range map[string][]string{
		"ann": {"ann's", "anna's", "sales'", "team's"}, "ben": {"ben's", "sales'", "team's"}, "eve": {"other team's", "other's"},
		"project:P1": {"sales'"}, "project:P2": {"other's"}, "project:P9": nil,
	} {
		var listed, found, got []string
		all, err := d.listFor(ctx, of(who), "")
		hits, searchErr := d.searchFor(ctx, of(who), "word", 100)
		if err != nil || searchErr != nil {
			t.Fatal(err, searchErr)
		}
		for _, one := range all {
			listed = append(listed, one.Name)
		}
		for _, h := range hits {
			found = append(found, h.Name)
		}
		for name, id := range ids {
			for _, which := range []string{name, id} {
				one, err := d.findFor(ctx, of(who), which)
				if err == nil && one.ID == id {
					got = append(got, name)
				} else if !errors.Is(err, store.ErrNotFound) {
					t.Errorf("%s, %s: %v", who, which, err)
				}
			}
		}
		slices.Sort(listed)
		slices.Sort(found)
		slices.Sort(got)
		if got = slices.Compact(got); !slices.Equal(listed, want) || !slices.Equal(found, want) || !slices.Equal(got, want) {
			t.Errorf("%s lists %q, finds %q and reads %q, want %q", who, listed, found, got, want)
		}
	}
	// Who may remove what they read.
	ben, admin := store.Caller{User: "ben", Identity: "slack:T1:UB"}, store.Caller{User: "ben", Role: store.Admin}
	for _, c := range []struct {
		by   store.Caller
		name string
		want error
	}{
		{ben, "ann's", store.ErrNotFound}, {ben, "sales'", store.ErrRefused}, {ben, "team's", store.ErrRefused}, {admin, "ann's", store.ErrNotFound},
		{admin, "team's", nil}, {store.Caller{User: "ann"}, "sales'", nil}, {ben, "ben's", nil},
	} {
		if _, err := d.Remove(ctx, c.by, api.RemoveDocumentRequest{ID: ids[c.name]}); !errors.Is(err, c.want) {
			t.Errorf("%s removes %s: %v, want %v", c.by.User, c.name, err, c.want)
		}
	}
}

func TestSave(t *testing.T) {
	d, ctx := open(t), t.Context()
	for _, c := range []struct {
		who  string
		r    saveRequest
		want string // its scope and name, or what is wrong
	}{
		{"ann", saveRequest{Name: "x.md", Content: "x"}, "user:ann x.md"},
		{"ann", saveRequest{Name: "x.md", Content: "x", Scope: "team"}, "team:slack:T1 x.md"},
		{"ann", saveRequest{Name: "x.md", Content: "x", Scope: "project:sales"}, "project:P1 x.md"},
		{"ann", saveRequest{Name: "x.md", Content: "x", Scope: "project:other"}, "not found"},
		{"ann", saveRequest{Name: "x.md", Content: "x", Scope: "team:slack:T2"}, "not found"},
		{"ann", saveRequest{Name: "x.md", Content: "x", Scope: "user:ben"}, "is no scope of yours"},
		{"project:P1", saveRequest{Name: "x.md", Content: "x"}, "project:P1 x.md"},
		{"project:P1", saveRequest{Name: "x.md", Content: "x", Scope: "user"}, "is no scope of yours"},
		{"project:P9", saveRequest{Name: "x.md", Content: "x"}, "not found"},
		{"ann", saveRequest{Name: "x.md", Content: strings.Repeat("x", 1025)}, "a document has at most 1KiB"},
		{"ann", saveRequest{Attachment: "a.txt"}, "user:ann a.txt"},
		{"ann", saveRequest{Attachment: "F1", Name: "b"}, "user:ann b.txt"},
		{"ann", saveRequest{Attachment: "b.txt"}, "did you mean a.txt?"},
		{"ann", saveRequest{Attachment: "private.txt"}, "not found"},
		{"ben", saveRequest{Attachment: "private.txt"}, "user:ben private.txt"},
		{"ann", saveRequest{Attachment: "gone.pdf"}, "is not kept; attach it again"},
	} {
		one, err := d.saveFor(ctx, of(c.who), c.r)
		got := string(one.Scope) + " " + one.Name
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s saves %+v: %s, want %s", c.who, c.r, got, c.want)
		}
	}
}
