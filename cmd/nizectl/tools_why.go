package main

import (
	"cmp"
	"context"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/command"
	"nize/daemon/api"
)

func toolsWhyCommand(a *command.App) *cli.Command {
	return a.Command(command.Leaf{Name: "why", Args: "TOOL", Usage: "explain why somebody may use a tool, or why not", More: "It begins with the narrowest change that would decide otherwise.", Names: command.ToolNames, Run: toolsWhy, Flags: []cli.Flag{
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
	whyHooks(c, why.Hooks)
	if len(why.Budgets) > 0 {
		c.Line("")
		budgetTable(c, why.Budgets, "")
	}
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

// whyHooks shows the hooks around a call.
func whyHooks(c *command.Call, list []api.WhyHook) {
	if len(list) == 0 {
		return
	}
	c.Line("")
	t := c.Table("HOOK", "TYPE", "SCOPE", "AT THE LAST CALL")
	for _, h := range list {
		did := "-"
		if h.Last != nil {
			did = "before: " + cmp.Or(h.Last.Before, "ran")
			if h.Last.Before == "" || h.Last.Before == "changed" {
				did += ", after: " + cmp.Or(h.Last.After, "ran")
			}
		}
		t.Row(h.Name, h.Type, string(h.Scope), did)
	}
	t.Print("")
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
