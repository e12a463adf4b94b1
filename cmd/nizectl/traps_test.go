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

	"nize/cmd/nizectl/command"
	"nize/daemon/api"
	"nize/store"
)

// TestUnknownCommand: the library exits with 3 there, which is ours for "no
// daemon".
func TestUnknownCommand(t *testing.T) {
	d := newDouble(t)
	for _, test := range []struct{ args, errs string }{
		{"srvers", "did you mean nizectl servers?"},
		{"servers lst", "did you mean nizectl servers list?"},
		{"approvals grants lst", "did you mean nizectl approvals grants list?"},
		{"servers LS", "did you mean nizectl servers list?"},
		{"servers del x", "did you mean nizectl servers remove?"},
		{"servers delete x", "did you mean nizectl servers remove?"},
		{"servers uninstall x", "did you mean nizectl servers remove?"},
		{"servers get x", "did you mean nizectl servers show?"},
		{"servers new x", "did you mean nizectl servers add?"},
		{"servers stop x", "did you mean nizectl servers disable?"},
		{"tokens remove x", "did you mean nizectl tokens revoke?"},
		{"users new x", "did you mean nizectl users add?"},
		{"tools run x", "did you mean nizectl tools call?"},
		{"approvals grants delete x", "did you mean nizectl approvals grants "},
		{"models update x", "did you mean nizectl models add?"},
		{"servers chmod x", "nizectl servers has add,"}, // nobody's word for anything here
		{"rm x", "nizectl has status, doctor,"},         // of what?
		{"frobnicate", "nizectl has status, doctor, connect,"},
		{"completion tcsh", "completion"},
	} {
		got := d.nizectl(surroundings{}, strings.Fields(test.args)...)
		if got.code != 2 || got.out != "" || !strings.Contains(got.err, test.errs) || strings.Count(got.err, "\n") != 1 {
			t.Errorf("%s: %+v", test.args, got)
		}
	}
}

// TestBareGroup: the library prints its help with exit 0.
func TestBareGroup(t *testing.T) {
	d := newDouble(t)
	var groups []string
	for _, cmd := range commands().Commands {
		if len(command.Visible(cmd)) > 0 && cmd.Name != "audit" && cmd.Name != "chat" && cmd.Name != "login" {
			groups = append(groups, cmd.Name)
		}
	}
	if len(groups) < 9 {
		t.Fatalf("groups: %q", groups)
	}
	for _, group := range append(groups, "approvals grants", "completion") {
		got := d.nizectl(surroundings{}, strings.Fields(group)...)
		if got.code != 2 || got.out != "" || !strings.Contains(got.err, "name a command") {
			t.Errorf("%q: %+v", group, got)
		}
	}
}

// TestBare: without a word nizectl explains itself.
func TestBare(t *testing.T) {
	got := newDouble(t).nizectl(surroundings{})
	if got.code != 0 || got.err != "" || !strings.Contains(got.out, "GET STARTED") || !strings.Contains(got.out, "TOPICS") {
		t.Errorf("%+v", got)
	}
}

// TestHelp goes to standard output with exit 0, for every command there is.
func TestHelp(t *testing.T) {
	d := newDouble(t)
	var walk func(path []string, cmd *cli.Command)
	walk = func(path []string, cmd *cli.Command) {
		for _, args := range [][]string{append(slices.Clone(path), "--help"), append([]string{"help"}, path...)} {
			got := d.nizectl(surroundings{}, args...)
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
	walk(nil, commands())
	if d.asked != nil {
		t.Errorf("help asked the daemon: %v", d.asked)
	}
}

// Who typed a name and then thinks of --help is helped with that command, and no
// default is shown that is none.
func TestHelpBehindArguments(t *testing.T) {
	d := newDouble(t)
	for _, line := range []string{"servers show toolbox --help", "providers add openai -h", "tools call toolbox:x --args {} --help", "chat show 01J --help", "servers lsit --help", "audit export t.jsonl --help"} {
		args := strings.Fields(line)
		got := d.nizectl(surroundings{}, args...)
		if want := "nizectl " + args[0]; got.code != 0 || got.err != "" || !strings.Contains(got.out, want) || !strings.Contains(got.out, "USAGE") {
			t.Errorf("%q: %+v", line, got)
		}
	}
	if got := d.nizectl(surroundings{}, "audit", "--help"); strings.Contains(got.out, "default: 0") || !strings.Contains(got.out, "default: 100") {
		t.Errorf("defaults: %s", got.out)
	}
	if d.asked != nil {
		t.Errorf("help asked the daemon: %v", d.asked)
	}
}

// TestExtraArguments: the library ignores them. Every command refuses them,
// unless it takes any number.
func TestExtraArguments(t *testing.T) {
	d := newDouble(t)
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
		got := d.nizectl(surroundings{}, append(path, "extra")...)
		if got.code != 2 || got.out != "" || !strings.Contains(got.err, `"extra"`) {
			t.Errorf("%q: %+v", path, got)
		}
	}
	walk(nil, commands())
	if changes := d.changes(); changes != nil {
		t.Errorf("asked the daemon: %v", changes)
	}
}

// TestFlagErrors: the library prints the whole help to standard output.
func TestFlagErrors(t *testing.T) {
	d := newDouble(t)
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
		got := d.nizectl(surroundings{}, strings.Fields(test.args)...)
		if got.code != 2 || got.out != "" || !strings.Contains(got.err, test.errs) || strings.Count(got.err, "\n") != 1 {
			t.Errorf("%s: %+v", test.args, got)
		}
	}
}

