package main

import (
	"context"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/urfave/cli/v3"

	"nize/daemon/api"
)

// TestUnknownCommand: the library exits with 3 there, which is ours for "no
// daemon".
func TestUnknownCommand(t *testing.T) {
	f := newFake(t)
	for _, test := range []struct{ args, errs string }{
		{"srvers", "did you mean nizectl servers?"},
		{"servers lst", "did you mean nizectl servers list?"},
		{"approvals grants lst", "did you mean nizectl approvals grants list?"},
		{"frobnicate", "nizectl has status, doctor, servers,"},
		{"completion tcsh", "completion"},
	} {
		got := f.nizectl(surroundings{}, strings.Fields(test.args)...)
		if got.code != 2 || got.out != "" || !strings.Contains(got.err, test.errs) || strings.Count(got.err, "\n") != 1 {
			t.Errorf("%s: %+v", test.args, got)
		}
	}
}

// TestBareGroup: the library prints its help with exit 0.
func TestBareGroup(t *testing.T) {
	f := newFake(t)
	groups := []string{""}
	for _, cmd := range (&app{}).root().Commands {
		if len(cmd.Commands) > 0 && cmd.Name != "audit" && cmd.Name != "chat" {
			groups = append(groups, cmd.Name)
		}
	}
	if len(groups) < 9 {
		t.Fatalf("groups: %q", groups)
	}
	for _, group := range append(groups, "approvals grants", "completion") {
		got := f.nizectl(surroundings{}, strings.Fields(group)...)
		if got.code != 2 || got.out != "" || !strings.Contains(got.err, "say what to do") {
			t.Errorf("%q: %+v", group, got)
		}
	}
}

// TestHelp goes to standard output with exit 0, for every command there is.
func TestHelp(t *testing.T) {
	f := newFake(t)
	var walk func(path []string, cmd *cli.Command)
	walk = func(path []string, cmd *cli.Command) {
		for _, args := range [][]string{append(slices.Clone(path), "--help"), append([]string{"help"}, path...)} {
			got := f.nizectl(surroundings{}, args...)
			if got.code != 0 || got.err != "" || !strings.Contains(got.out, "USAGE") {
				t.Errorf("%q: %+v", args, got)
			}
		}
		if cmd.Usage == "" {
			t.Errorf("%q says nothing of itself", path)
		}
		for _, sub := range cmd.Commands {
			walk(append(slices.Clone(path), sub.Name), sub)
		}
	}
	walk(nil, (&app{}).root())
	if f.asked != nil {
		t.Errorf("help asked the daemon: %v", f.asked)
	}
}

// Who typed a name and then thinks of --help is helped with that command, and no
// default is shown that is none.
func TestHelpBehindArguments(t *testing.T) {
	f := newFake(t)
	for _, line := range []string{"servers show toolbox --help", "providers add openai -h", "tools call toolbox:x --args {} --help", "chat show 01J --help", "servers lsit --help", "audit export t.jsonl --help"} {
		args := strings.Fields(line)
		got := f.nizectl(surroundings{}, args...)
		if want := "nizectl " + args[0]; got.code != 0 || got.err != "" || !strings.Contains(got.out, want) || !strings.Contains(got.out, "USAGE") {
			t.Errorf("%q: %+v", line, got)
		}
	}
	if got := f.nizectl(surroundings{}, "audit", "--help"); strings.Contains(got.out, "default: 0") || !strings.Contains(got.out, "default: 100") {
		t.Errorf("defaults: %s", got.out)
	}
	if f.asked != nil {
		t.Errorf("help asked the daemon: %v", f.asked)
	}
}

// TestExtraArguments: the library ignores them. Every command refuses them,
// unless it takes any number.
func TestExtraArguments(t *testing.T) {
	f := newFake(t)
	var walk func(path []string, cmd *cli.Command)
	walk = func(path []string, cmd *cli.Command) {
		for _, sub := range cmd.Commands {
			walk(append(slices.Clone(path), sub.Name), sub)
		}
		if len(path) == 0 || len(cmd.Commands) > 0 || strings.Contains(cmd.ArgsUsage, "...") {
			return
		}
		for range strings.Fields(cmd.ArgsUsage) {
			path = append(path, "x/y")
		}
		got := f.nizectl(surroundings{}, append(path, "extra")...)
		if got.code != 2 || got.out != "" || !strings.Contains(got.err, `"extra"`) {
			t.Errorf("%q: %+v", path, got)
		}
	}
	walk(nil, (&app{}).root())
	if changes := f.changes(); changes != nil {
		t.Errorf("asked the daemon: %v", changes)
	}
}

// TestFlagErrors: the library prints the whole help to standard output.
func TestFlagErrors(t *testing.T) {
	f := newFake(t)
	for _, test := range []struct{ args, errs string }{
		{"servers list --jsn", "did you mean --json?"},
		{"--sockt x status", "did you mean --socket?"},
		{"servers add x --ulr y", "did you mean --url?"},
		{"servers add x npx -y z", "unknown flag -y"}, // the -- was forgotten
		{"status -q", "unknown flag -q"},
		{"tools search x --top-k", "flag --top-k needs a value"},
		{"tools search x --top-k many", "invalid value \"many\""},
		{"usage --by", "flag --by needs a value"},
	} {
		got := f.nizectl(surroundings{}, strings.Fields(test.args)...)
		if got.code != 2 || got.out != "" || !strings.Contains(got.err, test.errs) || strings.Count(got.err, "\n") != 1 {
			t.Errorf("%s: %+v", test.args, got)
		}
	}
}

