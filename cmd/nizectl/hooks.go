package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/command"
	"nize/daemon/api"
	"nize/store/hooks"
)

// hooksCommand is the group of commands.
func hooksCommand(a *command.App) *cli.Command {
	tool := &cli.StringFlag{Name: "tool", Usage: "only around tools of this `PATTERN`: server:tool, server:*; a meta-tool is nize:NAME"}
	priority := &cli.IntFlag{Name: "priority", Usage: "`N`; lower numbers run first within a scope (default: 100)"}
	config := &cli.StringFlag{Name: "config", Usage: "`JSON`, or @FILE"}
	scope := &cli.StringFlag{Name: "scope", Usage: "global, server, user or user_server"}
	owner := &cli.StringFlag{Name: "owner", Usage: "the `PERSON` who set it for their own calls (admins only; default: an admin's hook)"}
	scopeID := &cli.StringFlag{Name: "scope-id", Usage: "the scope's `ID`: SERVER, USER or USER/SERVER"}
	return command.Group("hooks", "manage hooks around tool calls",
		a.Command(command.Leaf{Name: "add", Args: "NAME", Usage: "add a hook, effective at once", Run: hooksAdd,
			More: "nizectl hooks add careful --hook-type rate-limit --config '{\"calls\":20,\"per\":\"1m\",\"by\":[\"user\"]}'\n" +
				"nizectl hooks add check --hook-type exec --tool 'tracker:*' --config '{\"command\":[\"/usr/local/bin/check\"],\"timeout\":\"2s\"}'\n" +
				"An admin's hook applies to all calls, or those in its scope. Others may add hooks of scope user or user_server for their own calls, of type " + strings.Join(hooks.PersonalTypes, ", ") + ". They run inside those of admins.",
			Flags: []cli.Flag{&cli.StringFlag{Name: "hook-type", Usage: strings.Join(hooks.Types, ", ")}, scope, scopeID, owner, tool, priority, config}}),
		a.Command(command.Leaf{Name: "list", Usage: "list hooks in the order in which they run", Run: hooksList, Flags: []cli.Flag{&cli.BoolFlag{Name: "all", Usage: "include built-in hooks and those of admins, in execution order"}}}),
		a.Command(command.Leaf{Name: "show", Args: "NAME", Usage: "show a hook", Names: hooksNames, Run: hooksShow, Flags: []cli.Flag{owner}}),
		a.Command(command.Leaf{Name: "edit", Args: "NAME", Usage: "change a hook", Names: hooksNames, Run: hooksEdit, Flags: []cli.Flag{scope, scopeID, owner, tool, priority, config}}),
		a.Command(command.Leaf{Name: "enable", Args: "NAME", Usage: "enable a hook", Names: hooksNames, Run: hooksEnable(true), Flags: []cli.Flag{owner}}),
		a.Command(command.Leaf{Name: "disable", Args: "NAME", Usage: "disable a hook and keep it", Names: hooksNames, Run: hooksEnable(false), Flags: []cli.Flag{owner}}),
		a.Command(command.Leaf{Name: "remove", Args: "NAME", Usage: "remove a hook", Names: hooksNames, Run: hooksRemove, Flags: []cli.Flag{owner, command.YesFlag()}}),
		a.Command(command.Leaf{Name: "test", Args: "NAME", Usage: "test a hook with a sample call that isn't executed", Names: hooksNames, Run: hooksTest, Flags: []cli.Flag{
			&cli.StringFlag{Name: "tool", Usage: "the `TOOL` of the call: server:tool, or nize:execute_tool and so on"},
			&cli.StringFlag{Name: "args", Usage: "its arguments: `JSON`, or @FILE"},
			&cli.StringFlag{Name: "result", Usage: "its result: `TEXT`, a CallToolResult as JSON, or @FILE"},
			&cli.StringFlag{Name: "user", Usage: "who calls (default: you)"}, owner,
		}}),
	)
}

func hooksNames(ctx context.Context, c *api.Client) ([]string, error) {
	list, err := api.ListHooks.Call(ctx, c, api.ListHooksRequest{})
	return command.Each(list.Items, func(h api.Hook) string { return h.Name }), err
}

