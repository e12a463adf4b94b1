package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/command"
	"nize/daemon/api"
	"nize/store"
)

func budgetsCommand(a *command.App) *cli.Command {
	return command.Group("budgets", "limit spending and the number of tool calls",
		a.Command(command.Leaf{Name: "list", Usage: "list budgets and how far they are used", Run: budgetsList, Flags: []cli.Flag{
			&cli.StringFlag{Name: "user", Usage: "those that hold for this `USER`"}, projectFlag(),
		}}),
		a.Command(command.Leaf{Name: "add", Aliases: []string{"set"}, Args: "[SUBJECT]", Usage: "add a budget, or change it", Names: budgetSubjects, Run: budgetsSet,
			More: "SUBJECT is user:NAME, user:* (each person), project:NAME, group:NAME, team:TEAM or model:PROVIDER/MODEL.\nnizectl budgets add user:mia --daily 400000tokens\nnizectl budgets add group:ops --monthly 50usd\nnizectl budgets add user:mia --daily unlimited\nnizectl budgets add --project sales --monthly 20usd\nnizectl budgets add user:* --tool 'tracker:*' --daily 50calls",
			Flags: []cli.Flag{
				&cli.StringFlag{Name: "daily", Usage: "`AMOUNT` a day of UTC: 200000tokens, 5usd, 50calls or unlimited"},
				&cli.StringFlag{Name: "monthly", Usage: "`AMOUNT` a month of UTC"}, projectFlag(),
				toolFlag("count calls of the tools that match `PATTERN` (SERVER:TOOL, SERVER:* or *), by a user, each user (user:*) or a group"),
			}}),
		a.Command(command.Leaf{Name: "remove", Args: "[SUBJECT]", Usage: "remove a budget", Names: budgetSubjects, Run: budgetsRemove, Flags: []cli.Flag{
			&cli.BoolFlag{Name: "daily", Usage: "only the daily ones"}, &cli.BoolFlag{Name: "monthly", Usage: "only the monthly ones"},
			toolFlag("only the budgets for calls of that `PATTERN`"), command.YesFlag(), projectFlag(),
		}}),
	)
}

func projectFlag() cli.Flag {
	return &cli.StringFlag{Name: "project", Usage: "of this `PROJECT`"}
}

// userOrProject returns the user or project given by flags; "" is everyone.
func userOrProject(c *command.Call) string {
	if of := c.Cmd.String("project"); of != "" {
		return "project:" + of
	}
	return c.Cmd.String("user")
}

// budgetSubject returns the subject of the budget given by flags.
func budgetSubject(c *command.Call) (string, error) {
	subject, of := c.Arg(0), c.Cmd.String("project")
	switch {
	case of != "" && subject != "":
		return "", command.Usagef("use a subject or --project, not both")
	case of != "":
		return "project:" + of, nil
	case subject == "":
		return "", command.Usagef("name the budget's subject: user:NAME, user:*, project:NAME, group:NAME, team:TEAM or model:PROVIDER/MODEL")
	case !strings.Contains(subject, ":"):
		return "", command.Usagef("%q is not a valid subject: write user:%s, project:NAME, group:NAME, team:TEAM or model:PROVIDER/MODEL", subject, subject)
	}
	return subject, nil
}

func toolFlag(usage string) cli.Flag { return &cli.StringFlag{Name: "tool", Usage: usage} }

// budgetSubjects completes subjects with a budget; it omits *, which shells expand.
func budgetSubjects(ctx context.Context, c *api.Client) ([]string, error) {
	list, err := api.ListBudgets.Call(ctx, c, api.ListBudgetsRequest{})
	names := command.Each(list.Items, func(b api.Budget) string { return b.Name })
	return slices.Compact(slices.DeleteFunc(names, func(n string) bool { return n == store.Everybody })), err
}

func budgetsList(ctx context.Context, c *command.Call) error {
	list, err := api.ListBudgets.Call(ctx, c.API, api.ListBudgetsRequest{User: userOrProject(c)})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(command.Items(list.Items))
	}
	budgetTable(c, list.Items, "no budgets")
	return nil
}

