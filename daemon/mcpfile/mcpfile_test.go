package mcpfile

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nize/store"
)

var update = flag.Bool("update", false, "write the golden files again")

// environment is what the daemon of these tests has.
var environment = map[string]string{
	"HOME": "/home/nize", "TEAM": "blue", "API_KEY": "key-of-the-api", "GITHUB_TOKEN": "ghp_0123456789abcdefghij", "CONTEXT7_API_KEY": "ctx-value", "NIZE_MASTER_KEY": "never",
}

var options = Options{Env: func(name string) (string, bool) { v, ok := environment[name]; return v, ok }}

// show writes a file as it was understood.
func show(f File) string {
	var b strings.Builder
	for _, in := range f.Inputs {
		fmt.Fprintf(&b, "input %s: %s (secret: %v)\n", in.ID, in.Description, in.Secret)
	}
	for _, e := range f.Entries {
		fmt.Fprintf(&b, "%s = %s", e.Key, e.Name)
		if e.Project != "" {
			fmt.Fprintf(&b, " of %s", e.Project)
		}
		b.WriteByte('\n')
		if e.Err != nil {
			fmt.Fprintf(&b, "  invalid: %s\n", Reason(e.Err))
			continue
		}
		s := e.Server
		fmt.Fprintf(&b, "  %s %s\n", s.Transport, s.Where())
		for _, part := range []struct {
			word   string
			values map[string]store.Value
		}{{"env", s.Env}, {"header", s.Headers}} {
			for _, k := range slices.Sorted(maps.Keys(part.values)) {
				v := part.values[k]
				fmt.Fprintf(&b, "  %s %s = %q", part.word, k, v.Text)
				if v.SecretKey != "" {
					fmt.Fprintf(&b, " credential %s, of %d bytes", v.SecretKey, len(e.Secrets[v.SecretKey].Reveal()))
				}
				b.WriteByte('\n')
			}
		}
		if s.Disabled {
			b.WriteString("  disabled\n")
		}
		for _, n := range e.Notes {
			fmt.Fprintf(&b, "  note: %s\n", n)
		}
		if e.Login != "" {
			fmt.Fprintf(&b, "  login: %s\n", e.Login)
		}
	}
	return b.String()
}

func TestFilesOfEachClient(t *testing.T) {
	files, err := filepath.Glob("testdata/*.*")
	if err != nil || len(files) < 6 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, name := range files {
		if filepath.Ext(name) == ".golden" {
			continue
		}
		t.Run(filepath.Base(name), func(t *testing.T) {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			f, err := Read(data, options)
			if err != nil {
				t.Fatal(err)
			}
			got, golden := show(f), strings.TrimSuffix(name, filepath.Ext(name))+".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(got, string(want)); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
			for _, secret := range []string{"BSAexample", "hunter2", "abcdef0123456789", "ghp_", "key-of-the-api", "ctx-value", "tvly-dev", "never", "123456"} {
				if strings.Contains(got, secret) {
					t.Errorf("%s is in clear", secret)
				}
			}
		})
	}
}

