package clients

import (
	"slices"
	"strings"
	"testing"

	"nize/daemon/mcpfile"
)

// TestImportReadsWhatConnectWrites: the file of every client that connect can write,
// new or with settings of its own, is one that servers import reads.
func TestImportReadsWhatConnectWrites(t *testing.T) {
	settings := map[string]string{
		"zed":         "// mine\n{\n  \"theme\": \"One Dark\", // dark\n  \"context_servers\": {\"box\": {\"source\": \"custom\", \"command\": \"x\", \"args\": []},},\n}\n",
		"codex":       "model = \"m\"\n\n[mcp_servers.box]\ncommand = \"x\"\n\n[projects.\"/srv\"]\ntrust_level = \"trusted\"\n",
		"vscode":      "{\"inputs\": [], \"servers\": {\"box\": {\"type\": \"stdio\", \"command\": \"x\"}}}",
		"goose":       "GOOSE_MODEL: m # mine\nextensions:\n  box:\n    type: stdio\n    name: box\n    cmd: x\n",
		"claude-code": "{\"numStartups\": 5, \"mcpServers\": {\"box\": {\"command\": \"x\"}}, \"projects\": {\"/srv\": {\"mcpServers\": {}}}}",
	}
	for _, c := range clients {
		own := settings[c.name]
		if own == "" {
			own = "{\"theme\": \"dark\", \"" + c.key + "\": {\"box\": {\"command\": \"x\"}}}"
		}
		for what, before := range map[string]string{"a new file": "", "with settings": own} {
			entry := c.entry("/usr/local/bin/nizectl", "/run/nize/nized.sock")
			text, changed, err := c.form([]byte(before), c.key, "nize-tools", c.written("nize-tools", entry))
			if err != nil || !changed {
				t.Errorf("%s, %s: changed %v, %v", c.name, what, changed, err)
				continue
			}
			f, err := mcpfile.Read(text, mcpfile.Options{Env: func(string) (string, bool) { return "", false }})
			if err != nil {
				t.Errorf("%s, %s: %v\n%s", c.name, what, err, text)
				continue
			}
			i := slices.IndexFunc(f.Entries, func(e mcpfile.Entry) bool { return e.Name == "nize-tools" })
			if i < 0 || (len(f.Entries) == 2) != (before != "") {
				t.Errorf("%s, %s: %+v", c.name, what, f.Entries)
				continue
			}
			for _, e := range f.Entries {
				limit := func(note string) bool {
					return strings.HasPrefix(note, "timeout ") || strings.HasPrefix(note, "tool_timeout_sec ")
				} // it is the client's
				if e.Err != nil || len(slices.DeleteFunc(e.Notes, limit)) > 0 {
					t.Errorf("%s, %s, %s: %v, notes %q", c.name, what, e.Name, e.Err, e.Notes)
				}
			}
			if s := f.Entries[i].Server; s.Command != entry.Path || !slices.Equal(s.Args, entry.Args) {
				t.Errorf("%s, %s: %s %q", c.name, what, s.Command, s.Args)
			}
		}
	}
}

// TestTimeLimits: a client that gives up a call by itself is told to wait for a
// person, in its own unit.
func TestTimeLimits(t *testing.T) {
	for name, want := range map[string]string{
		"codex": "tool_timeout_sec = 660\n", "gemini-cli": `"timeout": 660000`, "cline": `"timeout": 660`, "opencode": `"timeout": 660000`,
		"copilot-cli": `"timeout": 660000`, "goose": "    timeout: 660\n", "claude-desktop": "", "cursor": "", "vscode": "",
	} {
		i := slices.IndexFunc(clients, func(c client) bool { return c.name == name })
		c := clients[i]
		text, _, err := c.form(nil, c.key, "nize", c.written("nize", c.entry("/bin/nizectl", "/s")))
		if err != nil || !strings.Contains(string(text), want) || want == "" && strings.Contains(string(text), "timeout") {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
}

// TestPlaces: where each client keeps its servers, on Linux and on a Mac.
func TestPlaces(t *testing.T) {
	for name, want := range map[string][2]string{
		"copilot-cli": {"/h/.copilot/mcp-config.json", "/h/.copilot/mcp-config.json"},
		"opencode":    {"/h/.config/opencode/opencode.json", "/h/.config/opencode/opencode.json"},
		"cline": {"/h/.config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
			"/h/Library/Application Support/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"},
		"goose":     {"/h/.config/goose/config.yaml", "/h/.config/goose/config.yaml"},
		"jetbrains": {"/h/.junie/mcp/mcp.json", "/h/.junie/mcp/mcp.json"},
		"lm-studio": {"/h/.lmstudio/mcp.json", "/h/.lmstudio/mcp.json"},
	} {
		i := slices.IndexFunc(clients, func(c client) bool { return c.name == name })
		for n, mac := range []bool{false, true} {
			if got := clients[i].file(where{mac: mac, home: "/h", env: func(string) string { return "" }}); got != want[n] {
				t.Errorf("%s, on a Mac %v: %s", name, mac, got)
			}
		}
	}
}
