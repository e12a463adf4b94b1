package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/command"
	"nize/cmd/nizectl/servers"
	"nize/daemon/api"
)

func statusCommand(a *command.App) *cli.Command {
	return a.Command(command.Leaf{Name: "status", Usage: "show the state of the daemon, servers and bots",
		Run: func(ctx context.Context, c *command.Call) error {
			st, err := api.GetStatus.Call(ctx, c.API, api.Empty{})
			if wire := new(api.Error); errors.As(err, &wire) && len(wire.Replicas) > 0 {
				if c.JSON {
					return errors.Join(err, c.PrintJSON(map[string]any{"replicas": wire.Replicas}))
				}
				printReplicas(c, wire.Replicas)
			}
			if err != nil {
				return err
			}
			if c.JSON {
				return c.PrintJSON(st)
			}
			printStatus(c, st)
			return nil
		}})
}

// sessions describes the sessions of MCP clients.
func sessions(st api.Status) string {
	text := command.Count(st.Sessions, "MCP session")
	if st.SessionsEnded > 0 {
		text += fmt.Sprintf(", %d ended for others", st.SessionsEnded)
	}
	return text
}

// connections describes the connections to the HTTP listener; "" if nized doesn't count
// them.
func connections(st api.ConnectionStatus) string {
	if st.Most == 0 {
		return ""
	}
	text := fmt.Sprintf("%d of %d, %d of %d without a sign-in", st.Open, st.Most, st.Unauthenticated, st.MostUnauthenticated)
	if st.Ended+st.Refused > 0 {
		text += fmt.Sprintf("; %d ended for others, %d refused", st.Ended, st.Refused)
	}
	return text
}

func printStatus(c *command.Call, st api.Status) {
	c.Field("nized", fmt.Sprintf("%s, pid %d, up %s", st.Version, st.PID, command.Span(c.Now().Sub(st.Started))))
	c.Field("listening", st.Listen)
	c.Field("public URL", st.PublicURL)
	c.Field("socket", st.Socket)
	c.Field("data", st.DataDir)
	c.Field("you", strings.TrimSpace(st.You.Name+" ("+string(st.You.Role)+")"))
	c.Field("model", st.Model)
	c.Field("tools", fmt.Sprintf("%d of %s", st.Tools, command.Count(len(st.Servers), "server")))
	c.Field("waiting", command.Count(st.Pending, "approval"))
	c.Field("running", command.Count(st.Running, "call"))
	c.Field("sessions", sessions(st))
	c.Field("connections", connections(st.Connections))
	if st.Incidents > 0 {
		c.Field("incidents", fmt.Sprintf("%d open: nizectl alerts list", st.Incidents))
	}
	where := st.Database.Engine
	if st.Database.Server != "" {
		where = fmt.Sprintf("%s (%s, a round trip takes %.1f ms)", st.Database.Server, st.Database.Version, st.Database.RoundTrip)
	}
	if !st.Database.Reachable {
		where = cmp.Or(st.Database.Server, st.Database.Engine) + " does not answer"
	}
	if n := st.Database.StandBy; n > 0 {
		where += fmt.Sprintf(", %d more nized standing by", n)
	}
	where += ", "
	c.Field("database", where+fmt.Sprintf("%s, last backup %s", megabytes(uint64(st.Database.SizeBytes)), c.When(st.Database.LastBackup)))
	c.Field("process", fmt.Sprintf("%s, %d goroutines, %d open files, %s heap, %s resident",
		children(st.Process.Children), st.Process.Goroutines, st.Process.OpenFiles, megabytes(st.Process.HeapBytes), megabytes(st.Process.ResidentBytes)))
	for _, q := range st.Queues {
		if q.Depth > 0 {
			c.Field("queue", fmt.Sprintf("%s: %d", q.Name, q.Depth))
		}
	}
	if len(st.Replicas) > 0 {
		c.Line("")
		printReplicas(c, st.Replicas)
	}
	if len(st.Servers) > 0 {
		c.Line("")
		servers.HealthTable(c.App, st.Servers).Print("")
	}
	if len(st.Process.ChildProcesses) > 0 {
		c.Line("")
		t := c.Table("PID", "PROGRAM", "SERVER", "RESIDENT").Numbers(0, 3)
		for _, p := range st.Process.ChildProcesses {
			t.Row(fmt.Sprint(p.PID), p.Name, dash(p.Server), megabytes(p.ResidentBytes))
		}
		t.Print("")
	}
	if len(st.Bots) > 0 {
		c.Line("")
		t := c.Table("BOT", "STATE", "SINCE", "LAST ERROR").Text(3)
		t.State = 1
		for _, b := range st.Bots {
			t.Row(b.Name, b.State, c.When(b.Since), b.LastError)
		}
		t.Print("")
	}
	for _, w := range st.Warnings {
		c.Note("warning: %s", w)
	}
}

func printReplicas(c *command.Call, list []api.Replica) {
	t := c.Table("REPLICA", "STATE", "VERSION", "SINCE", "SEEN")
	for _, r := range list {
		state := "standby"
		if r.Works {
			state = "works"
		}
		if r.ClockApart {
			state += ", its clock is wrong"
		}
		t.Row(dash(r.Address), state, r.Version, c.When(r.Since), c.When(r.Seen))
	}
	t.Print("")
}

// megabytes formats a size for people.
func megabytes(n uint64) string {
	return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
}

func children(n int) string {
	if n == 1 {
		return "1 child"
	}
	return fmt.Sprintf("%d children", n)
}
