package main

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"nize/cmd/manpage"
)

var manDir = flag.String("man", "", "write the manual page into this `directory`")

// TestMan makes the manual page from the flags, as `make man` does.
func TestMan(t *testing.T) {
	root := rootCommand()
	root.Writer = io.Discard
	if err := root.Run(t.Context(), []string{"nized", "--version"}); err != nil { // commands know their parents now
		t.Fatal(err)
	}
	page := manpage.Page(root,
		manpage.Section{Head: "CONFIGURATION", Paras: []string{
			"None is needed. A value comes from the first of: a flag, an environment variable (NIZE_ and the key, as in NIZE_APPROVALS_MODE), nized.toml, what nizectl config set stored, the default. nizectl config list and explain show every key and the source of its value."}},
		manpage.Section{Head: "SIGNALS", Paras: []string{
			"SIGTERM, SIGINT\taccept no new work, finish running work within drain.grace, end every child process, close the database; a second signal ends it at once",
			"SIGHUP\treload nized.toml and the certificate"}},
		manpage.Section{Head: "EXIT STATUS", Paras: []string{
			"0\tstopped by a signal", "1\tfailed", "2\twrong use", "5\tanother nized uses the data directory, the address or the control socket"}},
		manpage.Section{Head: "FILES", Paras: []string{
			"nize.db, nize.key, nized.addr, nized.control\tin the data directory: the database, the key that seals its secrets (keep a copy elsewhere), the address of the HTTP listener, the path of the control socket"}},
		manpage.Section{Head: "SEE ALSO", Paras: []string{"nizectl(1)"}})
	for _, want := range []string{`\-\-data\-dir`, `\-\-listen`, "restore", "SIGHUP"} {
		if !strings.Contains(page, want) {
			t.Errorf("%s is not in it", want)
		}
	}
	if *manDir != "" {
		if err := os.WriteFile(filepath.Join(*manDir, "nized.1"), []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
