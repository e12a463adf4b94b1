// nizectl is the operator's hand: it talks to nized's control socket and to
// nothing else. What needs a database that no daemon has open it lets nized do
// (package database).
//
// One noun has one file, or a room where it needs several (servers, chat). A
// command ([command.Leaf]) reads its flags and arguments, asks the daemon
// through daemon/api, and returns an error or prints an answer; only run, here,
// turns errors into text and exit codes. Answers go to standard output,
// everything else to standard error. What came from a server, a model or a
// person is printed by [display.Clean] alone, so that no escape sequence of
// theirs reaches the terminal. Every command has --json, whose field names are
// those of daemon/api and never change.
//
// A command must be quick (8 ms for the whole process): nothing is
// dialled, read or looked up before the command that needs it runs, and
// text/template stays out of the binary (tag urfave_cli_no_template).
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v3"
	"golang.org/x/term"

	"nize/cmd/nizectl/clients"
	"nize/cmd/nizectl/command"
	"nize/cmd/nizectl/dev"
	"nize/cmd/nizectl/display"
	"nize/cmd/nizectl/servers"
	"nize/daemon/api"
	"nize/store"
)

func init() { cli.HelpPrinter = command.PrintHelp } // the library has it as a variable alone

func main() { os.Exit(Main(300 * time.Millisecond)) }

// Main runs nizectl with the process's arguments and streams and returns the
// exit code. It is apart from main so that the scripts in testdata can run the
// real thing. tabWait is how long a person who pressed Tab waits for names.
func Main(tabWait time.Duration) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends at once
	a := &command.App{
		In:      os.Stdin,
		Raw:     os.Stdout,
		Out:     bufio.NewWriter(os.Stdout),
		Err:     os.Stderr,
		InTTY:   term.IsTerminal(int(os.Stdin.Fd())),
		OutTTY:  term.IsTerminal(int(os.Stdout.Fd())),
		ErrTTY:  term.IsTerminal(int(os.Stderr.Fd())),
		Env:     os.Getenv,
		Now:     time.Now,
		Columns: func() int { columns, _ := terminalSize(); return columns },
		Rows:    func() int { _, rows := terminalSize(); return rows },
		Hidden:  func() ([]byte, error) { return term.ReadPassword(int(os.Stdin.Fd())) },
		TabWait: tabWait,
	}
	if a.ErrTTY {
		nameMisspelled(a, os.Environ())
	}
	return run(ctx, a, os.Args[1:])
}

// terminalSize is that of standard output; without a terminal both are 0.
func terminalSize() (columns, rows int) {
	columns, rows, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil {
		return 0, 0
	}
	return columns, rows
}

// variables are those that nizectl reads.
var variables = []string{"NIZE_SOCKET", "NIZE_DATA_DIR"}

// nameMisspelled tells a person at a terminal of a variable that is almost one
// of nizectl's: all others may be nized's, which names what it doesn't know.
func nameMisspelled(a *command.App, environ []string) {
	for _, pair := range environ {
		name, _, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, "NIZE_") || slices.Contains(variables, name) {
			continue
		}
		rest := strings.TrimPrefix(name, "NIZE_")
		if near := store.Nearest(rest, []string{"SOCKET", "DATA_DIR"}); near != "" && len(rest) <= len(near)+1 {
			fmt.Fprintln(a.Err, display.Clean("nizectl: the environment variable "+name+" does nothing; did you mean NIZE_"+near+"?"))
		}
	}
}

// run runs one command line and returns its exit code. It is the one place
// where an error becomes text and a code.
func run(ctx context.Context, a *command.App, args []string) int {
	err := rootCommand(a).Run(ctx, append([]string{"nizectl"}, args...))
	if flushErr := a.Out.Flush(); err == nil && flushErr != nil {
		err = fmt.Errorf("writing the answer: %w", flushErr)
	}
	if err == nil {
		return api.ExitDone
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = command.Failf(command.ExitInterrupted, "interrupted")
	}
	if text := oneLine(err.Error()); text != "" {
		fmt.Fprintln(a.Err, "nizectl: "+text)
	}
	var f *command.Failure
	if errors.As(err, &f) {
		return f.Code
	}
	return api.ExitCode(err)
}

// longestWord is how many columns a word of an error may have: somebody who
// pasted a whole file as a name shall still see what was wrong with it.
const longestWord = 300

// oneLine makes an error's text one line without control characters.
func oneLine(s string) string {
	words := strings.Fields(s)
	for i, w := range words {
		words[i] = display.Shorten(display.Clean(w), longestWord, "…")
	}
	return strings.Join(words, " ")
}

// rootCommand is the whole tree of commands.
func rootCommand(a *command.App) *cli.Command {
	root := &cli.Command{
		Name:                  "nizectl",
		Usage:                 "steer nized, the daemon that gives a team's chat its tools",
		Version:               api.Build(),
		EnableShellCompletion: true,
		HideHelpCommand:       true,
		Writer:                a.Out,
		ErrWriter:             a.Err,
		ExitErrHandler:        func(context.Context, *cli.Command, error) {}, // or cli.Exit ends the process inside Run
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "socket", Usage: "the daemon's control `SOCKET` (default: $NIZE_SOCKET, or where nized puts it)"},
			&cli.BoolFlag{Name: "json", Usage: "answer in JSON, for programs"},
		},
		Commands: slices.Concat(
			category("get started", statusCommand(a), doctorCommand(a), clients.ConnectCommand(a), loginCommand(a), helpCommand(a)),
			category("chat and approve", chatCommand(a), approvalsCommand(a), documentsCommand(a), botsCommand(a), asksCommand(a), hookCommand(a)),
			category("tools and servers", servers.Command(a), toolsCommand(a), hooksCommand(a), credentialsCommand(a), reindexCommand(a), clients.MCPCommand(a)),
			category("people and access", usersCommand(a), groupsCommand(a), tokensCommand(a), identityCommand(a), projectsCommand(a)),
			category("models and cost", providersCommand(a), modelsCommand(a), agentsCommand(a), usageCommand(a), budgetsCommand(a), plansCommand(a)),
			category("operate", configCommand(a), auditCommand(a), alertsCommand(a), backupCommand(a), restoreCommand(a), databaseCommand(a), keysCommand(a), dev.Command(a), versionCommand(a)),
		),
		ConfigureShellCompletionCommand: func(c *cli.Command) {
			completionCommand(a, c)
			c.Category = "operate"
		},
	}
	root.Action = func(ctx context.Context, cmd *cli.Command) error {
		if !cmd.Args().Present() {
			return showHelp(a, cmd)
		}
		return command.UnknownCommand(ctx, cmd)
	}
	a.Root(root)
	root.OnUsageError = command.WrongUse
	return root
}

// category puts commands under one heading of the help.
func category(name string, commands ...*cli.Command) []*cli.Command {
	for _, c := range commands {
		c.Category = name
	}
	return commands
}

// hookCommand is the hook of the coding agents. It is the singular of hooks as
// well, so it has those commands, too.
func hookCommand(a *command.App) *cli.Command {
	hook := clients.HookCommand(a)
	hook.Commands = hooksCommand(a).Commands
	for _, sub := range hook.Commands {
		sub.Hidden = true
	}
	return hook
}
