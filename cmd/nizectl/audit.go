package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/display"
	"nize/daemon/api"
	"nize/store"
)

// surfaces are where events come from.
var surfaces = []string{"cli", "terminal", "slack", "discord", "mcp", "http", "system"}

func (a *app) audit() *cli.Command {
	read := a.command(leaf{name: "audit", usage: "read the audit trail: every call and every change", run: audit, flags: append(auditFlags(),
		&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Local: true, Usage: "go on with what comes"},
		&cli.IntFlag{Name: "limit", Aliases: []string{"n"}, Local: true, Usage: "the newest so many (default: 100)"},
	)})
	read.Commands = []*cli.Command{
		a.command(leaf{name: "export", args: "[FILE]", usage: "copy the trail to a file or to standard output, signed", run: auditExport,
			more:  "One event in a line of JSON, oldest first; the last line says what the file holds and signs it. nizectl audit verify --file FILE checks it.",
			flags: append(auditFlags(), &cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "replace FILE without asking"})}),
		a.command(leaf{name: "verify", usage: "prove that no event was changed or removed", run: auditVerify, flags: []cli.Flag{
			&cli.BoolFlag{Name: "since-checkpoint", Usage: "only what came after the newest checkpoint"},
			&cli.StringFlag{Name: "file", Usage: "check this export instead of the trail"},
			&cli.StringFlag{Name: "key", Usage: "what the export must be signed with, in hex; no daemon is asked then"},
		}}),
	}
	return read
}

func auditFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "since", Local: true, Usage: "`HOW LONG` back, such as 24h or 30d, or a date"},
		&cli.StringFlag{Name: "until", Local: true, Usage: "the same: only what was before"},
		&cli.StringFlag{Name: "user", Local: true, Usage: "only what this person did; system for nize itself"},
		&cli.StringFlag{Name: "tool", Local: true, Usage: "only server:tool or server:*"},
		&cli.StringFlag{Name: "server", Local: true, Usage: "only what its tools did and changes of it"},
		&cli.StringFlag{Name: "kind", Local: true, Usage: "only events of this kind, such as call, server or token.create"},
		&cli.StringFlag{Name: "outcome", Local: true, Usage: "only calls that ended so: done, failed, refused, expired, cancelled, lost"},
		&cli.StringFlag{Name: "surface", Local: true, Usage: "only what came from " + strings.Join(surfaces, ", ")},
		&cli.IntFlag{Name: "before", Local: true, Usage: "only events with a smaller `NUMBER`: the page before"},
	}
}

func audit(ctx context.Context, c *call) error {
	q, err := c.auditQuery()
	if err != nil {
		return err
	}
	q.Limit, q.Follow = c.cmd.Int("limit"), c.cmd.Bool("follow")
	if c.cmd.IsSet("limit") && q.Limit < 1 {
		return usagef("--limit %d: want 1 or more", q.Limit)
	}
	if q.Follow && (q.Before > 0 || !q.Until.IsZero()) {
		return usagef("--follow goes on with what comes: leave out --before and --until")
	}
	if !c.json {
		c.line("%s", c.paint(bold, c.auditLine("TIME", "WHO", "SURFACE", "KIND", "SUBJECT", "TOOL", "OUTCOME")))
	}
	first, n := uint64(0), 0
	for e, err := range c.api.Audit(ctx, q) {
		if err != nil {
			return followEnd(ctx, q.Follow, err)
		}
		if n++; n == 1 {
			first = e.Seq
		}
		if c.json {
			err = c.printJSONLine(e)
		} else {
			err = c.printEvent(e)
		}
		if err != nil {
			return err
		}
	}
	most := q.Limit
	if most == 0 {
		most = 100
	}
	switch {
	case c.json:
	case n == 0:
		c.note("no such event")
	case n == most && first > 1 && c.errTTY:
		c.note("for the page before, add --before %d", first)
	}
	return nil
}

