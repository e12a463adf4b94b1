// Package command is the framework of nizectl's commands: a [Leaf] declares one, a [Call]
// is one run.
//
// [App], the process, prints answers, asks questions and completes names. The package works
// around the command library's quirks, so that the commands need not.
package command

import (
	"bufio"
	"fmt"
	"io"
	"time"

	"nize/daemon/api"
)

// App is the process: its streams and its environment. Tests replace them.
type App struct {
	In      io.Reader
	Raw     io.Writer     // standard output itself, for the chat
	Out     *bufio.Writer // writes to Raw, for all other commands
	Err     io.Writer
	InTTY   bool // standard input is a terminal, etc.
	OutTTY  bool
	ErrTTY  bool
	Env     func(string) string
	Now     func() time.Time
	Columns func() int             // of the terminal, 0 for none
	Rows    func() int             // the same
	Hidden  func() ([]byte, error) // reads a line without echo
	TabWait time.Duration          // how long completion waits for names

	stdin *bufio.Reader // wraps in, once it is read
}

// ExitInterrupted is the exit code after Ctrl-C, as in shells: 128 and the number of the
// signal.
const ExitInterrupted = 130

// Failure is an error with an exit code outside the API's table.
type Failure struct {
	Code int
	text string
}

func (f *Failure) Error() string { return f.text }

// Usagef returns an error for wrong use: exit 2.
func Usagef(format string, args ...any) error {
	return &Failure{api.ExitUsage, fmt.Sprintf(format, args...)}
}

// Failf returns an error with that exit code.
func Failf(code int, format string, args ...any) error {
	return &Failure{code, fmt.Sprintf(format, args...)}
}
