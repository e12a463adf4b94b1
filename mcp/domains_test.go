package mcp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"nize/mcp"
	"nize/store"
)

// ask calls a meta-tool and decodes its answer.
func ask[T any](h *fixture, by store.Caller, tool, args string) (out T, bytes int) {
	h.t.Helper()
	r, err := h.gateway.Meta(h.t.Context(), by, store.Scope{}, store.ToolCall{Name: tool, Args: args})
	if err != nil || r.Error != nil {
		h.t.Fatalf("%s: %v %+v", tool, err, r)
	}
	var got struct {
		Structured json.RawMessage `json:"structuredContent"`
	}
	if err := json.Unmarshal(r.Raw, &got); err != nil {
		h.t.Fatal(err)
	}
	if err := json.Unmarshal(got.Structured, &out); err != nil {
		h.t.Fatal(err)
	}
	return out, len(got.Structured)
}

type domainsPage struct {
	Domains []struct {
		ID, Description string
		ToolCount       int `json:"tool_count"`
	}
	DomainCount int    `json:"domain_count"`
	ToolCount   int    `json:"tool_count"`
	NextCursor  string `json:"next_cursor"`
}

// With 2,000 tools, a model reads pages of manageable size that together contain every
// domain exactly once.
func TestManyDomains(t *testing.T) {
	h := newFixture(t, nil)
	ctx := t.Context()
	const servers, each, big = 240, 8, 120
	put := func(name string, n int) {
		s := store.Server{Name: name, Transport: store.Stdio, Command: "/bin/box", Visibility: []string{"all"}}
		if len(name)%2 == 0 {
			s.Description = strings.Repeat("What "+name+" does is told at length. ", 20)
		}
		if _, err := h.db.PutServer(ctx, h.root, s, 0); err != nil {
			t.Fatal(err)
		}
		var tools []store.Tool
		for i := range n {
			tools = append(tools, store.Tool{Server: name, Name: fmt.Sprintf("tool_%03d", i), Description: strings.Repeat("does a thing with much to be said about it ", 30), InputSchema: json.RawMessage(`{"type":"object"}`), State: store.ToolAccepted, Pin: "p", Accepted: "p"})
		}
		if _, err := h.db.PutTools(ctx, h.root, name, tools); err != nil {
			t.Fatal(err)
		}
		if err := h.index.Replace(ctx, s.Normal(), tools); err != nil {
			t.Fatal(err)
		}
		if err := h.gateway.Catalog.Refresh(ctx, name); err != nil {
			t.Fatal(err)
		}
	}
	for i := range servers {
		put(fmt.Sprintf("s%d", i), each)
	}
	put("big", big)

	seen, cursor, tools := map[string]bool{}, "", 0
	for range 10 {
		page, bytes := ask[domainsPage](h, h.member, mcp.Domains, fmt.Sprintf(`{"cursor":%q}`, cursor))
		if page.DomainCount < servers+1 || page.ToolCount < servers*each+big || bytes > 16<<10 {
			t.Errorf("%d domains, %d tools in all; %d bytes", page.DomainCount, page.ToolCount, bytes)
		}
		for _, d := range page.Domains {
			if seen[d.ID] || d.Description == "" || len(d.Description) > 100 || strings.Contains(d.Description, "\n") {
				t.Errorf("domain %+v, seen %v", d, seen[d.ID])
			}
			seen[d.ID] = true
			tools += d.ToolCount
		}
		if cursor = page.NextCursor; cursor == "" {
			if len(seen) != page.DomainCount || tools != page.ToolCount {
				t.Errorf("the pages hold %d domains of %d, %d tools of %d", len(seen), page.DomainCount, tools, page.ToolCount)
			}
			break
		}
	}
	if cursor != "" {
		t.Error("the pages have no end")
	}

	type toolsPage struct {
		Tools []struct {
			ToolID string `json:"tool_id"`
		}
		NextCursor string `json:"next_cursor"`
	}
	seen = map[string]bool{}
	for range 10 {
		page, bytes := ask[toolsPage](h, h.member, mcp.Browse, fmt.Sprintf(`{"domain_id":"big","cursor":%q}`, cursor))
		if bytes > 12<<10 {
			t.Errorf("a page of %d tools has %d bytes", len(page.Tools), bytes)
		}
		for _, tl := range page.Tools {
			seen[tl.ToolID] = true
		}
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	if len(seen) != big {
		t.Errorf("%d of %d tools on the pages", len(seen), big)
	}
}

// A restricted view still returns the requested number of hits, even if many others rank
// before them. A query without matches gets an explanation.
func TestNarrowViewGetsItsHits(t *testing.T) {
	h := newFixture(t, nil)
	ctx := t.Context()
	put := func(name, visible string, n int) {
		s := store.Server{Name: name, Transport: store.Stdio, Command: "/bin/box"}
		if visible != "" {
			s.Visibility = []string{visible}
		}
		if _, err := h.db.PutServer(ctx, h.root, s, 0); err != nil {
			t.Fatal(err)
		}
		var tools []store.Tool
		for i := range n {
			tools = append(tools, store.Tool{Server: name, Name: fmt.Sprintf("send_invoice_%d", i), Description: "Send an invoice.", InputSchema: json.RawMessage(`{"type":"object"}`), State: store.ToolAccepted, Pin: "p", Accepted: "p"})
		}
		if name == "shared" { // ranks behind all others
			for i := range tools {
				tools[i].Name, tools[i].Description = fmt.Sprintf("post_%d", i), "Posts many kinds of documents, among them an invoice, to whoever should have them, and keeps a copy."
			}
		}
		if _, err := h.db.PutTools(ctx, h.root, name, tools); err != nil {
			t.Fatal(err)
		}
		if err := h.index.Replace(ctx, s.Normal(), tools); err != nil {
			t.Fatal(err)
		}
		if err := h.gateway.Catalog.Refresh(ctx, name); err != nil {
			t.Fatal(err)
		}
	}
	put("hidden", "", 900)
	put("shared", "user:"+h.member.User, 7)
	type answer struct {
		Tools []struct {
			ToolID string `json:"tool_id"`
		}
		Note string
	}
	got, _ := ask[answer](h, h.member, mcp.Discover, `{"query":"send an invoice","top_k":7,"min_similarity":0}`)
	if len(got.Tools) != 7 {
		t.Errorf("%d hits", len(got.Tools))
	}
	for _, tl := range got.Tools {
		if !strings.HasPrefix(tl.ToolID, "shared:") {
			t.Errorf("sees %s", tl.ToolID)
		}
	}
	got, _ = ask[answer](h, h.member, mcp.Discover, `{"query":"xylophone lessons for quokkas"}`)
	if len(got.Tools) > 0 || !strings.Contains(got.Note, "No tool fits") {
		t.Errorf("%+v", got)
	}
	got, _ = ask[answer](h, h.member, mcp.Discover, `{"query":"please an invoice of xylophone lessons tomorrow morning between quokkas, wombats, numbats, bandicoots and potoroos living near billabongs"}`)
	if !strings.Contains(got.Note, "No tool fits") {
		t.Errorf("%+v", got)
	}
}
