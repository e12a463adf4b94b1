package command

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/display"
)

// MaxSecret limits a key or credential from outside.
const MaxSecret = 64 << 10

// maxInput limits arguments and texts read from a file or standard input.
const maxInput = 1 << 20

// YesFlag returns the flag that answers [Call.Confirm].
func YesFlag() cli.Flag {
	return &cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "don't ask"}
}

// Confirm asks for confirmation before an irreversible action. Without a terminal it
// requires --yes.
func (c *Call) Confirm(format string, args ...any) error {
	if c.Cmd.Bool("yes") {
		return nil
	}
	question := display.Clean(fmt.Sprintf(format, args...))
	if !c.InTTY || !c.ErrTTY {
		return Usagef("%s There is no terminal to ask at; use --yes", question)
	}
	return c.Ask(question)
}

// AskLine asks a question that is answered in one line; the end of the input counts as a
// refusal by the person.
func (c *Call) AskLine(question string) (string, error) {
	fmt.Fprint(c.Err, question)
	answer, err := c.reader().ReadString('\n')
	if answer == "" && errors.Is(err, io.EOF) {
		return "", &Failure{Code: 1, text: "not done"}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("reading the answer: %w", err)
	}
	return strings.TrimSpace(answer), nil
}

// Ask asks a yes-or-no question; any answer except yes is a refusal by the person, which
// prints no error but exits with 1.
func (c *Call) Ask(question string) error {
	fmt.Fprintf(c.Err, "%s [y/N] ", question)
	answer, err := c.reader().ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading the answer: %w", err)
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return &Failure{Code: 1, text: "not done"}
}

// AskLine asks a question and returns the line that answers it, which may be empty.
func (a *App) AskLine(question string) (string, error) {
	fmt.Fprint(a.Err, display.Clean(question))
	line, err := readLine(a.reader(), maxInput)
	if err != nil {
		return "", fmt.Errorf("reading the answer: %w", err)
	}
	return strings.TrimSpace(line), nil
}

// TypedLine is [App.AskLine] for a question whose empty answer has a meaning: if the
// input ends before anything was typed, it returns io.EOF.
func (a *App) TypedLine(question string) (string, error) {
	fmt.Fprint(a.Err, display.Clean(question))
	if _, err := a.reader().Peek(1); err != nil {
		fmt.Fprintln(a.Err)
		return "", err
	}
	line, err := readLine(a.reader(), maxInput)
	return strings.TrimSpace(line), err
}

// OneWord returns an error for a key with spaces or control characters, because it is sent
// in a header.
func OneWord(key string, err error) (string, error) {
	if err != nil {
		return "", err
	}
	key = strings.TrimSpace(key)
	if strings.IndexFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) >= 0 {
		return "", Usagef("that is not a key: it has spaces or characters that keys do not have")
	}
	return key, nil
}

// reader returns the buffered standard input, shared by all who read from it.
func (a *App) reader() *bufio.Reader {
	if a.stdin == nil {
		a.stdin = bufio.NewReader(a.In)
	}
	return a.stdin
}

// SecretLine reads one secret: without echo from a terminal, otherwise one line of standard
// input.
func (a *App) SecretLine(what string) (string, error) {
	if a.InTTY {
		return a.prompt(what)
	}
	line, err := readLine(a.reader(), MaxSecret)
	if err != nil {
		return "", fmt.Errorf("reading %s from standard input: %w", what, err)
	}
	return CheckSecret(what, line)
}

// OptionalLine is SecretLine for an optional secret: an empty line, or the end of standard
// input, is none.
func (a *App) OptionalLine(what string) (string, error) {
	if a.InTTY {
		text, err := a.promptHidden(what, "not shown; press Enter for none")
		if err != nil || strings.TrimSpace(text) == "" {
			return "", err
		}
		return CheckSecret(what, text)
	}
	line, err := readLine(a.reader(), MaxSecret)
	if err != nil {
		return "", fmt.Errorf("reading %s from standard input: %w", what, err)
	}
	if strings.TrimSpace(line) == "" {
		return "", nil
	}
	return CheckSecret(what, line)
}

// SkipBlank skips empty lines of standard input, such as those between two tokens in a
// file.
func (a *App) SkipBlank() {
	if a.InTTY {
		return
	}
	for {
		b, err := a.reader().Peek(1)
		if err != nil || b[0] != '\n' && b[0] != '\r' {
			return // the next read returns the error
		}
		_, _ = a.reader().Discard(1) // can't fail: it was peeked at
	}
}

// SecretText reads one secret: without echo from a terminal, otherwise all of standard
// input, since a private key has several lines.
func (a *App) SecretText(what string) (string, error) {
	if a.InTTY {
		return a.prompt(what)
	}
	b, err := readMost(a.reader(), MaxSecret)
	if err != nil {
		return "", fmt.Errorf("reading %s from standard input: %w", what, err)
	}
	return CheckSecret(what, string(b))
}

// prompt prompts at the terminal without echo.
func (a *App) prompt(what string) (string, error) {
	text, err := a.promptHidden(what, "not shown")
	if err != nil {
		return "", err
	}
	return CheckSecret(what, text)
}

func (a *App) promptHidden(what, note string) (string, error) {
	fmt.Fprintf(a.Err, "%s (%s): ", display.Clean(what), note)
	b, err := a.Hidden()
	fmt.Fprintln(a.Err)
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", what, err)
	}
	return string(b), nil
}

// CheckSecret returns a key without surrounding white space, or an error if it is invalid.
func CheckSecret(what, text string) (string, error) {
	text = strings.TrimRight(text, "\r\n")
	switch {
	case strings.TrimSpace(text) == "":
		return "", Usagef("%s is empty: pass it on standard input, as in `< key.txt`, or at the prompt", what)
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return "", Usagef("%s is not valid UTF-8 text", what)
	}
	return text, nil
}

// readLine reads up to a newline or the end, at most that many bytes.
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
			return "", Usagef("it is over %d KiB", most>>10)
		}
	}
}

// readMost reads everything, at most that many bytes.
func readMost(r io.Reader, most int) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
	if err != nil {
		return nil, err
	}
	if len(b) > most {
		return nil, Usagef("it is over %d KiB", most>>10)
	}
	return b, nil
}

// TextOrFile returns the text of a flag or argument: itself, "@FILE", or "-" for standard
// input.
func (a *App) TextOrFile(what, value string) (string, error) {
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
			return "", Usagef("reading %s: %v", what, err)
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
