package mcpfile

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"nize/store"
)

var gooseFields = []Field{{"enabled", true}, {"type", "stdio"}, {"cmd", "/usr/bin/nizectl"}, {"args", []string{"--socket", "/run/nize.sock", "mcp"}}, {"timeout", 660}}

// TestSetYAML: an entry is put where it belongs, and every other line stays.
func TestSetYAML(t *testing.T) {
	const entry = "  nize:\n    enabled: true\n    type: \"stdio\"\n    cmd: \"/usr/bin/nizectl\"\n    args: [\"--socket\", \"/run/nize.sock\", \"mcp\"]\n    timeout: 660\n"
	for name, c := range map[string]struct{ text, want string }{
		"no file":         {"", "extensions:\n" + entry},
		"comments alone":  {"# mine\n", "# mine\nextensions:\n" + entry},
		"other settings":  {"GOOSE_MODEL: x # mine", "GOOSE_MODEL: x # mine\nextensions:\n" + entry},
		"no extension":    {"extensions:\na: 1\n", "extensions:\n" + entry + "a: 1\n"},
		"another":         {"extensions:\n  dev:\n    type: builtin # kept\n\n# the rest\nz: 1\n", "extensions:\n  dev:\n    type: builtin # kept\n" + entry + "\n# the rest\nz: 1\n"},
		"an older one":    {"extensions:\n  nize:\n    cmd: old\n    envs:\n      A: b\n  # of dev\n  dev:\n    type: builtin\n", "extensions:\n" + entry + "  # of dev\n  dev:\n    type: builtin\n"},
		"the last of all": {"extensions:\n  dev: {type: builtin}\n  nize:\n    cmd: old\n", "extensions:\n  dev: {type: builtin}\n" + entry},
	} {
		got, changed, err := SetYAML([]byte(c.text), "extensions", "nize", gooseFields)
		if err != nil || !changed {
			t.Errorf("%s: changed %v, %v", name, changed, err)
			continue
		}
		if diff := cmp.Diff(c.want, string(got)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if again, changed, err := SetYAML(got, "extensions", "nize", gooseFields); err != nil || changed || !bytes.Equal(again, got) {
			t.Errorf("%s: the second time it changes %v, %v", name, changed, err)
		}
	}
	for text, want := range map[string]error{
		"extensions: {}\n": ErrForm, "extensions: {dev: {type: builtin}}\n": ErrForm, "extensions: 1\n": ErrForm, "{a: 1}\n": ErrForm,
		"a: &x\n  b: 1\nextensions: *x\n": ErrForm, "[1]\n": store.ErrInvalid, "a: b: c\n": store.ErrInvalid,
	} {
		if got, _, err := SetYAML([]byte(text), "extensions", "nize", gooseFields); !errors.Is(err, want) {
			t.Errorf("%q: %q, %v, want %v", text, got, err, want)
		}
	}
}

// FuzzSetYAML: whatever a file holds, it is changed in this one entry or not at all.
func FuzzSetYAML(f *testing.F) {
	for _, text := range []string{"", "a: 1", "extensions:\n  nize: 1\n", "extensions:\n    a:\n      b: |\n        nize:\n", "---\na: 1\n---\nb: 2\n", "extensions:\n- a\n", "? extensions\n: nize: 1\n", "\"extensions\":\n  \"nize\": &a\n    b: 1\n  c: *a\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		out, changed, err := SetYAML(text, "extensions", "nize", gooseFields)
		if err != nil || !changed {
			return
		}
		var got map[string]any
		if err := yaml.Unmarshal(out, &got); err != nil {
			t.Fatalf("%q became %q: %v", text, out, err)
		}
		servers, _ := got["extensions"].(map[string]any)
		if entry, _ := servers["nize"].(map[string]any); entry["cmd"] != "/usr/bin/nizectl" {
			t.Errorf("%q became %q", text, out)
		}
	})
}
