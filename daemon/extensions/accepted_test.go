package extensions

import (
	"errors"
	"testing"

	"nize/store"
	"nize/store/database/databasetest"
)

func TestAcceptances(t *testing.T) {
	db := databasetest.Open(t, Buckets...)
	l := New(Options{DB: db})
	ann := store.Caller{User: "ann", Name: "ann", Role: store.Admin}
	if _, err := l.accepted(t.Context(), "greet"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("what nobody accepted: %v", err)
	}
	if err := l.accept(t.Context(), ann, acceptance{}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("one without a name: %v", err)
	}
	for _, pin := range []string{"one", "two"} {
		if err := l.accept(t.Context(), ann, acceptance{Name: "greet", Pin: pin, Files: map[string]string{"run": pin}}); err != nil {
			t.Fatal(err)
		}
		if got, err := l.accepted(t.Context(), "greet"); err != nil || got.Pin != pin || got.Files["run"] != pin || got.At.IsZero() {
			t.Errorf("got %+v, %v", got, err)
		}
	}
	events, err := db.Events(t.Context(), store.EventQuery{Kind: "extension"})
	if err != nil || len(events) != 2 {
		t.Fatalf("%d events, %v", len(events), err)
	}
	for _, e := range events {
		if e.Kind != "extension.accept" || e.Subject != "native:greet" || e.User != "ann" {
			t.Errorf("event %+v", e)
		}
	}
}