func TestFilesThatAreNone(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "it is empty",
		" \n":                              "it is empty",
		"[]":                               "a JSON object",
		"{}":                               `neither "mcpServers" nor "servers"`,
		"{\n\"mcpServers\": {\n  x\n}}":    "line 3",
		`{"mcpServers": []}`:               "mcpServers must be an object",
		`{"servers": {}, "inputs": {}}`:    "inputs must be a list",
		`{"mcpServers": {}} trailing`:      "line 1",
		"{\"mcpServers\": {\"\xff\": {}}}": "UTF-8",
		strings.Repeat(" ", MaxSize+1):     "over 4 MiB",
		`{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`: "deeper",
		"/* never closed": "line 1",
		"# nothing":       `neither "mcpServers" nor "servers"`,
		"a text":          "neither JSON, nor TOML, nor YAML",
		"- a\n- b\n":      "neither JSON, nor TOML, nor YAML",
		"[mcp_servers.a]\ncommand = \"x\"\nargs = [\n": "looks like TOML, and line",
		"model = 'm'\n[mcp_servers.a]\ncommand = x\n":  "looks like TOML, and line 3",
		"mcpServers:\n  a:\n    command: \"x\n":        "looks like YAML, and line",
		"mcpServers:\n\ta: 1\n":                        "looks like YAML, and line 2",
		"a: 1\nb: [x]\n":                               `neither "mcpServers" nor "servers"`,
		"a = 1\n[b]\nurl = 'https://x.example'\n":      `neither "mcpServers" nor "servers"`,
		"a: &a [*a]\nmcpServers: *a\n":                 "nested deeper",
		"a: " + strings.Repeat("[", 2000):              "nested deeper",
		"a = " + strings.Repeat("[", 2000):             "nested deeper",
		"a: &a " + strings.Repeat("x", 1<<20) + "\nb: [" + strings.Repeat("*a,", 40) + "]": "aliases make too much",
		"a: &a {x: 1}\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f,*f]": "aliases make too much",
		`{"command": "npx", "args": ["-y", "x"]}`: "one server without a name",
		`{"mcpServers": "./.mcp.json"}`:           `names another file, "./.mcp.json"`,
		`{"mcpServers": [{"command": "x"}]}`:      "mcpServers[0] must be a server with a name",
		`{"name": "x", "version": "1", "main": "x.js", "repository": {"type": "git", "url": "https://x.example"}}`: `neither "mcpServers" nor "servers"`, // package.json
		`{"a": {"b": {"command": "x"}}, "c": {"url": "https://x.example"}}`:                                        `neither "mcpServers" nor "servers"`,
		`{"extensions": {"a": {"theme": "dark"}}, "mcp": {"enabled": true}}`:                                       `neither "mcpServers" nor "servers"`,
	} {
		_, err := Read([]byte(text), options)
		if !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
	var many strings.Builder
	for i := range MaxEntries + 1 {
		fmt.Fprintf(&many, "%q:{\"command\":\"x\"},", fmt.Sprint("s", i))
	}
	if _, err := Read([]byte(`{"mcpServers":{`+many.String()+`}}`), options); err == nil || !strings.Contains(err.Error(), "more than 500") {
		t.Errorf("too many: %v", err)
	}
	if f, err := Read([]byte(`{"mcpServers":{}}`), options); err != nil || len(f.Entries) != 0 {
		t.Errorf("none: %+v, %v", f, err)
	}
}

func TestSlug(t *testing.T) {
	for key, want := range map[string]string{
		"github": "github", "My Server_2": "my-server-2", "@scope/pkg": "scope-pkg", "--a--": "a", "日本": "", "Café": "caf", strings.Repeat("a", 80): strings.Repeat("a", 63),
	} {
		if got := slug(key); got != want {
			t.Errorf("slug(%q) = %q, want %q", key, got, want)
		}
	}
}

func TestCommentsLeaveTextsAlone(t *testing.T) {
	in := "{\"a\": \"// no, /* no */ ,}\", // yes\n\"b\": [1, /* x\n */ 2,], }"
	got := string(stripComments([]byte(in)))
	want := "{\"a\": \"// no, /* no */ ,}\",       \n\"b\": [1,     \n    2 ]  }"
	if got != want || len(got) != len(in) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func FuzzRead(f *testing.F) {
	files, err := filepath.Glob("testdata/*.[jty]*")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"servers":{"a":{"command":"${","args":["${input:x","${a:-${b}}","}"]}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Read(data, options)
		if err != nil {
			if !errors.Is(err, store.ErrInvalid) {
				t.Errorf("%v is not store.ErrInvalid", err)
			}
			return
		}
		names := map[string]bool{}
		for _, e := range file.Entries {
			if e.Err != nil {
				if !errors.Is(e.Err, store.ErrInvalid) {
					t.Errorf("%q: %v is not store.ErrInvalid", e.Key, e.Err)
				}
				continue
			}
			if err := store.CheckSlug(e.Name); err != nil || names[e.Name] {
				t.Errorf("%q is called %q: %v", e.Key, e.Name, err)
			}
			names[e.Name] = true
			text := show(File{Entries: []Entry{e}})
			for _, v := range []string{environment["GITHUB_TOKEN"], environment["NIZE_MASTER_KEY"]} {
				if strings.Contains(text, v) && !strings.Contains(string(data), v) {
					t.Errorf("%q has %s in clear:\n%s", e.Key, v, text)
				}
			}
			for name, v := range e.Secrets {
				if e.Server.Env[name].SecretKey != name && e.Server.Headers[name].SecretKey != name || v.IsZero() {
					t.Errorf("%q: the secret %q is nobody's", e.Key, name)
				}
			}
		}
	})
}
