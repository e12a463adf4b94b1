package documents

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"nize/store"
	"nize/store/database/databasetest"
	"nize/store/kv"
)

var (
	ann     = store.Caller{User: "ann", Surface: store.OnCLI}
	plenty  = Limits{Count: 100_000, Stored: 1 << 40}
	annOnly = []Scope{"user:ann"}
)

func noProject(context.Context, string) (bool, error) { return false, nil }

func save(t testing.TB, db Store, scope Scope, name, text string) Document {
	t.Helper()
	d, err := db.Put(t.Context(), ann, Document{Scope: scope, Name: name, Type: "text/plain"}, Split(text), plenty)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func found(t testing.TB, db Store, scopes []Scope, query string) (names []string) {
	t.Helper()
	hits, err := db.Search(t.Context(), scopes, query, 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range hits {
		names = append(names, fmt.Sprintf("%s:%d:%s", h.Name, h.Line, h.Text))
	}
	return names
}

func TestDocuments(t *testing.T) {
	dir := t.TempDir()
	disk, ctx := databasetest.OpenIn(t, dir, Buckets...), t.Context()
	db := Over(disk)
	long := strings.Repeat("nothing here\n", 2000) + "the Walrus sings\nend"
	a := save(t, db, "user:ann", "tides.md", "# Tides\nThe sea rises twice a day.\n")
	b := save(t, db, "user:ann", "long.txt", long)
	save(t, db, "user:ben", "secret.txt", "the walrus is Paul")
	save(t, db, "team:slack:T1", "鲸鱼", "蓝鲸是最大的动物\nsecond line")
	if b.Lines != 2002 || b.Pages != 3 || b.Size != int64(len(long)) || a.Lines != 2 {
		t.Errorf("%+v, %+v", a, b)
	}
	var text strings.Builder
	lines := []int{}
	if err := db.ReadPages(ctx, b, 1, func(p Page) error {
		text.WriteString(p.Text)
		lines = append(lines, p.Line)
		return nil
	}); err != nil || text.String() != long || lines[0] != 1 || lines[2] <= lines[1] {
		t.Errorf("read %d bytes from lines %v: %v", text.Len(), lines, err)
	}
	for query, want := range map[string]string{
		"walruses": "", "walrus": "long.txt:2001:the Walrus sings", "WALRUS paul": "long.txt:2001:the Walrus sings",
		"seas": "tides.md:2:The sea rises twice a day.", "tide": "tides.md:1:# Tides", "long": "long.txt:0:", "zebra": "", "": "", "鲸": "",
	} {
		if got := strings.Join(found(t, db, annOnly, query), " "); got != want {
			t.Errorf("%q finds %q, want %q", query, got, want)
		}
	}
	if got := found(t, db, []Scope{"user:ann", "team:slack:T1"}, "最大的动物"); !slices.Equal(got, []string{"鲸鱼:1:蓝鲸是最大的动物"}) {
		t.Errorf("%q", got)
	}
	if _, err := db.Get(ctx, []Scope{"user:ben"}, a.ID); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("from another scope: %v", err)
	}
	if err := db.Delete(ctx, ann, a); err != nil {
		t.Fatal(err)
	}
	if got := found(t, db, annOnly, "sea"); got != nil {
		t.Errorf("deleted, and found: %q", got)
	}
	if _, err := db.Put(ctx, ann, Document{Scope: "user:ann", Name: "x"}, []string{"x"}, Limits{Count: 1, Stored: 1 << 20}); !errors.Is(err, store.ErrRefused) {
		t.Errorf("one more than there may be: %v", err)
	}
	if _, err := db.Put(ctx, ann, Document{Scope: "user:ann", Name: "x"}, []string{"x"}, Limits{Count: 9, Stored: 100}); !errors.Is(err, store.ErrRefused) {
		t.Errorf("more bytes than there may be: %v", err)
	}
	for _, name := range []string{"", " ", "a\nb", strings.Repeat("x", 201)} {
		if _, err := db.Put(ctx, ann, Document{Scope: "user:ann", Name: name}, []string{"x"}, plenty); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("name %q: %v", name, err)
		}
	}
	// Nothing of it lies in the file in clear.
	if err := disk.Close(); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "nize.db"))
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"walrus", "Walrus", "tides", "蓝鲸", "secret.txt"} {
		if strings.Contains(string(raw), word) {
			t.Errorf("%q lies in clear", word)
		}
	}
}

