// Nized is the daemon of nize: it keeps the MCP servers, the index of their
// tools, the team's state and its audit trail. `nizectl` steers it.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/urfave/cli/v3"
	"golang.org/x/term"

	"nize/daemon"
	"nize/daemon/api"
	"nize/store"
)

func main() {
	daemon.ChildMain()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends at once
	if err := command().Run(ctx, os.Args); err != nil {
		fmt.Fprintf(os.Stderr, "nized: %v\n", err)
		os.Exit(exitCode(err))
	}
}

// errUsage marks wrong use, which exits with 2.
var errUsage = errors.New("see nized --help")

func exitCode(err error) int {
	switch {
	case errors.Is(err, errUsage):
		return 2
	case errors.Is(err, store.ErrConflict):
		return daemon.ExitInUse
	}
	return 1
}

func command() *cli.Command {
	usage := func(_ context.Context, _ *cli.Command, err error, _ bool) error {
		return fmt.Errorf("%w; %w", err, errUsage)
	}
	return &cli.Command{
		Name: "nized", Usage: "the daemon of nize", Version: api.Version, HideHelpCommand: true,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "data-dir", Usage: "where its state is kept, `DIR`", Sources: cli.EnvVars("NIZE_DATA_DIR"), DefaultText: "by the XDG rules"},
			&cli.StringFlag{Name: "listen", Usage: "`ADDRESS` of the HTTP listener; port 0 takes any, see nized.addr in the data directory", Sources: cli.EnvVars("NIZE_LISTEN")},
			&cli.StringFlag{Name: "socket", Usage: "`PATH` of the control socket", Sources: cli.EnvVars("NIZE_SOCKET"), DefaultText: "by the XDG rules"},
			&cli.StringFlag{Name: "log-level", Usage: "debug, info, warn or error", Value: "info", Sources: cli.EnvVars("NIZE_LOG_LEVEL")},
			&cli.StringFlag{Name: "log-format", Usage: "text or json", Sources: cli.EnvVars("NIZE_LOG_FORMAT"), DefaultText: "text on a terminal, json otherwise"},
		},
		OnUsageError:   usage,
		ExitErrHandler: func(context.Context, *cli.Command, error) {},
		Action:         run,
	}
}

func run(ctx context.Context, c *cli.Command) error {
	if c.Args().Present() {
		return fmt.Errorf("%q is no command of nized; %w", c.Args().First(), errUsage)
	}
	log, err := logger(os.Stderr, c.String("log-level"), c.String("log-format"))
	if err != nil {
		return err
	}
	opt := daemon.Options{
		DataDir: cmp.Or(c.String("data-dir"), api.DefaultDataDir()),
		Listen:  c.String("listen"),
		Socket:  c.String("socket"),
		Log:     log, Env: os.Getenv, Now: time.Now,
	}
	if opt.Socket == "" {
		opt.Socket = api.DefaultSocket()
		if c.String("data-dir") != "" {
			opt.Socket = api.SocketIn(opt.DataDir)
		}
	}
	if opt.Listen == "" {
		opt.Listen = daemon.DefaultListen
		if port := os.Getenv("NIZE_MCP_PORT"); port != "" {
			opt.Listen = "127.0.0.1:" + port
		}
	}
	d, err := daemon.New(ctx, opt)
	if err != nil {
		return err
	}
	return d.Run(ctx)
}

func logger(w *os.File, level, format string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("--log-level %q: use debug, info, warn or error; %w", level, errUsage)
	}
	if format == "" {
		format = "json"
		if term.IsTerminal(int(w.Fd())) {
			format = "text"
		}
	}
	return newLogger(w, l, format)
}

func newLogger(w io.Writer, level slog.Level, format string) (*slog.Logger, error) {
	opt := &slog.HandlerOptions{Level: level}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(w, opt)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, opt)), nil
	}
	return nil, fmt.Errorf("--log-format %q: use text or json; %w", format, errUsage)
}
