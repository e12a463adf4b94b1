package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/display"
	"nize/daemon/api"
	"nize/store"
)

func (a *app) servers() *cli.Command {
	return group("servers", "register and look after MCP servers",
		a.serversAdd(),
		a.serversImport(),
		a.command(leaf{name: "list", usage: "list servers with their state", run: serversList}),
		a.command(leaf{name: "show", args: "NAME", usage: "show a server and its tools", names: serverNames, run: serversShow}),
		a.command(leaf{name: "tools", args: "NAME", usage: "list a server's tools", names: serverNames, run: serversTools}),
		a.serversEdit(),
		a.command(leaf{name: "test", args: "NAME", usage: "connect to a server step by step and name the step that fails", names: serverNames, run: serversTest}),
		a.command(leaf{name: "logs", args: "NAME", usage: "show what a stdio server wrote to standard error", names: serverNames,
			flags: []cli.Flag{&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "go on with what comes"}}, run: serversLogs}),
		a.command(leaf{name: "restart", args: "NAME", usage: "close a server's sessions and make them anew", names: serverNames, run: serversRestart}),
		a.command(leaf{name: "trust", args: "NAME [TOOL]", usage: "show what changed in a server's tools and accept it", names: serverNames,
			flags: []cli.Flag{yesFlag()}, run: serversTrust}),
		a.command(leaf{name: "share", args: "NAME", usage: "say who may use a server besides admins", names: serverNames,
			flags: []cli.Flag{&cli.StringSliceFlag{Name: "with", Usage: "`WHO`: all, group:G, user:U or nobody; may be repeated"}}, run: serversShare}),
		a.command(leaf{name: "enable", args: "NAME", usage: "switch a server on", names: serverNames, run: serversSwitch(true)}),
		a.command(leaf{name: "disable", args: "NAME", usage: "switch a server off and keep it", names: serverNames, run: serversSwitch(false)}),
		a.command(leaf{name: "remove", args: "NAME", usage: "remove a server and its tools", names: serverNames,
			flags: []cli.Flag{yesFlag()}, run: serversRemove}),
	)
}

func serversList(ctx context.Context, c *call) error {
	list, err := c.api.Servers(ctx)
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(items(list))
	}
	c.healthTable(each(list, func(s api.ServerView) api.Health { return s.Health })).
		print("no servers yet: nizectl servers add NAME -- COMMAND, or --url URL")
	return nil
}

func serversShow(ctx context.Context, c *call) error {
	view, err := c.api.Server(ctx, c.arg(0))
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(view)
	}
	c.printServer(ctx, view)
	return nil
}

func serversTools(ctx context.Context, c *call) error {
	view, err := c.api.Server(ctx, c.arg(0))
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(items(view.Tools))
	}
	c.toolTable(view.Tools).print("the server offers no tools")
	return nil
}

func (c *call) printServer(ctx context.Context, v api.ServerView) {
	s := v.Server.Normal()
	c.field("server", s.Name)
	c.field("state", v.State)
	c.field("last error", v.LastError)
	c.field("transport", string(s.Transport))
	c.field("where", s.Where())
	c.field("in", s.Cwd)
	c.field("kept as in", s.Origin.File)
	c.field("env", values(s.Env))
	c.field("headers", values(s.Headers))
	c.field("about", s.Description)
	c.field("domain", s.Domain)
	c.field("timeout", s.Timeout.String())
	c.field("at once", count(s.MaxConcurrency, "call"))
	if s.KeepAlive {
		c.field("idle", "kept alive")
	} else if s.IdleTimeout > 0 {
		c.field("idle", "closed after "+s.IdleTimeout.String())
	}
	if s.MemoryLimit > 0 {
		c.field("memory", "at most "+s.MemoryLimit.String())
	}
	if s.RateLimit.Calls > 0 {
		c.field("rate", "at most "+s.RateLimit.String()+" calls")
	}
	c.field("approval", string(s.Approval))
	c.field("auth", string(s.Auth))
	c.field("approvers", string(s.Approvers))
	c.field("allowed", strings.Join(s.AllowedTools, ", "))
	c.field("visible to", c.visibleTo(ctx, s.Visibility))
	var rules []string
	for _, r := range []struct {
		on   bool
		word string
	}{{s.TrustAnnotations, "annotations are trusted"}, {s.UntrustedOutput, "output is untrusted"}, {s.Private, "results are private"}, {s.AcceptNew, "new tools are accepted"}} {
		if r.on {
			rules = append(rules, r.word)
		}
	}
	c.field("rules", strings.Join(rules, ", "))
	if len(v.Tools) > 0 {
		c.line("")
		c.toolTable(v.Tools).print("")
	}
	for _, w := range v.Warnings {
		c.note("warning: %s", w)
	}
}

// values shows env and headers; a plain value is shown, a secret one only named.
func values(m map[string]store.Value) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if v := m[k]; v.SecretKey != "" {
			parts = append(parts, k+" from credential "+v.SecretKey)
		} else {
			parts = append(parts, k+"="+v.Text)
		}
	}
	return strings.Join(parts, ", ")
}

func (c *call) visibleTo(ctx context.Context, who []string) string {
	if len(who) == 0 {
		return "admins only"
	}
	who = slices.Clone(who)
	var names map[string]string
	for i, w := range who {
		if id, ok := strings.CutPrefix(w, "user:"); ok {
			if names == nil {
				names = c.userNames(ctx)
			}
			who[i] = "user:" + cmp.Or(names[id], id)
		}
	}
	return "admins, " + strings.Join(who, ", ")
}

