package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/command"
	"nize/cmd/nizectl/display"
	"nize/daemon/api"
	"nize/store"
)

// surfaces are the surfaces in events.
var surfaces = command.Each(store.Surfaces, func(s store.Surface) string { return string(s) })

func auditCommand(a *command.App) *cli.Command {
	read := a.Command(command.Leaf{Name: "audit", Usage: "read the audit trail of calls and changes", Run: audit, Flags: append(auditFlags(),
		&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Local: true, Usage: "keep printing new output"},
		&cli.IntFlag{Name: "limit", Aliases: []string{"n"}, Local: true, Usage: "how many of the newest events (default: 100)"},
	)})
	read.Commands = []*cli.Command{
		a.Command(command.Leaf{Name: "show", Args: "ID", Usage: "show an event, or all events of a call", Run: auditShow,
			More:  "ID is the number of an event, or the id of a call or of a changed record, or a unique prefix of it.",
			Flags: []cli.Flag{&cli.StringFlag{Name: "reason", Usage: "`WHY`, recorded in the trail; also shows arguments and results of other people's calls"}}}),
		a.Command(command.Leaf{Name: "export", Args: "[FILE]", Usage: "export the trail, signed", Run: auditExport,
			More:  "It writes one line of JSON per event, oldest first; the last line describes and signs the file. nizectl audit verify --file FILE checks it.",
			Flags: append(auditFlags(), &cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "replace FILE without asking"})}),
		a.Command(command.Leaf{Name: "verify", Usage: "verify that no event was changed or removed", Run: auditVerify, Flags: []cli.Flag{
			&cli.BoolFlag{Name: "since-checkpoint", Usage: "only events after the newest checkpoint"},
			&cli.StringFlag{Name: "file", Usage: "verify this export instead of the trail"},
			&cli.StringFlag{Name: "key", Usage: "the public key of the export's signature, in hex; no daemon is needed"},
		}}),
	}
	return read
}

func auditFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "since", Local: true, Usage: "`HOW LONG` back, such as 24h or 30d, or a date"},
		&cli.StringFlag{Name: "until", Local: true, Usage: "only events before this time, in the same form"},
		&cli.StringFlag{Name: "user", Local: true, Usage: "only events of this person; system for nize itself"},
		&cli.StringFlag{Name: "tool", Local: true, Usage: "only server:tool or server:*"},
		&cli.StringFlag{Name: "server", Local: true, Usage: "only calls of its tools and changes of the server"},
		&cli.StringFlag{Name: "kind", Local: true, Usage: "only events of this kind, such as call, server or token.create"},
		&cli.StringFlag{Name: "outcome", Local: true, Usage: "only calls that ended as done, failed, refused, expired, cancelled, lost"},
		&cli.StringFlag{Name: "surface", Local: true, Usage: "only events from " + strings.Join(surfaces, ", ")},
		&cli.IntFlag{Name: "before", Local: true, Usage: "only events with a smaller `NUMBER`, for the previous page"},
		&cli.StringFlag{Name: "reason", Local: true, Usage: "`WHY`, recorded in the trail; also shows arguments and results of other people's calls"},
	}
}

