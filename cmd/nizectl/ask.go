package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"nize/cmd/nizectl/display"

	"github.com/urfave/cli/v3"
)

// maxSecret bounds a key or credential from outside.
const maxSecret = 64 << 10

// maxInput bounds arguments and texts read from a file or standard input.
const maxInput = 1 << 20

func yesFlag() cli.Flag {
	return &cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "don't ask"}
}

// confirm asks before what can't be undone. Without a terminal there is nobody
// to ask, so --yes must say it.
func (c *call) confirm(format string, args ...any) error {
	if c.cmd.Bool("yes") {
		return nil
	}
	question := display.Clean(fmt.Sprintf(format, args...))
	if !c.inTTY || !c.errTTY {
		return usagef("%s Nobody is there to ask: say --yes", question)
	}
	return c.ask(question)
}

// ask puts a yes-or-no question; anything but yes is a refusal by the person,
// who sees no error for it but gets exit 1.
func (c *call) ask(question string) error {
	fmt.Fprintf(c.err, "%s [y/N] ", question)
	answer, err := c.reader().ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading the answer: %w", err)
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return &failure{code: 1, text: "not done"}
}

// reader is standard input; one buffer serves all who read from it.
func (a *app) reader() *bufio.Reader {
	if a.stdin == nil {
		a.stdin = bufio.NewReader(a.in)
	}
	return a.stdin
}

// secretLine reads one secret: without echo from a terminal, else one line of
// standard input.
func (a *app) secretLine(what string) (string, error) {
	if a.inTTY {
		return a.prompt(what)
	}
	line, err := readLine(a.reader(), maxSecret)
	if err != nil {
		return "", fmt.Errorf("reading %s from standard input: %w", what, err)
	}
	return checkSecret(what, line)
}

// skipBlank passes over empty lines of standard input, such as those between two
// tokens in a file.
func (a *app) skipBlank() {
	if a.inTTY {
		return
	}
	for {
		b, err := a.reader().Peek(1)
		if err != nil || b[0] != '\n' && b[0] != '\r' {
			return // who reads next tells the error
		}
		_, _ = a.reader().Discard(1) // it was peeked at
	}
}

// secretText reads one secret: without echo from a terminal, else all of
// standard input, since a private key has several lines.
func (a *app) secretText(what string) (string, error) {
	if a.inTTY {
		return a.prompt(what)
	}
	b, err := readMost(a.reader(), maxSecret)
	if err != nil {
		return "", fmt.Errorf("reading %s from standard input: %w", what, err)
	}
	return checkSecret(what, string(b))
}

// prompt asks at the terminal without echo.
func (a *app) prompt(what string) (string, error) {
	fmt.Fprintf(a.err, "%s (not shown): ", display.Clean(what))
	b, err := a.hidden()
	fmt.Fprintln(a.err)
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", what, err)
	}
	return checkSecret(what, string(b))
}

func checkSecret(what, text string) (string, error) {
	text = strings.TrimRight(text, "\r\n")
	switch {
	case strings.TrimSpace(text) == "":
		return "", usagef("%s is empty: give it on standard input, as in `< key.txt`, or at the prompt", what)
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return "", usagef("%s is no text: give it as UTF-8", what)
	}
	return text, nil
}

// readLine reads up to a newline or the end, at most so many bytes.
func readLine(r *bufio.Reader, most int) (string, error) {
	var line []byte
	for {
		b, err := r.ReadByte()
		if err == io.EOF || b == '\n' && err == nil {
			return string(line), nil
		}
		if err != nil {
			return "", err
		}
		if line = append(line, b); len(line) > most {
			return "", usagef("it is over %d KiB", most>>10)
		}
	}
}

// readMost reads all, at most so many bytes.
func readMost(r io.Reader, most int) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
	if err != nil {
		return nil, err
	}
	if len(b) > most {
		return nil, usagef("it is over %d KiB", most>>10)
	}
	return b, nil
}

// textOrFile gives a flag's or argument's text: itself, "@FILE", or "-" for
// standard input.
func (a *app) textOrFile(what, value string) (string, error) {
	switch {
	case value == "-":
		b, err := readMost(a.reader(), maxInput)
		if err != nil {
			return "", fmt.Errorf("reading %s from standard input: %w", what, err)
		}
		return string(b), nil
	case strings.HasPrefix(value, "@"):
		f, err := os.Open(value[1:])
		if err != nil {
			return "", usagef("reading %s: %v", what, err)
		}
		defer f.Close()
		b, err := readMost(f, maxInput)
		if err != nil {
			return "", fmt.Errorf("reading %s: %w", what, err)
		}
		return string(b), nil
	}
	return value, nil
}
