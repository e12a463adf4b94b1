package daemon_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// program is one of the real programs. It is built once for all tests, which
// leave the file as it is.
type program struct {
	name string
	once sync.Once
	dir  string
	err  error
}

var nized, nizeToolbox = &program{name: "nized"}, &program{name: "nize-toolbox"}

// build is the path of the program.
func (p *program) build(t testing.TB) string {
	t.Helper()
	p.once.Do(func() {
		if p.dir, p.err = os.MkdirTemp("", p.name); p.err != nil {
			return
		}
		if out, err := exec.Command("go", "build", "-o", p.dir, "nize/cmd/"+p.name).CombinedOutput(); err != nil {
			p.err = fmt.Errorf("building %s: %w\n%s", p.name, err, out)
		}
	})
	if p.err != nil {
		t.Fatal(p.err)
	}
	return filepath.Join(p.dir, p.name)
}

// removePrograms removes what was built.
func removePrograms() {
	for _, p := range []*program{nized, nizeToolbox} {
		if p.dir != "" {
			os.RemoveAll(p.dir)
		}
	}
}
