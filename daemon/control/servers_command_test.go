package control

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"nize/store"
)

// TestCommandFaults: a command that can't be started says what is wrong with it, and
// one that can is taken, whatever it looks like.
func TestCommandFaults(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, file := range map[string]struct {
		text string
		mode os.FileMode
	}{
		"My App/bin/server": {"#!/bin/sh\n", 0o755},
		"run":               {"#!/bin/sh\n", 0o755},
		"run -x":            {"#!/bin/sh\n", 0o755},
		"C:/odd/run":        {"#!/bin/sh\n", 0o755},
		"server.py":         {"print()\n", 0o644},
		"tool":              {"x", 0o644},
		"lost":              {"#!/nowhere/python3 -u\n", 0o755},
		"windows":           {"#!/bin/sh\r\n", 0o755},
	} {
		if err := os.MkdirAll(filepath.Dir(at(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at(name), []byte(file.text), file.mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":/bin:/usr/bin")
	t.Setenv("HOME", dir)
	for command, want := range map[string]string{
		"run":                     "",
		at("run"):                 "",
		at("run -x"):              "",
		at("My App/bin/server"):   "",
		"sh":                      "",
		"sh -c true":              `a whole command line: the command is "sh" alone`,
		"npx -y @scope/server":    `a whole command line: the command is "npx" alone`,
		`"npx" -y @scope/server`:  `a whole command line: the command is "npx" alone`,
		"'sh' -c true":            `a whole command line: the command is "sh" alone`,
		"uvx some-server":         `a whole command line: the command is "uvx" alone`,
		at("run") + " --stdio":    "a whole command line: the command is",
		"/bin/sh /srv/x.sh":       `a whole command line: the command is "/bin/sh" alone`,
		"/opt/My Tools/bin/x":     "there is no such file",
		"~/run":                   "the whole path, " + at("run"),
		"~/bin/none":              "~ means a home to a shell only",
		"~ada/bin/x":              "~ means a home to a shell only",
		"$HOME/run":               "a variable, which only a shell fills in",
		"${workspaceFolder}/x":    "a variable, which only a shell fills in",
		" run":                    "spaces around it",
		`C:\Program Files\x.exe`:  "a path of Windows",
		"C:/tools/x.exe -y":       "a path of Windows",
		`\\host\share\x.exe`:      "a path of Windows",
		`%APPDATA%\npm\npx.cmd`:   "a path of Windows",
		"npx.cmd":                 "on Windows only: write npx",
		"uvx.exe":                 "on Windows only: write uvx",
		"cmd":                     "a shell of Windows: write the command that stands behind its /c",
		"cmd.exe":                 "a shell of Windows",
		"/none/at/all":            "there is no such file on nized's machine",
		"./none":                  "give its absolute path",
		"no-such-command":         "not in the daemon's PATH; give its absolute path",
		dir:                       "a directory",
		at("server.py"):           "not executable: chmod +x it, or give python3 as the command",
		at("tool"):                at("tool") + " is not executable: chmod +x it",
		"tool":                    at("tool") + " is not executable: chmod +x it",
		at("run") + "/x":          "there is no such file",
		at("lost"):                "the interpreter /nowhere/python3, which is not there",
		at("windows"):             "lines end as on Windows",
		"/dev/null":               "no file that can be started",
		"/Users/ada/bin/x":        "a path of macOS",
		"/opt/homebrew/bin/npx":   "a path of macOS",
		"/Applications/X.app/x y": "a path of macOS",
	} {
		if strings.Contains(want, "macOS") && runtime.GOOS == "darwin" {
			continue
		}
		s := store.Server{Name: "x", Transport: store.Stdio, Command: command}
		err := CheckServer(&s)
		switch {
		case want == "":
			if err != nil || !filepath.IsAbs(s.Command) {
				t.Errorf("%q: %q, %v", command, s.Command, err)
			}
		case !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), want) || strings.ContainsAny(err.Error(), "\r\n"):
			t.Errorf("%q: %v, want %q", command, err, want)
		}
	}
	for cwd, want := range map[string]string{dir: "", "~/x": "the whole path", `C:\x`: "Windows", "x": "an absolute path", at("run"): "an absolute path of a directory", "/none": "of a directory"} {
		err := CheckServer(&store.Server{Name: "x", Transport: store.Stdio, Command: "run", Cwd: cwd})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("in %q: %v, want %q", cwd, err, want)
		}
	}
}
