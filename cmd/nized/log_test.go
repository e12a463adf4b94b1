package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBackgroundLog: once nized is ready, a background job leaves the terminal
// to those who work there, and its log is whole in a file that does not grow
// for ever.
func TestBackgroundLog(t *testing.T) {
	dir := t.TempDir()
	terminal, err := os.Create(filepath.Join(dir, "terminal"))
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	back := true
	l := newJobLog(terminal, dir)
	l.background = func() bool { return back }
	say := func(text string) {
		if _, err := l.Write([]byte(text + "\n")); err != nil {
			t.Fatal(err)
		}
	}
	say("nized is ready")
	l.Ready()
	say("a server is down")
	back = false
	say("in the foreground again")
	back = true
	say("a server is back")
	shown, err := os.ReadFile(terminal.Name())
	if err != nil {
		t.Fatal(err)
	}
	if want := "nized is ready\nnized runs in the background; its log is in " + dir + "/nized.log\nin the foreground again\n"; string(shown) != want {
		t.Errorf("the terminal shows\n%s\nwant\n%s", shown, want)
	}
	logged := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if got := logged("nized.log"); got != "a server is down\na server is back\n" {
		t.Errorf("the file has %q", got)
	}
	if info, err := os.Stat(filepath.Join(dir, "nized.log")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	long := strings.Repeat("x", maxLog-100)
	say(long)
	say(strings.Repeat("y", 100))
	if got := logged("nized.log"); !strings.HasPrefix(got, "y") || !strings.Contains(logged("nized.log.1"), "xxx") {
		t.Errorf("the file of %d bytes begins with %.10q", len(got), got)
	}
}