// hooksRequest returns the hook given by flags and arguments.
func hooksRequest(c *command.Call) api.HookRequest {
	return api.HookRequest{Name: c.Arg(0), Owner: c.Cmd.String("owner")}
}

// hooksRead returns the value of a flag, or the content of the file that it names by @.
func hooksRead(flag, value string) ([]byte, error) {
	path, ok := strings.CutPrefix(value, "@")
	if !ok {
		return []byte(value), nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, command.Usagef("--%s: %v", flag, err)
	}
	return text, nil
}

// hooksReadJSON is hooksRead for JSON; it returns nil if the flag isn't given.
func hooksReadJSON(c *command.Call, flag string) (json.RawMessage, error) {
	if !c.Cmd.IsSet(flag) {
		return nil, nil
	}
	text, err := hooksRead(flag, c.Cmd.String(flag))
	if err != nil {
		return nil, err
	}
	if !json.Valid(text) {
		return nil, command.Usagef("--%s is not valid JSON", flag)
	}
	return text, nil
}

func hooksAdd(ctx context.Context, c *command.Call) error {
	if c.Cmd.String("hook-type") == "" {
		return command.Usagef("hooks add needs --hook-type: %s", strings.Join(hooks.Types, ", "))
	}
	config, err := hooksReadJSON(c, "config")
	if err != nil {
		return err
	}
	req := api.AddHookRequest{Name: c.Arg(0), Owner: c.Cmd.String("owner"), Type: c.Cmd.String("hook-type"), Scope: hooks.Scope(c.Cmd.String("scope")), ScopeID: c.Cmd.String("scope-id"), Tool: c.Cmd.String("tool"), Config: config}
	if c.Cmd.IsSet("priority") {
		n := c.Cmd.Int("priority")
		req.Priority = &n
	}
	h, err := api.AddHook.Call(ctx, c.API, req)
	if err != nil {
		return err
	}
	return hooksReport(c, h, "added")
}

func hooksReport(c *command.Call, h api.Hook, what string) error {
	if c.JSON {
		return c.PrintJSON(h)
	}
	c.Note("hook %s %s: %s", h.Name, what, hooksWhere(h))
	return nil
}

// hooksWhere returns the scope of a hook.
func hooksWhere(h api.Hook) string {
	tool := "every tool and meta-tool"
	if h.Tool != "" {
		tool = h.Tool
	}
	text := fmt.Sprintf("%s, around %s, %s", h.Type, tool, hooksScopeWords(h))
	if !h.Enabled {
		text += ", disabled"
	}
	return text
}

func hooksScopeWords(h api.Hook) string {
	if h.Scope == hooks.Global {
		return string(h.Scope)
	}
	return string(h.Scope) + " " + h.ScopeName
}

func hooksList(ctx context.Context, c *command.Call) error {
	l, err := api.ListHooks.Call(ctx, c.API, api.ListHooksRequest{All: c.Cmd.Bool("all")})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(command.Items(l.Items))
	}
	head := []string{"HOOK", "TYPE", "SCOPE", "TOOL", "PRIORITY", "STATE"}
	setBy := c.Cmd.Bool("all") || slices.ContainsFunc(l.Items, func(h api.Hook) bool { return h.Owner != "" })
	if setBy {
		head = append(head, "SET BY")
	}
	if c.Cmd.Bool("all") {
		head = append([]string{"ORDER"}, head...)
	}
	t := c.Table(head...).Numbers(slices.Index(head, "PRIORITY"))
	for _, h := range l.Items {
		state, priority := "enabled", strconv.Itoa(h.Priority)
		if !h.Enabled {
			state = "disabled"
		}
		if h.BuiltIn {
			priority = "-"
		}
		row := []string{h.Name, h.Type, hooksScopeWords(h), cmp.Or(h.Tool, "-"), priority, state}
		if setBy {
			row = append(row, hooksSetter(h))
		}
		if c.Cmd.Bool("all") {
			row = append([]string{strconv.Itoa(h.Order)}, row...)
		}
		t.Row(row...)
	}
	t.Print("no hooks")
	return nil
}

