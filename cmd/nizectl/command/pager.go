package command

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// Page prints a long text: in the person's pager if the terminal has fewer rows, otherwise
// directly. The text must be clean.
func (a *App) Page(text string) error {
	if err := a.Flush(); err != nil {
		return err
	}
	if program := a.pager(); program != "" && strings.Count(text, "\n") >= a.Rows() {
		err := runPager(program, text, a.Env)
		if err == nil {
			return nil
		}
		a.note("showing this with " + program + ": " + err.Error())
	}
	_, err := a.Out.WriteString(text)
	return errors.Join(err, a.Flush())
}

// Paged is Page for the output of write.
func (a *App) Paged(write func()) error {
	var text bytes.Buffer
	out := a.Out
	a.Out = bufio.NewWriter(&text)
	write()
	err := a.Out.Flush()
	a.Out = out
	if err != nil {
		return err
	}
	return a.Page(text.String())
}

// pager returns the pager program, "" for none.
func (a *App) pager() string {
	if !a.InTTY || !a.OutTTY || a.Env("TERM") == "dumb" || a.Rows == nil || a.Rows() <= 0 {
		return ""
	}
	if own := strings.TrimSpace(a.Env("PAGER")); own != "" {
		return own
	}
	if _, err := exec.LookPath("less"); err != nil {
		return ""
	}
	return "less"
}

// runPager runs the program with its arguments and the text as its input.
func runPager(program, text string, env func(string) string) error {
	argv := strings.Fields(program)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(text), os.Stdout, os.Stderr
	cmd.Env = os.Environ()
	if env("LESS") == "" {
		cmd.Env = append(cmd.Env, "LESS=FRX") // colors, and no pager for a text that fits
	}
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) || errors.Is(err, syscall.EPIPE) {
		return nil // the user quit before its end
	}
	return err
}
