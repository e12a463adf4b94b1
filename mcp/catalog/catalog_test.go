package catalog_test

import (
	"errors"
	"strings"
	"testing"

	"nize/mcp/catalog"
	"nize/store"
	"nize/store/database/databasetest"
)

// What is counted follows each change that the catalog was told of.
func TestCountTools(t *testing.T) {
	db, ctx := databasetest.Open(t), t.Context()
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

// Definitions come server by server, by name, whether they are read meanwhile or
// were read before.
func TestEachDefinitions(t *testing.T) {
	db, ctx := databasetest.Open(t), t.Context()
	by := store.Caller{User: "ann"}
	for _, name := range []string{"box", "empty", "tin"} {
		if _, err := db.PutServer(ctx, by, store.Server{Name: name, Transport: store.Stdio, Command: "/bin/" + name}, 0); err != nil {
			t.Fatal(err)
		}
		if name == "empty" {
			continue
		}
		tools := []store.Tool{{Server: name, Name: "b"}, {Server: name, Name: "prompt:c"}, {Server: name, Name: "a"}}
		if _, err := db.PutTools(ctx, by, name, tools); err != nil {
			t.Fatal(err)
		}
	}
	c := catalog.New(db)
	for range 2 {
		var got []string
		err := c.EachDefinitions(ctx, func(s store.Server, tools []store.Tool) error {
			got = append(got, s.Name)
			for _, tool := range tools {
				got = append(got, tool.ID())
			}
			return nil
		})
		if want := "box box:a box:b empty tin tin:a tin:b"; err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q, %v; want %q", strings.Join(got, " "), err, want)
		}
	}
	refused := errors.New("refused")
	c = catalog.New(db)
	if err := c.EachDefinitions(ctx, func(store.Server, []store.Tool) error { return refused }); !errors.Is(err, refused) {
		t.Errorf("%v of a server that the index did not take", err)
	}
	if tools, err := c.Definitions(ctx, "tin"); err != nil || len(tools) != 2 {
		t.Errorf("%d tools, %v after a refusal", len(tools), err)
	}
}
