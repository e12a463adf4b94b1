package command

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"nize/daemon/api"
)

// TestFindSocket: the first socket at which somebody listens is used, whatever stands
// at the others. "Not running" is said only if nobody listens at any.
func TestFindSocket(t *testing.T) {
	dir, err := os.MkdirTemp("", "s") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"a", "b", "stale"} {
		ln, err := net.Listen("unix", at(name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = ln.Close() })
		if name == "stale" { // as a nized that was killed leaves it
			ln.(*net.UnixListener).SetUnlinkOnClose(false)
			_ = ln.Close()
		}
	}
	if err := os.WriteFile(at("file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(at("a"), at("same")); err != nil {
		t.Fatal(err)
	}
	long := at(strings.Repeat("x", 200))
	for what, test := range map[string]struct {
		list []string
		want string
		said string
		code int
	}{
		"one":                     {list: []string{at("a")}, want: at("a")},
		"the second":              {list: []string{at("none"), at("b")}, want: at("b")},
		"after a stale one":       {list: []string{at("stale"), at("a")}, want: at("a")},
		"after a file":            {list: []string{at("file"), at("a")}, want: at("a")},
		"after a path too long":   {list: []string{long, at("a")}, want: at("a")},
		"below a file":            {list: []string{at("file") + "/x", at("a")}, want: at("a")},
		"several":                 {list: []string{at("b"), at("none"), at("a")}, want: at("b"), said: "2 daemons answer; this is the one at " + at("b") + "; for another, add --socket: " + at("a")},
		"one by two paths":        {list: []string{at("same"), at("a")}, want: at("same")},
		"none":                    {list: []string{at("none"), at("stale"), at("file")}, code: api.ExitNoDaemon},
		"none, and one was named": {list: []string{at("none")}, code: api.ExitNoDaemon},
	} {
		said := ""
		got, err := findSocket(test.list, func(line string) { said = line })
		if got != test.want || said != test.said || api.ExitCode(err) != test.code {
			t.Errorf("%s: %q, said %q, error %v", what, got, said, err)
		}
		if err != nil {
			for _, s := range test.list {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("%s: %v does not name %s", what, err, s)
				}
			}
			if len(test.list) > 1 && !strings.Contains(err.Error(), "--socket or NIZE_SOCKET") {
				t.Errorf("%s: %v does not say how to name the socket", what, err)
			}
		}
	}
}
