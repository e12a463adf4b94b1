package command

import (
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

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
	full, err := fullSocket(at("full"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(full)
	for _, name := range []string{"a", "b", "c", "stale", "mute", "mute2", "hangup"} {
		ln, err := net.Listen("unix", at(name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = ln.Close() })
		switch name {
		case "stale": // as a nized that was killed leaves it
			ln.(*net.UnixListener).SetUnlinkOnClose(false)
			_ = ln.Close()
		case "mute", "mute2": // it accepts connections, and that is all
		case "hangup":
			go func() {
				for conn, err := ln.Accept(); err == nil; conn, err = ln.Accept() {
					_ = conn.Close()
				}
			}()
		default:
			go func() { _ = http.Serve(ln, http.NotFoundHandler()) }() // until it is closed
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
		"three":                   {list: []string{at("a"), at("b"), at("c")}, want: at("a"), said: "3 daemons answer; this is the one at " + at("a") + "; for another, add --socket: " + at("b") + ", " + at("c")},
		"three, one of them dead": {list: []string{at("stale"), at("c"), at("b")}, want: at("c"), said: "2 daemons answer; this is the one at " + at("c") + "; for another, add --socket: " + at("b")},
		"a mute one first":        {list: []string{at("mute"), at("a")}, want: at("a"), said: at("mute") + " accepts connections, but nothing answers there; this is the daemon at " + at("a")},
		"a mute one behind":       {list: []string{at("a"), at("mute")}, want: at("a")},
		"two mute ones, and two":  {list: []string{at("mute"), at("mute2"), at("b"), at("a")}, want: at("b"), said: "2 daemons answer; this is the one at " + at("b") + "; for another, add --socket: " + at("a")},
		"one that hangs up":       {list: []string{at("hangup"), at("a")}, want: at("a"), said: at("hangup") + " accepts connections, but nothing answers there; this is the daemon at " + at("a")},
		"a mute one alone":        {list: []string{at("none"), at("mute")}, want: at("mute")}, // its request says so
		"a full one first":        {list: []string{at("full"), at("a")}, want: at("a")},
		"a full one alone":        {list: []string{at("full")}, code: api.ExitFailed},
		"mute ones alone":         {list: []string{at("mute"), at("mute2")}, want: at("mute")},
		"none":                    {list: []string{at("none"), at("stale"), at("file")}, code: api.ExitNoDaemon},
		"none, and one was named": {list: []string{at("none")}, code: api.ExitNoDaemon},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			within := time.Minute
			if strings.Contains(what, "mute") {
				within = 10 * time.Second
			}
			said := ""
			got, err := findSocket(test.list, within, func(line string) { said += line })
			if got != test.want || said != test.said || api.ExitCode(err) != test.code {
				t.Errorf("%q, said %q, error %v", got, said, err)
			}
			if err != nil {
				for _, s := range test.list {
					if !strings.Contains(err.Error(), s) {
						t.Errorf("%v does not name %s", err, s)
					}
				}
				if len(test.list) > 1 && !strings.Contains(err.Error(), "--socket or NIZE_SOCKET") {
					t.Errorf("%v does not say how to name the socket", err)
				}
			}
		})
	}
}

// fullSocket listens at a path and has no room for another connection.
func fullSocket(path string) (end func(), err error) {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return nil, err
	}
	var conns []net.Conn
	end = func() {
		for _, c := range conns {
			_ = c.Close()
		}
		_ = syscall.Close(fd)
	}
	if err := errors.Join(syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}), syscall.Listen(fd, 1)); err != nil {
		return end, err
	}
	for range 100 {
		conn, err := net.Dial("unix", path)
		if err != nil {
			return end, nil //nolint:nilerr // it is full
		}
		conns = append(conns, conn)
	}
	return end, errors.New("it has room for 100")
}