// hooksSetter returns who set a hook.
func hooksSetter(h api.Hook) string {
	switch {
	case h.BuiltIn:
		return "built in"
	case h.Owner == "":
		return "admin"
	}
	return cmp.Or(h.OwnerName, h.Owner)
}

func hooksShow(ctx context.Context, c *command.Call) error {
	h, err := api.GetHook.Call(ctx, c.API, hooksRequest(c))
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(h)
	}
	c.Field("hook", h.Name)
	c.Field("runs", hooksWhere(h))
	if h.Owner != "" {
		c.Field("set by", hooksSetter(h))
	}
	c.Field("priority", strconv.Itoa(h.Priority))
	c.Field("config", string(h.Config))
	if h.Signed {
		c.Field("signed", "with a secret, which is never shown")
	}
	c.Field("revision", strconv.FormatUint(h.Revision, 10))
	c.Field("created", c.When(h.Created))
	c.Field("updated", c.When(h.Updated))
	return nil
}

func hooksEdit(ctx context.Context, c *command.Call) error {
	req := api.PatchHookRequest{HookRequest: hooksRequest(c)}
	var err error
	if req.Config, err = hooksReadJSON(c, "config"); err != nil {
		return err
	}
	text := func(flag string) *string {
		if !c.Cmd.IsSet(flag) {
			return nil
		}
		s := c.Cmd.String(flag)
		return &s
	}
	req.ScopeID, req.Tool = text("scope-id"), text("tool")
	if s := text("scope"); s != nil {
		scope := hooks.Scope(*s)
		req.Scope = &scope
	}
	if c.Cmd.IsSet("priority") {
		n := c.Cmd.Int("priority")
		req.Priority = &n
	}
	if req.Config == nil && req.ScopeID == nil && req.Tool == nil && req.Scope == nil && req.Priority == nil {
		return command.Usagef("hooks edit needs something to change: --config, --tool, --priority, --scope or --scope-id")
	}
	h, err := api.PatchHook.Call(ctx, c.API, req)
	if err != nil {
		return err
	}
	return hooksReport(c, h, "changed")
}

func hooksEnable(on bool) func(context.Context, *command.Call) error {
	return func(ctx context.Context, c *command.Call) error {
		h, err := api.PatchHook.Call(ctx, c.API, api.PatchHookRequest{HookRequest: hooksRequest(c), Enabled: &on})
		if err != nil {
			return err
		}
		what := "disabled"
		if on {
			what = "enabled"
		}
		return hooksReport(c, h, what)
	}
}

func hooksRemove(ctx context.Context, c *command.Call) error {
	if err := c.Confirm("Remove hook %s?", c.Arg(0)); err != nil {
		return err
	}
	if _, err := api.RemoveHook.Call(ctx, c.API, hooksRequest(c)); err != nil {
		return err
	}
	return c.Removed("hook", c.Arg(0))
}

func hooksTest(ctx context.Context, c *command.Call) error {
	if c.Cmd.String("tool") == "" {
		return command.Usagef("hooks test needs --tool server:tool")
	}
	args, err := hooksReadJSON(c, "args")
	if err != nil {
		return err
	}
	req := api.TestHookRequest{HookRequest: hooksRequest(c), Tool: c.Cmd.String("tool"), Arguments: args, User: c.Cmd.String("user")}
	if c.Cmd.IsSet("result") {
		text, err := hooksRead("result", c.Cmd.String("result"))
		if err != nil {
			return err
		}
		if req.Result = text; !json.Valid(text) || text[0] != '{' {
			if req.Result, err = json.Marshal(string(text)); err != nil {
				return fmt.Errorf("--result: %w", err)
			}
		}
	}
	l, err := api.TestHook.Call(ctx, c.API, req)
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(command.Items(l.Items))
	}
	for _, t := range l.Items {
		text := t.Decision
		if t.Reason != "" {
			text += ": " + t.Reason
		}
		c.Field(t.Point, text)
		if t.Decision == "change" && len(t.Arguments) > 0 {
			c.Field("arguments", string(t.Arguments))
		}
		if t.Decision == "change" && len(t.Result) > 0 {
			c.Field("result", string(t.Result))
		}
	}
	return nil
}
