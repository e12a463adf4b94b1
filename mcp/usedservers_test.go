package mcp_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"nize/mcp"
	"nize/store"
)

// look finds tools in a conversation, best first.
func (h *fixture) look(by store.Caller, thread, query string) []string {
	h.t.Helper()
	args, _ := json.Marshal(map[string]string{"query": query})
	r, err := h.gateway.Meta(h.t.Context(), by, store.Scope{Thread: thread}, store.ToolCall{Name: mcp.Discover, Args: string(args)})
	if err != nil || r.Error != nil {
		h.t.Fatalf("searching for %q: %v %v", query, err, r)
	}
	var got struct {
		Structured struct {
			Tools []struct {
				ToolID string `json:"tool_id"`
			} `json:"tools"`
		} `json:"structuredContent"`
	}
	if err := json.Unmarshal(r.Raw, &got); err != nil {
		h.t.Fatal(err)
	}
	var ids []string
	for _, f := range got.Structured.Tools {
		ids = append(ids, f.ToolID)
	}
	return ids
}

// twin registers another server with the same tools under another name.
func (h *fixture) twin(name string) {
	h.t.Helper()
	ctx := h.t.Context()
	s := store.Server{Name: name, Transport: store.Stdio, Command: "/bin/box", TrustAnnotations: true, Visibility: []string{"all"}}
	if _, err := h.db.PutServer(ctx, h.root, s, 0); err != nil {
		h.t.Fatal(err)
	}
	tools, err := h.db.ListTools(ctx, "box")
	if err != nil {
		h.t.Fatal(err)
	}
	for i := range tools {
		tools[i].Server = name
	}
	if _, err := h.db.PutTools(ctx, h.root, name, tools); err != nil {
		h.t.Fatal(err)
	}
	if err := h.index.Replace(ctx, s.Normal(), tools); err != nil {
		h.t.Fatal(err)
	}
	if err := h.gateway.Catalog.Refresh(ctx, name); err != nil {
		h.t.Fatal(err)
	}
}

// Of two similar tools, the one whose server the conversation has used ranks first. Other
// conversations are not affected.
func TestUsedServersComeFirst(t *testing.T) {
	h := newFixture(t, nil)
	h.config.set("index.learn", "false") // which would affect other conversations, too
	h.twin("abox")
	run := func(tool string) {
		if _, err := h.gateway.Call(t.Context(), h.root, store.Request{ID: store.NewID(time.Now()), Tool: tool, Args: json.RawMessage(`{"what":"x"}`), Thread: "t1"}); err != nil {
			t.Fatal(err)
		}
		if err := h.db.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	first := func(thread, want string) {
		t.Helper()
		if got := h.look(h.root, thread, "look at something"); len(got) < 2 || !strings.HasPrefix(got[0], want) {
			t.Errorf("in %q the tools are %v, want one of %s first", thread, got, want)
		}
	}
	first("t1", "abox:")
	h.runner.fail = &store.CallError{Code: store.CodeTimeout, Message: store.Plain("too slow")}
	run("box:look")
	first("t1", "abox:") // a failed call may have used the wrong tool
	h.runner.fail = nil
	run("box:look")
	first("t1", "box:")
	first("t2", "abox:")
	first("", "abox:")
}
