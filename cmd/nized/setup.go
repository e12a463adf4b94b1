package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v3"
	"golang.org/x/term"

	"nize/cmd/nizectl/command"
	"nize/cmd/nized/setup"
	"nize/daemon/api"
)

func setupCommand(usage cli.OnUsageErrorFunc) *cli.Command {
	return &cli.Command{
		Name: "setup", Usage: "ask for an admin, a model and a first server, print the link to the chat page, and start nized if none runs",
		Description: "Without a terminal it asks nothing and uses defaults for missing flags, and the\n" +
			"model's key is a line of standard input. If no nized runs, it stays as one.\n\n" +
			"nized setup --admin mia --model openai --server example < key.txt",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "admin", Usage: "`NAME` of the admin whom the link signs in", DefaultText: "you"},
			&cli.StringFlag{Name: "model", Usage: "`SERVICE` of models, SERVICE/MODEL, a URL, or none", DefaultText: setup.None},
			&cli.StringFlag{Name: "base-url", Usage: "`URL` of that service, if its name is not enough"},
			&cli.StringFlag{Name: "key-file", Usage: "read the service's key from this `FILE` instead of standard input", TakesFile: true},
			&cli.StringFlag{Name: "server", Usage: "`COMMAND` or URL of an MCP server, example, or none", DefaultText: setup.Example},
			&cli.StringFlag{Name: "server-name", Usage: "its `NAME` in nize", DefaultText: "derived from the command"},
		},
		OnUsageError: usage,
		Action:       runSetup,
	}
}

func runSetup(ctx context.Context, c *cli.Command) error {
	if c.Args().Present() {
		return fmt.Errorf("setup takes no arguments, but got %q; %w", c.Args().First(), errUsage)
	}
	opt, err := options(c)
	if err != nil {
		return err
	}
	a := terminal()
	plan, err := ask(ctx, a, setup.Answers{
		Admin: c.String("admin"), Model: c.String("model"), BaseURL: c.String("base-url"), KeyFile: c.String("key-file"),
		Server: c.String("server"), ServerName: c.String("server-name"),
	})
	if err != nil {
		return err
	}
	socket := ""
	if c.IsSet("socket") || c.IsSet("data-dir") {
		socket = opt.Socket
	}
	running := a.Client(socket)
	defer running.Close()
	_, err = api.GetStatus.Call(ctx, running, api.Empty{})
	if err == nil {
		done, err := apply(ctx, a, plan, running, "")
		if err != nil {
			return err
		}
		return done.Err()
	}
	if !errors.Is(err, api.ErrNoDaemon) {
		return fmt.Errorf("asking the nized that runs: %w", err)
	}
	next := strings.Join(append([]string{"nized"}, arguments(c)[1:]...), " ")
	return serve(ctx, c, func(ctx context.Context) error {
		own := api.New(opt.Socket)
		defer own.Close()
		_, err := apply(ctx, a, plan, own, "nized runs here until you press Ctrl-C; next time, start it with: "+next+"\n")
		return err // the failed part was printed, and can be repeated with nizectl
	})
}

func apply(ctx context.Context, a *command.App, plan *setup.Plan, c *api.Client, before string) (*setup.Result, error) {
	done, err := plan.Apply(ctx, c, func(text string) {
		if a.ErrTTY {
			fmt.Fprintln(a.Err, text)
		}
	})
	if err != nil {
		return nil, err
	}
	return done, done.Print(a, before)
}

// ask asks the questions. A signal ends them and restores the terminal's echo.
func ask(ctx context.Context, a *command.App, given setup.Answers) (*setup.Plan, error) {
	type answer struct {
		plan *setup.Plan
		err  error
	}
	var hidden hiddenInput
	a.Hidden = hidden.read
	got := make(chan answer, 1) // so that an abandoned reader can end
	go func() {
		plan, err := setup.Ask(a, given, you())
		got <- answer{plan, err}
	}()
	select {
	case g := <-got:
		return g.plan, g.err
	case <-ctx.Done():
		hidden.end()
		fmt.Fprintln(os.Stderr)
		return nil, command.Failf(command.ExitInterrupted, "interrupted; nothing was changed")
	}
}

// hiddenInput reads from the terminal without echo, until end is called.
type hiddenInput struct {
	mu     sync.Mutex
	before *term.State // the terminal's state before reading, while it reads
	ended  bool
}

func (h *hiddenInput) read() ([]byte, error) {
	fd := int(os.Stdin.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	if h.ended {
		h.mu.Unlock()
		return nil, context.Canceled
	}
	h.before = before
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		h.before = nil
		h.mu.Unlock()
	}()
	return term.ReadPassword(fd)
}

// end restores the terminal's echo permanently. A reader that is about to start disables
// the echo, maybe just after end was called, and would leave the terminal without it.
func (h *hiddenInput) end() {
	for reads := true; reads; time.Sleep(time.Millisecond) {
		h.mu.Lock()
		h.ended = true
		if reads = h.before != nil; reads {
			fd := int(os.Stdin.Fd())
			if now, err := term.GetState(fd); err != nil || *now != *h.before {
				_ = term.Restore(fd, h.before) // the process ends
				reads = false
			}
		}
		h.mu.Unlock()
	}
}

// you returns the name of the person at the keyboard, who may have become root.
func you() string {
	if name := os.Getenv("SUDO_USER"); name != "" && os.Getuid() == 0 {
		return name
	}
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "admin"
}

// terminal returns this process's terminal in the form used by nizectl's commands.
func terminal() *command.App {
	return &command.App{
		In: os.Stdin, Raw: os.Stdout, Out: bufio.NewWriter(io.Discard), Err: os.Stderr,
		InTTY: term.IsTerminal(int(os.Stdin.Fd())), OutTTY: term.IsTerminal(int(os.Stdout.Fd())), ErrTTY: term.IsTerminal(int(os.Stderr.Fd())),
		Env: os.Getenv, Now: time.Now,
	}
}
