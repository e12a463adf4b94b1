package chat

import (
	"cmp"
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

// Editor returns the person's editor, "" if none is set.
func Editor(getenv func(string) string) string {
	return cmp.Or(getenv("VISUAL"), getenv("EDITOR"))
}

// EditText opens text in an editor, in a file that only the user can read, and returns the
// edited text. run runs a program on the terminal.
func EditText(program, text string, run func(argv []string) error) (string, error) {
	file, err := os.CreateTemp("", "nize-arguments-*.json") // 0600
	if err != nil {
		return "", fmt.Errorf("editing the arguments: %w", err)
	}
	defer os.Remove(file.Name())
	_, err = file.WriteString(text)
	if err = errors.Join(err, file.Close()); err != nil {
		return "", fmt.Errorf("editing the arguments: %w", err)
	}
	if err := run(append(strings.Fields(program), file.Name())); err != nil {
		return "", err
	}
	edited, err := os.ReadFile(file.Name())
	if err != nil {
		return "", fmt.Errorf("reading the edited arguments: %w", err)
	}
	return string(edited), nil
}

// typedText returns the initial text of an editor: the last input for the call if it was
// invalid, otherwise its arguments.
func (f *screen) typedText(c store.Card, otherwise string) string {
	if f.typed.call == c.Call {
		return f.typed.text
	}
	return otherwise
}

// editArgs lets the person change a call's arguments: in $VISUAL or $EDITOR, or on one line
// if neither is set.
func (f *screen) editArgs(ctx context.Context, c store.Card) error {
	program := Editor(f.s.opt.Getenv)
	if program == "" {
		f.args, f.declines = &editor{prompt: f.s.words().Say(phrases.TermArgs)}, false
		f.args.set(f.typedText(c, string(c.Args)))
		f.hint = f.s.words().Say(phrases.TermArgsHint)
		return nil
	}
	pretty, _ := bots.PrettyJSON(c.Args)
	edited, err := EditText(program, f.typedText(c, pretty+"\n"), func(argv []string) error {
		runErr, err := f.runProgram(ctx, argv)
		if err == nil && runErr != nil {
			err = fmt.Errorf("running the editor %s: %w", bots.Escape(program), runErr)
		}
		return err
	})
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

// argsKey handles a key while the arguments, or the reason for a denial, are edited on one
// line.
func (f *screen) argsKey(ctx context.Context, k key) {
	switch f.args.press(k) {
	case actSubmit:
		if reason := strings.TrimSpace(f.args.value()); f.declines && reason != "" {
			f.decide(ctx, f.cards[0], api.DecideCallRequest{Verb: store.Deny, Reason: reason})
			return
		} else if f.declines {
			return
		}
		f.submitArguments(ctx, f.cards[0], f.args.value())
	case actInterrupt, actEscape, actLeave:
		f.args = nil
		f.cardSince = f.s.opt.Now()
	}
}

// submitArguments runs the call with other arguments. If they are unchanged or invalid, the
// input is kept for further editing.
func (f *screen) submitArguments(ctx context.Context, c store.Card, text string) {
	args, err := checkArguments(text)
	switch {
	case err != nil:
		f.printText(f.style.red, f.s.problem(err))
		f.keepTyped(c, text)
	case string(args) == string(c.Args):
		f.printText(f.style.dim, f.s.words().Say(phrases.TermArgsSame))
		f.args = nil
		f.cardSince = f.s.opt.Now()
	default:
		open := f.args
		f.decide(ctx, c, api.DecideCallRequest{Verb: store.Edit, Args: args})
		if len(f.cards) > 0 && f.cards[0].Call == c.Call { // it was not accepted
			f.args = open
			f.keepTyped(c, text)
		}
	}
}

// keepTyped keeps an invalid input for the next time that the call is edited.
func (f *screen) keepTyped(c store.Card, text string) {
	f.typed.call, f.typed.text = c.Call, text
	if f.args == nil {
		f.cardSince = f.s.opt.Now()
		f.hint = f.s.words().Say(phrases.TermTypedKept)
	}
}

// terminalError is returned if the terminal could not be taken back from a program.
type terminalError struct{ err error }

func (e *terminalError) Error() string { return "taking back the terminal: " + e.err.Error() }
func (e *terminalError) Unwrap() error { return e.err }

// runProgram gives the terminal to a program and takes it back afterwards.
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