// TestDocumentIndex: whatever was merged, deleted or interrupted, a search finds what
// reading every document would find.
func TestDocumentIndex(t *testing.T) {
	db := Over(databasetest.Open(t, Buckets...))
	ctx := t.Context()
	random := rand.New(rand.NewPCG(1, 2))
	have := map[string]Document{}
	texts := map[string]string{}
	for i := range 300 {
		var words []string
		for range 20 {
			words = append(words, fmt.Sprintf("w%d", int(random.ExpFloat64()*20)))
		}
		d := save(t, db, "user:ann", fmt.Sprintf("d%03d", i), strings.Join(words, " "))
		have[d.Name], texts[d.Name] = d, strings.Join(words, " ")
		if i%7 == 3 {
			name := fmt.Sprintf("d%03d", random.IntN(i))
			if d, ok := have[name]; ok {
				if err := db.Delete(ctx, ann, d); err != nil {
					t.Fatal(err)
				}
				delete(have, name)
			}
		}
		if i%5 == 0 {
			merging := ctx
			if i%50 == 0 { // it is interrupted
				cut, cancel := context.WithCancel(ctx)
				cancel()
				merging = cut
			}
			if err := db.Merge(merging, "user:ann"); err != nil && merging == ctx {
				t.Fatal(err)
			}
		}
	}
	check := func() {
		t.Helper()
		for i := range 60 {
			word := fmt.Sprintf("w%d", i)
			var want []string
			for name := range have {
				if slices.Contains(strings.Fields(texts[name]), word) {
					want = append(want, name)
				}
			}
			hits, err := db.Search(ctx, annOnly, word, 1000)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, h := range hits {
				got = append(got, h.Name)
			}
			slices.Sort(want)
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Fatalf("%s: %d found, %d are there", word, len(got), len(want))
			}
		}
	}
	check()
	for _, d := range have {
		if d.Name < "d150" {
			if err := db.Delete(ctx, ann, d); err != nil {
				t.Fatal(err)
			}
			delete(have, d.Name)
		}
	}
	check()
	n, err := db.Prune(ctx, time.Now().Add(-time.Hour), noProject)
	if err != nil || n != 0 {
		t.Fatal(n, err)
	}
	check()
	if n, err := db.Erase(ctx, ann, "user:ann"); err != nil || n != len(have) {
		t.Fatalf("erased %d of %d: %v", n, len(have), err)
	}
	have = nil
	check()
	save(t, db, "project:none", "orphan", "x")
	save(t, db, "user:ann", "old", "x")
	if n, err := db.Prune(ctx, time.Now().Add(time.Hour), noProject); err != nil || n != 2 {
		t.Errorf("pruned %d, %v", n, err)
	}
}

// TestDocumentsAtOnce: while people save, remove and search, and the index is merged,
// nobody finds what is gone, and in the end each finds what is there.
func TestDocumentsAtOnce(t *testing.T) {
	db, ctx := Over(databasetest.Open(t, Buckets...)), t.Context()
	const writers, each = 4, 24
	var at, merging sync.WaitGroup
	over := make(chan struct{})
	merging.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
				if err := db.Merge(ctx, "user:ann"); err != nil {
					t.Error(err)
				}
			}
		}
	})
	for w := range writers {
		at.Go(func() {
			for i := range each {
				d, err := db.Put(ctx, ann, Document{Scope: "user:ann", Name: fmt.Sprint(w, "-", i)}, []string{fmt.Sprintf("shared word%d", w)}, plenty)
				if err != nil {
					t.Error(err)
					return
				}
				if i%3 != 0 {
					continue
				}
				if err := db.Delete(ctx, ann, d); err != nil {
					t.Error(err)
				}
				hits, err := db.Search(ctx, annOnly, fmt.Sprintf("word%d", w), 1000)
				if err != nil || len(hits) != i-i/3 || slices.ContainsFunc(hits, func(h Hit) bool { return h.ID == d.ID }) {
					t.Errorf("writer %d finds %d after %d: %v", w, len(hits), i, err)
				}
			}
		})
	}
	at.Wait()
	close(over)
	merging.Wait()
	if hits, err := db.Search(ctx, annOnly, "shared", 1000); err != nil || len(hits) != writers*each*2/3 {
		t.Errorf("%d found, want %d: %v", len(hits), writers*each*2/3, err)
	}
}

// TestForgetDocuments: a person's own go with them, those of their team stay.
func TestForgetDocuments(t *testing.T) {
	disk, ctx := databasetest.Open(t, Buckets...), t.Context()
	db := Over(disk)
	admin := store.Caller{User: "ada", Role: store.Admin}
	u, err := disk.EnsureUser(ctx, "slack:T1:U1", "mia", store.Member)
	if err != nil {
		t.Fatal(err)
	}
	own := ScopeOf(User, u.ID)
	for i := range 40 { // some of them are in a segment of the index
		save(t, db, own, fmt.Sprint("mine ", i), "my word")
	}
	if err := db.Merge(ctx, own); err != nil {
		t.Fatal(err)
	}
	save(t, db, own, "mine", "my word")
	save(t, db, "team:slack:T1", "ours", "our word")
	f, err := disk.ForgetUser(ctx, admin, u.ID, (&Documents{store: db}).Module().Erase)
	if err != nil || f.Documents != 41 {
		t.Fatalf("forgotten: %+v, %v", f, err)
	}
	err = disk.View(ctx, "looking for what is left", func(r kv.Reader) (err error) {
		for _, bucket := range []string{"documents", "document_pages", "document_scopes", "document_index"} {
			err = errors.Join(err, r.Each(bucket, []byte(own), nil, func(k, _ []byte) error { return fmt.Errorf("%s has %q", bucket, k) }))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if got := found(t, db, []Scope{own, "team:slack:T1"}, "word"); !slices.Equal(got, []string{"ours:1:our word"}) {
		t.Errorf("left: %q", got)
	}
}