func audit(ctx context.Context, c *command.Call) error {
	q, err := auditQuery(c)
	if err != nil {
		return err
	}
	q.Limit, q.Follow = c.Cmd.Int("limit"), c.Cmd.Bool("follow")
	if c.Cmd.IsSet("limit") && q.Limit < 1 {
		return command.Usagef("--limit %d: want 1 or more", q.Limit)
	}
	if q.Follow && (q.Before > 0 || !q.Until.IsZero()) {
		return command.Usagef("--follow can't be combined with --before and --until")
	}
	if !c.JSON {
		c.Line("%s", c.Paint(command.Bold, auditLine(c.App, "TIME", "WHO", "SURFACE", "KIND", "SUBJECT", "TOOL", "OUTCOME")))
	}
	first, n := uint64(0), 0
	for e, err := range api.ReadAudit.Call(ctx, c.API, q) {
		if err != nil {
			return command.FollowEnd(ctx, q.Follow, err)
		}
		if late := e.Kind == api.LateKind; late && !c.JSON {
			c.Note("the newest records wait to be written, and are not shown: nizectl doctor")
			continue
		} else if n++; n == 1 && !late {
			first = e.Seq
		}
		if c.JSON {
			err = c.PrintJSONLine(e)
		} else {
			err = printEvent(c, e)
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
	case c.JSON:
	case n == 0:
		c.Note("no such event")
	case n == most && first > 1 && c.ErrTTY:
		c.Note("for the page before, add --before %d", first)
	}
	return nil
}

// auditQuery returns the query for the flags that select events.
func auditQuery(c *command.Call) (api.AuditRequest, error) {
	since, err := timeFlag(c, "since")
	if err != nil {
		return api.AuditRequest{}, err
	}
	until, err := timeFlag(c, "until")
	if err != nil {
		return api.AuditRequest{}, err
	}
	q := api.AuditRequest{
		Since: since, Until: until, User: c.Cmd.String("user"), Tool: toolID(c.Cmd.String("tool")), Server: c.Cmd.String("server"),
		Outcome: store.State(c.Cmd.String("outcome")), Surface: store.Surface(c.Cmd.String("surface")), Kind: c.Cmd.String("kind"), Reason: c.Cmd.String("reason"),
	}
	before := c.Cmd.Int("before")
	switch {
	case q.Outcome != "" && !q.Outcome.Final():
		return q, command.Usagef("--outcome %s: want done, failed, refused, expired, cancelled or lost", q.Outcome)
	case q.Surface != "" && !slices.Contains(surfaces, string(q.Surface)):
		return q, command.Usagef("--surface %s: want one of %s", q.Surface, strings.Join(surfaces, ", "))
	case !since.IsZero() && !until.IsZero() && !since.Before(until):
		return q, command.Usagef("--since is not before --until: nothing can be between them")
	case c.Cmd.IsSet("before") && before < 1:
		return q, command.Usagef("--before %d: want the number of an event", before)
	}
	q.Before = uint64(before)
	return q, nil
}

// auditLine formats one event. A stream can't be aligned by all its rows, so the columns
// are as wide as their contents usually are. On a narrower terminal an event takes two
// lines, broken between columns.
func auditLine(a *command.App, cells ...string) string {
	widths := []int{19, 12, 8, 23, 26, 28}
	const all, subject = 143, 4 // width with the outcome; index of the first cell of the second line
	narrow := false
	if a.OutTTY {
		n := a.Columns()
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

func printEvent(c *command.Call, e store.Event) error {
	who := e.UserName
	if who == "" {
		who = e.User
	}
	if who == "" && e.Erased {
		who = "(erased)"
	}
	line := auditLine(c.App, e.At.Local().Format("2006-01-02 15:04:05"), display.Clean(dash(who)), display.Clean(dash(string(e.Surface))), display.Clean(e.Kind),
		display.Clean(dash(cmp.Or(e.SubjectName, e.Subject))), display.Clean(dash(e.Tool)), c.Paint(command.StateColour(string(e.Outcome)), display.Clean(e.Outcome.Word().String())))
	c.Line("%s", line)
	return c.Flush()
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func auditVerify(ctx context.Context, c *command.Call) error {
	since, file := c.Cmd.Bool("since-checkpoint"), c.Cmd.String("file")
	switch {
	case file == "" && c.Cmd.IsSet("key"):
		return command.Usagef("--key is for an export: name it with --file")
	case file != "" && since:
		return command.Usagef("--since-checkpoint is for the trail, --file for an export: give one of them")
	case file != "":
		return verifyExport(ctx, c, file)
	}
	show, done := c.Progress()
	v, err := api.CheckAudit(ctx, c.API, api.VerifyAuditRequest{SinceCheckpoint: since}, func(n, all int) {
		show("verifying %d of %d events…", n, all)
	})
	done()
	if err != nil {
		return err
	}
	if c.JSON {
		if err := c.PrintJSON(v); err != nil {
			return err
		}
	}
	from := ""
	if v.After > 0 {
		from = fmt.Sprintf(" after the checkpoint at event %d", v.After)
	}
	if !v.OK {
		return command.Failf(api.ExitFailed, "the audit trail failed verification: %s; %s before that hold%s", v.Error, command.Count(v.Events, "event"), from)
	}
	if c.JSON {
		return nil
	}
	c.Line("the audit trail holds: %s%s", command.Count(v.Events, "event"), from)
	if v.Late != "" {
		c.Note("the newest records wait to be written, and were not verified: %s", display.Clean(v.Late))
	}
	for _, p := range v.Checkpoints {
		c.Line("checkpoint at event %d, %s: %s", p.Seq, p.At.Local().Format("2006-01-02 15:04:05"), display.Clean(checkpointLine(p)))
	}
	c.Field("export key", v.ExportKey)
	return nil
}

// checkpointLine returns why a checkpoint was made.
func checkpointLine(p api.Checkpoint) string {
	switch p.Why {
	case "pruning":
		return "retention deleted " + command.Count(p.Events, "event")
	case "erasure":
		if thread, ok := strings.CutPrefix(p.Subject, "thread:"); ok {
			return fmt.Sprintf("%s of conversation %s erased", command.Count(p.Events, "event"), thread)
		}
		return fmt.Sprintf("%s of user %s erased", command.Count(p.Events, "event"), p.Subject)
	}
	return "daily check, " + command.Count(p.Events, "event") + " held"
}
