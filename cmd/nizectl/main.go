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
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

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

// app is the process: its streams and what it may ask of its surroundings.
// Tests put their own in.
type app struct {
	in      io.Reader
	raw     io.Writer     // standard output itself, for the chat
	out     *bufio.Writer // over raw, for all others
	err     io.Writer
	inTTY   bool // standard input is a terminal, and so on
	outTTY  bool
	errTTY  bool
	env     func(string) string
	now     func() time.Time
	columns func() int             // of the terminal, 0 for none
	hidden  func() ([]byte, error) // reads a line without echo
	tabWait time.Duration          // how long a person who pressed Tab waits for names

	stdin *bufio.Reader // over in, once it is read
}

// failure is an error whose exit code is no matter of the API's table.
type failure struct {
	code int
	text string
}

func (f *failure) Error() string { return f.text }

// usagef is the error for wrong use: exit 2.
func usagef(format string, args ...any) error {
	return &failure{api.ExitUsage, fmt.Sprintf(format, args...)}
}

// failf is the error of that exit code.
func failf(code int, format string, args ...any) error {
	return &failure{code, fmt.Sprintf(format, args...)}
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
