package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"nize/cmd/nizectl/command"
	"nize/daemon/api"
)

func auditExport(ctx context.Context, c *command.Call) error {
	q, err := auditQuery(c)
	if err != nil {
		return err
	}
	path := c.Arg(0)
	if path == "" || path == "-" {
		if c.OutTTY {
			return command.Usagef("an export is for a file or a pipe: name a FILE, or read with nizectl audit")
		}
		if _, err := api.SaveAudit(ctx, c.API, q, c.Out); err != nil {
			return err
		}
		return c.Flush()
	}
	if err := mayWrite(c, path); err != nil {
		return err
	}
	show, done := c.Progress()
	var x api.Exported
	err = writePrivate(path, func(f *os.File) (err error) {
		x, err = api.SaveAudit(ctx, c.API, q, &counter{w: f, each: func(n int64) { show("exported %d MB…", n/1e6) }})
		return err
	})
	done()
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(x)
	}
	c.Field("file", path)
	exportFields(c, x)
	c.Note("to check it elsewhere: nizectl audit verify --file FILE --key %s", x.Key)
	return nil
}

// counter prints from time to time how much was written.
type counter struct {
	w       io.Writer
	n, told int64
	each    func(n int64)
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	if c.n += int64(n); c.n-c.told >= 1<<20 {
		c.told = c.n
		c.each(c.n)
	}
	return n, err
}

func exportFields(c *command.Call, x api.Exported) {
	c.Field("made", x.At.Local().Format("2006-01-02 15:04:05"))
	events := fmt.Sprint(x.Events)
	if x.Events > 0 {
		events += fmt.Sprintf(", from %d to %d", x.First, x.Last)
	}
	c.Field("events", events)
	if len(x.Filter) > 0 {
		parts := make([]string, 0, len(x.Filter))
		for _, name := range slices.Sorted(maps.Keys(x.Filter)) {
			parts = append(parts, name+" "+x.Filter[name])
		}
		c.Field("only", strings.Join(parts, ", "))
	}
	c.Field("trail", fmt.Sprintf("up to event %d, chain %.16s…", x.Head, x.Chain))
	c.Field("signed by", x.Key)
}

// verifyExport verifies a file. With a public key from the reader nothing else is needed.
// Without one, it asks the daemon for its key and whether the exported trail is still its
// own.
func verifyExport(ctx context.Context, c *command.Call, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("opening the export: %w", err)
	}
	defer f.Close()
	want := strings.ToLower(c.Cmd.String("key"))
	if key, err := hex.DecodeString(want); err != nil || want != "" && len(key) != 32 {
		return command.Usagef("--key %s: want the 64 hex digits that nizectl audit verify shows", want)
	}
	x, err := api.ReadExport(f, io.Discard)
	if err != nil {
		return command.Failf(api.ExitFailed, "%s: %v", path, err)
	}
	asked := want == ""
	if asked {
		k, err := api.GetAuditKey.Call(ctx, c.API, api.Empty{})
		if err != nil {
			return fmt.Errorf("the export is complete, but its origin is unverified; give --key, or run this where its daemon is: %w", err)
		}
		want = k.ExportKey
	}
	if x.Key != want {
		return command.Failf(api.ExitFailed, "%s: it is signed with another key: %s", path, x.Key)
	}
	known := "not asked"
	if asked {
		held, pruned, err := api.HeldSince(ctx, c.API, x.Export)
		switch {
		case err != nil:
			return err
		case pruned:
			known = "retention has deleted those events since"
		case !held:
			return command.Failf(api.ExitFailed, "the export holds, but the daemon's trail is another by now: event %d has changed since %s", x.Head, x.At.Local().Format("2006-01-02 15:04:05"))
		default:
			known = "still has the event that was the newest then"
		}
	}
	if c.JSON {
		return c.PrintJSON(struct {
			OK bool `json:"ok"`
			api.Exported
			Trail string `json:"trail"`
		}{true, x, known})
	}
	c.Line("the export holds: no line was changed, added or left out")
	exportFields(c, x)
	c.Field("daemon", known)
	return nil
}
