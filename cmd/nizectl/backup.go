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

	"nize/cmd/nizectl/display"
	"nize/daemon/api"
)

const (
	// restartPatience is how long a daemon may take to drain and come back.
	restartPatience = 5 * time.Minute
	restartLook     = 50 * time.Millisecond
)

func (a *app) backup() *cli.Command {
	return a.command(leaf{name: "backup", args: "FILE", usage: "copy the database to a file, while the daemon works", run: backup,
		more:  "The key is not in the copy: keep it elsewhere, with nizectl keys export --to FILE.",
		flags: []cli.Flag{&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "replace FILE without asking"}}})
}

func backup(ctx context.Context, c *call) error {
	path := c.arg(0)
	if err := c.mayWrite(path); err != nil {
		return err
	}
	var b api.Backup
	done := c.busy("copying the database…")
	err := writePrivate(path, func(f *os.File) (err error) {
		b, err = c.api.Backup(ctx, f)
		return err
	})
	done()
	if err != nil {
		return err
	}
	if b.File, err = filepath.Abs(path); err != nil {
		b.File = path
	}
	if c.json {
		return c.printJSON(b)
	}
	c.field("file", b.File)
	c.field("size", fmt.Sprintf("%d bytes", b.Size))
	c.field("sha256", b.SHA256)
	c.field("key", b.Key)
	c.note("the copy opens with that key only, which is not in it")
	return nil
}

// mayWrite asks before a file is replaced; nothing else is.
func (c *call) mayWrite(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("looking at the file: %w", err)
	case !info.Mode().IsRegular():
		return usagef("%s is there and is no file: name another", path)
	}
	return c.confirm("Replace %s?", path)
}

// writePrivate makes a file of mode 0600, whole or not at all: it gets its name
// when all is on disk.
func writePrivate(path string, write func(*os.File) error) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, ".nize-*") // mode 0600
	if err != nil {
		var named *fs.PathError // with a name that nobody gave
		if errors.As(err, &named) {
			err = named.Err
		}
		return fmt.Errorf("writing %s: %w", path, err)
	}
	defer os.Remove(f.Name()) // gone once it was renamed
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

func (a *app) restore() *cli.Command {
	return a.command(leaf{name: "restore", args: "FILE", usage: "put a backup in the database's place; the daemon starts again", run: restore,
		more: "Calls that waited in the copy expire, those that ran are lost, and its tokens and standing answers are revoked. " +
			"The database from before is kept. Where no daemon runs: nized restore FILE.",
		flags: []cli.Flag{
			&cli.BoolFlag{Name: "keep-access", Usage: "keep the tokens and the standing answers of the backup valid"},
			yesFlag(),
		}})
}

func restore(ctx context.Context, c *call) error {
	f, err := os.Open(c.arg(0))
	if err != nil {
		return fmt.Errorf("opening the backup: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("opening the backup: %w", err)
	}
	if !info.Mode().IsRegular() {
		return usagef("%s is no file", c.arg(0))
	}
	if info.Size() == 0 {
		return usagef("%s is empty", c.arg(0))
	}
	if err := c.confirm("Replace the database by %s?", c.arg(0)); err != nil {
		return err
	}
	before, err := api.GetStatus.Call(ctx, c.api, api.Empty{})
	if err != nil {
		return err
	}
	done := c.busy("restoring…")
	defer done()
	said, err := c.api.Restore(ctx, f, info.Size(), c.cmd.Bool("keep-access"))
	if err != nil {
		return err
	}
	if err := c.awaitRestart(ctx, before.Started); err != nil {
		return fmt.Errorf("%w; the database from before is %s", err, said.Kept)
	}
	took, err := c.api.RestoredAs(ctx, said.SHA256)
	if err != nil {
		return fmt.Errorf("looking at what was restored: %w", err)
	}
	if !took {
		return failf(api.ExitFailed, "nized is back with the database from before: its log says why the copy could not be put in place")
	}
	done()
	if c.json {
		return c.printJSON(said)
	}
	c.line("%s", display.Clean(said.String()))
	c.note("nized answers again; the database from before is kept as %s: remove it when all is well", said.Kept)
	return nil
}

// awaitRestart waits until a daemon answers that started after the one before.
func (c *call) awaitRestart(ctx context.Context, before time.Time) error {
	ctx, cancel := context.WithTimeoutCause(ctx, restartPatience,
		fmt.Errorf("nized did not answer again within %s: see its log", span(restartPatience)))
	defer cancel()
	look := time.NewTicker(restartLook)
	defer look.Stop()
	for {
		if s, err := api.GetStatus.Call(ctx, c.api, api.Empty{}); err == nil && s.Started.After(before) {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-look.C:
		}
	}
}
