package record_test

import (
	"errors"
	"testing"

	"nize/store"
	"nize/store/database/databasetest"
	"nize/store/display"
)

func TestRenderers(t *testing.T) {
	db, ctx := databasetest.Open(t), t.Context()
	ann := store.Caller{User: "ann", Name: "ann", Role: store.Admin}
	if err := db.PutRenderer(ctx, ann, display.Renderer{}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("one of no tool: %v", err)
	}
	for _, text := range []string{"one", "two"} {
		if err := db.PutRenderer(ctx, ann, display.Renderer{Tool: "box:look", Document: text}); err != nil {
			t.Fatal(err)
		}
	}
	if list, err := db.ListRenderers(ctx); err != nil || len(list) != 1 || list[0].Document != "two" || list[0].Updated.IsZero() {
		t.Errorf("got %+v, %v", list, err)
	}
	if err := db.DeleteRenderer(ctx, ann, "box:look"); err != nil {
		t.Error(err)
	}
	if err := db.DeleteRenderer(ctx, ann, "box:look"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("removed twice: %v", err)
	}
	if events, err := db.Events(ctx, store.EventQuery{Kind: "renderer"}); err != nil || len(events) != 3 {
		t.Errorf("%d events, %v", len(events), err)
	}
}
