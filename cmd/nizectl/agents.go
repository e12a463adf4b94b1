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
	"nize/store/printable"
)

func agentsCommand(a *command.App) *cli.Command {
	return command.Group("agents", "manage profiles of the assistant",
		a.Command(command.Leaf{Name: "list", Usage: "list agents", Run: agentsList}),
		a.Command(command.Leaf{Name: "show", Args: "ID", Usage: "show an agent", Names: command.AgentNames, Run: agentsShow}),
		a.Command(command.Leaf{Name: "add", Aliases: []string{"set"}, Args: "ID", Usage: "create an agent, or change the given settings", Names: command.AgentNames, Run: agentsSet, Flags: []cli.Flag{
			&cli.StringFlag{Name: "name", Usage: "its name for people"},
			&cli.StringFlag{Name: "model", Usage: "a model name, or PROVIDER/MODEL (default: the default model)"},
			&cli.StringFlag{Name: "system-prompt", Usage: "its instructions: text, @FILE, or - for standard input"},
			&cli.IntFlag{Name: "max-tokens", Usage: "length of an answer; 0 is the model's own limit"},
			&cli.StringFlag{Name: "temperature", Usage: "0 to 2, or empty for the model's own"},
			&cli.IntFlag{Name: "max-steps", Usage: "model rounds in one turn; 0 is the setting agent.tools.maxSteps"},
			&cli.StringFlag{Name: "approval", Usage: "none, all, whitelist, blacklist or auto; empty is the system's"},
			&cli.StringSliceFlag{Name: "allow", Usage: "tool pattern that it may use, or agent:ID that it may call; may be repeated, empty is all MCP tools"},
			&cli.BoolFlag{Name: "direct", Usage: "its model is offered the tools by name (64 at most) and need not search for them; --direct=false takes it back"},
			whoFlag(),
			&cli.BoolFlag{Name: "default", Usage: "make it the default"},
		}}),
		a.Command(command.Leaf{Name: "default", Args: "ID", Usage: "make an agent the default", Names: command.AgentNames, Run: agentsDefault}),
		a.Command(command.Leaf{Name: "remove", Args: "ID", Usage: "remove an agent", Names: command.AgentNames, Run: agentsRemove, Flags: []cli.Flag{command.YesFlag()}}),
	)
}

func agentsList(ctx context.Context, c *command.Call) error {
	list, err := api.ListAgents.Call(ctx, c.API, api.Empty{})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(command.Items(list.Items))
	}
	t := c.Table("ID", "NAME", "MODEL", "APPROVAL", "DEFAULT", "FROM")
	for _, a := range list.Items {
		def := ""
		if a.Default {
			def = "default"
		}
		t.Row(a.ID, a.Name, a.Model, a.Approval, def, a.Origin)
	}
	t.Print("no agents: nizectl agents add ID makes one")
	return nil
}

// findAgent returns the agent, or an error that suggests the nearest id.
func findAgent(ctx context.Context, c *command.Call, id string) (store.Agent, error) {
	list, err := api.ListAgents.Call(ctx, c.API, api.Empty{})
	if err != nil {
		return store.Agent{}, err
	}
	i := slices.IndexFunc(list.Items, func(a store.Agent) bool { return a.ID == id })
	if i < 0 {
		return store.Agent{}, store.Unknown("agent", id, command.Each(list.Items, func(a store.Agent) string { return a.ID }))
	}
	return list.Items[i], nil
}

func agentsShow(ctx context.Context, c *command.Call) error {
	agent, err := findAgent(ctx, c, c.Arg(0))
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(agent)
	}
	c.Field("agent", agent.ID)
	c.Field("name", agent.Name)
	if agent.Default {
		c.Field("default", "yes")
	}
	c.Field("model", agent.Model)
	if agent.Temperature != nil {
		c.Field("temperature", fmt.Sprint(*agent.Temperature))
	}
	for _, n := range []struct {
		name  string
		value int
	}{{"max tokens", agent.MaxTokens}, {"max steps", agent.MaxSteps}} {
		if n.value != 0 {
			c.Field(n.name, fmt.Sprint(n.value))
		}
	}
	c.Field("approval", agent.Approval)
	c.Field("tools", strings.Join(agent.AllowedTools, ", "))
	if agent.Direct {
		c.Field("direct", "yes")
	}
	c.Field("who", strings.Join(agent.Who, ", "))
	if agent.SystemPrompt != "" {
		c.Line("%s", c.Paint(command.Bold, "system prompt:"))
		c.Line("%s", command.Indent(printable.Prose(agent.SystemPrompt)))
	}
	return nil
}

