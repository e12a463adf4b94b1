// Command nizectl is the command-line client of nized; it uses only nized's control socket.
//
// Commands for a database that no daemon has open run nized (package database).
//
// Each noun has one file, or a package if it needs several (servers, chat). A command
// ([command.Leaf]) reads its flags and arguments, sends requests through daemon/api, and
// returns an error or prints an answer; only run, here, converts errors into text and exit
// codes. Answers are printed to standard output, everything else to standard error. Text
// from a server, a model or a person is printed only through [display.Clean], so that none
// of its escape sequences reaches the terminal. Every command has --json, whose field names
// are those of daemon/api and never change.
//
// A command must be fast (8 ms for the whole process): nothing is dialed, read or looked up
// before the command that needs it runs, and text/template stays out of the binary (tag
// urfave_cli_no_template).
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

func init() { cli.HelpPrinter = command.PrintHelp } // the library only offers a variable

func main() { os.Exit(Main(300 * time.Millisecond)) }

// Main runs nizectl with the process's arguments and streams and returns the exit code. It
// is separate from main so that the scripts in testdata can run the real program. tabWait
// is how long completion waits for names.
func Main(tabWait time.Duration) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
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

// terminalSize returns the size of standard output; without a terminal both are 0.
func terminalSize() (columns, rows int) {
	columns, rows, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil {
		return 0, 0
	}
	return columns, rows
}

// variables are the environment variables that nizectl reads.
var variables = []string{"NIZE_SOCKET", "NIZE_DATA_DIR"}

// nameMisspelled warns at a terminal about a variable with almost the name of one of
// nizectl's. It ignores all others: they may be nized's, which reports unknown ones itself.
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

// run runs one command line and returns its exit code. It is the only place where an error
// is converted into text and a code.
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

// longestWord limits the columns of a word in an error, so that the error stays readable if
// a whole file was pasted as a name.
const longestWord = 300

// oneLine returns an error's text as one line without control characters.
func oneLine(s string) string {
	words := strings.Fields(s)
	for i, w := range words {
		words[i] = display.Shorten(display.Clean(w), longestWord, "…")
	}
	return strings.Join(words, " ")
}

// rootCommand returns the whole tree of commands.
func rootCommand(a *command.App) *cli.Command {
	root := &cli.Command{
		Name:                  "nizectl",
		Usage:                 "steer nized, the daemon that gives a team's chat its tools",
		Version:               api.Build(),
		EnableShellCompletion: true,
		HideHelpCommand:       true,
		Writer:                a.Out,
		ErrWriter:             a.Err,
		ExitErrHandler:        func(context.Context, *cli.Command, error) {}, // otherwise cli.Exit ends the process inside Run
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

// category sets the help category of commands.
func category(name string, commands ...*cli.Command) []*cli.Command {
	for _, c := range commands {
		c.Category = name
	}
	return commands
}

// hookCommand returns the hook of the coding agents. Its name is also the singular of
// hooks, so it has those commands, too.
func hookCommand(a *command.App) *cli.Command {
	hook := clients.HookCommand(a)
	hook.Commands = hooksCommand(a).Commands
	for _, sub := range hook.Commands {
		sub.Hidden = true
	}
	return hook
}
