package main

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v3"

	"nize/daemon/api"
	"nize/store"
)

func (a *app) serversAdd() *cli.Command {
	flags := append([]cli.Flag{
		&cli.StringFlag{Name: "url", Usage: "the server's `URL`, instead of a command"},
		&cli.StringFlag{Name: "transport", Usage: "stdio, http or sse (default: stdio for a command, http for a URL)"},
		&cli.StringSliceFlag{Name: "header", Usage: `header as K=V; V may be {"secret_key":"NAME"}, a credential of the server`},
		&cli.StringSliceFlag{Name: "header-secret", Usage: "header `K` whose value is asked for, or read as a line of standard input"},
		&cli.StringSliceFlag{Name: "env", Usage: `variable as K=V; V may be {"secret_key":"NAME"}`},
		&cli.StringSliceFlag{Name: "env-secret", Usage: "variable `K` whose value is asked for, or read as a line of standard input"},
		&cli.StringFlag{Name: "cwd", Usage: "the command's working `DIRECTORY`"},
		&cli.BoolFlag{Name: "force", Usage: "keep it even if it can't be reached now"},
	}, serverFlags()...)
	return a.command(leaf{
		name: "add", args: "NAME [--] [COMMAND...]", usage: "register an MCP server, contact it and list its tools", flags: flags, run: serversAdd,
		more: "nizectl servers add toolbox -- nize-toolbox\n" +
			"nizectl servers add files -- npx -y @modelcontextprotocol/server-filesystem /srv/docs\n" +
			"nizectl servers add tracker --url https://mcp.example.com/mcp --header-secret Authorization < key.txt",
	})
}

func serversAdd(ctx context.Context, c *call) error {
	add, secrets, err := c.serverFromFlags()
	if err != nil {
		return err
	}
	name := add.Server.Name
	if len(secrets) > 0 {
		// A server of that name keeps its credentials: they are not ours to replace.
		if _, err := c.api.Server(ctx, name); err == nil {
			return failf(api.ExitConflict, "server %q already exists: choose another name, or change it with nizectl servers edit %s", name, name)
		} else if api.ExitCode(err) != api.ExitNotFound {
			return err
		}
	}
	undo, err := c.putSecrets(ctx, name, secrets)
	if err != nil {
		return err
	}
	done := c.busy("contacting %s …", name)
	view, err := c.api.AddServer(ctx, add)
	done()
	if err != nil {
		undo(context.WithoutCancel(ctx))
		return err
	}
	return c.reportAdded(view)
}

func (c *call) reportAdded(view api.ServerView) error {
	if c.json {
		return c.printJSON(view)
	}
	name := view.Server.Name
	switch {
	case view.Unreachable && len(view.Warnings) > 0: // they say why
		c.note("%s is kept, though it can't be reached", name)
	case view.Unreachable:
		c.note("%s is kept, though it can't be reached: %s", name, view.LastError)
	default:
		c.toolTable(view.Tools).print("the server offers no tools")
		c.note("%s added: %s", name, view.Server.Where())
	}
	for _, w := range view.Warnings {
		c.note("warning: %s", w)
	}
	if view.Held > 0 {
		c.note("%s held back: see nizectl servers trust %s", count(view.Held, "tool is"), name)
	}
	if len(view.Server.Visibility) == 0 {
		c.note("only admins can use it; to share it: nizectl servers share %s --with all|group:G|user:U", name)
	}
	return nil
}

// serverFromFlags reads the command line of add without asking anybody.
func (c *call) serverFromFlags() (api.AddServer, []secret, error) {
	none := api.AddServer{}
	s := store.Server{Name: c.arg(0), Cwd: c.cmd.String("cwd"), URL: c.cmd.String("url")}
	if err := store.CheckSlug(s.Name); err != nil {
		return none, nil, err
	}
	if err := c.setWhere(&s, c.args[1:]); err != nil {
		return none, nil, err
	}
	var secrets []secret
	for _, kind := range []struct {
		flag, what string
		into       *map[string]store.Value
		fits       bool
		instead    string
	}{
		{"header", "header", &s.Headers, s.Transport != store.Stdio, "--env"},
		{"env", "variable", &s.Env, s.Transport == store.Stdio, "--header"},
	} {
		plain, hidden := c.cmd.StringSlice(kind.flag), c.cmd.StringSlice(kind.flag+"-secret")
		if len(plain)+len(hidden) > 0 && !kind.fits {
			return none, nil, usagef("--%s does nothing for a server over %s: use %s", kind.flag, s.Transport, kind.instead)
		}
		m, err := readValues(kind.flag, plain, hidden)
		if err != nil {
			return none, nil, err
		}
		*kind.into = m
		for _, k := range hidden {
			secrets = append(secrets, secret{k, kind.what + " " + k})
		}
	}
	patch, err := c.patchFromFlags()
	if err != nil {
		return none, nil, err
	}
	applyPatch(&s, patch)
	return api.AddServer{Server: s, Force: c.cmd.Bool("force")}, secrets, nil
}

// setWhere fills in how the server is reached: a command or a URL.
func (c *call) setWhere(s *store.Server, argv []string) error {
	s.Transport = store.Transport(c.cmd.String("transport"))
	switch {
	case s.URL != "" && len(argv) > 0:
		return usagef("give a command or --url, not both")
	case s.URL == "" && len(argv) == 0:
		return usagef("servers add needs a command after -- or --url: nizectl servers add %s -- COMMAND, or --url URL", s.Name)
	case s.URL != "":
		if s.Transport == "" {
			s.Transport = store.HTTP
		}
		if s.Transport != store.HTTP && s.Transport != store.SSE {
			return usagef("--transport %s does not fit --url: use http or sse", s.Transport)
		}
		if s.Cwd != "" {
			return usagef("--cwd does nothing for a URL")
		}
		return checkURL(s.URL)
	}
	if s.Transport == "" {
		s.Transport = store.Stdio
	}
	if s.Transport != store.Stdio {
		return usagef("--transport %s needs --url", s.Transport)
	}
	for i, arg := range argv {
		if store.LooksSecret(arg) {
			return usagef("word %d of the command looks like a key; everybody on this machine can read a command line: give it with --env-secret NAME", i+1)
		}
	}
	s.Command, s.Args = c.resolve(argv[0]), argv[1:]
	if s.Cwd != "" {
		abs, err := filepath.Abs(s.Cwd)
		if err != nil {
			return usagef("--cwd %s: %v", s.Cwd, err)
		}
		s.Cwd = abs
	}
	return nil
}

func checkURL(raw string) error {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return usagef("--url %s: want an http or https URL", raw)
	}
	secretQuery := false
	for key, vals := range u.Query() {
		secretQuery = secretQuery || store.SecretValue(key, strings.Join(vals, ""))
	}
	if u.User != nil || secretQuery || store.LooksSecret(raw) {
		return usagef("--url holds what looks like a key: give it with --header-secret NAME")
	}
	return nil
}

// resolve gives the command's absolute path: from PATH as the person at the
// keyboard has it, or beside nizectl, where nize-toolbox is. What is in neither
// place is left for the daemon, which says so.
func (c *call) resolve(command string) string {
	if path, err := exec.LookPath(command); err == nil {
		if abs, err := filepath.Abs(path); err == nil {
			return abs
		}
	}
	if self, err := os.Executable(); err == nil && !strings.ContainsRune(command, '/') {
		beside := filepath.Join(filepath.Dir(self), command)
		if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return beside
		}
	}
	return command
}
