package main

import (
	"cmp"
	"context"
	"slices"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/command"
	"nize/cmd/nizectl/display"
	"nize/daemon/api"
	"nize/store"
	"nize/store/printable"
)

func toolsWhyCommand(a *command.App) *cli.Command {
	return a.Command(command.Leaf{Name: "why", Args: "TOOL", Usage: "explain why a person may use a tool or not", More: "It begins with the narrowest change that would change the answer.", Names: command.ToolNames, Run: toolsWhy, Flags: []cli.Flag{
		&cli.StringFlag{Name: "user", Usage: "the person (default: you; others: admins only)"},
		&cli.StringFlag{Name: "agent", Usage: "through this agent"},
		&cli.StringFlag{Name: "channel", Usage: "in this `CHANNEL`: slack:TEAM/CHANNEL, or its id alone"},
		&cli.StringFlag{Name: "token", Usage: "with the person's token of that `NAME`"},
	}})
}

// privateResults is the remark for a tool with private results.
const privateResults = "private: in a channel only the requester sees them, until they share them"

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
	if why.Approval != nil {
		asks := "not needed"
		if why.Approval.Asks {
			asks = "needed: " + why.Approval.Reason
		}
		c.Field("approval", asks)
		c.Field("who decides", why.Approval.Approvers)
		c.Field("runs as", why.Approval.RunsAs)
		if why.Approval.Private {
			c.Field("results", privateResults)
		}
	}
	printCures(c, why)
	c.Line("")
	whyTable(c, why.Rules)
	whyHooks(c, why.Hooks)
	if len(why.Budgets) > 0 {
		c.Line("")
		budgetTable(c, why.Budgets, "")
	}
	if why.Approval == nil {
		return nil
	}
	c.Line("")
	whyTable(c, why.Approval.Rules)
	if len(why.Approval.Deciders) > 0 {
		c.Line("")
		whyTable(c, why.Approval.Deciders)
	}
	return nil
}

// cure is a command that changes the verdict, and its scope.
type cure struct{ command, reach string }

// cures returns the commands that would change the verdict, those with the narrowest scope
// first.
func cures(why api.Why) []cure {
	tool := printable.ShellWord(why.Tool)
	if why.Approval == nil {
		for _, r := range why.Rules {
			if r.Decides && r.Command != "" {
				return []cure{{r.Command, r.Says}}
			}
		}
		return nil
	}
	if !why.Approval.Asks {
		return nil
	}
	i := slices.IndexFunc(why.Approval.Rules, func(r api.WhyRule) bool { return r.Decides })
	if i < 0 {
		return nil
	}
	rule := why.Approval.Rules[i]
	var list []cure
	if rule.Verdict == liftable {
		if slices.ContainsFunc(why.Approval.Deciders, func(r api.WhyRule) bool { return r.Decides && r.Verdict == string(store.ByRequester) }) {
			list = append(list,
				cure{"nizectl approvals grants add " + tool + " --args '{…}'", why.UserName + "'s calls with such arguments, if " + why.UserName + " says it"},
				cure{"nizectl approvals grants add " + tool, "all of " + why.UserName + "'s calls of this tool"})
		}
		if server, _, ok := store.SplitToolID(why.Tool); ok && rule.Rule != "server" {
			list = append(list, cure{"nizectl servers edit " + printable.ShellWord(server) + " --approval never", "every tool of the server, for everyone"})
		}
	}
	if rule.Command != "" {
		reach := "what the rule " + rule.Rule + " says"
		if rule.Rule == "mode" {
			reach = "every tool, for everyone"
		}
		list = append(list, cure{rule.Command, reach})
	}
	return list
}

// liftable is the verdict of a rule that requires approval unless another rule lifts it.
const liftable = "asks unless lifted"

// printCures prints them, one per line.
func printCures(c *command.Call, why api.Why) {
	list := cures(why)
	if len(list) == 0 {
		return
	}
	title := "to end that, the narrowest first:"
	if !why.Usable {
		title = "to allow it:"
	}
	c.Line("%s", c.Paint(command.Bold, display.Clean(title)))
	for _, one := range list {
		c.Line("  %s", display.Clean(one.command))
		c.Line("      %s", c.Wrap(display.Clean(one.reach), 6))
	}
}

// whyHooks prints the hooks around a call.
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

// whyTable prints rules in the order of their evaluation.
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