func budgetTable(c *command.Call, list []api.Budget, none string) {
	t := c.Table("BUDGET OF", "PERIOD", "LIMIT", "USED", "SHARE", "RESETS").Numbers(2, 3, 4)
	for _, b := range list {
		t.Row(budgetCells(c, b)...)
	}
	t.Print(none)
}

func budgetCells(c *command.Call, b api.Budget) []string {
	name := b.Name
	if b.Default {
		name += " (default)"
	}
	if b.Tool != "" {
		name += " for " + b.Tool
	}
	limit, used, share := b.Amount(b.Limit).String(), b.Amount(b.Used).String(), "-"
	switch {
	case b.PerUser:
		used, share = "each their own", "-"
	case b.Limit > 0:
		share = fmt.Sprintf("%d %%", b.Used*100/b.Limit)
	}
	if b.Limit == 0 {
		limit = "unlimited"
	}
	return []string{name, string(b.Period), limit, used, share, c.When(b.Resets)}
}

func budgetsSet(ctx context.Context, c *command.Call) error {
	var set []api.Budget
	if !c.Cmd.IsSet("daily") && !c.Cmd.IsSet("monthly") {
		return command.Usagef("budgets set needs --daily AMOUNT or --monthly AMOUNT: 200000tokens, 5usd, 50calls or unlimited")
	}
	subject, err := budgetSubject(c)
	if err != nil {
		return err
	}
	for _, p := range []store.Period{store.Daily, store.Monthly} {
		if !c.Cmd.IsSet(string(p)) {
			continue
		}
		unit, limit, err := store.ParseAmount(c.Cmd.String(string(p)))
		switch tool := c.Cmd.String("tool"); {
		case err == nil && limit > 0 && unit == store.InCalls && tool == "":
			return command.Usagef("--%s %s: name the tools with --tool PATTERN, or --tool '*' for all", p, c.Cmd.String(string(p)))
		case err == nil && limit > 0 && unit != store.InCalls && tool != "":
			return command.Usagef("--%s %s: a budget of tools is in calls, such as 50calls", p, c.Cmd.String(string(p)))
		case err != nil:
			return command.Usagef("--%s %s: write 200000tokens, 5usd, 50calls or unlimited", p, c.Cmd.String(string(p)))
		}
	}
	for _, p := range []store.Period{store.Daily, store.Monthly} {
		if !c.Cmd.IsSet(string(p)) {
			continue
		}
		b, err := api.SetBudget.Call(ctx, c.API, api.SetBudgetRequest{Subject: subject, Period: p, Amount: c.Cmd.String(string(p)), Tool: c.Cmd.String("tool")})
		if err != nil {
			return err
		}
		set = append(set, b)
		if !c.JSON {
			limit := b.LimitText().String()
			switch {
			case b.Limit == 0 && b.Tool != "":
				limit = "unlimited for " + b.Tool
			case b.Limit == 0:
				limit = "unlimited"
			}
			c.Note("the %s budget of %s is %s", b.Period, b.Name, limit)
		}
	}
	if c.JSON {
		return c.PrintJSON(command.Items(set))
	}
	return nil
}

func budgetsRemove(ctx context.Context, c *command.Call) error {
	subject, err := budgetSubject(c)
	if err != nil {
		return err
	}
	r := api.RemoveBudgetRequest{Subject: subject, Tool: c.Cmd.String("tool")}
	what := "budgets"
	if daily, monthly := c.Cmd.Bool("daily"), c.Cmd.Bool("monthly"); daily != monthly {
		r.Period = store.Daily
		if monthly {
			r.Period = store.Monthly
		}
		what = string(r.Period) + " budgets"
	}
	if r.Tool != "" {
		what += " for " + r.Tool
	}
	if err := c.Confirm("Remove the %s of %s?", what, r.Subject); err != nil {
		return err
	}
	if _, err := api.RemoveBudget.Call(ctx, c.API, r); err != nil {
		return err
	}
	return c.Removed(what+" of", r.Subject)
}
