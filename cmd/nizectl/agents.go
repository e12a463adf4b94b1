package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/display"
	"nize/daemon/api"
	"nize/store"
)

func (a *app) agents() *cli.Command {
	return group("agents", "profiles of the assistant",
		a.command(leaf{name: "list", usage: "list agents", run: agentsList}),
		a.command(leaf{name: "show", args: "ID", usage: "show an agent", names: agentNames, run: agentsShow}),
		a.command(leaf{name: "set", args: "ID", usage: "make an agent, or change what is given", names: agentNames, run: agentsSet, flags: []cli.Flag{
			&cli.StringFlag{Name: "name", Usage: "what people call it"},
			&cli.StringFlag{Name: "model", Usage: "a model name, or PROVIDER/MODEL (default: the default model)"},
			&cli.StringFlag{Name: "system-prompt", Usage: "what it is told: text, @FILE, or - for standard input"},
			&cli.IntFlag{Name: "max-tokens", Usage: "length of an answer; 0 is the model's own limit"},
			&cli.StringFlag{Name: "temperature", Usage: "0 to 2, or empty for the model's own"},
			&cli.IntFlag{Name: "max-steps", Usage: "model rounds in one turn; 0 is the setting agent.tools.maxSteps"},
			&cli.StringFlag{Name: "approval", Usage: "none, all, whitelist, blacklist or auto; empty is the system's"},
			&cli.StringSliceFlag{Name: "allow", Usage: "tool pattern that it may use; may be repeated, empty is all MCP tools"},
			whoFlag(),
			&cli.BoolFlag{Name: "default", Usage: "make it the default"},
		}}),
		a.command(leaf{name: "default", args: "ID", usage: "make an agent the default", names: agentNames, run: agentsDefault}),
		a.command(leaf{name: "remove", args: "ID", usage: "remove an agent", names: agentNames, run: agentsRemove, flags: []cli.Flag{yesFlag()}}),
	)
}

func agentsList(ctx context.Context, c *call) error {
	list, err := c.api.Agents(ctx)
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(items(list))
	}
	t := c.table("ID", "NAME", "MODEL", "APPROVAL", "DEFAULT")
	for _, a := range list {
		def := ""
		if a.Default {
			def = "default"
		}
		t.row(a.ID, a.Name, a.Model, a.Approval, def)
	}
	t.print("no agents: nizectl agents set ID makes one")
	return nil
}

// findAgent returns the agent, or the error that names the nearest.
func (c *call) findAgent(ctx context.Context, id string) (store.Agent, error) {
	list, err := c.api.Agents(ctx)
	if err != nil {
		return store.Agent{}, err
	}
	i := slices.IndexFunc(list, func(a store.Agent) bool { return a.ID == id })
	if i < 0 {
		return store.Agent{}, store.Unknown("agent", id, each(list, func(a store.Agent) string { return a.ID }))
	}
	return list[i], nil
}

func agentsShow(ctx context.Context, c *call) error {
	agent, err := c.findAgent(ctx, c.arg(0))
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(agent)
	}
	c.field("agent", agent.ID)
	c.field("name", agent.Name)
	if agent.Default {
		c.field("default", "yes")
	}
	c.field("model", agent.Model)
	if agent.Temperature != nil {
		c.field("temperature", fmt.Sprint(*agent.Temperature))
	}
	for _, n := range []struct {
		name  string
		value int
	}{{"max tokens", agent.MaxTokens}, {"max steps", agent.MaxSteps}} {
		if n.value != 0 {
			c.field(n.name, fmt.Sprint(n.value))
		}
	}
	c.field("approval", agent.Approval)
	c.field("tools", strings.Join(agent.AllowedTools, ", "))
	c.field("who", strings.Join(agent.Who, ", "))
	if agent.SystemPrompt != "" {
		c.line("%s", c.paint(bold, "system prompt:"))
		c.line("%s", display.CleanLines(indent(agent.SystemPrompt)))
	}
	return nil
}