func serversTest(ctx context.Context, c *call) error {
	done := c.busy("testing %s …", c.arg(0))
	probe, err := c.api.TestServer(ctx, c.arg(0))
	done()
	if err != nil {
		return err
	}
	if c.json {
		if err := c.printJSON(probe); err != nil {
			return err
		}
	} else {
		t := c.table("STEP", "TOOK", "RESULT").numbers(1)
		for _, s := range probe.Steps {
			result := "ok"
			if s.Error != "" {
				result = s.Error
			}
			t.row(s.Name, millis(s.TookMS), result)
		}
		t.print("")
	}
	if !probe.OK {
		return probeFailure(c, probe)
	}
	c.note("%s works: %s", c.arg(0), count(probe.Tools, "tool"))
	return nil
}

// probeFailure names the step that failed, and what to do.
func probeFailure(c *call, p api.Probe) error {
	if p.Stderr != "" && !c.json {
		c.note("what it wrote to standard error:")
		fmt.Fprintln(c.err, display.CleanLines(indent(p.Stderr)))
	}
	for _, s := range p.Steps {
		if s.Error == "" {
			continue
		}
		text := fmt.Sprintf("%s fails at %s: %s", c.arg(0), s.Name, s.Error)
		if s.Hint != "" {
			text += "; " + s.Hint
		}
		return failf(api.ExitFailed, "%s", text)
	}
	return failf(api.ExitFailed, "%s does not work; see nizectl servers logs %s", c.arg(0), c.arg(0))
}

func serversLogs(ctx context.Context, c *call) error {
	for line, err := range c.api.ServerLogs(ctx, c.arg(0), c.cmd.Bool("follow")) {
		if err != nil {
			return followEnd(ctx, c.cmd.Bool("follow"), err)
		}
		if c.json {
			err = c.printJSONLine(line)
		} else {
			stamp := ""
			if !line.At.IsZero() {
				stamp = c.paint(faint, line.At.Local().Format("15:04:05 "))
			}
			c.line("%s%s", stamp, display.Clean(line.Text))
			err = c.flush()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func serversRestart(ctx context.Context, c *call) error {
	done := c.busy("restarting %s …", c.arg(0))
	view, err := c.api.RestartServer(ctx, c.arg(0))
	done()
	if err != nil {
		return err
	}
	return c.report(view, "%s restarted: %s, %s", view.Server.Name, view.State, count(view.ToolCount, "tool"))
}

func serversTrust(ctx context.Context, c *call) error {
	name, tool := c.arg(0), c.arg(1)
	if _, own, ok := store.SplitToolID(tool); ok {
		tool = own
	}
	held, err := c.api.Untrusted(ctx, name, tool)
	if err != nil {
		return err
	}
	if len(held) == 0 {
		return c.report([]api.ToolView{}, "nothing of %s waits for acceptance", name)
	}
	accept := api.Accept{}
	for _, t := range held {
		accept.Tools = append(accept.Tools, api.AcceptTool{Tool: t.Tool, Pin: t.Pin})
		if !c.json {
			c.printHeld(t)
		}
	}
	if err := c.flush(); err != nil {
		return err
	}
	if err := c.confirm("Accept %s of %s as shown?", count(len(held), "definition"), name); err != nil {
		return err
	}
	tools, err := c.api.Trust(ctx, name, accept)
	if err != nil {
		return err
	}
	return c.report(items(tools), "accepted %s of %s", count(len(held), "definition"), name)
}

func (c *call) printHeld(t api.TrustView) {
	c.field("tool", t.Tool)
	c.field("state", string(t.State))
	for _, f := range t.Findings {
		c.field("finding", f)
	}
	c.field("pin", t.Pin)
	c.field("accepted", t.Accepted)
	if t.Diff != "" {
		c.line("%s", display.CleanLines(indent(t.Diff)))
	} else {
		c.field("description", t.Description)
	}
	c.line("")
}

func serversShare(ctx context.Context, c *call) error {
	with := c.cmd.StringSlice("with")
	if len(with) == 0 {
		return usagef("servers share needs --with: all, group:G, user:U or nobody")
	}
	if slices.Contains(with, "nobody") {
		if len(with) > 1 {
			return usagef("--with nobody can't be joined with others")
		}
		with = []string{}
	}
	for _, who := range with {
		if who != "all" && !strings.HasPrefix(who, "user:") && !strings.HasPrefix(who, "group:") {
			return usagef("--with %s: want all, group:G, user:U or nobody", who)
		}
	}
	view, err := c.api.PatchServer(ctx, c.arg(0), api.PatchServer{Visibility: &with})
	if err != nil {
		return err
	}
	return c.report(view, "%s is visible to %s", view.Server.Name, c.visibleTo(ctx, view.Server.Visibility))
}

func serversSwitch(on bool) func(context.Context, *call) error {
	return func(ctx context.Context, c *call) error {
		off := !on
		view, err := c.api.PatchServer(ctx, c.arg(0), api.PatchServer{Disabled: &off})
		if err != nil {
			return err
		}
		word := "enabled"
		if off {
			word = "disabled"
		}
		return c.report(view, "%s %s: %s", view.Server.Name, word, view.State)
	}
}

func serversRemove(ctx context.Context, c *call) error {
	if err := c.confirm("Remove the server %s and its tools?", c.arg(0)); err != nil {
		return err
	}
	if err := c.api.RemoveServer(ctx, c.arg(0)); err != nil {
		return err
	}
	return c.removed("server", c.arg(0))
}
