package clients

import (
	"slices"
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
		"claude-code": "{\"numStartups\": 5, \"mcpServers\": {\"box\": {\"command\": \"x\"}}, \"projects\": {\"/srv\": {\"mcpServers\": {}}}}",
	}
	for _, c := range clients {
		own := settings[c.name]
		if own == "" {
			own = "{\"theme\": \"dark\", \"" + c.key + "\": {\"box\": {\"command\": \"x\"}}}"
		}
		for what, before := range map[string]string{"a new file": "", "with settings": own} {
			entry := c.entry("/usr/local/bin/nizectl", "/run/nize/nized.sock")
			text, changed, err := c.form([]byte(before), c.key, "nize-tools", entry)
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
				if e.Err != nil || len(e.Notes) > 0 {
					t.Errorf("%s, %s, %s: %v, notes %q", c.name, what, e.Name, e.Err, e.Notes)
				}
			}
			if s := f.Entries[i].Server; s.Command != entry.Path || !slices.Equal(s.Args, entry.Args) {
				t.Errorf("%s, %s: %s %q", c.name, what, s.Command, s.Args)
			}
		}
	}
}
