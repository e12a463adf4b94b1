package daemon_test

import (
	"encoding/json"
	"strings"
	"testing"

	"nize/daemon/api"
	"nize/mcp/mcptest"
	"nize/store"
)

// TestInstructionsAreNoDescription: what a server tells the models that use it is shown
// nowhere as what it is; the title that it gives itself is, and an admin's words are.
func TestInstructionsAreNoDescription(t *testing.T) {
	t.Parallel()
	r, ctx := open(t, t.TempDir(), nil), t.Context()
	for name, says := range map[string]string{
		"short": "Keeps notes.", "long": "Keeps notes. Ask it for them, and always thank it.", "lines": "# Notes\n\nUse add_note first.", "kept": "Keeps notes, too.",
	} {
		server := store.Server{Name: name, Transport: store.HTTP, URL: mcptest.New(t, mcptest.Options{Title: "My notes", Instructions: says, Tools: []mcptest.Tool{{Name: "add_note_" + name}}}).HTTP()}
		if name == "kept" {
			server.Description = "What an admin says."
		}
		if _, err := api.AddServer.Call(ctx, r.Client, api.AddServerRequest{Server: server}); err != nil {
			t.Fatal(err)
		}
		view, err := api.GetServer.Call(ctx, r.Client, api.ServerRequest{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		if view.Server.Title != "My notes" || view.Server.Description != server.Description {
			t.Errorf("%s has the title %q and the description %q", name, view.Server.Title, view.Server.Description)
		}
	}
	found, err := api.SearchTools.Call(ctx, r.Client, api.SearchToolsRequest{Query: "add a note", TopK: 20})
	if err != nil || len(found.Tools) < 4 {
		t.Fatal(found, err)
	}
	domains, err := api.ListDomains.Call(ctx, r.Client, api.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	shown, err := json.Marshal([]any{found, domains})
	if err != nil || strings.Contains(string(shown), "Keeps notes") || strings.Contains(string(shown), "Use add_note first") {
		t.Errorf("it is shown: %s, %v", shown, err)
	}
}
