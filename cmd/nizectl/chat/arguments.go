package chat

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/term"

	"nize/bots"
	"nize/bots/phrases"
	"nize/daemon/api"
	"nize/store"
)

// editArgs lets the person change a call's arguments: in $VISUAL or $EDITOR,
// or on one line where neither is set.
func (f *screen) editArgs(ctx context.Context, c store.Card) error {
	program := f.s.opt.Getenv("VISUAL")
	if program == "" {
		program = f.s.opt.Getenv("EDITOR")
	}
	if program == "" {
		f.args = &editor{prompt: f.s.words().Say(phrases.TermArgs)}
		f.args.set(string(c.Args))
		f.hint = f.s.words().Say(phrases.TermArgsHint)
		return nil
	}
	edited, err := f.editInProgram(ctx, program, c)
	if err != nil {
		var broken *terminalError
		if errors.As(err, &broken) {
			return err
		}
		f.printText(f.style.red, f.s.problem(err))
		f.cardSince = f.s.opt.Now()
		return nil
	}
	f.submitArguments(ctx, c, edited)
	return nil
}

// argsKey edits the arguments on one line.
func (f *screen) argsKey(ctx context.Context, k key) {
	switch f.args.press(k) {
	case actSubmit:
		f.submitArguments(ctx, f.cards[0], f.args.value())
	case actInterrupt, actEscape, actLeave:
		f.args = nil
		f.cardSince = f.s.opt.Now()
	}
}

// submitArguments runs the call with other arguments, unless they are the same or can't
// be read.
func (f *screen) submitArguments(ctx context.Context, c store.Card, text string) {
	args, err := checkArguments(text)
	switch {
	case err != nil:
		f.printText(f.style.red, f.s.problem(err))
	case string(args) == string(c.Args):
		f.printText(f.style.dim, f.s.words().Say(phrases.TermArgsSame))
		f.args = nil
		f.cardSince = f.s.opt.Now()
	default:
		f.decide(ctx, c, api.DecideCallRequest{Verb: store.Edit, Args: args})
	}
}

// terminalError means that the terminal could not be taken back.
type terminalError struct{ err error }

func (e *terminalError) Error() string { return "taking back the terminal: " + e.err.Error() }
func (e *terminalError) Unwrap() error { return e.err }

// editInProgram hands the terminal to an editor and returns what it wrote.
func (f *screen) editInProgram(ctx context.Context, program string, c store.Card) (string, error) {
	file, err := os.CreateTemp("", "nize-arguments-*.json") // 0600
	if err != nil {
		return "", fmt.Errorf("editing the arguments: %w", err)
	}
	defer os.Remove(file.Name())
	pretty, _ := bots.PrettyJSON(c.Args)
	_, err = file.WriteString(pretty + "\n")
	if err = errors.Join(err, file.Close()); err != nil {
		return "", fmt.Errorf("editing the arguments: %w", err)
	}
	runErr, err := f.runProgram(ctx, append(strings.Fields(program), file.Name()))
	if err != nil {
		return "", err
	}
	if runErr != nil {
		return "", fmt.Errorf("running the editor %s: %w", bots.Escape(program), runErr)
	}
	edited, err := os.ReadFile(file.Name())
	if err != nil {
		return "", fmt.Errorf("reading the edited arguments: %w", err)
	}
	return string(edited), nil
}

// runProgram gives the terminal to a program and takes it back.
func (f *screen) runProgram(ctx context.Context, argv []string) (runErr, err error) {
	tty := f.s.opt.In.(*os.File)
	f.region.erase()
	f.region.w.WriteString("\x1b[?2004l")
	if err := f.region.w.Flush(); err != nil {
		return nil, &terminalError{err}
	}
	f.in.close()
	if err := term.Restore(int(tty.Fd()), f.raw); err != nil {
		return nil, &terminalError{err}
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, f.s.opt.Out, f.s.opt.Err
	runErr = cmd.Run()
	if _, err := term.MakeRaw(int(tty.Fd())); err != nil {
		return runErr, &terminalError{err}
	}
	if f.in, err = openInput(tty); err != nil {
		return runErr, &terminalError{err}
	}
	f.decoder = decoder{}
	f.region.w.WriteString("\x1b[?2004h")
	f.measure()
	return runErr, nil
}
