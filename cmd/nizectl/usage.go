package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/chat"
	"nize/cmd/nizectl/command"
	"nize/cmd/nizectl/display"
	"nize/daemon/api"
	"nize/store"
)

// manyRows is how many conversations and tools are shown without --top.
const manyRows = 40

func usageCommand(a *command.App) *cli.Command {
	return a.Command(command.Leaf{Name: "usage", Usage: "show what model and tool calls cost", Run: usage, Flags: []cli.Flag{
		&cli.StringFlag{Name: "since", Value: "30d", Usage: "`HOW LONG` back, such as 24h or 30d, or a date"},
		&cli.StringFlag{Name: "by", Value: "day", Usage: strings.Join(store.UsageGroupings, ", ")},
		&cli.StringFlag{Name: "user", Usage: "what this `USER` spent (for admins; members see their own)"},
		&cli.StringFlag{Name: "project", Usage: "what the programs of this `PROJECT` spent (for admins and its members)"},
		&cli.IntFlag{Name: "top", Usage: fmt.Sprintf("the `N` largest, 0 for all (default: all; %d conversations or tools for people)", manyRows)},
		&cli.BoolFlag{Name: "chart", Usage: "draw bars of tokens (by tool: of calls)"},
		&cli.BoolFlag{Name: "csv", Usage: "answer in CSV"},
	}})
}

// timeFlag parses a duration before now, or a date.
func timeFlag(c *command.Call, name string) (time.Time, error) {
	text := c.Cmd.String(name)
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := store.ParseSpan(text); err == nil {
		return c.Now().Add(-d), nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339, "2006-01-02 15:04"} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, command.Usagef("--%s %s: write 24h, 30d, 2026-01-31 or an RFC 3339 time", name, text)
}

func usage(ctx context.Context, c *command.Call) error {
	q := api.GetUsageRequest{By: c.Cmd.String("by"), User: userOrProject(c), Top: c.Cmd.Int("top")}
	if !slices.Contains(store.UsageGroupings, q.By) {
		return command.Usagef("--by %s: want one of %s", q.By, strings.Join(store.UsageGroupings, ", "))
	}
	asCSV, chart := c.Cmd.Bool("csv"), c.Cmd.Bool("chart")
	switch {
	case c.JSON && asCSV:
		return command.Usagef("give --json or --csv, not both")
	case chart && (c.JSON || asCSV):
		return command.Usagef("--chart is for people: leave out --json and --csv")
	case q.Top < 0:
		return command.Usagef("--top %d: want a whole number, 0 for all", q.Top)
	}
	if !c.Cmd.IsSet("top") && !c.JSON && !asCSV && (q.By == "conversation" || q.By == "tool") {
		q.Top = manyRows
	}
	var err error
	if q.Since, err = timeFlag(c, "since"); err != nil {
		return err
	}
	zone, err := time.LoadLocation(cmp.Or(chat.LocalZone(c.Env), "UTC"))
	if err == nil {
		q.Zone = zone.String()
	}
	report, err := api.GetUsage.Call(ctx, c.API, q)
	if err != nil {
		return err
	}
	report.Rows = command.Items(report.Rows)
	switch {
	case c.JSON:
		return c.PrintJSON(report)
	case asCSV:
		return usageCSV(c, report.Rows)
	case chart:
		usageChart(c, report, zone)
	case q.By == "tool":
		toolUsage(c, report)
	default:
		modelUsage(c, report, titlesOf(ctx, c, report))
	}
	usageNotes(c, report)
	if !q.Since.IsZero() {
		return usageBefore(ctx, c, q, report)
	}
	return nil
}

// titlesOf returns the titles of the caller's own conversations by id. Titles of other
// people's conversations are private.
func titlesOf(ctx context.Context, c *command.Call, r store.UsageReport) map[string]string {
	if r.By != "conversation" || len(r.Rows) == 0 {
		return nil
	}
	titles := map[string]string{}
	own, err := api.ListConversations.Call(ctx, c.API, api.Empty{})
	if err != nil {
		return titles // the ids identify them
	}
	for _, th := range own.Items {
		titles[th.ID] = th.Title
	}
	return titles
}

// usageBefore compares the sum with that of the previous period of as many days, if
// anything was used then.
func usageBefore(ctx context.Context, c *command.Call, q api.GetUsageRequest, now store.UsageReport) error {
	zone, err := time.LoadLocation(cmp.Or(now.Zone, "UTC"))
	if now.Total.Calls == 0 || err != nil {
		return nil
	}
	start, end := now.Since.In(zone), c.Now().In(zone)
	days := 1
	for start.AddDate(0, 0, days).Before(end) {
		days++
	}
	q.Top, q.Since = 0, start.AddDate(0, 0, -days)
	if q.By != "tool" {
		q.By = "day"
	}
	both, err := api.GetUsage.Call(ctx, c.API, q)
	if err != nil {
		return err
	}
	was := both.Total.Minus(now.Total)
	if was.Calls <= 0 {
		return nil
	}
	parts := []string{fmt.Sprintf("calls %s (%d)", change(now.Total.Calls, was.Calls), was.Calls)}
	if tokens := was.Prompt + was.Completion; tokens > 0 {
		parts = append(parts, fmt.Sprintf("tokens %s (%d)", change(now.Total.Prompt+now.Total.Completion, tokens), tokens))
	}
	if was.MicroUSD > 0 && was.Unpriced+now.Total.Unpriced == 0 {
		parts = append(parts, fmt.Sprintf("cost %s (%s)", change(now.Total.MicroUSD, was.MicroUSD), cost(was)))
	}
	c.Note("against the %s before: %s", command.Count(days, "day"), strings.Join(parts, ", "))
	return nil
}

