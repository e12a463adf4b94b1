package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"nize/daemon/api"
	"nize/store"
)

func (a *app) budgets() *cli.Command {
	return group("budgets", "what people, groups, teams and models may spend",
		a.command(leaf{name: "list", usage: "list budgets and how far they are used", run: budgetsList, flags: []cli.Flag{
			&cli.StringFlag{Name: "user", Usage: "those that hold for this `USER`"},
		}}),
		a.command(leaf{name: "set", args: "SUBJECT", usage: "set a budget of user:NAME, user:* (each person), group:NAME, team:TEAM or model:PROVIDER/MODEL", names: budgetSubjects, run: budgetsSet,
			more: "nizectl budgets set user:mia --daily 400000tokens\nnizectl budgets set group:ops --monthly 50usd\nnizectl budgets set user:mia --daily unlimited",
			flags: []cli.Flag{
				&cli.StringFlag{Name: "daily", Usage: "`AMOUNT` a day of UTC: 200000tokens, 5usd or unlimited"},
				&cli.StringFlag{Name: "monthly", Usage: "`AMOUNT` a month of UTC"},
			}}),
		a.command(leaf{name: "remove", args: "SUBJECT", usage: "remove a budget", names: budgetSubjects, run: budgetsRemove, flags: []cli.Flag{
			&cli.BoolFlag{Name: "daily", Usage: "only the daily ones"}, &cli.BoolFlag{Name: "monthly", Usage: "only the monthly ones"}, yesFlag(),
		}}),
	)
}

// budgetSubjects offers those that have a budget; * is none for a shell.
func budgetSubjects(ctx context.Context, c *api.Client) ([]string, error) {
	list, err := api.ListBudgets.Call(ctx, c, api.ListBudgetsRequest{})
	names := each(list.Items, func(b api.Budget) string { return b.Name })
	return slices.Compact(slices.DeleteFunc(names, func(n string) bool { return n == store.Everybody })), err
}

func budgetsList(ctx context.Context, c *call) error {
	list, err := api.ListBudgets.Call(ctx, c.api, api.ListBudgetsRequest{User: c.cmd.String("user")})
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(items(list.Items))
	}
	t := c.table("BUDGET OF", "PERIOD", "LIMIT", "USED", "SHARE", "RESETS").numbers(2, 3, 4)
	for _, b := range list.Items {
		t.row(budgetCells(c, b)...)
	}
	t.print("no budgets")
	return nil
}

func budgetCells(c *call, b api.Budget) []string {
	name := b.Name
	if b.Default {
		name += " (default)"
	}
	limit, used, share := b.Amount(b.Limit), b.Amount(b.Used), "-"
	switch {
	case b.PerUser:
		used, share = "each their own", "-"
	case b.Limit > 0:
		share = fmt.Sprintf("%d %%", b.Used*100/b.Limit)
	}
	if b.Limit == 0 {
		limit = "unlimited"
	}
	return []string{name, string(b.Period), limit, used, share, c.when(b.Resets)}
}

func budgetsSet(ctx context.Context, c *call) error {
	var set []api.Budget
	if !c.cmd.IsSet("daily") && !c.cmd.IsSet("monthly") {
		return usagef("budgets set needs --daily AMOUNT or --monthly AMOUNT: 200000tokens, 5usd or unlimited")
	}
	if !strings.Contains(c.arg(0), ":") {
		return usagef("%q is no subject: write user:%s, group:NAME, team:TEAM or model:PROVIDER/MODEL", c.arg(0), c.arg(0))
	}
	for _, p := range []store.Period{store.Daily, store.Monthly} {
		if !c.cmd.IsSet(string(p)) {
			continue
		}
		if _, _, err := store.ParseAmount(c.cmd.String(string(p))); err != nil {
			return usagef("--%s %s: write 200000tokens, 5usd or unlimited", p, c.cmd.String(string(p)))
		}
	}
	for _, p := range []store.Period{store.Daily, store.Monthly} {
		if !c.cmd.IsSet(string(p)) {
			continue
		}
		b, err := api.SetBudget.Call(ctx, c.api, api.SetBudgetRequest{Subject: c.arg(0), Period: p, Amount: c.cmd.String(string(p))})
		if err != nil {
			return err
		}
		set = append(set, b)
		if !c.json {
			limit := b.Amount(b.Limit)
			if b.Limit == 0 {
				limit = "unlimited"
			}
			c.note("the %s budget of %s is %s", b.Period, b.Name, limit)
		}
	}
	if c.json {
		return c.printJSON(items(set))
	}
	return nil
}

func budgetsRemove(ctx context.Context, c *call) error {
	r := api.RemoveBudgetRequest{Subject: c.arg(0)}
	what := "budgets"
	if daily, monthly := c.cmd.Bool("daily"), c.cmd.Bool("monthly"); daily != monthly {
		r.Period = store.Daily
		if monthly {
			r.Period = store.Monthly
		}
		what = string(r.Period) + " budgets"
	}
	if err := c.confirm("Remove the %s of %s?", what, r.Subject); err != nil {
		return err
	}
	if _, err := api.RemoveBudget.Call(ctx, c.api, r); err != nil {
		return err
	}
	return c.removed(what+" of", r.Subject)
}