// TestEveryCommandIsGuarded: what the library does not inherit stands on every
// command: its errors about flags, and no cutting of values at commas.
func TestEveryCommandIsGuarded(t *testing.T) {
	root := (&app{}).root()
	root.Walk(func(cmd *cli.Command) error {
		if cmd.OnUsageError == nil || cmd.Action == nil || cmd.Before != nil {
			t.Errorf("%s: OnUsageError %v, Action %v, Before %v", cmd.Name, cmd.OnUsageError != nil, cmd.Action != nil, cmd.Before != nil)
		}
		if len(cmd.Commands) == 0 && !cmd.DisableSliceFlagSeparator {
			t.Errorf("%s cuts at commas", cmd.Name)
		}
		return nil
	})
	if root.ExitErrHandler == nil {
		t.Error("cli.Exit would end the process inside Run")
	}
}

// TestNamesLikeHelp: a help command in each group would shadow them.
func TestNamesLikeHelp(t *testing.T) {
	f := newFake(t)
	for _, name := range []string{"help", "h"} {
		f.nizectl(surroundings{}, "servers", "restart", name)
		if got := f.changes(); !slices.Equal(got, []string{"POST /v1/servers/" + name + "/restart"}) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestFlagsAfterArguments and persistent flags work anywhere.
func TestFlagsAnywhere(t *testing.T) {
	f := newFake(t)
	for _, args := range []string{"--json servers show toolbox", "servers --json show toolbox", "servers show --json toolbox", "servers show toolbox --json"} {
		if got := f.nizectl(surroundings{}, strings.Fields(args)...); got.code != 0 || !strings.HasPrefix(got.out, "{") {
			t.Errorf("%s: %+v", args, got)
		}
	}
}

// TestNoDaemon: exit 3, and how to start it; nothing is read from standard
// input first.
func TestNoDaemon(t *testing.T) {
	f := &fake{socket: filepath.Join(shortDir(t), "none.sock")}
	for _, args := range []string{"status", "servers list", "tools search x", "tokens create x", "approvals list", "usage", "audit", "reindex", "config list", "servers logs x"} {
		got := f.nizectl(surroundings{}, strings.Fields(args)...)
		if got.code != api.ExitNoDaemon || !strings.Contains(got.err, "start it with `nized &`") || strings.Count(got.err, "\n") != 1 {
			t.Errorf("%s: %+v", args, got)
		}
	}
	if got := f.nizectl(surroundings{}, "version"); got.code != 0 || got.err != "" {
		t.Errorf("version: %+v", got)
	}
}

// complete asks for completions as the shells' scripts do.
func complete(f *fake, args ...string) string {
	return f.nizectl(surroundings{}, append(args, "--generate-shell-completion")...).out
}

func TestCompletion(t *testing.T) {
	f := newFake(t)
	f.tools[0].ID = "toolbox:convert_time"
	evil := f.tools[0]
	evil.ID = "toolbox:$(touch /tmp/x)"
	colon := f.tools[0]
	colon.ID = "toolbox:a:b"
	f.tools = append(f.tools, evil, colon)
	if got := complete(f, "servers", "show"); got != "toolbox\n" {
		t.Errorf("servers: %q", got)
	}
	if got := complete(f, "tools", "call"); got != "toolbox.convert_time\n" {
		t.Errorf("tools: %q", got)
	}
	if got := complete(f, "servers", "show", "toolbox"); got != "" {
		t.Errorf("second argument: %q", got)
	}
	if got := complete(f, "servers", "add", "x", "--ur"); !strings.HasPrefix(got, "--url") {
		t.Errorf("flags: %q", got)
	}
	if got := complete(f, "servers"); !strings.Contains(got, "list:") || strings.Contains(got, "toolbox") {
		t.Errorf("commands: %q", got)
	}
	if got := f.changes(); got != nil {
		t.Errorf("completion changed something: %q", got)
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if got := f.nizectl(surroundings{}, "completion", shell); got.code != 0 || !strings.Contains(got.out, "generate-shell-completion") {
			t.Errorf("%s: %+v", shell, got)
		}
	}
}

// TestCompletionWithoutADaemon is silent and quick, also where one hangs.
func TestCompletionWithoutADaemon(t *testing.T) {
	none := &fake{socket: filepath.Join(shortDir(t), "none.sock")}
	if got := none.nizectl(surroundings{}, "servers", "show", "--generate-shell-completion"); got.code != 0 || got.out+got.err != "" {
		t.Errorf("no daemon: %+v", got)
	}
	hung := &fake{socket: filepath.Join(shortDir(t), "hung.sock")}
	l, err := net.Listen("unix", hung.socket) // takes the connection, never answers
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	start := time.Now()
	got := hung.nizectl(surroundings{tabWait: 50 * time.Millisecond}, "servers", "show", "--generate-shell-completion")
	if took := time.Since(start); got.code != 0 || got.out+got.err != "" || took > 30*time.Second {
		t.Errorf("hung daemon: %+v after %v", got, took)
	}
}

// TestInterrupt: Ctrl-C ends a wait with one line, and a --follow with none.
func TestInterrupt(t *testing.T) {
	f := newFake(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := f.run(ctx, surroundings{}, "status"); got.code != 1 || got.err != "nizectl: interrupted\n" {
		t.Errorf("%+v", got)
	}
	if got := f.run(ctx, surroundings{}, "audit", "--follow", "--json"); got.code != 0 || got.err != "" {
		t.Errorf("%+v", got)
	}
}
