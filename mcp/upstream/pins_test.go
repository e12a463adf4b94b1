package upstream

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/mcp/feature"
	"nize/mcp/mcptest"
	"nize/mcp/scan"
	"nize/store"
)

// TestListedMembersArePinnedOrDropped: a member of a listed definition that
// changes either changes the pin or is not stored, so that nobody gets it.
func TestListedMembersArePinnedOrDropped(t *testing.T) {
	const marker = "marker-7f3a"
	base := map[string]string{
		"name": `"one"`, "uri": `"memo:one"`, "uriTemplate": `"memo:{one}"`, "inputSchema": `{"type":"object"}`,
	}
	list := func(kind, member, value string) (store.Tool, bool) {
		t.Helper()
		doc := map[string]json.RawMessage{}
		for k, v := range base {
			doc[k] = json.RawMessage(v)
		}
		if member != "" {
			doc[member] = json.RawMessage(value)
		}
		raw, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		s := &session{gate: scan.Gate{}, cfg: remote("http://127.0.0.1/mcp")}
		c := &catalog{byName: map[string]offer{}}
		if kind == "tool" {
			s.addTool(c, raw)
		} else {
			s.addFeature(c, kind, raw)
		}
		if len(c.list) != 1 {
			return store.Tool{}, false
		}
		return c.list[0].tool, true
	}
	text, object := `"`+marker+`"`, `{"`+marker+`":"`+marker+`"}`
	icons := `[{"src":"https://icons.example/` + marker + `.png","mimeType":"image/png","sizes":["48x48"],"theme":"dark"}]`
	pinned := map[string]string{"title": text, "description": text, "icons": icons, "_meta": object}
	tool := maps.Clone(pinned)
	tool["inputSchema"], tool["outputSchema"], tool["annotations"] = `{"type":"object","title":`+text+`}`, `{"type":"object","title":`+text+`}`, `{"title":`+text+`}`
	prompt := maps.Clone(pinned)
	prompt["arguments"] = `[{"name":` + text + `}]`
	resource := maps.Clone(pinned)
	resource["mimeType"], resource["annotations"], resource["x-unknown"] = text, `{"audience":[`+text+`]}`, text
	prompt["x-unknown"] = text
	for kind, members := range map[string]struct {
		pinned  map[string]string
		dropped map[string]string
	}{
		"tool":           {tool, map[string]string{"execution": `{"taskSupport":` + text + `}`, "x-unknown": text, "arguments": text}},
		feature.Prompt:   {prompt, nil},
		feature.Resource: {resource, map[string]string{"size": text}},
		feature.Template: {resource, nil},
	} {
		plain, ok := list(kind, "", "")
		if !ok {
			t.Fatalf("%s: not listed", kind)
		}
		for _, member := range slices.Sorted(maps.Keys(members.pinned)) {
			if got, ok := list(kind, member, members.pinned[member]); !ok || got.Pin == plain.Pin {
				t.Errorf("%s: another %s keeps the pin (listed: %t)", kind, member, ok)
			}
		}
		for _, member := range slices.Sorted(maps.Keys(members.dropped)) {
			got, ok := list(kind, member, members.dropped[member])
			stored, err := json.Marshal(got)
			if err != nil || !ok {
				t.Fatal(kind, member, ok, err)
			}
			if got.Pin != plain.Pin || strings.Contains(string(stored), marker) {
				t.Errorf("%s: %s is neither pinned nor dropped: %s", kind, member, stored)
			}
		}
	}
}

// TestIconsArePinned: a tool that comes with another icon is held like any changed
// one, and the icon that was accepted is kept for the comparison.
func TestIconsArePinned(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	drawn := echo
	drawn.Icons = []sdk.Icon{{Source: "https://icons.example/one.png"}}
	m := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{drawn}})
	b.register(remote(m.HTTP()))
	b.good("far:echo", `{}`, `{}`)
	other := drawn
	other.Icons = []sdk.Icon{{Source: "https://icons.example/bank.png"}}
	for range 2 { // it stays held, however often it is listed
		m.SetTool(other)
		b.sync(store.System, "far")
		got := b.tool("far:echo")
		if got.State != store.ToolQuarantined || got.Was == nil || !strings.Contains(string(got.Was.Icons), "one.png") {
			t.Fatalf("%s, accepted before: %+v", got.State, got.Was)
		}
		_, err := b.run(t.Context(), "far:echo", `{}`)
		fails(t, err, store.CodeRefused)
	}
	m.SetTool(drawn)
	b.sync(store.System, "far")
	b.good("far:echo", `{}`, `{}`)
}

// TestUpgradeKeepsAcceptedPins: what a version accepted whose pins left icons out
// stays accepted if its icons stayed, and nothing else does.
func TestUpgradeKeepsAcceptedPins(t *testing.T) {
	t.Parallel()
	const one, two = "https://icons.example/one.png", "https://icons.example/two.png"
	tool := func(src string) mcptest.Tool {
		tool := echo
		if src != "" {
			tool.Icons = []sdk.Icon{{Source: src}}
		}
		return tool
	}
	for name, c := range map[string]struct {
		before, after string // the icon
		spoil         func(*store.Tool)
		want          store.ToolState
		rewritten     bool
	}{
		"no icons":           {want: store.ToolAccepted},
		"the same icon":      {before: one, after: one, want: store.ToolAccepted, rewritten: true},
		"another icon":       {before: one, after: two, want: store.ToolQuarantined, rewritten: true},
		"a new icon":         {after: one, want: store.ToolQuarantined, rewritten: true},
		"held before":        {before: one, after: one, spoil: func(t *store.Tool) { t.State = store.ToolQuarantined }, want: store.ToolQuarantined, rewritten: true},
		"another definition": {before: one, after: one, spoil: func(t *store.Tool) { t.Pin, t.Accepted = "x", "x" }, want: store.ToolQuarantined, rewritten: true},
	} {
		t.Run(name, func(t *testing.T) {
			old := newBench(t, nil)
			m := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{tool(c.before)}})
			url := m.HTTP()
			old.register(remote(url))
			// What the earlier version stored: the icons, beside a pin without them.
			stored := old.tool("far:echo")
			bare := stored
			bare.Icons = nil
			stored.Pin, _ = strictGate{}.Pin(remote(url), "", bare)
			stored.Accepted = stored.Pin
			if c.spoil != nil {
				c.spoil(&stored)
			}
			m.SetTool(tool(c.after))
			b := newBench(t, nil)
			b.db.servers, b.db.tools = old.db.servers, map[string][]store.Tool{"far": {stored}}
			for range 2 {
				b.sync(store.System, "far")
				if got := b.tool("far:echo"); got.State != c.want {
					t.Errorf("%s %v, want %s", got.State, got.Findings, c.want)
				}
			}
			if puts := b.db.puts; puts > 1 || (puts == 1) != c.rewritten {
				t.Errorf("written %d times, want it written once: %t", puts, c.rewritten)
			}
		})
	}
}
