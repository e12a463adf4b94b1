package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/command"
	"nize/daemon/api"
	"nize/store"
)

func asksCommand(a *command.App) *cli.Command {
	return command.Group("asks", "show how asks of other programs are answered",
		a.Command(command.Leaf{Name: "stats", Usage: "count asks, who answered them and how fast", Run: asksStats, Flags: []cli.Flag{
			&cli.StringFlag{Name: "since", Usage: "how far back, such as 7d", Value: "30d"},
		}}),
	)
}

func asksStats(ctx context.Context, c *command.Call) error {
	back, err := store.ParseSpan(c.Cmd.String("since"))
	if err != nil || back <= 0 {
		return command.Usagef("--since %q: use a time such as 7d", c.Cmd.String("since"))
	}
	got, err := api.AskStats.Call(ctx, c.API, api.AskStatsRequest{Since: c.Now().Add(-back)})
	if err != nil {
		return err
	}
	if c.JSON {
		got.Rows = command.Items(got.Rows)
		return c.PrintJSON(got)
	}
	t := c.Table("TOOL", "ASKED", "STANDING", "NO RULE", "YES", "NO", "EXPIRED", "WITHDRAWN", "WAITING", "MEDIAN", "ANSWERED BY").Numbers(1, 2, 3, 4, 5, 6, 7, 8, 9)
	row := func(name string, r api.AskStatsRow) {
		n := strconv.Itoa
		took := "-"
		if r.MedianMS > 0 {
			took = (time.Duration(r.MedianMS) * time.Millisecond).Round(100 * time.Millisecond).String()
		}
		t.Row(name, n(r.Asked), n(r.Standing), n(r.Rules), n(r.Approved), n(r.Refused), n(r.Expired), n(r.Cancelled), n(r.Waiting), took, answeredBy(r.People))
	}
	for _, r := range got.Rows {
		row(r.Tool, r)
	}
	if len(got.Rows) > 1 {
		row("all", got.Total)
	}
	t.Print("no asks since " + got.Since.Local().Format("2006-01-02"))
	if got.Partial {
		c.Note("there were more: the newest %d are counted", got.Total.Asked)
	}
	return nil
}

// answeredBy returns the names of people and the number of asks that each decided.
func answeredBy(people map[string]int) string {
	names := slices.SortedFunc(maps.Keys(people), func(a, b string) int {
		if people[a] != people[b] {
			return people[b] - people[a]
		}
		return strings.Compare(a, b)
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%s %d", name, people[name])
	}
	return strings.Join(names, ", ")
}