// auditQuery reads the flags that select events.
func (c *call) auditQuery() (api.AuditQuery, error) {
	since, err := c.timeFlag("since")
	if err != nil {
		return api.AuditQuery{}, err
	}
	until, err := c.timeFlag("until")
	if err != nil {
		return api.AuditQuery{}, err
	}
	q := api.AuditQuery{
		Since: since, Until: until, User: c.cmd.String("user"), Tool: toolID(c.cmd.String("tool")), Server: c.cmd.String("server"),
		Outcome: store.State(c.cmd.String("outcome")), Surface: store.Surface(c.cmd.String("surface")), Kind: c.cmd.String("kind"),
	}
	before := c.cmd.Int("before")
	switch {
	case q.Outcome != "" && !q.Outcome.Final():
		return q, usagef("--outcome %s: want done, failed, refused, expired, cancelled or lost", q.Outcome)
	case q.Surface != "" && !slices.Contains(surfaces, string(q.Surface)):
		return q, usagef("--surface %s: want one of %s", q.Surface, strings.Join(surfaces, ", "))
	case !since.IsZero() && !until.IsZero() && !since.Before(until):
		return q, usagef("--since is not before --until: nothing can be between them")
	case c.cmd.IsSet("before") && before < 1:
		return q, usagef("--before %d: want the number of an event", before)
	}
	q.Before = uint64(before)
	return q, nil
}

// auditLine lays out one event; a stream has no last row to align by, so the
// columns are as wide as their contents usually are. On a terminal with fewer
// columns than that an event takes two lines, cut where a person would cut it.
func (a *app) auditLine(cells ...string) string {
	widths := []int{19, 12, 8, 23, 26, 28}
	const all, subject = 143, 4 // with the outcome; the first cell of the second line
	narrow := false
	if a.outTTY {
		n := a.columns()
		narrow = n > 0 && n < all
	}
	var b strings.Builder
	for i, cell := range cells {
		if narrow && i == subject {
			line := strings.TrimRight(b.String(), " ")
			b.Reset()
			b.WriteString(line + "\n    ")
		}
		b.WriteString(cell)
		if i < len(widths) {
			b.WriteString(strings.Repeat(" ", max(widths[i]-display.Width(cell), 0)) + "  ")
		}
	}
	return strings.TrimRight(b.String(), " ")
}

func (c *call) printEvent(e store.Event) error {
	who := e.UserName
	if who == "" {
		who = e.User
	}
	if who == "" && e.Erased {
		who = "(erased)"
	}
	line := c.auditLine(e.At.Local().Format("2006-01-02 15:04:05"), display.Clean(dash(who)), display.Clean(dash(string(e.Surface))), display.Clean(e.Kind),
		display.Clean(dash(e.Subject)), display.Clean(dash(e.Tool)), c.paint(stateColour(string(e.Outcome)), display.Clean(e.Outcome.Word())))
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
	since, file := c.cmd.Bool("since-checkpoint"), c.cmd.String("file")
	switch {
	case file == "" && c.cmd.IsSet("key"):
		return usagef("--key is for an export: name it with --file")
	case file != "" && since:
		return usagef("--since-checkpoint is for the trail, --file for an export: give one of them")
	case file != "":
		return verifyExport(ctx, c, file)
	}
	show, done := c.progress()
	v, err := c.api.VerifyAudit(ctx, api.VerifyAudit{SinceCheckpoint: since, Progress: func(n, all int) {
		show("verifying %d of %d events…", n, all)
	}})
	done()
	if err != nil {
		return err
	}
	if c.json {
		if err := c.printJSON(v); err != nil {
			return err
		}
	}
	from := ""
	if v.After > 0 {
		from = fmt.Sprintf(" after the checkpoint at event %d", v.After)
	}
	if !v.OK {
		return failf(api.ExitFailed, "the audit trail does not hold: %s; %s before that hold%s", v.Error, count(v.Events, "event"), from)
	}
	if c.json {
		return nil
	}
	c.line("the audit trail holds: %s%s", count(v.Events, "event"), from)
	for _, p := range v.Checkpoints {
		c.line("checkpoint at event %d, %s: %s", p.Seq, p.At.Local().Format("2006-01-02 15:04:05"), display.Clean(checkpointLine(p)))
	}
	c.field("export key", v.ExportKey)
	return nil
}

// checkpointLine says why a checkpoint is there.
func checkpointLine(p api.Checkpoint) string {
	switch p.Why {
	case "pruning":
		return "retention deleted " + count(p.Events, "event")
	case "erasure":
		if thread, ok := strings.CutPrefix(p.Subject, "thread:"); ok {
			return fmt.Sprintf("%s of conversation %s erased", count(p.Events, "event"), thread)
		}
		return fmt.Sprintf("%s of user %s erased", count(p.Events, "event"), p.Subject)
	}
	return "daily check, " + count(p.Events, "event") + " held"
}
