package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/command"
	"nize/cmd/nizectl/display"
	"nize/daemon/api"
)

const (
	// restartPatience is how long a daemon may take to drain and restart.
	restartPatience = 5 * time.Minute
	restartLook     = 50 * time.Millisecond
)

func backupCommand(a *command.App) *cli.Command {
	return a.Command(command.Leaf{Name: "backup", Args: "FILE", Usage: "copy the database to a file", Run: backup,
		More:  "The daemon keeps working.\nThe copy does not contain the key; save the key separately with nizectl keys export --to FILE.",
		Flags: []cli.Flag{&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "replace FILE without asking"}}})
}

func backup(ctx context.Context, c *command.Call) error {
	path := c.Arg(0)
	if err := mayWrite(c, path); err != nil {
		return err
	}
	var b api.Backup
	done := c.Busy("copying the database…")
	err := writePrivate(path, func(f *os.File) (err error) {
		b, err = api.SaveBackup(ctx, c.API, f)
		return err
	})
	done()
	if err != nil {
		return err
	}
	if b.File, err = filepath.Abs(path); err != nil {
		b.File = path
	}
	if c.JSON {
		return c.PrintJSON(b)
	}
	c.Field("file", b.File)
	c.Field("size", fmt.Sprintf("%d bytes", b.Size))
	c.Field("sha256", b.SHA256)
	c.Field("key", b.Key)
	c.Note("the copy opens with that key only, which is not in it")
	return nil
}

// mayWrite asks for confirmation before a regular file is replaced; anything else is
// refused.
func mayWrite(c *command.Call, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("looking at the file: %w", err)
	case !info.Mode().IsRegular():
		return command.Usagef("%s exists and is not a file: name another", path)
	}
	return c.Confirm("Replace %s?", path)
}

// writePrivate writes a file of mode 0600 atomically: it gets its name when everything is
// on disk.
func writePrivate(path string, write func(*os.File) error) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, ".nize-*") // mode 0600
	if err != nil {
		var named *fs.PathError // the error contains a temporary name
		if errors.As(err, &named) {
			err = named.Err
		}
		return fmt.Errorf("writing %s: %w", path, err)
	}
	defer os.Remove(f.Name()) // has no effect once it was renamed
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return errors.Join(d.Sync(), d.Close())
}

func restoreCommand(a *command.App) *cli.Command {
	return a.Command(command.Leaf{Name: "restore", Args: "FILE", Usage: "replace the database with a backup", Run: restore,
		More: "The daemon restarts.\nCalls that were waiting in the copy expire, calls that were running are lost, and its tokens and standing answers are revoked. " +
			"The previous database is kept. If no daemon runs, use nized restore FILE.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "keep-access", Usage: "keep the tokens and the standing answers of the backup valid"},
			command.YesFlag(),
		}})
}

func restore(ctx context.Context, c *command.Call) error {
	f, err := os.Open(c.Arg(0))
	if err != nil {
		return fmt.Errorf("opening the backup: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("opening the backup: %w", err)
	}
	if !info.Mode().IsRegular() {
		return command.Usagef("%s is not a file", c.Arg(0))
	}
	if info.Size() == 0 {
		return command.Usagef("%s is empty", c.Arg(0))
	}
	if err := c.Confirm("Replace the database by %s?", c.Arg(0)); err != nil {
		return err
	}
	before, err := api.GetStatus.Call(ctx, c.API, api.Empty{})
	if err != nil {
		return err
	}
	done := c.Busy("restoring…")
	defer done()
	said, err := api.Restore.Call(ctx, c.API, api.RestoreRequest{KeepAccess: c.Cmd.Bool("keep-access")}, f, info.Size())
	if err != nil {
		return err
	}
	if err := awaitRestart(ctx, c, before.Started); err != nil {
		return fmt.Errorf("%w; the database from before is %s", err, said.Kept)
	}
	took, err := api.RestoredAs(ctx, c.API, said.SHA256)
	if err != nil {
		return fmt.Errorf("reading the result of the restore: %w", err)
	}
	if !took {
		return command.Failf(api.ExitFailed, "nized is running with the previous database; its log says why the copy could not be restored")
	}
	done()
	if c.JSON {
		return c.PrintJSON(said)
	}
	c.Line("%s", display.Clean(said.String()))
	c.Note("nized is running again; the previous database is kept as %s; remove it when you no longer need it", said.Kept)
	return nil
}

// awaitRestart waits for the response of a daemon that started after the previous one.
func awaitRestart(ctx context.Context, c *command.Call, before time.Time) error {
	ctx, cancel := context.WithTimeoutCause(ctx, restartPatience,
		fmt.Errorf("nized did not respond within %s; see its log", command.Span(restartPatience)))
	defer cancel()
	look := time.NewTicker(restartLook)
	defer look.Stop()
	for {
		if s, err := api.GetStatus.Call(ctx, c.API, api.Empty{}); err == nil && s.Started.After(before) {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-look.C:
		}
	}
}
