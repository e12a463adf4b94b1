package clients

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"nize/daemon/agenthook"
)

// The hook names a repository only of steps that stay in it once symbolic links are
// followed.
func TestRepositoryOfAStep(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(path string) string { return filepath.Join(root, path) }
	for _, dir := range []string{"web/.git", "web/cmd/deep", "web/vendored/.git", "api/.git", "plain", "web/.git/worktrees/tree", "tree/src"} {
		if err := os.MkdirAll(at(dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"tree/.git": "gitdir: " + at("web/.git/worktrees/tree"), "web/file": "", "api/file": "", "plain/file": ""} {
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"link": "web/cmd", "web/out": at("api"), "web/in": "cmd", "web/tofile": "../plain/file", "web/nowhere": "../plain/new", "web/loop": "loop", "web/cmd/far": "../out"} {
		if err := os.Symlink(to, at(name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ cwd, line, dir, top string }{
		{"web", "go test ./cmd", "web", "web"},
		{"web/cmd/deep", "ls", "web/cmd/deep", "web"},
		{"link/deep", "ls", "web/cmd/deep", "web"},
		{"web", "cat in/deep/new file", "web", "web"},
		{"web", "cat new/file", "web", "web"},
		{"web", "cat " + at("web/file"), "web", "web"},
		{"tree/src", "ls", "tree/src", "tree"},
		{"web/vendored", "ls", "web/vendored", "web/vendored"},
		{"web/out", "ls", "api", "api"},
		{"plain", "ls", "plain", ""},
		{"web", "cat out/file", "web", ""},
		{"web", "cat out", "web", ""},
		{"web", "cat tofile", "web", ""},
		{"web", "cat nowhere", "web", ""},
		{"web", "cat nowhere/x", "web", ""},
		{"web", "cat loop", "web", ""},
		{"web", "cat cmd/far/file", "web", ""},
		{"web", "cat --from=out/file", "web", ""},
		{"web", "cat " + at("web/out/file"), "web", ""},
		{"web", "cat vendored/x", "web", ""},
		{"web", "out/run", "web", ""},
		{"gone", "ls", "gone", ""},
	} {
		args, err := json.Marshal(map[string]string{"command": c.line})
		if err != nil {
			t.Fatal(err)
		}
		dir, top := repository(agenthook.Event{Cwd: at(c.cwd), Args: args})
		want := ""
		if c.top != "" {
			want = at(c.top)
		}
		if dir != at(c.dir) || top != want {
			t.Errorf("%s: %s: in %q, of %q", c.cwd, c.line, dir, top)
		}
	}
	for _, e := range []agenthook.Event{{Cwd: at("web"), UnsureDir: true}, {Cwd: "web"}, {}} {
		if _, top := repository(e); top != "" {
			t.Errorf("%+v is in %q", e, top)
		}
	}
}
