package catalog_test

import (
	"testing"

	"nize/mcp/catalog"
	"nize/store"
	"nize/store/bolt/bolttest"
)

// What is counted follows each change that the catalog was told of.
func TestCountTools(t *testing.T) {
	db, ctx := bolttest.Open(t), t.Context()
	by := store.Caller{User: "ann"}
	if _, err := db.PutServer(ctx, by, store.Server{Name: "box", Transport: store.Stdio, Command: "/bin/box"}, 0); err != nil {
		t.Fatal(err)
	}
	c := catalog.New(db)
	for _, held := range []int{0, 2, 1} {
		tools := []store.Tool{
			{Server: "box", Name: "a", State: store.ToolAccepted}, {Server: "box", Name: "b", State: store.ToolAccepted}, {Server: "box", Name: "c", State: store.ToolAccepted},
		}
		for i := range held {
			tools[i].State = store.ToolQuarantined
		}
		if _, err := db.PutTools(ctx, by, "box", tools); err != nil {
			t.Fatal(err)
		}
		if err := c.Refresh(ctx, "box"); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if counts, err := c.CountTools(ctx); err != nil || counts["box"] != (catalog.ToolCounts{Tools: 3, Held: held}) {
				t.Errorf("%+v, %v; want %d held", counts, err, held)
			}
		}
	}
	if err := db.DeleteServer(ctx, by, "box"); err != nil {
		t.Fatal(err)
	}
	if err := c.Refresh(ctx, "box"); err != nil {
		t.Fatal(err)
	}
	if counts, err := c.CountTools(ctx); err != nil || len(counts) != 0 {
		t.Errorf("%+v, %v of a server that is gone", counts, err)
	}
}
