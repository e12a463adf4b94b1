// Package servers has the commands of `nizectl servers`.
package servers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/command"
	"nize/cmd/nizectl/display"
	"nize/daemon/api"
	"nize/store"
	"nize/store/printable"
)

// Command returns the group of commands.
func Command(a *command.App) *cli.Command {
	return command.Group("servers", "register and manage MCP servers",
		addServerCommand(a),
		searchRegistryCommand(a),
		importFileCommand(a),
		a.Command(command.Leaf{Name: "list", Usage: "list servers with their state", Run: listServers}),
		a.Command(command.Leaf{Name: "show", Args: "NAME", Usage: "show a server and its tools", Names: command.ServerNames, Run: showServer}),
		a.Command(command.Leaf{Name: "tools", Args: "NAME", Usage: "list a server's tools", Names: command.ServerNames, Run: listTools}),
		editServerCommand(a),
		a.Command(command.Leaf{Name: "test", Args: "NAME", Usage: "connect to a server and name the step that fails", Names: command.ServerNames, Run: testServer}),
		a.Command(command.Leaf{Name: "logs", Args: "NAME", Usage: "show what a stdio server wrote to standard error", Names: command.ServerNames,
			Flags: []cli.Flag{&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "keep printing new output"}}, Run: showLogs}),
		a.Command(command.Leaf{Name: "restart", Args: "NAME", Usage: "close a server's sessions and open new ones", Names: command.ServerNames, Run: restartServer}),
		a.Command(command.Leaf{Name: "trust", Args: "NAME [TOOL]", Usage: "show what changed in a server's tools and accept it", Names: command.ServerNames,
			More:  "It begins with a summary. A terminal shows every line of the changes before it asks, in $PAGER if they are long; elsewhere --full prints them.",
			Flags: []cli.Flag{command.YesFlag(), &cli.BoolFlag{Name: "full", Usage: "print every line of the changes"}}, Run: acceptTools}),
		a.Command(command.Leaf{Name: "share", Args: "NAME", Usage: "set who may use a server besides admins", Names: command.ServerNames,
			Flags: []cli.Flag{&cli.StringSliceFlag{Name: "with", Usage: "`WHO`: all, group:G, user:U, project:P or nobody; may be repeated"}}, Run: shareServer}),
		loginCommand(a),
		a.Command(command.Leaf{Name: "enable", Args: "NAME", Usage: "enable a server", Names: command.ServerNames, Run: switchTo(true)}),
		a.Command(command.Leaf{Name: "disable", Args: "NAME", Usage: "disable a server and keep it", Names: command.ServerNames, Run: switchTo(false)}),
		a.Command(command.Leaf{Name: "remove", Args: "NAME", Usage: "remove a server and its tools", Names: command.ServerNames,
			Flags: []cli.Flag{command.YesFlag()}, Run: removeServer}),
	)
}

func listServers(ctx context.Context, c *command.Call) error {
	list, err := api.ListServers.Call(ctx, c.API, api.Empty{})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(command.Items(list.Items))
	}
	HealthTable(c.App, command.Each(list.Items, func(s api.ServerView) api.Health { return s.Health })).
		Print("no servers yet: nizectl servers add NAME -- COMMAND, or --url URL")
	return nil
}

func showServer(ctx context.Context, c *command.Call) error {
	view, err := api.GetServer.Call(ctx, c.API, api.ServerRequest{Name: c.Arg(0)})
	if api.ExitCode(err) == api.ExitNotFound {
		if entry, ok := notAdded(ctx, c, c.Arg(0)); ok {
			return showNotAdded(c, entry)
		}
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(view)
	}
	printServer(ctx, c, view)
	return nil
}

// notAdded returns an entry of the servers file that could not be registered.
func notAdded(ctx context.Context, c *command.Call, name string) (entry api.ServerView, ok bool) {
	list, err := api.ListServers.Call(ctx, c.API, api.Empty{})
	if err != nil {
		return entry, false
	}
	i := slices.IndexFunc(list.Items, func(v api.ServerView) bool { return v.Health.Name == name && v.State == api.NotAdded })
	if i < 0 {
		return entry, false
	}
	return list.Items[i], true
}

