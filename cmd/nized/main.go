// Command nized is the daemon of nize: MCP servers, the index of their tools, team state
// and the audit trail.
//
// `nizectl` controls it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/urfave/cli/v3"
	"golang.org/x/term"

	"nize/cmd/nizectl/command"
	"nize/daemon"
	"nize/daemon/api"
	"nize/daemon/settings"
	"nize/store"
	"nize/store/printable"
)

func main() {
	daemon.ChildMain()
	// Disable core dumps, which would contain the keys.
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{}) // lowering is always allowed
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	if err := rootCommand().Run(ctx, os.Args); err != nil {
		fmt.Fprintln(os.Stderr, printable.EscapeLines(fmt.Sprintf("nized: %v", err)))
		os.Exit(exitCode(err))
	}
}

// errUsage marks wrong use, which exits with 2.
var errUsage = errors.New("see nized --help")

func exitCode(err error) int {
	var f *command.Failure
	switch {
	case errors.As(err, &f):
		return f.Code
	case errors.Is(err, errUsage):
		return 2
	case errors.Is(err, store.ErrConflict):
		return daemon.ExitInUse
	}
	return 1
}

func rootCommand() *cli.Command {
	usage := func(_ context.Context, _ *cli.Command, err error, _ bool) error {
		return fmt.Errorf("%w; %w", err, errUsage)
	}
	return &cli.Command{
		Name: "nized", Usage: "the daemon of nize", Version: api.Build(), HideHelpCommand: true,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "data-dir", Usage: "the `DIR` of its state ($NIZE_DATA_DIR)", DefaultText: "by the XDG rules"},
			&cli.StringFlag{Name: "listen", Usage: "`ADDRESS` of the HTTP listener ($NIZE_LISTEN); port 0 takes any, see nized.addr in the data directory", DefaultText: settings.DefaultListen},
			&cli.BoolFlag{Name: "insecure-listen", Usage: "listen beyond loopback without TLS ($NIZE_INSECURE_LISTEN)"},
			&cli.StringFlag{Name: "socket", Usage: "`PATH` of the control socket ($NIZE_SOCKET)", DefaultText: "by the XDG rules"},
			&cli.StringFlag{Name: "config", Usage: "configuration `FILE` ($NIZE_CONFIG)", DefaultText: "nized.toml by the XDG rules, if it is there"},
			&cli.StringFlag{Name: "advertise", Usage: "`ORIGIN` at which the other nized on the same database reach this one ($NIZE_ADVERTISE)", DefaultText: "the listen address, if it is an origin"},
			&cli.StringFlag{Name: "public-url", Usage: "https `ORIGIN` that a TLS proxy in front serves ($NIZE_PUBLIC_URL)"},
			&cli.StringFlag{Name: "mcp-config", Usage: "`FILE` of MCP servers ({\"mcpServers\": {…}}) to follow when it changes", Sources: cli.EnvVars("NIZE_MCP_CONFIG")},
			&cli.StringFlag{Name: "database", Usage: "`URL` of a PostgreSQL database for the state instead of a file ($NIZE_DATABASE); its password is in $NIZE_DATABASE, $PGPASSWORD or the file $PGPASSFILE"},
			&cli.BoolFlag{Name: "new", Usage: "start with an empty database even if the data directory has contained one"},
			&cli.StringFlag{Name: "log-level", Usage: "debug, info, warn or error ($NIZE_LOG_LEVEL)", DefaultText: "info"},
			&cli.StringFlag{Name: "log-format", Usage: "text or json ($NIZE_LOG_FORMAT)", DefaultText: "text on a terminal, json otherwise"},
		},
		OnUsageError:   usage,
		ExitErrHandler: func(context.Context, *cli.Command, error) {},
		Action:         run,
		Commands:       []*cli.Command{setupCommand(usage), restore(usage), copyDatabase(usage)},
	}
}

func run(ctx context.Context, c *cli.Command) error {
	if c.Args().Present() {
		return fmt.Errorf("%q is no command of nized; %w", c.Args().First(), errUsage)
	}
	return serve(ctx, c, nil)
}

