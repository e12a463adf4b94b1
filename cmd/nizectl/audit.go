package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"

	"nize/daemon/api"
	"nize/store"
)

func (a *app) audit() *cli.Command {
	read := a.command(leaf{name: "audit", usage: "read the audit trail: every call and every change", run: audit, flags: []cli.Flag{
		&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Local: true, Usage: "go on with what comes"},
		&cli.StringFlag{Name: "since", Local: true, Usage: "`HOW LONG` back, such as 24h or 30d, or a date"},
		&cli.StringFlag{Name: "user", Local: true, Usage: "only what this person did"},
		&cli.StringFlag{Name: "tool", Local: true, Usage: "only server:tool or server:*"},
		&cli.StringFlag{Name: "outcome", Local: true, Usage: "only calls that ended so: done, failed, refused, expired, cancelled, lost"},
		&cli.StringFlag{Name: "kind", Local: true, Usage: "only events of this kind, such as call, server or token.create"},
		&cli.IntFlag{Name: "limit", Aliases: []string{"n"}, Local: true, Usage: "the newest so many (default: 100)"},
	}})
	read.Commands = []*cli.Command{
		a.command(leaf{name: "verify", usage: "prove that no event was changed or removed", run: auditVerify}),
	}
	return read
}

func audit(ctx context.Context, c *call) error {
	q, err := c.auditQuery()
	if err != nil {
		return err
	}
	if !c.json {
		c.line("%s", c.paint(bold, auditLine("TIME", "WHO", "SURFACE", "KIND", "SUBJECT", "TOOL", "OUTCOME")))
	}
	none := true
	for e, err := range c.api.Audit(ctx, q) {
		if err != nil {
			return followEnd(ctx, q.Follow, err)
		}
		none = false
		if c.json {
			err = c.printJSONLine(e)
		} else {
			err = c.printEvent(e)
		}
		if err != nil {
			return err
		}
	}
	if none && !c.json {
		c.note("no such event")
	}
	return nil
}

func (c *call) auditQuery() (api.AuditQuery, error) {
	since, err := c.since()
	if err != nil {
		return api.AuditQuery{}, err
	}
	q := api.AuditQuery{
		Since: since, User: c.cmd.String("user"), Tool: toolID(c.cmd.String("tool")), Outcome: store.State(c.cmd.String("outcome")),
		Kind: c.cmd.String("kind"), Limit: c.cmd.Int("limit"), Follow: c.cmd.Bool("follow"),
	}
	if c.cmd.IsSet("limit") && q.Limit < 1 {
		return q, usagef("--limit %d: want 1 or more", q.Limit)
	}
	if q.Outcome != "" && !q.Outcome.Final() {
		return q, usagef("--outcome %s: want done, failed, refused, expired, cancelled or lost", q.Outcome)
	}
	return q, nil
}

// auditLine lays out one event; a stream has no last row to align by, so the
// columns are as wide as their contents usually are.
func auditLine(cells ...string) string {
	widths := []int{19, 12, 8, 18, 26, 28}
	var b strings.Builder
	for i, cell := range cells {
		b.WriteString(cell)
		if i < len(widths) {
			b.WriteString(strings.Repeat(" ", max(widths[i]-width(cell), 0)) + "  ")
		}
	}
	return strings.TrimRight(b.String(), " ")
}

func (c *call) printEvent(e store.Event) error {
	who := e.UserName
	if who == "" {
		who = e.User
	}
	line := auditLine(e.At.Local().Format("2006-01-02 15:04:05"), clean(dash(who)), clean(dash(string(e.Surface))), clean(e.Kind),
		clean(dash(e.Subject)), clean(dash(e.Tool)), c.paint(stateColour(string(e.Outcome)), clean(e.Outcome.Word())))
	c.line("%s", line)
	return c.flush()
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func auditVerify(ctx context.Context, c *call) error {
	v, err := c.api.VerifyAudit(ctx)
	if err != nil {
		return err
	}
	if c.json {
		if err := c.printJSON(v); err != nil {
			return err
		}
	}
	if !v.OK {
		return failf(api.ExitFailed, "the audit trail does not hold after %s: %s", count(v.Events, "event"), v.Error)
	}
	if !c.json {
		c.line("%s", fmt.Sprintf("the audit trail holds: %s", count(v.Events, "event")))
	}
	return nil
}
