package daemon_test

import (
	"fmt"
	"nize/daemon"
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

// The programs.
var nized, nizectl, nizeToolbox = &program{name: "nized"}, &program{name: "nizectl"}, &program{name: "nize-toolbox"}

func init() { daemon.BuildToolbox = nizeToolbox.build }

// build is the path of the program.
func (p *program) build(t testing.TB) string {
	t.Helper()
	p.once.Do(func() {
		if p.dir, p.err = os.MkdirTemp("", p.name); p.err != nil {
			return
		}
		if p.err = os.Chmod(p.dir, 0o755); p.err != nil { // other users run it, too
			return
		}
		cmd := exec.Command("go", "build", "-tags", "urfave_cli_no_template", "-o", p.dir, "nize/cmd/"+p.name)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as it is released; with the race detector everything would be compiled once more
		if out, err := cmd.CombinedOutput(); err != nil {
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
	for _, p := range []*program{nized, nizectl, nizeToolbox} {
		if p.dir != "" {
			os.RemoveAll(p.dir)
		}
	}
}