// showNotAdded prints such an entry, and how to proceed.
func showNotAdded(c *command.Call, v api.ServerView) error {
	if c.JSON {
		return c.PrintJSON(v)
	}
	c.Field("server", v.Health.Name)
	c.Field("state", v.State)
	c.Field("last error", v.LastError)
	c.Field("transport", string(v.Server.Transport))
	c.Field("kept as in", v.Server.Origin.File)
	c.Note("correct it in %s: nized reads the file again when it changes", v.Server.Origin.File)
	return nil
}

// unlessNotAdded replaces a "not found" error if the name is such an entry of the servers
// file: the error is then the reason.
func unlessNotAdded(ctx context.Context, c *command.Call, name string, err error) error {
	if api.ExitCode(err) != api.ExitNotFound {
		return err
	}
	if v, ok := notAdded(ctx, c, name); ok {
		return command.Failf(api.ExitNotFound, "server %q of %s was not added: %s; correct it there", name, v.Server.Origin.File, v.LastError)
	}
	return err
}

func listTools(ctx context.Context, c *command.Call) error {
	view, err := api.GetServer.Call(ctx, c.API, api.ServerRequest{Name: c.Arg(0)})
	if err != nil {
		return unlessNotAdded(ctx, c, c.Arg(0), err)
	}
	if c.JSON {
		return c.PrintJSON(command.Items(view.Tools))
	}
	ToolTable(c.App, view.Tools).Print("the server offers no tools")
	return nil
}

func printServer(ctx context.Context, c *command.Call, v api.ServerView) {
	s := v.Server.Normal()
	c.Field("server", s.Name)
	c.Field("state", v.State)
	c.Field("last error", lastError(v.Health))
	c.Field("transport", string(s.Transport))
	c.Field("where", s.Where())
	c.Field("in", s.Cwd)
	c.Field("kept as in", s.Origin.File)
	c.Field("env", values(s.Env))
	c.Field("headers", values(s.Headers))
	c.Field("title", s.Title)
	c.Field("about", s.Description)
	c.Field("domain", s.Domain)
	c.Field("timeout", s.Timeout.String())
	if s.StartTimeout > 0 {
		c.Field("start", "within "+s.StartTimeout.String())
	}
	c.Field("at once", command.Count(s.MaxConcurrency, "call"))
	if s.KeepAlive {
		c.Field("idle", "kept alive")
	} else if s.IdleTimeout > 0 {
		c.Field("idle", "closed after "+s.IdleTimeout.String())
	}
	if s.MemoryLimit > 0 {
		c.Field("memory", "at most "+s.MemoryLimit.String())
	}
	if s.RateLimit.Calls > 0 {
		c.Field("rate", "at most "+s.RateLimit.String()+" calls")
	}
	c.Field("approval", string(s.Approval))
	auth := string(s.Auth)
	if s.Enterprise {
		auth += ", with the company's identity provider"
	}
	c.Field("auth", auth)
	c.Field("approvers", string(s.Approvers))
	c.Field("allowed", strings.Join(s.AllowedTools, ", "))
	c.Field("visible to", visibleTo(ctx, c, s.Visibility))
	var rules []string
	for _, r := range []struct {
		on   bool
		word string
	}{{s.TrustAnnotations, "annotations are trusted"}, {s.UntrustedOutput, "output is untrusted"}, {s.Private, "results are private"}, {s.AcceptNew, "new tools are accepted"}} {
		if r.on {
			rules = append(rules, r.word)
		}
	}
	c.Field("rules", strings.Join(rules, ", "))
	var reach []string
	for _, t := range v.Tools {
		reach = append(reach, t.ViewDomains...)
	}
	slices.Sort(reach)
	c.Field("views reach", strings.Join(slices.Compact(reach), ", "))
	if len(v.Tools) > 0 {
		c.Line("")
		ToolTable(c.App, v.Tools).Print("")
	}
	for _, w := range v.Warnings {
		c.Note("warning: %s", w)
	}
}

// values returns env and headers; plain values are shown, secret ones only named.
func values(m map[string]store.Value) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if v := m[k]; v.SecretKey != "" {
			parts = append(parts, k+" from credential "+v.SecretKey)
		} else if v.Credential != "" {
			parts = append(parts, k+" from the declared credential "+v.Credential)
		} else {
			parts = append(parts, k+"="+v.Text)
		}
	}
	return strings.Join(parts, ", ")
}

