package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/command"
	"nize/daemon/api"
)

// keysCommand is the group of commands.
func keysCommand(a *command.App) *cli.Command {
	return command.Group("keys", "rotate and export the sealing keys",
		a.Command(command.Leaf{Name: "rotate", Usage: "create new keys and reseal every secret", Run: keysRotate,
			More:  "The daemon keeps working.\nThe old master key is kept beside the new one, because earlier backups need it.",
			Flags: []cli.Flag{command.YesFlag()}}),
		a.Command(command.Leaf{Name: "export", Usage: "copy the master key to a file of mode 0600", Run: keysExport, Flags: []cli.Flag{
			&cli.StringFlag{Name: "to", Usage: "the new `FILE`; the key is never printed"},
			command.YesFlag(),
		}}),
	)
}

func keysRotate(ctx context.Context, c *command.Call) error {
	if err := c.Confirm("Replace the keys? Copies of the key that were made before don't open the database any more."); err != nil {
		return err
	}
	done := c.Busy("resealing every secret…")
	said, err := api.RotateKeys.Call(ctx, c.API, api.Empty{})
	done()
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(said)
	}
	c.Field("key", said.Key)
	c.Field("before", said.Was)
	c.Field("kept", said.Kept)
	c.Note("%s sealed again under data key %d", command.Count(said.Resealed, "record"), said.DataKey)
	if said.Key == said.Was {
		c.Note("the master key comes from NIZE_MASTER_KEY and is the same: to change it, put it into nize.key in the data directory (0600), start nized without the variable, and rotate again")
		return nil
	}
	c.Note("keep a copy of the new key elsewhere: nizectl keys export --to FILE; remove %s when no backup from before is left", said.Kept)
	return nil
}

// exportedKey is the --json output of an export; it never contains the key.
type exportedKey struct {
	ID   string `json:"id"`
	File string `json:"file"`
}

func keysExport(ctx context.Context, c *command.Call) error {
	path := c.Cmd.String("to")
	if path == "" {
		return command.Usagef("keys export needs --to FILE: the key is written to a file that only you can read, and never printed")
	}
	if _, err := os.Lstat(path); err == nil {
		return command.Usagef("%s is there: name a new file", path)
	}
	if err := c.Confirm("Write the master key to %s? Anyone with the key and the database can read every secret.", path); err != nil {
		return err
	}
	key, err := api.ExportKey.Call(ctx, c.API, api.Empty{})
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("writing the key: %w", err)
	}
	_, err = f.WriteString(key.Key.Reveal() + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(fmt.Errorf("writing the key: %w", err), os.Remove(path))
	}
	if path, err = filepath.Abs(path); err != nil {
		path = c.Cmd.String("to")
	}
	return c.Report(exportedKey{key.ID, path}, "master key %s written to %s; keep it apart from the backups", key.ID, path)
}
