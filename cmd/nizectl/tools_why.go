package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/command"
	"nize/daemon/api"
	"nize/store"
)

func toolsWhyCommand(a *command.App) *cli.Command {
	return a.Command(command.Leaf{Name: "why", Args: "TOOL", Usage: "say by which rule somebody may or may not use a tool, and what changes that", Names: command.ToolNames, Run: toolsWhy, Flags: []cli.Flag{
		&cli.StringFlag{Name: "user", Usage: "the person (default: you; others: admins only)"},
		&cli.StringFlag{Name: "agent", Usage: "through this agent"},
		&cli.StringFlag{Name: "channel", Usage: "in this `CHANNEL`: slack:TEAM/CHANNEL, or its id alone"},
		&cli.StringFlag{Name: "token", Usage: "with the person's token of that `NAME`"},
	}})
}

// privateResults is what is said of a tool whose results are private.
const privateResults = "private: in a channel they go to who asked alone, until they share them"

func toolsWhy(ctx context.Context, c *command.Call) error {
	why, err := api.ExplainTool.Call(ctx, c.API, api.ExplainToolRequest{ID: toolID(c.Arg(0)), User: c.Cmd.String("user"), Agent: c.Cmd.String("agent"), Token: c.Cmd.String("token"), Channel: c.Cmd.String("channel")})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(why)
	}
	verdict := "may use it"
	if !why.Usable {
		verdict = "may not use it"
	}
	c.Field("tool", why.Tool)
	c.Field("person", why.UserName+" "+verdict)
	whyTable(c, why.Rules)
	if why.Approval == nil {
		return nil
	}
	asks := "not needed"
	if why.Approval.Asks {
		asks = "needed: " + why.Approval.Reason
	}
	c.Line("")
	c.Field("approval", asks)
	c.Field("who decides", why.Approval.Approvers)
	c.Field("runs as", why.Approval.RunsAs)
	if why.Approval.Private {
		c.Field("results", privateResults)
	}
	whyTable(c, why.Approval.Rules)
	if len(why.Approval.Deciders) > 0 {
		c.Line("")
		whyTable(c, why.Approval.Deciders)
	}
	return nil
}

// whyTable shows rules in the order in which they were asked.
func whyTable(c *command.Call, rules []api.WhyRule) {
	t := c.Table("RULE", "VERDICT", "BECAUSE", "TO CHANGE IT")
	for _, r := range rules {
		verdict := r.Verdict
		if verdict == "" {
			verdict = "-"
		}
		if r.Decides {
			verdict += " (decides)"
		}
		t.Row(r.Rule, verdict, r.Says, r.Command)
	}
	t.Print("no rules")
}

func toolsWantedCommand(a *command.App) *cli.Command {
	return a.Command(command.Leaf{Name: "wanted", Usage: "rank what was asked for in the last 30 days and no tool could do", Run: toolsWanted, Flags: []cli.Flag{
		&cli.StringFlag{Name: "forget", Usage: "forget what `TEXT` counts for, instead of listing"},
		&cli.BoolFlag{Name: "forget-all", Usage: "forget all of it, instead of listing"}, command.YesFlag(),
	}})
}

func toolsWanted(ctx context.Context, c *command.Call) error {
	text, all := c.Cmd.String("forget"), c.Cmd.Bool("forget-all")
	switch {
	case all && c.Cmd.IsSet("forget"):
		return command.Usagef("give --forget or --forget-all, not both")
	case c.Cmd.IsSet("forget") && len(store.RequestWords(text)) == 0:
		return command.Usagef("--forget %q: say what was asked for", text)
	case all || c.Cmd.IsSet("forget"):
		return forgetWanted(ctx, c, text)
	}
	list, err := api.ListUnmetRequests.Call(ctx, c.API, api.Empty{})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(command.Items(list.Items))
	}
	t := c.Table("TIMES", "LAST", "ASKED FOR").Numbers(0).Text(2)
	for _, w := range list.Items {
		t.Row(fmt.Sprint(w.Count), c.When(w.Last), w.Text)
	}
	t.Print("nothing was asked for that no tool could do")
	return nil
}

func forgetWanted(ctx context.Context, c *command.Call, text string) error {
	if text == "" {
		if err := c.Confirm("Forget everything that was asked for and no tool could do?"); err != nil {
			return err
		}
	}
	gone, err := api.ForgetUnmetRequests.Call(ctx, c.API, api.ForgetUnmetRequestsRequest{Text: text, All: text == ""})
	if err != nil {
		return err
	}
	return c.Report(gone, "forgotten: %d", gone.Forgotten)
}
