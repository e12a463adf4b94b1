package mcpfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nize/store"
)

var nizeEntry = Command{Path: "/usr/bin/nizectl", Args: []string{"--socket", "/run/nize.sock", "mcp"}}

// TestSetJSON: an entry is put where it belongs, and every other byte stays.
func TestSetJSON(t *testing.T) {
	const entry = `"nize": {
      "command": "/usr/bin/nizectl",
      "args": [
        "--socket",
        "/run/nize.sock",
        "mcp"
      ]
    }`
	for name, c := range map[string]struct{ text, want string }{
		"no file":           {"", "{\n  \"mcpServers\": {\n    " + entry + "\n  }\n}\n"},
		"an empty object":   {"{}", "{\n  \"mcpServers\": {\n    " + entry + "\n  }\n}"},
		"other settings":    {"{\n  \"theme\": \"x\" // mine\n}\n", "{\n  \"theme\": \"x\", // mine\n  \"mcpServers\": {\n    " + entry + "\n  }\n}\n"},
		"another entry":     {"{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"a\"}\n  },\n  \"z\": 1\n}", "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"a\"},\n    " + entry + "\n  },\n  \"z\": 1\n}"},
		"a trailing comma":  {"{\n  \"mcpServers\": {\n    \"a\": {}, // one, two\n    /* , */\n  },\n}", "{\n  \"mcpServers\": {\n    \"a\": {}, // one, two\n    /* , */\n    " + entry + "\n  },\n}"},
		"an older entry":    {"{\n  \"mcpServers\": {\n    \"nize\": {\"url\": \"http://x/mcp\"}, // old\n    \"b\": {}\n  }\n}", "{\n  \"mcpServers\": {\n    " + entry + ", // old\n    \"b\": {}\n  }\n}"},
		"quotes in keys":    {"{\n  \"a\\\"mcpServers\\\\\": 1,\n  \"mcpServers\": {}\n}", "{\n  \"a\\\"mcpServers\\\\\": 1,\n  \"mcpServers\": {\n    " + entry + "\n  }\n}"},
		"a comment last":    {"{\n  \"a\": 1\n} // end", "{\n  \"a\": 1,\n  \"mcpServers\": {\n    " + entry + "\n  }\n} // end"},
		"a byte order mark": {"\xef\xbb\xbf{\n  \"a\": 1\n}", "\xef\xbb\xbf{\n  \"a\": 1,\n  \"mcpServers\": {\n    " + entry + "\n  }\n}"},
		"tabs and CRLF":     {"{\r\n\t\"a\": 1\r\n}\r\n", "{\r\n\t\"a\": 1,\r\n\t\"mcpServers\": {\r\n\t\t\"nize\": {\r\n\t\t\t\"command\": \"/usr/bin/nizectl\",\r\n\t\t\t\"args\": [\r\n\t\t\t\t\"--socket\",\r\n\t\t\t\t\"/run/nize.sock\",\r\n\t\t\t\t\"mcp\"\r\n\t\t\t]\r\n\t\t}\r\n\t}\r\n}\r\n"},
	} {
		got, changed, err := SetJSON([]byte(c.text), "mcpServers", "nize", nizeEntry)
		if err != nil || !changed {
			t.Errorf("%s: changed %v, %v", name, changed, err)
			continue
		}
		if diff := cmp.Diff(c.want, string(got)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if again, changed, err := SetJSON(got, "mcpServers", "nize", nizeEntry); err != nil || changed || !bytes.Equal(again, got) {
			t.Errorf("%s: the second time it changes %v, %v", name, changed, err)
		}
	}
	for text, want := range map[string]error{`{"mcpServers": []}`: ErrForm, `{"mcpServers": 1}`: ErrForm, `[]`: store.ErrInvalid, `{"a": `: store.ErrInvalid, "{\"a\": \"\xff\"}": store.ErrInvalid} {
		if _, _, err := SetJSON([]byte(text), "mcpServers", "nize", nizeEntry); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", text, err, want)
		}
	}
}

// TestSetTOML: the same for a file of tables.
func TestSetTOML(t *testing.T) {
	const entry = "[mcp_servers.nize]\ncommand = \"/usr/bin/nizectl\"\nargs = [\"--socket\", \"/run/nize.sock\", \"mcp\"]\n"
	for name, c := range map[string]struct{ text, want string }{
		"no file":         {"", entry},
		"other settings":  {"model = \"x\" # mine\n\n[mcp_servers.a]\ncommand = \"a\"", "model = \"x\" # mine\n\n[mcp_servers.a]\ncommand = \"a\"\n\n" + entry},
		"an older entry":  {"[mcp_servers.nize] # old\nurl = \"http://x\"\n[mcp_servers.nize.env]\nA = \"1\"\n\n# of b\n[b]\nc = 1\n", entry + "\n# of b\n[b]\nc = 1\n"},
		"a quoted header": {"[mcp_servers.\"nize\"]\nurl = \"http://x\"\n", entry},
		"the last table":  {"a = 1\n[mcp_servers.nize]\nurl = 'x'\n\n# the end\n", "a = 1\n" + entry + "\n# the end\n"},
	} {
		got, changed, err := SetTOML([]byte(c.text), "mcp_servers", "nize", nizeEntry)
		if err != nil || !changed {
			t.Errorf("%s: changed %v, %v", name, changed, err)
			continue
		}
		if diff := cmp.Diff(c.want, string(got)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if again, changed, err := SetTOML(got, "mcp_servers", "nize", nizeEntry); err != nil || changed || !bytes.Equal(again, got) {
			t.Errorf("%s: the second time it changes %v, %v", name, changed, err)
		}
	}
	for text, want := range map[string]error{
		"[mcp_servers]\nnize = { command = \"x\" }\n":                           ErrForm,
		"mcp_servers = { a = { command = \"x\" } }\n":                           ErrForm,
		"a = '''\n[mcp_servers.nize]\n'''\n[mcp_servers]\nnize = { url = 1 }\n": ErrForm,
		"a = \n": store.ErrInvalid,
	} {
		if _, _, err := SetTOML([]byte(text), "mcp_servers", "nize", nizeEntry); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", text, err, want)
		}
	}
}

// FuzzSet: whatever a file holds, it is changed in this one entry or not at all.
func FuzzSet(f *testing.F) {
	for _, text := range []string{"", "{}", `{"mcpServers":{"nize":1,},/**/}`, `{"a":{"b":[1,"\""]}} // x`, "a = 1\n[mcp_servers.nize]\n", "[mcp_servers]\nnize.command='x'"} {
		f.Add([]byte(text))
	}
	f.Add([]byte(`{"mCpServers":{"":0}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if out, changed, err := SetJSON(text, "mcpServers", "nize", nizeEntry); err == nil {
			got, servers := map[string]json.RawMessage{}, map[string]json.RawMessage{} // names as they are written
			var entry Command
			plain, err := readObject(out)
			if err != nil || json.Unmarshal(plain, &got) != nil || changed && (json.Unmarshal(got["mcpServers"], &servers) != nil ||
				json.Unmarshal(servers["nize"], &entry) != nil || cmp.Diff(nizeEntry, entry) != "") {
				t.Errorf("%q became %q (%v)", text, out, err)
			}
		}
		if out, _, err := SetTOML(text, "mcp_servers", "nize", nizeEntry); err == nil && !strings.Contains(string(out), "mcp_servers") {
			t.Errorf("%q became %q", text, out)
		}
	})
}
