package main

import (
	"bufio"
	"fmt"
	"io"
	"time"

	"nize/daemon/api"
)

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
