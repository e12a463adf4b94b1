package documents

import (
	"errors"
	"strings"
	"testing"

	"nize/store"
	"nize/store/database/databasetest"
)

// TestDocumentsPerPerson: a person's documents count for their own quota, in whatever
// scope they are, until they are removed by whomever; another person's don't.
func TestDocumentsPerPerson(t *testing.T) {
	ctx, db := t.Context(), Over(databasetest.Open(t, Buckets...))
	ben, text := store.Caller{User: "ben"}, []string{strings.Repeat("x", 40)}
	ann := store.Caller{User: "ann"}
	put := func(by store.Caller, scope Scope, l Limits) (Document, error) {
		return db.Put(ctx, by, Document{Scope: scope, Name: "n"}, text, l)
	}
	within := Limits{Count: 9, Person: 100, Stored: 1000}
	if _, err := put(ben, "user:ben", within); err != nil {
		t.Fatal(err)
	}
	shared, err := put(ben, "team:slack:T1", within)
	if err != nil {
		t.Fatal(err)
	}
	for _, scope := range []Scope{"user:ben", "team:slack:T1", "project:P"} {
		if _, err := put(ben, scope, within); !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), "limits.user.documents") {
			t.Errorf("one too many in %s: %v", scope, err)
		}
	}
	for _, scope := range []Scope{"user:ann", "team:slack:T1"} {
		if _, err := put(ann, scope, within); err != nil {
			t.Errorf("ann pays for ben in %s: %v", scope, err)
		}
	}
	if err := db.Delete(ctx, ann, shared); err != nil {
		t.Fatal(err)
	}
	if _, err := put(ben, "user:ben", within); err != nil {
		t.Errorf("after one was removed: %v", err)
	}
	if _, err := db.Erase(ctx, ben, "user:ben"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := put(ben, "user:ben", within); err != nil {
			t.Errorf("after all were removed: %v", err)
		}
	}
	for name, l := range map[string]Limits{"limits.documents.count": {Count: 1, Stored: 1000}, "limits.documents.stored": {Count: 9, Stored: 10}} {
		if _, err := put(ben, "user:ben", l); !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
