package mcpfile

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"nize/store"
)

// TestManyKeys: a file with far more keys than anybody writes is refused before a
// decoder compares each of them to all others, and so is an entry with that many fields.
func TestManyKeys(t *testing.T) {
	const n = maxKeys + 1
	repeat := func(before, each, after string) string {
		var b strings.Builder
		b.WriteString(before)
		for i := range n {
			fmt.Fprintf(&b, each, i)
		}
		return b.String() + after
	}
	const file, entry = "more than 20000 keys", "more than 200"
	for name, c := range map[string]struct{ text, want string }{
		"TOML, at the top":       {repeat("", "k%d=1\n", "[mcp_servers.a]\ncommand='x'\n"), file},
		"TOML, tables":           {repeat("[mcp_servers.a]\ncommand='x'\n", "[k%d]\n", ""), file},
		"TOML, lists of tables":  {repeat("[mcp_servers.a]\ncommand='x'\n", "[[k]]\n# %d\n", ""), file},
		"TOML, dotted":           {repeat("[mcp_servers.a]\ncommand='x'\n", "k.k%d=1\n", ""), file},
		"TOML, inline":           {repeat("[mcp_servers.a]\ncommand='x'\nenv={", "k%d='1',", "z='1'}\n"), file},
		"YAML":                   {repeat("mcpServers:\n  a:\n    command: x\n", "k%d: 1\n", ""), file},
		"YAML, in an entry":      {repeat("mcpServers:\n  a:\n    command: x\n", "    k%d: 1\n", ""), file},
		"YAML, keys alone":       {repeat("mcpServers:\n  a:\n    command: x\n", "? k%d\n", ""), file},
		"YAML, in braces":        {repeat("mcpServers: {a: {command: x, env: {z: y", ", k%d", "}}}\n"), file},
		"JSON, fields":           {repeat(`{"mcpServers":{"a":{"command":"x"`, `,"k%d":1`, "}}}"), entry},
		"JSON, variables":        {repeat(`{"mcpServers":{"a":{"command":"x","env":{"z":"y"`, `,"k%d":"1"`, "}}}}"), entry},
		"JSON, names of those":   {repeat(`{"mcp_servers":{"a":{"command":"x","env_vars":["z"`, `,"k%d"`, "]}}}"), entry},
		"JSON, names of headers": {repeat(`{"mcp_servers":{"a":{"url":"http://a/","env_http_headers":{"z":"Y"`, `,"k%d":"Y"`, "}}}}"), entry},
		"JSON, beside servers":   {repeat(`{"mcpServers":{"a":{"command":"x"}}`, `,"k%d":1`, "}"), ""},
		"TOML, as people write":  {strings.Repeat("# a = b\n", 1000) + "[mcp_servers.a]\ncommand='x'\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := Read([]byte(c.text), Options{Env: func(string) (string, bool) { return "1", true }})
			if err == nil && len(f.Entries) == 1 {
				err = f.Entries[0].Err
			}
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (!errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error %v, want %q in it", err, c.want)
			}
		})
	}
}

// TestOrderOfTOML: entries come in the order of the text, if one name is a part of
// another word, too.
func TestOrderOfTOML(t *testing.T) {
	f, err := Read([]byte("# mend serve a\n[mcp_servers.zebra]\ncommand='x'\n[mcp_servers.\"e b\"]\ncommand='x'\n[mcp_servers.ser]\ncommand='x'\n[mcp_servers.'b']\ncommand='x'\n"), Options{Env: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range f.Entries {
		got = append(got, e.Key)
	}
	if want := "zebra|e b|ser|b"; strings.Join(got, "|") != want {
		t.Errorf("got %s, want %s", strings.Join(got, "|"), want)
	}
}
