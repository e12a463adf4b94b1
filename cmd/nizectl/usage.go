package main

import (
	"context"
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"nize/store"
)

// groupings of a usage report.
var groupings = []string{"day", "user", "agent", "provider", "model", "conversation", "tool"}

func (a *app) usage() *cli.Command {
	return a.command(leaf{name: "usage", usage: "show what model and tool calls cost", run: usage, flags: []cli.Flag{
		&cli.StringFlag{Name: "since", Value: "30d", Usage: "`HOW LONG` back, such as 24h or 30d, or a date"},
		&cli.StringFlag{Name: "by", Value: "day", Usage: strings.Join(groupings, ", ")},
		&cli.BoolFlag{Name: "csv", Usage: "answer in CSV"},
	}})
}

// since reads --since: a span back from now, or a date.
func (c *call) since() (time.Time, error) {
	text := c.cmd.String("since")
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := store.ParseSpan(text); err == nil {
		return c.now().Add(-d), nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339, "2006-01-02 15:04"} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, usagef("--since %s: write 24h, 30d, 2026-01-31 or an RFC 3339 time", text)
}

func usage(ctx context.Context, c *call) error {
	by := c.cmd.String("by")
	if !slices.Contains(groupings, by) {
		return usagef("--by %s: want one of %s", by, strings.Join(groupings, ", "))
	}
	if c.json && c.cmd.Bool("csv") {
		return usagef("give --json or --csv, not both")
	}
	since, err := c.since()
	if err != nil {
		return err
	}
	rows, err := c.api.Usage(ctx, store.UsageQuery{Since: since, By: by})
	if err != nil {
		return err
	}
	switch {
	case c.json:
		return c.printJSON(items(rows))
	case c.cmd.Bool("csv"):
		return c.usageCSV(rows)
	case by == "tool":
		c.toolUsage(rows)
	default:
		c.modelUsage(by, rows)
	}
	return nil
}

func (c *call) modelUsage(by string, rows []store.UsageRow) {
	t := c.table(strings.ToUpper(by), "CALLS", "PROMPT", "CACHED", "COMPLETION", "REASONING", "COST", "TIME").numbers(1, 2, 3, 4, 5, 6, 7)
	var sum store.UsageRow
	for _, r := range rows {
		t.row(usageCells(r)...)
		sum.Calls += r.Calls
		sum.Prompt += r.Prompt
		sum.Cached += r.Cached
		sum.Completion += r.Completion
		sum.Reasoning += r.Reasoning
		sum.MicroUSD += r.MicroUSD
		sum.Unpriced += r.Unpriced
		sum.Estimated += r.Estimated
		sum.TookMS += r.TookMS
	}
	if len(rows) > 1 {
		sum.Key = "all"
		t.row(usageCells(sum)...)
	}
	t.print("no model was called in that time")
	if sum.Unpriced > 0 {
		c.note("the price of %s is unknown, so the cost is at least that", count(int(sum.Unpriced), "call"))
	}
	if sum.Estimated > 0 {
		c.note("the tokens of %s are an estimate: the provider sent no numbers", count(int(sum.Estimated), "call"))
	}
}

func usageCells(r store.UsageRow) []string {
	return []string{r.Key, number(r.Calls), number(r.Prompt), number(r.Cached), number(r.Completion), number(r.Reasoning), cost(r), millis(float64(r.TookMS))}
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

// cost is money, or what is known of it; an unknown price is never 0.
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

func (c *call) toolUsage(rows []store.UsageRow) {
	t := c.table("TOOL", "CALLS", "FAILED", "TIME").numbers(1, 2, 3)
	for _, r := range rows {
		t.row(r.Key, number(r.Calls), number(r.Failed), millis(float64(r.TookMS)))
	}
	t.print("no tool was called in that time")
}

// usageCSV writes the rows with the field names of --json.
func (c *call) usageCSV(rows []store.UsageRow) error {
	w := csv.NewWriter(c.out)
	w.Write([]string{"key", "calls", "prompt", "completion", "cached", "reasoning", "estimated", "micro_usd", "unpriced", "failed", "took_ms"})
	for _, r := range rows {
		key := clean(r.Key)
		if strings.HasPrefix(key, "=") || strings.HasPrefix(key, "+") || strings.HasPrefix(key, "@") || strings.HasPrefix(key, "-") {
			key = "'" + key // or a spreadsheet takes it for a formula
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
