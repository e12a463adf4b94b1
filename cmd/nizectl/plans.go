package main

import (
	"context"
	"strconv"
	"strings"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/command"
	"nize/daemon/api"
	"nize/store"
	"nize/store/plan"
)

// plansCommand is the group of commands.
func plansCommand(a *command.App) *cli.Command {
	return command.Group("plans", "manage monthly allowances of people and teams",
		a.Command(command.Leaf{Name: "add", Args: "PLAN", Usage: "add a plan, or change it", Names: plansNames, Run: plansAdd, Flags: []cli.Flag{
			&cli.StringFlag{Name: "name", Usage: "`NAME` for people (default: PLAN)"},
			&cli.Int64Flag{Name: "messages", Usage: "`N` messages a month; unlimited if not given"},
			&cli.Int64Flag{Name: "tokens", Usage: "`N` tokens of models a month, as a budget"},
			&cli.Float64Flag{Name: "credits", Usage: "`N` of model cost a month, as a budget: in US dollars or the plan's own credits"},
			&cli.StringFlag{Name: "credit-name", Usage: "`NAME` of the plan's own unit, such as 'AI credits'"},
			&cli.Float64Flag{Name: "credit-usd", Usage: "`USD` value of one credit"}}}),
		a.Command(command.Leaf{Name: "list", Usage: "list plans", Run: plansList}),
		a.Command(command.Leaf{Name: "show", Args: "PLAN", Usage: "show a plan, its assignments and their use", Names: plansNames, Run: plansShow}),
		a.Command(command.Leaf{Name: "assign", Args: "PLAN SUBJECT", Usage: "assign a plan to people or a team", More: "SUBJECT is user:NAME, user:* (each person) or team:TEAM. PLAN none removes the assignment.", Names: plansNames, Run: plansAssign}),
		a.Command(command.Leaf{Name: "remove", Args: "PLAN", Usage: "remove a plan that is not assigned", Names: plansNames, Run: plansRemove, Flags: []cli.Flag{command.YesFlag()}}))
}

func plansNames(ctx context.Context, c *api.Client) ([]string, error) {
	list, err := api.ListPlans.Call(ctx, c, api.Empty{})
	return command.Each(list.Items, func(p api.PlanView) string { return p.ID }), err
}

func plansAdd(ctx context.Context, c *command.Call) error {
	p := plan.Plan{Name: c.Cmd.String("name"), Tokens: c.Cmd.Int64("tokens"), Credits: c.Cmd.Float64("credits"), CreditName: c.Cmd.String("credit-name"), CreditUSD: c.Cmd.Float64("credit-usd")}
	if p.Name == "" {
		p.Name = c.Arg(0)
	}
	if c.Cmd.IsSet("messages") {
		n := c.Cmd.Int64("messages")
		p.Messages = &n
	}
	made, err := api.PutPlan.Call(ctx, c.API, api.PutPlanRequest{ID: c.Arg(0), Plan: p})
	if err != nil {
		return err
	}
	if err := c.Report(made, "plan %s: %s", made.ID, plansAmounts(made.Plan)); err != nil {
		return err
	}
	if len(made.Given) == 0 {
		c.Note("it is not assigned yet: nizectl plans assign %s user:NAME", made.ID)
	}
	return nil
}

// plansAmounts describes the limits of a plan.
func plansAmounts(p plan.Plan) string {
	list := []string{"unlimited messages"}
	if p.Messages != nil {
		list[0] = strconv.FormatInt(*p.Messages, 10) + " messages"
	}
	for _, b := range p.Budgets(store.Everybody) {
		list = append(list, b.LimitText().String())
	}
	text := strings.Join(list, ", ") + " a month"
	if p.Credits > 0 && p.CreditName != "" {
		text += " (" + strconv.FormatFloat(p.Credits, 'f', -1, 64) + " " + p.CreditName + ")"
	}
	return text
}

func plansList(ctx context.Context, c *command.Call) error {
	list, err := api.ListPlans.Call(ctx, c.API, api.Empty{})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(command.Items(list.Items))
	}
	t := c.Table("PLAN", "NAME", "AMOUNTS", "ASSIGNED TO").Text(3)
	for _, p := range list.Items {
		t.Row(p.ID, p.Name, plansAmounts(p.Plan), strings.Join(command.Each(p.Given, func(g api.PlanGiven) string { return g.Name }), ", "))
	}
	t.Print("no plans yet: nizectl plans add PLAN --messages 500")
	return nil
}

func plansShow(ctx context.Context, c *command.Call) error {
	list, err := api.ListPlans.Call(ctx, c.API, api.Empty{})
	if err != nil {
		return err
	}
	var ids []string
	for _, p := range list.Items {
		if ids = append(ids, p.ID); p.ID != c.Arg(0) {
			continue
		}
		if c.JSON {
			return c.PrintJSON(p)
		}
		c.Field("plan", p.ID)
		c.Field("name", p.Name)
		c.Field("amounts", plansAmounts(p.Plan))
		c.Field("period ends", c.When(p.Ends))
		for _, g := range p.Given {
			used := "each their own"
			if g.Used != nil {
				used = command.Count(int(*g.Used), "message") + " used"
			}
			c.Field("assigned to", g.Name+": "+used)
		}
		return nil
	}
	return store.Unknown("plan", c.Arg(0), ids)
}

func plansAssign(ctx context.Context, c *command.Call) error {
	id := c.Arg(0)
	if id == "none" {
		id = ""
	}
	g, err := api.AssignPlan.Call(ctx, c.API, api.AssignPlanRequest{Plan: id, Subject: c.Arg(1)})
	if err != nil {
		return err
	}
	if id == "" {
		return c.Report(g, "%s has no plan of its own any more", g.Name)
	}
	return c.Report(g, "%s has the plan %s", g.Name, id)
}

func plansRemove(ctx context.Context, c *command.Call) error {
	if err := c.Confirm("Remove the plan %s?", c.Arg(0)); err != nil {
		return err
	}
	if _, err := api.RemovePlan.Call(ctx, c.API, api.RemovePlanRequest{ID: c.Arg(0)}); err != nil {
		return err
	}
	return c.Removed("plan", c.Arg(0))
}
