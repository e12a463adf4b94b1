package servers

import (
	"context"
	"maps"
	"slices"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/command"
	"nize/daemon/api"
	"nize/store"
)

func editServerCommand(a *command.App) *cli.Command {
	flags := append([]cli.Flag{
		&cli.StringFlag{Name: "url", Usage: "another `URL`"},
		&cli.StringFlag{Name: "openapi", Usage: "another OpenAPI document, `URL|FILE`"},
		&cli.StringFlag{Name: "base-url", Usage: "another `URL` of the service of the OpenAPI document"},
		&cli.StringFlag{Name: "transport", Usage: "stdio, http or sse"},
		&cli.StringFlag{Name: "cwd", Usage: "the command's working `DIRECTORY`"},
		&cli.StringSliceFlag{Name: "header", Usage: "set the header 'K: V' or K=V; the others stay"},
		&cli.StringSliceFlag{Name: "header-secret", Usage: "set the header `K`, or query:NAME of an OpenAPI service, to a value that is prompted for, or read as a line of standard input"},
		&cli.StringSliceFlag{Name: "no-header", Usage: "remove the header `K`"},
		&cli.StringSliceFlag{Name: "env", Usage: "set the variable K=V; the others stay"},
		&cli.StringSliceFlag{Name: "env-secret", Usage: "set the variable `K` to a value that is prompted for, or read as a line of standard input"},
		&cli.StringSliceFlag{Name: "no-env", Usage: "remove the variable `K`"},
	}, serverFlags()...)
	return a.Command(command.Leaf{Name: "edit", Args: "NAME [--] [COMMAND...]", Usage: "change a server's settings, or how it is reached", Names: command.ServerNames, Flags: flags, Run: editServer,
		More: "nizectl servers edit files --timeout 2m --idle-timeout 1h\n" +
			"nizectl servers edit files --env DEBUG=1 -- npx -y @modelcontextprotocol/server-filesystem /srv/docs"})
}

// wired are the flags that change how a server is reached; they need the current record.
var wired = []string{"url", "openapi", "base-url", "transport", "cwd", "header", "header-secret", "no-header", "env", "env-secret", "no-env", "credential"}

func editServer(ctx context.Context, c *command.Call) error {
	p, err := patchFromFlags(c)
	if err != nil {
		return err
	}
	name := c.Arg(0)
	undo := func(context.Context) {}
	if len(c.Args) > 1 || slices.ContainsFunc(wired, c.Cmd.IsSet) {
		view, err := api.GetServer.Call(ctx, c.API, api.ServerRequest{Name: name})
		if err != nil {
			return err
		}
		secrets, err := rewire(c, &p, view.Server)
		if err != nil {
			return err
		}
		if undo, err = putSecrets(ctx, c, name, secrets); err != nil {
			return err
		}
	}
	if p == (api.PatchServerRequest{}) {
		return command.Usagef("servers edit needs something to change: see nizectl servers edit --help")
	}
	p.Name = name
	view, err := api.PatchServer.Call(ctx, c.API, p)
	if err != nil {
		undo(context.WithoutCancel(ctx))
		return err
	}
	for _, w := range view.Warnings {
		c.Note("warning: %s", w)
	}
	return c.Report(view, "%s changed", view.Server.Name)
}

// rewire sets in p the changes of how s is reached. The revision guards against concurrent
// changes.
func rewire(c *command.Call, p *api.PatchServerRequest, s store.Server) ([]secret, error) {
	p.Revision = s.Revision
	argv := c.Args[1:]
	switch {
	case c.Cmd.IsSet("openapi") || c.Cmd.IsSet("base-url"):
		next := store.Server{Name: s.Name, URL: c.Cmd.String("url"), Document: s.Document}
		if err := setDocument(c, &next, argv); err != nil {
			return nil, err
		}
		p.Transport, p.Document = &next.Transport, &next.Document
		if s.Transport != store.OpenAPI {
			none, noArgs := "", []string{}
			p.Command, p.Args, p.Cwd, p.URL = &none, &noArgs, &none, &none
		}
		if next.URL != "" {
			p.URL = &next.URL
		}
		s.Transport = next.Transport
	case s.Transport == store.OpenAPI && (c.Cmd.IsSet("url") || c.Cmd.IsSet("transport")):
		return nil, command.Usagef("%s is the service of an OpenAPI document: change its address with --base-url", s.Name)
	case c.Cmd.IsSet("url") || len(argv) > 0:
		next := store.Server{Name: s.Name, URL: c.Cmd.String("url"), Cwd: c.Cmd.String("cwd")}
		if len(argv) > 0 && next.Cwd == "" {
			next.Cwd = s.Cwd
		}
		if err := setWhere(c, &next, argv); err != nil {
			return nil, err
		}
		none := ""
		p.Transport, p.Command, p.Args, p.Cwd, p.URL, p.Document = &next.Transport, &next.Command, &next.Args, &next.Cwd, &next.URL, &none
		s.Transport = next.Transport
	case c.Cmd.IsSet("transport"):
		t := store.Transport(c.Cmd.String("transport"))
		p.Transport = &t
	}
	if c.Cmd.IsSet("cwd") && p.Cwd == nil {
		next := store.Server{Name: s.Name, Cwd: c.Cmd.String("cwd")}
		if next.Cwd != "" {
			if err := setWhere(c, &next, []string{s.Command}); err != nil {
				return nil, err
			}
		}
		p.Cwd = &next.Cwd
	}
	var secrets []secret
	for _, kind := range []struct {
		flag, what string
		old        map[string]store.Value
		into       **map[string]store.Value
		fits       bool
	}{
		{"header", "header", s.Headers, &p.Headers, s.Transport != store.Stdio},
		{"env", "variable", s.Env, &p.Env, s.Transport == store.Stdio},
	} {
		plain, hidden, gone := c.Cmd.StringSlice(kind.flag), c.Cmd.StringSlice(kind.flag+"-secret"), c.Cmd.StringSlice("no-"+kind.flag)
		if kind.fits {
			declared, err := credentialValue(c, s.Transport)
			if err != nil {
				return nil, err
			}
			plain = append(plain, declared...)
		}
		if len(plain)+len(hidden)+len(gone) == 0 {
			if !kind.fits && len(kind.old) > 0 {
				*kind.into = &map[string]store.Value{} // it doesn't apply to the new transport
			}
			continue
		}
		if !kind.fits {
			return nil, command.Usagef("--%s does nothing for a server over %s", kind.flag, s.Transport)
		}
		fresh, err := readValues(kind.flag, plain, hidden)
		if err != nil {
			return nil, err
		}
		m := maps.Clone(kind.old)
		if m == nil {
			m = map[string]store.Value{}
		}
		for _, k := range gone {
			if _, ok := m[k]; !ok {
				return nil, command.Usagef("--no-%s %s: %s has no such %s", kind.flag, k, s.Name, kind.what)
			}
			delete(m, k)
		}
		maps.Copy(m, fresh)
		*kind.into = &m
		for _, k := range hidden {
			secrets = append(secrets, secret{name: k, what: kind.what + " " + k})
		}
	}
	return secrets, nil
}
