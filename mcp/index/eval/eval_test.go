package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestRate(t *testing.T) {
	for _, tt := range []struct {
		hits, gold string
		want       score
	}{
		{"a b c", "a", score{1, 1, 1, 1, 1, 1}},
		{"b a c", "a", score{0, 1, 1, 1, 0.5, 0.6309}},
		{"a b c", "a c", score{0.5, 1, 1, 1, 1, 0.9197}},
		{"b c", "a", score{}},
		{"", "a", score{}},
		{"x x x x x x x x x x a", "a", score{}},
	} {
		got := rate(strings.Fields(tt.hits), strings.Fields(tt.gold))
		if diff := cmp.Diff(tt.want, got, cmpopts.EquateApprox(0, 1e-4)); diff != "" {
			t.Errorf("rate(%q, %q): -want +got\n%s", tt.hits, tt.gold, diff)
		}
	}
}

func TestMisspell(t *testing.T) {
	for in, want := range map[string]string{
		"show the calendar": "show the calednar",
		"a few tiny words":  "a few tiny words",
		"aaaaaaaa":          "aaaaaaaa",
	} {
		if got := misspell(in); got != want {
			t.Errorf("misspell(%q) = %q, want %q", in, got, want)
		}
	}
}

// Any folder of corpora will do, whatever is in it.
func TestAnyCorpora(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"mine/tools.jsonl":       `{"id":"a/b","server":"a","name":"send_mail","description":"Send a mail."}` + "\n" + `{"id":"a/c","server":"a","name":"read_mail","description":"Read a mail."}`,
		"mine/queries.dev.jsonl": `{"id":"1","query":"send a mail","gold":["a/b"],"source":"me"}`,
		"other/notes.txt":        "no corpus",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	if _, err := run(&out, dir); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "\n| mine | 1.000 | 1.000 | 1.000 | 1.000 | 1.000 | 1.000 | ") {
		t.Errorf("%s", out.String())
	}
	if _, err := run(io.Discard, t.TempDir()); err == nil || !strings.Contains(err.Error(), "no corpus") {
		t.Errorf("an empty folder: %v", err)
	}
}

func TestLoadSaysWhere(t *testing.T) {
	fsys := fstest.MapFS{"mcp/tools.jsonl": {Data: []byte("{}\n{")}}
	if _, err := load(fsys, "mcp"); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("a broken line: %v", err)
	}
	if _, err := load(fsys, "none"); err == nil {
		t.Error("a corpus that is not there was loaded")
	}
}
