// Package command is what all commands of nizectl are made of: a [Leaf] says
// what one takes and does, a [Call] is one run of it, and [App], the process,
// prints its answers, asks its questions and completes its names. It knows the
// command library's habits, so that no noun has to.
package command

import (
	"bufio"
	"fmt"
	"io"
	"time"

	"nize/daemon/api"
)

// App is the process: its streams and what it may ask of its surroundings.
// Tests put their own in.
type App struct {
	In      io.Reader
	Raw     io.Writer     // standard output itself, for the chat
	Out     *bufio.Writer // over Raw, for all others
	Err     io.Writer
	InTTY   bool // standard input is a terminal, and so on
	OutTTY  bool
	ErrTTY  bool
	Env     func(string) string
	Now     func() time.Time
	Columns func() int             // of the terminal, 0 for none
	Rows    func() int             // the same
	Hidden  func() ([]byte, error) // reads a line without echo
	TabWait time.Duration          // how long a person who pressed Tab waits for names

	stdin *bufio.Reader // over in, once it is read
}

// ExitInterrupted is the exit code of what a person ended with Ctrl-C, as shells
// have it: 128 and the number of the signal.
const ExitInterrupted = 130

// Failure is an error whose exit code is no matter of the API's table.
type Failure struct {
	Code int
	text string
}

func (f *Failure) Error() string { return f.text }

// Usagef is the error for wrong use: exit 2.
func Usagef(format string, args ...any) error {
	return &Failure{api.ExitUsage, fmt.Sprintf(format, args...)}
}

// Failf is the error of that exit code.
func Failf(code int, format string, args ...any) error {
	return &Failure{code, fmt.Sprintf(format, args...)}
}
