package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"syscall"
	"time"

	"github.com/urfave/cli/v3"

	"nize/daemon"
	"nize/daemon/backup"
)

func restore(usage cli.OnUsageErrorFunc) *cli.Command {
	return &cli.Command{
		Name: "restore", ArgsUsage: "FILE", Usage: "replace the database with a backup while no nized runs (otherwise: nizectl restore FILE)",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "keep-access", Usage: "keep the tokens and the standing answers of the backup valid"},
		},
		OnUsageError: usage,
		Action:       runRestore,
	}
}

func runRestore(ctx context.Context, c *cli.Command) error {
	if c.Args().Len() != 1 {
		return fmt.Errorf("restore needs one FILE; %w", errUsage)
	}
	opt, err := options(c)
	if err != nil {
		return err
	}
	opt.Log, opt.Now = logger(os.Stderr, opt), time.Now
	said, err := (&backup.Directory{Path: opt.DataDir, Database: opt.Database, Buckets: daemon.Buckets(), Env: opt.Env, Now: opt.Now, Log: opt.Log}).Restore(ctx, c.Args().First(), c.Bool("keep-access"))
	if err != nil {
		return fmt.Errorf("restoring %s: %w", c.Args().First(), err)
	}
	fmt.Println(said)
	if said.Kept != "" {
		fmt.Printf("the previous database is kept as %s; remove it when you no longer need it\n", said.Kept)
	}
	return nil
}

// again executes this program again in this process, so that systemd and scripts keep its
// pid. Sockets opened by systemd can't be passed on; systemd starts the service again with
// them.
func again(log *slog.Logger, bySystemd bool, args []string) error {
	if bySystemd {
		return errors.New("the database was restored; systemd starts nized again with its sockets")
	}
	path, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding the program to start again: %w", err)
	}
	log.Info("nized starts again")
	return fmt.Errorf("starting again: %w", syscall.Exec(path, args, os.Environ()))
}
