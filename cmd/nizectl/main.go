// nizectl is the operator's hand: it talks to nized's control socket and to
// nothing else.
//
// One noun has one file. A command ([leaf]) reads its flags and arguments, asks
// the daemon through daemon/api, and returns an error or prints an answer; only
// run, here, turns errors into text and exit codes. Answers go to standard
// output, everything else to standard error. What came from a server, a model
// or a person is printed by [clean] alone, so that no escape sequence of theirs
// reaches the terminal. Every command has --json, whose field names are those
// of daemon/api and never change.
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
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v3"
	"golang.org/x/term"

	"nize/cmd/nizectl/display"
	"nize/daemon/api"
)

func main() { os.Exit(Main(300 * time.Millisecond)) }

// Main runs nizectl with the process's arguments and streams and returns the
// exit code. It is apart from main so that the scripts in testdata can run the
// real thing. tabWait is how long a person who pressed Tab waits for names.
func Main(tabWait time.Duration) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends at once
	a := &app{
		in:     os.Stdin,
		raw:    os.Stdout,
		out:    bufio.NewWriter(os.Stdout),
		err:    os.Stderr,
		inTTY:  term.IsTerminal(int(os.Stdin.Fd())),
		outTTY: term.IsTerminal(int(os.Stdout.Fd())),
		errTTY: term.IsTerminal(int(os.Stderr.Fd())),
		env:    os.Getenv,
		now:    time.Now,
		columns: func() int {
			n, _, err := term.GetSize(int(os.Stdout.Fd()))
			if err != nil {
				return 0 // no terminal
			}
			return n
		},
		hidden:  func() ([]byte, error) { return term.ReadPassword(int(os.Stdin.Fd())) },
		tabWait: tabWait,
	}
	return a.run(ctx, os.Args[1:])
}

// run runs one command line and returns its exit code. It is the one place
// where an error becomes text and a code.
func (a *app) run(ctx context.Context, args []string) int {
	err := a.root().Run(ctx, append([]string{"nizectl"}, args...))
	if flushErr := a.out.Flush(); err == nil && flushErr != nil {
		err = fmt.Errorf("writing the answer: %w", flushErr)
	}
	if err == nil {
		return api.ExitDone
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = failf(api.ExitFailed, "interrupted")
	}
	if text := oneLine(err.Error()); text != "" {
		fmt.Fprintln(a.err, "nizectl: "+text)
	}
	var f *failure
	if errors.As(err, &f) {
		return f.code
	}
	return api.ExitCode(err)
}

// longestWord is how many columns a word of an error may have: whoever pasted a
// whole file as a name shall still see what was wrong with it.
const longestWord = 300

// oneLine makes an error's text one line without control characters.
func oneLine(s string) string {
	words := strings.Fields(s)
	for i, w := range words {
		words[i] = display.Shorten(display.Clean(w), longestWord, "…")
	}
	return strings.Join(words, " ")
}

// root is the whole tree of commands.
func (a *app) root() *cli.Command {
	root := &cli.Command{
		Name:                  "nizectl",
		Usage:                 "steer nized, the daemon that gives a team's chat its tools",
		Version:               api.Version,
		EnableShellCompletion: true,
		HideHelpCommand:       true,
		Writer:                a.out,
		ErrWriter:             a.err,
		ExitErrHandler:        func(context.Context, *cli.Command, error) {}, // or cli.Exit ends the process inside Run
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "socket", Usage: "the daemon's control `SOCKET` (default: $NIZE_SOCKET, or where nized puts it)"},
			&cli.BoolFlag{Name: "json", Usage: "answer in JSON, for programs"},
		},
		Commands: []*cli.Command{
			a.status(), a.doctor(), a.servers(), a.tools(), a.reindex(), a.tokens(), a.users(), a.groups(),
			a.agents(), a.providers(), a.models(), a.credentials(), a.approvals(), a.alerts(), a.bots(), a.chat(),
			a.usage(), a.budgets(), a.audit(), a.config(),
			a.dev(), a.backup(), a.restore(), a.keys(), a.version(), a.help(),
		},
		ConfigureShellCompletionCommand: func(c *cli.Command) { a.completion(c) },
	}
	root.Action = unknownCommand
	root.OnUsageError = wrongUse
	return root
}