// TestEveryCommandIsGuarded: what the library does not inherit stands on every
// command: its errors about flags, and no cutting of values at commas.
func TestEveryCommandIsGuarded(t *testing.T) {
	root := commands()
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
	d := newDouble(t)
	for _, name := range []string{"help", "h"} {
		d.nizectl(surroundings{}, "servers", "restart", name)
		if got := d.changes(); !slices.Equal(got, []string{"POST /v1/servers/" + name + "/restart"}) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestFlagsAfterArguments and persistent flags work anywhere.
func TestFlagsAnywhere(t *testing.T) {
	d := newDouble(t)
	answer(d, api.GetServer, api.ServerView{})
	for _, args := range []string{"--json servers show toolbox", "servers --json show toolbox", "servers show --json toolbox", "servers show toolbox --json"} {
		if got := d.nizectl(surroundings{}, strings.Fields(args)...); got.code != 0 || !strings.HasPrefix(got.out, "{") {
			t.Errorf("%s: %+v", args, got)
		}
	}
}

// TestNoDaemon: exit 3, and how to start it; nothing is read from standard
// input first.
func TestNoDaemon(t *testing.T) {
	d := &double{socket: filepath.Join(shortDir(t), "none.sock")}
	for _, args := range []string{"status", "servers list", "tools search x", "tokens create x", "approvals list", "usage", "audit", "reindex", "config list", "servers logs x"} {
		got := d.nizectl(surroundings{}, strings.Fields(args)...)
		if got.code != api.ExitNoDaemon || !strings.Contains(got.err, "start it with `nized &`") || strings.Count(got.err, "\n") != 1 {
			t.Errorf("%s: %+v", args, got)
		}
	}
	if got := d.nizectl(surroundings{}, "version"); got.code != 0 || got.err != "" {
		t.Errorf("version: %+v", got)
	}
}

// complete asks for completions as the shells' scripts do.
func complete(d *double, args ...string) string {
	return d.nizectl(surroundings{}, append(args, "--generate-shell-completion")...).out
}

func TestCompletion(t *testing.T) {
	d := newDouble(t)
	answer(d, api.ListServers, api.List[api.ServerView]{Items: []api.ServerView{{Server: store.Server{Name: "toolbox"}}}})
	answer(d, api.ListTools, api.List[api.ToolView]{Items: []api.ToolView{{ID: "toolbox:convert_time"}, {ID: "toolbox:$(touch /tmp/x)"}, {ID: "toolbox:a:b"}}})
	if got := complete(d, "servers", "show"); got != "toolbox\n" {
		t.Errorf("servers: %q", got)
	}
	if got := complete(d, "tools", "call"); got != "toolbox\\:convert_time\ntoolbox\\:a\\:b\n" {
		t.Errorf("tools: %q", got)
	}
	if got := complete(d, "servers", "show", "toolbox"); got != "" {
		t.Errorf("second argument: %q", got)
	}
	if got := complete(d, "servers", "add", "x", "--ur"); !strings.HasPrefix(got, "--url") {
		t.Errorf("flags: %q", got)
	}
	if got := complete(d, "servers"); !strings.Contains(got, "list:") || strings.Contains(got, "toolbox") {
		t.Errorf("commands: %q", got)
	}
	if got := d.changes(); got != nil {
		t.Errorf("completion changed something: %q", got)
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if got := d.nizectl(surroundings{}, "completion", shell); got.code != 0 || !strings.Contains(got.out, "generate-shell-completion") {
			t.Errorf("%s: %+v", shell, got)
		}
	}
}

// TestCompletionWithoutADaemon is silent and quick, also where one hangs.
func TestCompletionWithoutADaemon(t *testing.T) {
	none := &double{socket: filepath.Join(shortDir(t), "none.sock")}
	if got := none.nizectl(surroundings{}, "servers", "show", "--generate-shell-completion"); got.code != 0 || got.out+got.err != "" {
		t.Errorf("no daemon: %+v", got)
	}
	hung := &double{socket: filepath.Join(shortDir(t), "hung.sock")}
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
	d := newDouble(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := d.run(ctx, surroundings{}, "status"); got.code != 130 || got.err != "nizectl: interrupted\n" {
		t.Errorf("%+v", got)
	}
	if got := d.run(ctx, surroundings{}, "audit", "--follow", "--json"); got.code != 130 || got.err != "" {
		t.Errorf("%+v", got)
	}
}

// commands is the tree of commands, to look at.
func commands() *cli.Command {
	a := &command.App{}
	return rootCommand(a)
}
