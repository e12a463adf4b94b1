package main

import (
	"bufio"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/urfave/cli/v3"

	"nize"
	"nize/cmd/manpage"
	"nize/cmd/nizectl/command"
)

var manDir = flag.String("man", "", "write the manual page into this `directory`")

// TestMan makes the manual page from the commands, as `make man` does, and sees
// that each of them, with its arguments, is in it.
func TestMan(t *testing.T) {
	root := allCommands(t)
	page := manpage.Page(root,
		manpage.Section{Head: "EXIT STATUS", Paras: []string{
			"0\tdone", "1\tfailed", "2\twrong use", "3\tthe daemon is not reachable", "4\tnot found", "5\tconflict", "6\trefused"}},
		manpage.Section{Head: "ENVIRONMENT", Paras: []string{
			"NIZE_SOCKET\tthe daemon's control socket", "NIZE_DATA_DIR\totherwise, where to look for the socket", "NO_COLOR\tno colours on a terminal"}},
		manpage.Section{Head: "TOPICS", Paras: append([]string{"Documentation pages, printed by nizectl help TOPIC:"},
			command.Each(nize.Topics, func(t nize.Topic) string { return t.Name + "\t" + t.About })...)},
		manpage.Section{Head: "SEE ALSO", Paras: []string{"nized(1)"}})
	seen := 0
	var walk func(*cli.Command)
	walk = func(c *cli.Command) {
		for _, sub := range c.Commands {
			if sub.Hidden {
				continue
			}
			if want := strings.ReplaceAll(sub.FullName(), "-", `\-`); !strings.Contains(page, want) {
				t.Errorf("%s is not in it", sub.FullName())
			}
			seen++
			walk(sub)
		}
	}
	walk(root)
	if seen < 50 {
		t.Errorf("it saw %d commands only", seen)
	}
	if *manDir != "" {
		if err := os.WriteFile(filepath.Join(*manDir, "nizectl.1"), []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// allCommands is the tree of commands with those that the library makes.
func allCommands(t *testing.T) *cli.Command {
	t.Helper()
	root := rootCommand(&command.App{In: strings.NewReader(""), Raw: io.Discard, Out: bufio.NewWriter(io.Discard), Err: io.Discard, Env: func(string) string { return "" }})
	if err := root.Run(t.Context(), []string{"nizectl", "--version"}); err != nil {
		t.Fatal(err)
	}
	return root
}