// serve runs nized. first, if set, runs beside it once it is ready; an error of first ends
// nized. Until first has ended, only warnings are logged, so that its output is not
// interrupted.
func serve(ctx context.Context, c *cli.Command, first func(context.Context) error) error {
	hangups := make(chan os.Signal, 1) // one pending signal is enough
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	opt, err := options(c)
	if err != nil {
		return err
	}
	log := newJobLog(os.Stderr, opt.DataDir)
	opt.Log, opt.Now, opt.Hangup, opt.Ready = logger(log, opt), time.Now, hangups, log.Ready
	told := ctx // the signal to stop
	var beside sync.WaitGroup
	var interrupted error // of first, if nized was signaled before its end
	if first != nil {
		level := opt.Level.Level()
		opt.Level.Set(max(level, slog.LevelWarn))
		var end context.CancelCauseFunc
		ctx, end = context.WithCancelCause(ctx)
		defer end(nil)
		opt.Ready = func() {
			log.Ready()
			beside.Go(func() {
				err := first(ctx)
				if ctx.Err() != nil {
					interrupted = err
				} else if err != nil {
					end(err)
				}
				opt.Level.Set(level)
			})
		}
	}
	for _, unknown := range opt.Layers.UnknownVariables() {
		opt.Log.Warn(unknown)
	}
	bySystemd := os.Getenv("LISTEN_FDS") != "" // New removes the variable
	d, err := daemon.New(ctx, opt)
	if errors.Is(err, context.Canceled) && told.Err() != nil { // it was signaled during startup or standby
		return nil
	}
	if err != nil {
		return err
	}
	err = d.Run(ctx)
	beside.Wait()
	if interrupted != nil {
		return errors.Join(interrupted, err)
	}
	if told.Err() == nil && ctx.Err() != nil { // first ended it
		return errors.Join(context.Cause(ctx), err)
	}
	if !errors.Is(err, daemon.ErrRestart) {
		return err
	}
	if told.Err() != nil { // it was signaled meanwhile
		return nil
	}
	return again(opt.Log, bySystemd, arguments(c))
}

// arguments returns the arguments for restarting this nized, without setup.
func arguments(c *cli.Command) []string {
	root := c.Root()
	if c == root {
		return os.Args
	}
	args := os.Args[:1:1]
	for _, f := range root.Flags {
		if name := f.Names()[0]; root.IsSet(name) {
			args = append(args, fmt.Sprintf("--%s=%v", name, root.Value(name)))
		}
	}
	return args
}

// options combines flags, environment and configuration file.
func options(c *cli.Command) (daemon.Options, error) {
	src := settings.Sources{Flags: map[string]string{}, Defaults: map[string]string{}, Env: os.Getenv, Environ: os.Environ(), File: c.String("config")}
	for key, flag := range settings.Flags() {
		if c.IsSet(flag) {
			src.Flags[key] = fmt.Sprint(c.Value(flag))
		}
	}
	if term.IsTerminal(int(os.Stderr.Fd())) {
		src.Defaults["log.format"] = "text"
	}
	opt, err := daemon.Configure(src)
	opt.Servers, opt.New = c.String("mcp-config"), c.Bool("new")
	opt.Database = store.NewSecret(os.Getenv("NIZE_DATABASE"))
	if at := c.String("database"); at != "" {
		server, urlErr := serverOf("--database", at)
		if urlErr != nil {
			return opt, urlErr
		}
		opt.Database = server
	}
	return opt, err
}

// serverOf returns the address of a database server given by a flag.
func serverOf(flag, at string) (store.Secret, error) {
	u, err := url.Parse(at)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return store.Secret{}, fmt.Errorf("%s should read like postgres://user@host:5432/name; %w", flag, errUsage)
	}
	if _, has := u.User.Password(); has || u.Query().Has("password") {
		return store.Secret{}, fmt.Errorf("a password on the command line can be seen by others: put it into $NIZE_DATABASE, $PGPASSWORD or the file $PGPASSFILE; %w", errUsage)
	}
	return store.NewSecret(at), nil
}

// logger returns a logger with opt's level, which a reload may change.
func logger(w io.Writer, opt daemon.Options) *slog.Logger {
	how := &slog.HandlerOptions{Level: opt.Level}
	w = lines{w}
	if opt.Layers.Get("log.format") == "text" {
		return slog.New(slog.NewTextHandler(w, how))
	}
	return slog.New(slog.NewJSONHandler(w, how))
}

// lines writes log lines without invisible characters. slog itself escapes only some of
// them: not direction controls in JSON, nor blank letters. A line of JSON stays the same
// document.
type lines struct{ w io.Writer }

func (l lines) Write(line []byte) (int, error) {
	if _, err := io.WriteString(l.w, printable.EscapeLines(string(line))); err != nil {
		return 0, err
	}
	return len(line), nil
}
