package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"

	"nize/daemon/api"
)

func (a *app) status() *cli.Command {
	return a.command(leaf{name: "status", usage: "show how the daemon, its servers and its bots are",
		run: func(ctx context.Context, c *call) error {
			st, err := api.GetStatus.Call(ctx, c.api, api.Empty{})
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(st)
			}
			c.printStatus(st)
			return nil
		}})
}

func (c *call) printStatus(st api.Status) {
	c.field("nized", fmt.Sprintf("%s, pid %d, up %s", st.Version, st.PID, span(c.now().Sub(st.Started))))
	c.field("listening", st.Listen)
	c.field("public URL", st.PublicURL)
	c.field("socket", st.Socket)
	c.field("data", st.DataDir)
	c.field("you", strings.TrimSpace(st.You.Name+" ("+string(st.You.Role)+")"))
	c.field("model", st.Model)
	c.field("tools", fmt.Sprintf("%d of %s", st.Tools, count(len(st.Servers), "server")))
	c.field("waiting", count(st.Pending, "approval"))
	c.field("running", count(st.Running, "call"))
	c.field("sessions", count(st.Sessions, "MCP session"))
	if st.Incidents > 0 {
		c.field("incidents", fmt.Sprintf("%d open: nizectl alerts list", st.Incidents))
	}
	c.field("database", fmt.Sprintf("%s, last backup %s", megabytes(uint64(st.Database.SizeBytes)), c.when(st.Database.LastBackup)))
	c.field("process", fmt.Sprintf("%s, %d goroutines, %d open files, %s heap, %s resident",
		children(st.Process.Children), st.Process.Goroutines, st.Process.OpenFiles, megabytes(st.Process.HeapBytes), megabytes(st.Process.ResidentBytes)))
	for _, q := range st.Queues {
		if q.Depth > 0 {
			c.field("queue", fmt.Sprintf("%s: %d", q.Name, q.Depth))
		}
	}
	if len(st.Servers) > 0 {
		c.line("")
		c.healthTable(st.Servers).print("")
	}
	if len(st.Process.ChildProcesses) > 0 {
		c.line("")
		t := c.table("PID", "PROGRAM", "SERVER", "RESIDENT").numbers(0, 3)
		for _, p := range st.Process.ChildProcesses {
			t.row(fmt.Sprint(p.PID), p.Name, dash(p.Server), megabytes(p.ResidentBytes))
		}
		t.print("")
	}
	if len(st.Bots) > 0 {
		c.line("")
		t := c.table("BOT", "STATE", "SINCE", "LAST ERROR").text(3)
		t.state = 1
		for _, b := range st.Bots {
			t.row(b.Name, b.State, c.when(b.Since), clip(b.LastError, 60))
		}
		t.print("")
	}
	for _, w := range st.Warnings {
		c.note("warning: %s", w)
	}
}

// megabytes is a size for people.
func megabytes(n uint64) string {
	return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
}

func children(n int) string {
	if n == 1 {
		return "1 child"
	}
	return fmt.Sprintf("%d children", n)
}