func visibleTo(ctx context.Context, c *command.Call, who []string) string {
	if len(who) == 0 {
		return "admins only"
	}
	who = slices.Clone(who)
	var names map[string]string
	for i, w := range who {
		if id, ok := strings.CutPrefix(w, "user:"); ok {
			if names == nil {
				names = c.UserNames(ctx)
			}
			who[i] = "user:" + cmp.Or(names[id], id)
		}
		if id, ok := strings.CutPrefix(w, "project:"); ok {
			if p, err := api.GetProject.Call(ctx, c.API, api.ProjectRequest{Project: id}); err == nil { // otherwise its id is shown
				who[i] = "project:" + p.Name
			}
		}
	}
	return "admins, " + strings.Join(who, ", ")
}

func testServer(ctx context.Context, c *command.Call) error {
	done := c.Busy("testing %s …", c.Arg(0))
	probe, err := api.TestServer.Call(ctx, c.API, api.ServerRequest{Name: c.Arg(0)})
	done()
	if err != nil {
		return unlessNotAdded(ctx, c, c.Arg(0), err)
	}
	if c.JSON {
		if err := c.PrintJSON(probe); err != nil {
			return err
		}
	} else {
		t := c.Table("STEP", "TOOK", "RESULT").Numbers(1).Text(2)
		for _, s := range probe.Steps {
			result := "ok"
			if s.Error != "" {
				result = s.Error
			}
			t.Row(s.Name, command.Millis(s.TookMS), result)
		}
		t.Print("")
	}
	if !probe.OK {
		return probeFailure(c, probe)
	}
	c.Note("%s works: %s", c.Arg(0), command.Count(probe.Tools, "tool"))
	return nil
}

// probeFailure returns an error with the failed step and a remedy.
func probeFailure(c *command.Call, p api.Probe) error {
	if p.Stderr != "" && !c.JSON {
		c.Note("its standard error:")
		fmt.Fprintln(c.Err, display.CleanLines(command.Indent(p.Stderr)))
	}
	for _, s := range p.Steps {
		if s.Error == "" {
			continue
		}
		text := fmt.Sprintf("%s fails at %s: %s", c.Arg(0), s.Name, s.Error)
		if s.Hint != "" {
			text += "; " + s.Hint
		}
		return command.Failf(api.ExitFailed, "%s", text)
	}
	return command.Failf(api.ExitFailed, "%s does not work; see nizectl servers logs %s", c.Arg(0), c.Arg(0))
}

