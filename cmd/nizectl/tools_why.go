package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v3"

	"nize/daemon/api"
	"nize/store"
)

func (a *app) toolsWhy() *cli.Command {
	return a.command(leaf{name: "why", args: "TOOL", usage: "say by which rule somebody may or may not use a tool, and what changes that", names: toolNames, run: toolsWhy, flags: []cli.Flag{
		&cli.StringFlag{Name: "user", Usage: "the person (default: you; others: admins only)"},
		&cli.StringFlag{Name: "agent", Usage: "through this agent"},
		&cli.StringFlag{Name: "channel", Usage: "in this `CHANNEL`: slack:TEAM/CHANNEL, or its id alone"},
		&cli.StringFlag{Name: "token", Usage: "with the person's token of that `NAME`"},
	}})
}

// privateResults is what is said of a tool whose results are private.
const privateResults = "private: in a channel they go to who asked alone, until they share them"

func toolsWhy(ctx context.Context, c *call) error {
	why, err := c.api.Why(ctx, toolID(c.arg(0)), api.WhyQuery{User: c.cmd.String("user"), Agent: c.cmd.String("agent"), Token: c.cmd.String("token"), Channel: c.cmd.String("channel")})
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(why)
	}
	verdict := "may use it"
	if !why.Usable {
		verdict = "may not use it"
	}
	c.field("tool", why.Tool)
	c.field("person", why.UserName+" "+verdict)
	c.whyTable(why.Rules)
	if why.Approval == nil {
		return nil
	}
	asks := "not needed"
	if why.Approval.Asks {
		asks = "needed: " + why.Approval.Reason
	}
	c.line("")
	c.field("approval", asks)
	c.field("who decides", why.Approval.Approvers)
	c.field("runs as", why.Approval.RunsAs)
	if why.Approval.Private {
		c.field("results", privateResults)
	}
	c.whyTable(why.Approval.Rules)
	if len(why.Approval.Deciders) > 0 {
		c.line("")
		c.whyTable(why.Approval.Deciders)
	}
	return nil
}

// whyTable shows rules in the order in which they were asked.
func (c *call) whyTable(rules []api.WhyRule) {
	t := c.table("RULE", "VERDICT", "BECAUSE", "TO CHANGE IT")
	for _, r := range rules {
		verdict := r.Verdict
		if verdict == "" {
			verdict = "-"
		}
		if r.Decides {
			verdict += " (decides)"
		}
		t.row(r.Rule, verdict, r.Says, r.Command)
	}
	t.print("no rules")
}

func (a *app) toolsWanted() *cli.Command {
	return a.command(leaf{name: "wanted", usage: "rank what was asked for in the last 30 days and no tool could do", run: toolsWanted, flags: []cli.Flag{
		&cli.StringFlag{Name: "forget", Usage: "forget what `TEXT` counts for, instead of listing"},
		&cli.BoolFlag{Name: "forget-all", Usage: "forget all of it, instead of listing"}, yesFlag(),
	}})
}

func toolsWanted(ctx context.Context, c *call) error {
	text, all := c.cmd.String("forget"), c.cmd.Bool("forget-all")
	switch {
	case all && c.cmd.IsSet("forget"):
		return usagef("give --forget or --forget-all, not both")
	case c.cmd.IsSet("forget") && len(store.RequestWords(text)) == 0:
		return usagef("--forget %q: say what was asked for", text)
	case all || c.cmd.IsSet("forget"):
		return c.forgetWanted(ctx, text)
	}
	list, err := c.api.Wanted(ctx)
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(items(list))
	}
	t := c.table("TIMES", "LAST", "ASKED FOR").numbers(0).text(2)
	for _, w := range list {
		t.row(fmt.Sprint(w.Count), c.when(w.Last), w.Text)
	}
	t.print("nothing was asked for that no tool could do")
	return nil
}

func (c *call) forgetWanted(ctx context.Context, text string) error {
	if text == "" {
		if err := c.confirm("Forget everything that was asked for and no tool could do?"); err != nil {
			return err
		}
	}
	gone, err := c.api.ForgetWanted(ctx, text)
	if err != nil {
		return err
	}
	return c.report(gone, "forgotten: %d", gone.Forgotten)
}