func agentsSet(ctx context.Context, c *command.Call) error {
	agent, err := findAgent(ctx, c, c.Arg(0))
	if err != nil {
		if api.ExitCode(err) != api.ExitNotFound {
			return err
		}
		agent = store.Agent{ID: c.Arg(0)}
	}
	if err := changeAgent(c, &agent); err != nil {
		return err
	}
	stored, err := api.PutAgent.Call(ctx, c.API, api.PutAgentRequest{ID: agent.ID, Agent: agent})
	if err != nil {
		return err
	}
	return c.Report(stored, "agent %s is stored", stored.ID)
}

// changeAgent applies the given flags to an agent.
func changeAgent(c *command.Call, agent *store.Agent) error {
	for name, into := range map[string]*string{"name": &agent.Name, "model": &agent.Model, "approval": &agent.Approval} {
		if c.Cmd.IsSet(name) {
			*into = c.Cmd.String(name)
		}
	}
	for name, into := range map[string]*int{"max-tokens": &agent.MaxTokens, "max-steps": &agent.MaxSteps} {
		if !c.Cmd.IsSet(name) {
			continue
		}
		if *into = c.Cmd.Int(name); *into < 0 {
			return command.Usagef("--%s %d: want 0 or more", name, *into)
		}
	}
	if c.Cmd.IsSet("system-prompt") {
		text, err := c.TextOrFile("--system-prompt", c.Cmd.String("system-prompt"))
		if err != nil {
			return err
		}
		agent.SystemPrompt = text
	}
	if c.Cmd.IsSet("temperature") {
		t, err := temperature(c.Cmd.String("temperature"))
		if err != nil {
			return err
		}
		agent.Temperature = t
	}
	if !slices.Contains([]string{"", "none", "all", "whitelist", "blacklist", "auto"}, agent.Approval) {
		return command.Usagef("--approval %s: want none, all, whitelist, blacklist or auto", agent.Approval)
	}
	if c.Cmd.IsSet("direct") {
		agent.Direct = c.Cmd.Bool("direct")
	}
	if c.Cmd.IsSet("allow") {
		agent.AllowedTools = slices.DeleteFunc(c.Cmd.StringSlice("allow"), func(s string) bool { return s == "" })
		if len(agent.AllowedTools) == 0 {
			agent.AllowedTools = nil
		}
	}
	who, err := who(c)
	if err != nil {
		return err
	}
	if who != nil {
		agent.Who = *who
	}
	if c.Cmd.Bool("default") {
		agent.Default = true
	}
	return nil
}

func whoFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "who", Usage: "`WHO` may use it: all, admins, group:G or user:U; may be repeated"}
}

// who returns the value of a whoFlag, nil if it was not given.
func who(c *command.Call) (*[]string, error) {
	if !c.Cmd.IsSet("who") {
		return nil, nil
	}
	list := c.Cmd.StringSlice("who")
	for _, w := range list {
		if w != "all" && w != "admins" && !strings.HasPrefix(w, "user:") && !strings.HasPrefix(w, "group:") {
			return nil, command.Usagef("--who %s: want all, admins, group:G or user:U", w)
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
		return nil, command.Usagef("--temperature %s: want a number from 0 to 2", text)
	}
	return &t, nil
}

func agentsDefault(ctx context.Context, c *command.Call) error {
	agent, err := findAgent(ctx, c, c.Arg(0))
	if err != nil {
		return err
	}
	agent.Default = true
	stored, err := api.PutAgent.Call(ctx, c.API, api.PutAgentRequest{ID: agent.ID, Agent: agent})
	if err != nil {
		return err
	}
	return c.Report(stored, "agent %s is the default", stored.ID)
}

func agentsRemove(ctx context.Context, c *command.Call) error {
	if err := c.Confirm("Remove the agent %s?", c.Arg(0)); err != nil {
		return err
	}
	if _, err := api.RemoveAgent.Call(ctx, c.API, api.RemoveAgentRequest{ID: c.Arg(0)}); err != nil {
		return err
	}
	return c.Removed("agent", c.Arg(0))
}
