package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/display"
	"nize/daemon/api"
)

func (a *app) reindex() *cli.Command {
	return a.command(leaf{name: "reindex", usage: "refresh tools and search vectors; safe at any time, and from cron", run: reindex, flags: []cli.Flag{
		&cli.StringFlag{Name: "server", Usage: "only this server"},
		&cli.BoolFlag{Name: "full", Usage: "compute every vector anew"},
		&cli.BoolFlag{Name: "forget-usage", Usage: "erase what was learned from use (index.learn), of all tools and from everybody"},
	}})
}

// reindex prints a line for each server that changed or failed; a failed one
// makes the whole thing exit 1, so that cron tells somebody.
func reindex(ctx context.Context, c *call) error {
	var summary *api.ReindexSummary
	var failed []string
	for line, err := range c.api.Reindex(ctx, api.Reindex{Server: c.cmd.String("server"), Full: c.cmd.Bool("full"), ForgetUsage: c.cmd.Bool("forget-usage")}) {
		if err != nil {
			return err
		}
		if line.Error != "" {
			failed = append(failed, line.Server+": "+line.Error)
		}
		if line.Summary != nil {
			summary = line.Summary
		}
		if c.json {
			if err := c.printJSONLine(line); err != nil {
				return err
			}
		} else if text := reindexLine(line); text != "" {
			c.line("%s", display.Clean(text))
			if err := c.flush(); err != nil {
				return err
			}
		}
	}
	if summary != nil && c.cmd.Bool("forget-usage") {
		c.note("forgot what %s taught", count(summary.Forgotten, "request"))
	}
	switch {
	case summary == nil:
		return failf(api.ExitFailed, "nized broke off the reindex; the old index still answers, see its log and try again")
	case len(failed) > summary.Failed: // not of servers alone
		return failf(api.ExitFailed, "failed: %s", strings.Join(failed, "; "))
	case len(failed) > 0:
		return failf(api.ExitFailed, "%s failed: %s", count(len(failed), "server"), strings.Join(failed, "; "))
	case summary.Failed > 0:
		return failf(api.ExitFailed, "%s failed: see nizectl servers list", count(summary.Failed, "server"))
	}
	c.note("%s of %s, %s computed, %s", count(summary.Tools, "tool"), count(summary.Servers, "server"), count(summary.Embedded, "vector"), millis(summary.TookMS))
	return nil
}

// reindexLine is a server's line: what changed, or that nothing did.
func reindexLine(l api.ReindexLine) string {
	switch {
	case l.Error != "":
		return ""
	case l.Embedded > 0:
		return count(l.Embedded, "vector") + " computed"
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
		parts = append(parts, "example requests written for "+count(l.Examples, "tool"))
	}
	if len(parts) == 0 {
		parts = []string{"nothing changed"}
	}
	return fmt.Sprintf("%s: %s", l.Server, strings.Join(parts, "; "))
}