func agentsSet(ctx context.Context, c *call) error {
	agent, err := c.findAgent(ctx, c.arg(0))
	if err != nil {
		if api.ExitCode(err) != api.ExitNotFound {
			return err
		}
		agent = store.Agent{ID: c.arg(0)}
	}
	if err := c.changeAgent(&agent); err != nil {
		return err
	}
	stored, err := c.api.PutAgent(ctx, agent)
	if err != nil {
		return err
	}
	return c.report(stored, "agent %s is stored", stored.ID)
}

// changeAgent changes what the flags say and leaves the rest.
func (c *call) changeAgent(agent *store.Agent) error {
	for name, into := range map[string]*string{"name": &agent.Name, "model": &agent.Model, "approval": &agent.Approval} {
		if c.cmd.IsSet(name) {
			*into = c.cmd.String(name)
		}
	}
	for name, into := range map[string]*int{"max-tokens": &agent.MaxTokens, "max-steps": &agent.MaxSteps} {
		if !c.cmd.IsSet(name) {
			continue
		}
		if *into = c.cmd.Int(name); *into < 0 {
			return usagef("--%s %d: want 0 or more", name, *into)
		}
	}
	if c.cmd.IsSet("system-prompt") {
		text, err := c.textOrFile("--system-prompt", c.cmd.String("system-prompt"))
		if err != nil {
			return err
		}
		agent.SystemPrompt = text
	}
	if c.cmd.IsSet("temperature") {
		t, err := temperature(c.cmd.String("temperature"))
		if err != nil {
			return err
		}
		agent.Temperature = t
	}
	if !slices.Contains([]string{"", "none", "all", "whitelist", "blacklist", "auto"}, agent.Approval) {
		return usagef("--approval %s: want none, all, whitelist, blacklist or auto", agent.Approval)
	}
	if c.cmd.IsSet("allow") {
		agent.AllowedTools = slices.DeleteFunc(c.cmd.StringSlice("allow"), func(s string) bool { return s == "" })
		if len(agent.AllowedTools) == 0 {
			agent.AllowedTools = nil
		}
	}
	who, err := c.who()
	if err != nil {
		return err
	}
	if who != nil {
		agent.Who = *who
	}
	if c.cmd.Bool("default") {
		agent.Default = true
	}
	return nil
}

func whoFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "who", Usage: "`WHO` may use it: all, admins, group:G or user:U; may be repeated"}
}

// who reads a whoFlag, nil where it was not given.
func (c *call) who() (*[]string, error) {
	if !c.cmd.IsSet("who") {
		return nil, nil
	}
	list := c.cmd.StringSlice("who")
	for _, w := range list {
		if w != "all" && w != "admins" && !strings.HasPrefix(w, "user:") && !strings.HasPrefix(w, "group:") {
			return nil, usagef("--who %s: want all, admins, group:G or user:U", w)
		}
	}
	return &list, nil
}

func temperature(text string) (*float64, error) {
	if text == "" {
		return nil, nil
	}
	var t float64
	if n, err := fmt.Sscanf(text, "%g", &t); err != nil || n != 1 || !(t >= 0 && t <= 2) {
		return nil, usagef("--temperature %s: want a number from 0 to 2", text)
	}
	return &t, nil
}

func agentsDefault(ctx context.Context, c *call) error {
	agent, err := c.findAgent(ctx, c.arg(0))
	if err != nil {
		return err
	}
	agent.Default = true
	stored, err := c.api.PutAgent(ctx, agent)
	if err != nil {
		return err
	}
	return c.report(stored, "agent %s is the default", stored.ID)
}

func agentsRemove(ctx context.Context, c *call) error {
	if err := c.confirm("Remove the agent %s?", c.arg(0)); err != nil {
		return err
	}
	if err := c.api.RemoveAgent(ctx, c.arg(0)); err != nil {
		return err
	}
	return c.removed("agent", c.arg(0))
}