func showLogs(ctx context.Context, c *command.Call) error {
	for line, err := range api.ServerLogs.Call(ctx, c.API, api.ServerLogsRequest{Name: c.Arg(0), Follow: c.Cmd.Bool("follow")}) {
		if err != nil {
			return command.FollowEnd(ctx, c.Cmd.Bool("follow"), err)
		}
		if c.JSON {
			err = c.PrintJSONLine(line)
		} else {
			stamp := ""
			if !line.At.IsZero() {
				stamp = c.Paint(command.Faint, line.At.Local().Format("15:04:05 "))
			}
			c.Line("%s%s", stamp, display.Clean(line.Text))
			err = c.Flush()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func restartServer(ctx context.Context, c *command.Call) error {
	done := c.Busy("restarting %s …", c.Arg(0))
	view, err := api.RestartServer.Call(ctx, c.API, api.ServerRequest{Name: c.Arg(0)})
	done()
	if err != nil {
		return unlessNotAdded(ctx, c, c.Arg(0), err)
	}
	return c.Report(view, "%s restarted: %s, %s", view.Server.Name, view.State, command.Count(view.ToolCount, "tool"))
}

func acceptTools(ctx context.Context, c *command.Call) error {
	name, tool := c.Arg(0), c.Arg(1)
	if _, own, ok := store.SplitToolID(tool); ok {
		tool = own
	}
	held, err := api.ListUntrusted.Call(ctx, c.API, api.ListUntrustedRequest{Name: name, Tool: tool})
	if err != nil {
		return err
	}
	var refused []api.TrustView
	held.Items = slices.DeleteFunc(held.Items, func(t api.TrustView) bool {
		if t.State == store.ToolRefused {
			refused = append(refused, t)
		}
		return t.State == store.ToolRefused
	})
	for _, t := range refused {
		why := fmt.Sprintf("%s can't be accepted: %s; only a change at its server can help", t.Tool, strings.Join(t.Findings, "; "))
		if tool != "" {
			return store.Mark(errors.New(why), store.ErrRefused)
		}
		c.Note("%s", why)
	}
	if len(held.Items) == 0 {
		return c.Report([]api.ToolView{}, "nothing of %s waits for acceptance", name)
	}
	accept := api.TrustToolsRequest{Name: name}
	for _, t := range held.Items {
		accept.Tools = append(accept.Tools, api.AcceptTool{Tool: t.Tool, Pin: t.Pin})
	}
	if c.JSON && !c.Cmd.Bool("yes") { // for inspection; --yes then accepts what was inspected
		return c.PrintJSON(command.Items(held.Items))
	}
	if !c.JSON {
		summarize(c, name, held.Items)
		if err := showChanges(c, held.Items); err != nil {
			return err
		}
	}
	if err := c.Confirm("Accept %s of %s as shown?", command.Count(len(held.Items), "definition"), name); err != nil {
		return err
	}
	tools, err := api.TrustTools.Call(ctx, c.API, accept)
	if err != nil {
		return err
	}
	return c.Report(command.Items(tools.Items), "accepted %s of %s", command.Count(len(held.Items), "definition"), name)
}

func printHeld(c *command.Call, t api.TrustView) {
	c.Field("tool", t.Tool)
	c.Field("state", string(t.State))
	for _, f := range t.Findings {
		c.Field("finding", f)
	}
	for _, how := range t.ViewSends {
		c.Field("its view can send", how)
	}
	c.Field("pin", t.Pin)
	c.Field("accepted", t.Accepted)
	if len(t.Changes) == 0 { // new, or accepted by a version that stored no definition
		c.Field("description", t.Description)
	}
}

func shareServer(ctx context.Context, c *command.Call) error {
	with := c.Cmd.StringSlice("with")
	if len(with) == 0 {
		return command.Usagef("servers share needs --with: all, group:G, user:U, project:P or nobody")
	}
	if slices.Contains(with, "nobody") {
		if len(with) > 1 {
			return command.Usagef("--with nobody can't be combined with others")
		}
		with = []string{}
	}
	for _, who := range with {
		if who != "all" && !strings.HasPrefix(who, "user:") && !strings.HasPrefix(who, "group:") && !strings.HasPrefix(who, "project:") {
			return command.Usagef("--with %s: want all, group:G, user:U, project:P or nobody", who)
		}
	}
	view, err := api.PatchServer.Call(ctx, c.API, api.PatchServerRequest{Name: c.Arg(0), Visibility: &with})
	if err != nil {
		return err
	}
	return c.Report(view, "%s is visible to %s", view.Server.Name, visibleTo(ctx, c, view.Server.Visibility))
}

func switchTo(on bool) func(context.Context, *command.Call) error {
	return func(ctx context.Context, c *command.Call) error {
		off := !on
		view, err := api.PatchServer.Call(ctx, c.API, api.PatchServerRequest{Name: c.Arg(0), Disabled: &off})
		if err != nil {
			return err
		}
		word := "enabled"
		if off {
			word = "disabled"
		}
		return c.Report(view, "%s %s: %s", view.Server.Name, word, view.State)
	}
}

func removeServer(ctx context.Context, c *command.Call) error {
	name := c.Arg(0)
	if err := c.Confirm("Remove the server %s and its tools? Credentials that it has stay sealed.", name); err != nil {
		return err
	}
	if _, err := api.RemoveServer.Call(ctx, c.API, api.ServerRequest{Name: name}); err != nil {
		return err
	}
	sealed, err := api.ListCredentials.Call(ctx, c.API, api.Empty{})
	if err != nil {
		return fmt.Errorf("server %s is removed; listing its credentials: %w", name, err)
	}
	kept := slices.DeleteFunc(sealed.Items, func(cr store.Credential) bool { return cr.Service != name })
	if c.JSON {
		return c.PrintJSON(removedServer{Removed: name, Credentials: command.Each(kept, func(cr store.Credential) store.CredentialKey { return cr.CredentialKey })})
	}
	c.Note("server %s removed", name)
	for _, cr := range kept {
		remove := "nizectl credentials remove " + printable.ShellWord(name) + " " + printable.ShellWord(cr.Name)
		if cr.Scope != "system" {
			remove += " --scope " + cr.Scope + " --owner " + printable.ShellWord(cr.Owner)
		}
		c.Note("its credential %s stays sealed, for a server of that name; to remove it: %s", cr.Name, remove)
	}
	return nil
}

// removedServer is the --json output of remove.
type removedServer struct {
	Removed     string                `json:"removed"`
	Credentials []store.CredentialKey `json:"credentials_kept"`
}
