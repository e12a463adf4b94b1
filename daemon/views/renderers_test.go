package views

import (
	"errors"
	"testing"

	"nize/store"
	"nize/store/database/databasetest"
	"nize/store/display"
)

func TestRenderers(t *testing.T) {
	db, ctx := databasetest.Open(t, Buckets...), t.Context()
	v := &Views{Options: Options{DB: db}}
	ann := store.Caller{User: "ann", Name: "ann", Role: store.Admin}
	if err := v.putRenderer(ctx, ann, display.Renderer{}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("one of no tool: %v", err)
	}
	for _, text := range []string{"one", "two"} {
		if err := v.putRenderer(ctx, ann, display.Renderer{Tool: "box:look", Document: text}); err != nil {
			t.Fatal(err)
		}
	}
	if list, err := v.listRenderers(ctx); err != nil || len(list) != 1 || list[0].Document != "two" || list[0].Updated.IsZero() {
		t.Errorf("got %+v, %v", list, err)
	}
	if err := renderers.Remove(ctx, db, ann, "box:look"); err != nil {
		t.Error(err)
	}
	if err := renderers.Remove(ctx, db, ann, "box:look"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("removed twice: %v", err)
	}
	if events, err := db.Events(ctx, store.EventQuery{Kind: "renderer"}); err != nil || len(events) != 3 {
		t.Errorf("%d events, %v", len(events), err)
	}
}
