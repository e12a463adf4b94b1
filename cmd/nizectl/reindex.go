package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/command"
	"nize/cmd/nizectl/display"
	"nize/daemon/api"
)

func reindexCommand(a *command.App) *cli.Command {
	return a.Command(command.Leaf{Name: "reindex", Usage: "refresh tools and search vectors", More: "Safe at any time, at any frequency, and from cron.", Run: reindex, Flags: []cli.Flag{
		&cli.StringFlag{Name: "server", Usage: "only this server"},
		&cli.BoolFlag{Name: "full", Usage: "compute every vector again"},
		&cli.BoolFlag{Name: "forget-usage", Usage: "erase what was learned from use (index.learn), for all tools and users"},
	}})
}

// reindex prints a line for each server that changed or failed. If one failed, the exit
// code is 1, so that cron reports it.
func reindex(ctx context.Context, c *command.Call) error {
	var summary *api.ReindexSummary
	var failed []string
	for line, err := range api.Reindex.Call(ctx, c.API, api.ReindexRequest{Server: c.Cmd.String("server"), Full: c.Cmd.Bool("full"), ForgetUsage: c.Cmd.Bool("forget-usage")}) {
		if err != nil {
			return err
		}
		if line.Error != "" {
			failed = append(failed, line.Server+": "+line.Error)
		}
		if line.Summary != nil {
			summary = line.Summary
		}
		if c.JSON {
			if err := c.PrintJSONLine(line); err != nil {
				return err
			}
		} else if text := reindexLine(line); text != "" {
			c.Line("%s", display.Clean(text))
			if err := c.Flush(); err != nil {
				return err
			}
		}
	}
	if summary != nil && c.Cmd.Bool("forget-usage") {
		c.Note("erased what was learned from %s", command.Count(summary.Forgotten, "request"))
	}
	switch {
	case summary == nil:
		return command.Failf(api.ExitFailed, "nized aborted the reindex; the old index is still in use; see the log and try again")
	case len(failed) > summary.Failed: // not only servers failed
		return command.Failf(api.ExitFailed, "failed: %s", strings.Join(failed, "; "))
	case len(failed) > 0:
		return command.Failf(api.ExitFailed, "%s failed: %s", command.Count(len(failed), "server"), strings.Join(failed, "; "))
	case summary.Failed > 0:
		return command.Failf(api.ExitFailed, "%s failed: see nizectl servers list", command.Count(summary.Failed, "server"))
	}
	c.Note("%s of %s, %s computed, %s", command.Count(summary.Tools, "tool"), command.Count(summary.Servers, "server"), command.Count(summary.Embedded, "vector"), command.Millis(summary.TookMS))
	return nil
}

// reindexLine returns the line of a server: its changes, or that there were none.
func reindexLine(l api.ReindexLine) string {
	switch {
	case l.Error != "":
		return ""
	case l.Embedded > 0:
		return command.Count(l.Embedded, "vector") + " computed"
	case l.Server == "":
		return ""
	}
	var parts []string
	for _, change := range []struct {
		word string
		ids  []string
	}{{"added", l.Added}, {"changed", l.Changed}, {"removed", l.Removed}, {"held", l.Held}} {
		if len(change.ids) > 0 {
			parts = append(parts, change.word+" "+strings.Join(change.ids, ", "))
		}
	}
	if l.Examples > 0 {
		parts = append(parts, "example requests written for "+command.Count(l.Examples, "tool"))
	}
	if len(parts) == 0 {
		parts = []string{"nothing changed"}
	}
	return fmt.Sprintf("%s: %s", l.Server, strings.Join(parts, "; "))
}