// change returns the change from before to now as a percentage.
func change(now, before int64) string {
	return fmt.Sprintf("%+.0f %%", 100*(float64(now)/float64(before)-1))
}

// usageNotes prints what the numbers omit, and the zone of the days.
func usageNotes(c *command.Call, r store.UsageReport) {
	if len(r.Rows) == 0 {
		return
	}
	if r.More > 0 {
		c.Note("%d more are in the sum; --top 0 shows all", r.More)
	}
	if r.Total.Unpriced > 0 {
		c.Note("the price of %s is unknown, so the cost is at least that; to set it: nizectl models price PROVIDER/MODEL --in USD --out USD%s",
			command.Count(int(r.Total.Unpriced), "call"), unpricedModels(r.Unpriced))
	}
	if r.Total.Estimated > 0 {
		c.Note("the tokens of %s are an estimate: the provider sent no numbers", command.Count(int(r.Total.Estimated), "call"))
	}
	if !r.Since.IsZero() {
		c.Note("since %s, in days of %s", r.Since.Format(time.DateOnly), r.Zone)
	}
}

func unpricedModels(models []string) string {
	const shown = 5
	switch {
	case len(models) == 0:
		return ""
	case len(models) > shown:
		return fmt.Sprintf(" (%s and %d more)", strings.Join(models[:shown], ", "), len(models)-shown)
	}
	return " (" + strings.Join(models, ", ") + ")"
}

func modelUsage(c *command.Call, r store.UsageReport, titles map[string]string) {
	t := c.Table(strings.ToUpper(r.By), "CALLS", "PROMPT", "CACHED", "COMPLETION", "REASONING", "COST", "TIME").Numbers(1, 2, 3, 4, 5, 6, 7)
	for _, row := range r.Rows {
		if title := titles[row.Key]; title != "" {
			row.Key = fmt.Sprintf("%s (%s)", store.Clip(title, 40), row.Key)
		}
		t.Row(usageCells(row)...)
	}
	if len(r.Rows) > 1 {
		total := r.Total
		total.Key = "all"
		t.Row(usageCells(total)...)
	}
	t.Print("no model was called in that time")
}

func usageCells(r store.UsageRow) []string {
	return []string{keyOf(r), number(r.Calls), number(r.Prompt), number(r.Cached), number(r.Completion), number(r.Reasoning), cost(r), command.Millis(float64(r.TookMS))}
}

// keyOf returns the name of a row, or a dash if it has none.
func keyOf(r store.UsageRow) string { return cmp.Or(r.Key, "-") }

func number(n int64) string { return strconv.FormatInt(n, 10) }

// cost formats the cost of a row; an unknown price is never 0.
func cost(r store.UsageRow) string {
	if r.Unpriced >= r.Calls && r.Calls > 0 {
		return "unknown"
	}
	text := fmt.Sprintf("$%.4f", float64(r.MicroUSD)/1e6)
	if r.Unpriced > 0 {
		text = "> " + text
	}
	return text
}

func toolUsage(c *command.Call, r store.UsageReport) {
	t := c.Table("TOOL", "CALLS", "FAILED", "TIME").Numbers(1, 2, 3)
	for _, row := range r.Rows {
		t.Row(keyOf(row), number(row.Calls), number(row.Failed), command.Millis(float64(row.TookMS)))
	}
	if len(r.Rows) > 1 {
		t.Row("all", number(r.Total.Calls), number(r.Total.Failed), command.Millis(float64(r.Total.TookMS)))
	}
	t.Print("no tool was called in that time")
}

// formula are the first characters of a cell that a spreadsheet may execute as a formula
// (OWASP, CSV injection).
const formula = "=+-@\t\r"

// usageCSV writes the rows with the field names of --json (RFC 4180).
func usageCSV(c *command.Call, rows []store.UsageRow) error {
	w := csv.NewWriter(c.Out)
	w.UseCRLF = true
	w.Write([]string{"key", "calls", "prompt", "completion", "cached", "reasoning", "estimated", "micro_usd", "unpriced", "failed", "took_ms"})
	for _, r := range rows {
		key := display.Clean(r.Key)
		if start := strings.TrimLeft(key, " "); start != "" && strings.ContainsRune(formula, rune(start[0])) {
			key = "'" + key
		}
		w.Write([]string{key, number(r.Calls), number(r.Prompt), number(r.Completion), number(r.Cached), number(r.Reasoning),
			number(r.Estimated), number(r.MicroUSD), number(r.Unpriced), number(r.Failed), number(r.TookMS)})
	}
	w.Flush()
	if err := w.Error(); err != nil {
		return fmt.Errorf("writing CSV: %w", err)
	}
	return nil
}
