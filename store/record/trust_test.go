package record_test

import (
	"errors"
	"testing"

	"nize/store"
	"nize/store/database/databasetest"
	"nize/store/trust"
)

func TestTrust(t *testing.T) {
	db := databasetest.Open(t)
	ann := store.Caller{User: "ann", Name: "ann", Role: store.Admin}
	if _, err := db.GetAccepted(t.Context(), "greet"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("what nobody accepted: %v", err)
	}
	if err := db.PutAccepted(t.Context(), ann, trust.Extension{}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("one without a name: %v", err)
	}
	for _, pin := range []string{"one", "two"} {
		if err := db.PutAccepted(t.Context(), ann, trust.Extension{Name: "greet", Pin: pin, Files: map[string]string{"run": pin}}); err != nil {
			t.Fatal(err)
		}
		if got, err := db.GetAccepted(t.Context(), "greet"); err != nil || got.Pin != pin || got.Files["run"] != pin || got.At.IsZero() {
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
