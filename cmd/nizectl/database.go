package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/command"
	"nize/daemon/api"
)

// nizedPatience is how long nized may take to end once it was signaled.
const nizedPatience = 10 * time.Second

// databaseCommand is the group of commands.
func databaseCommand(a *command.App) *cli.Command {
	return command.Group("database", "copy an installation; check the database's clock; compact records",
		a.Command(command.Leaf{Name: "clock", Usage: "show the database's clock, or set it back", Run: databaseClock,
			More: "Tokens, sessions and approvals expire by a clock that is kept in the database and never goes back. A machine whose clock was far ahead may have left its time there: " +
				"then everything that expires counts as expired. --repair sets it back to the current time. Records deleted as expired meanwhile are lost, and events keep the times that they were written with.",
			Flags: []cli.Flag{&cli.BoolFlag{Name: "repair", Usage: "set it back to the current time"}}}),
		a.Command(command.Leaf{Name: "compact", Usage: "rewrite older records and give freed space back", Run: databaseCompact,
			More: "It runs beside everything else. Records that an earlier version wrote take about twice as much room; once they are rewritten, versions that lack the compact form refuse the database, so make a backup before. " +
				"--space leaves records as they are, and only makes the file smaller; nized does that by itself when more than half of the file is free. On a PostgreSQL, its VACUUM gives space back.",
			Flags: []cli.Flag{&cli.BoolFlag{Name: "space", Usage: "don't rewrite records"}}}),
		a.Command(command.Leaf{Name: "layout", Usage: "list the buckets of the database", Run: databaseLayout,
			More: "Each line has a bucket, the parts of its keys and its values. 0 is a zero byte, and numbers are big-endian."}),
		a.Command(command.Leaf{Name: "show", Usage: "show a stored record", Args: "BUCKET KEY", Run: databaseShow,
			More: "Buckets are calls, whose keys are ids, and events and feed, whose keys are numbers. What people asked, got or wrote is left out, and what is sealed stays sealed."}),
		a.Command(command.Leaf{Name: "copy", Usage: "copy an installation to another database", Run: databaseCopy,
			More: "No nized may use the other database. The copy is verified.\nEach URL is a data directory or postgres://USER@HOST/NAME; passwords are in $PGPASSWORD or the file $PGPASSFILE. " +
				"The target is empty, and no nized uses either. Secrets stay sealed under the same key, which is not in the database: nize.key of the data directory, or $NIZE_MASTER_KEY.",
			Flags: []cli.Flag{
				&cli.StringFlag{Name: "from", Usage: "`URL` of the source, which is not changed"},
				&cli.StringFlag{Name: "to", Usage: "`URL` of the target"},
			}}))
}

func databaseClock(ctx context.Context, c *command.Call) error {
	op := api.GetClock
	if c.Cmd.Bool("repair") {
		op = api.RepairClock
	}
	now, err := op.Call(ctx, c.API, api.Empty{})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(now)
	}
	const form = "2006-01-02 15:04:05 MST"
	c.Field("database", now.Stored.UTC().Format(form))
	c.Field("present", now.Present.UTC().Format(form))
	c.Field("this machine", now.Machine.UTC().Format(form))
	switch ahead := time.Duration(now.Ahead * float64(time.Second)).Round(time.Second); {
	case now.Repaired:
		c.Note("the database's clock was %s ahead, and is set back to the present", ahead)
	case ahead > 0:
		c.Note("the database's clock is %s ahead, so tokens and sessions expire too soon; set it back: nizectl database clock --repair", ahead)
	}
	return nil
}

func databaseCompact(ctx context.Context, c *command.Call) error {
	done := c.Busy("compacting the database…")
	r, err := api.Compact(ctx, c.API, api.CompactRequest{Records: !c.Cmd.Bool("space")}, nil)
	done()
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(r)
	}
	c.Field("rewritten", command.Count(r.Records, "record"))
	if r.Server == "" {
		c.Field("file", fmt.Sprintf("%d bytes, was %d", r.After, r.Before))
	}
	if r.Damaged > 0 {
		c.Note("%s can't be read and stay as they are: nizectl doctor", command.Count(r.Damaged, "record"))
	}
	if r.Raised {
		c.Note("versions before the compact form can't open the database any more")
	}
	return nil
}

func databaseLayout(ctx context.Context, c *command.Call) error {
	list, err := api.ListBuckets.Call(ctx, c.API, api.Empty{})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(command.Items(list.Items))
	}
	t := c.Table("BUCKET", "KEY", "VALUE", "SEALED").Text(2)
	for _, b := range list.Items {
		sealed := ""
		if b.Sealed {
			sealed = "sealed"
		}
		t.Row(b.Name, b.Key, b.Value, sealed)
	}
	t.Print("")
	return nil
}

func databaseShow(ctx context.Context, c *command.Call) error {
	r, err := api.ShowRecord.Call(ctx, c.API, api.ShowRecordRequest{Bucket: c.Arg(0), Key: c.Arg(1)})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(r)
	}
	c.Field("form", fmt.Sprintf("%s, %d bytes", r.Form, r.Size))
	for _, f := range r.Fields {
		if f.Sealed {
			f.Text += ", sealed"
		}
		c.Field(f.Name, f.Text)
	}
	return nil
}

func databaseCopy(ctx context.Context, c *command.Call) error {
	from, to := c.Cmd.String("from"), c.Cmd.String("to")
	if from == "" || to == "" {
		return command.Usagef("database copy needs --from URL --to URL, each a data directory or postgres://USER@HOST/NAME")
	}
	done := c.Busy("copying the database…")
	out, err := runNized(ctx, "copy", "--from", from, "--to", to)
	done()
	if err != nil {
		return err
	}
	var said api.Copied
	if err := json.Unmarshal(out, &said); err != nil {
		return fmt.Errorf("reading the output of nized: %w", err)
	}
	if c.JSON {
		return c.PrintJSON(said)
	}
	c.Field("from", said.From)
	c.Field("to", said.To)
	c.Field("copied", fmt.Sprintf("%d keys, %d bytes, in %s; each is there as it was", said.Keys, said.Bytes, command.Count(said.Buckets, "bucket")))
	c.Field("audit trail", command.Count(said.Events, "event")+" hold")
	c.Field("secrets", fmt.Sprintf("%d open under key %s", said.Secrets, said.Key))
	if said.Lacks != "" {
		c.Note("the key is not there yet: put it at %s before nized starts on the copy", said.Lacks)
	}
	c.Note("start nized on one of the two only")
	return nil
}

// runNized runs the program that is installed beside this one, or else the one in the PATH.
func runNized(ctx context.Context, args ...string) ([]byte, error) {
	program := ""
	if self, err := os.Executable(); err == nil {
		program = filepath.Join(filepath.Dir(self), "nized")
	}
	if _, err := os.Stat(program); err != nil {
		if program, err = exec.LookPath("nized"); err != nil {
			return nil, fmt.Errorf("nized does this, and it is not installed: %w", err)
		}
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = nizedPatience
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	var exit *exec.ExitError
	if ctx.Err() != nil || err == nil || !errors.As(err, &exit) {
		return out.Bytes(), errors.Join(ctx.Err(), err)
	}
	code := api.ExitFailed
	if n := exit.ExitCode(); n == api.ExitUsage || n == api.ExitConflict {
		code = n
	}
	last := "\n" + said.String() // the last line, after the log
	_, last, _ = strings.Cut(last[max(0, strings.LastIndex(last, "\nnized: ")):], "nized: ")
	return nil, command.Failf(code, "%s", last)
}
