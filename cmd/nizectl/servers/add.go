package servers

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/command"
	"nize/daemon/api"
	"nize/store"
)

func addServerCommand(a *command.App) *cli.Command {
	flags := append([]cli.Flag{
		&cli.StringFlag{Name: "url", Usage: "the server's `URL`, instead of a command"},
		&cli.StringFlag{Name: "openapi", Usage: "an OpenAPI document, `URL|FILE`, whose operations become the tools"},
		&cli.StringFlag{Name: "base-url", Usage: "the `URL` of the document's service (default: from the document)"},
		&cli.StringFlag{Name: "transport", Usage: "stdio, http or sse (default: stdio for a command, http for a URL)"},
		&cli.StringSliceFlag{Name: "header", Usage: `header as 'K: V' or K=V; V may be {"secret_key":"NAME"}, a credential of the server`},
		&cli.StringSliceFlag{Name: "header-secret", Usage: "header `K`, or query:NAME of an OpenAPI service, whose value is prompted for, or read as a line of standard input"},
		&cli.StringSliceFlag{Name: "env", Usage: `variable as K=V; V may be {"secret_key":"NAME"}`},
		&cli.StringSliceFlag{Name: "env-secret", Usage: "variable `K` whose value is prompted for, or read as a line of standard input"},
		&cli.StringFlag{Name: "cwd", Usage: "the command's working `DIRECTORY`"},
		&cli.BoolFlag{Name: "external", Usage: "a source of asks: its tools run elsewhere, and their program asks nize first"},
		&cli.BoolFlag{Name: "force", Usage: "keep it even if it can't be reached now"},
	}, append(registryFlags(), serverFlags()...)...)
	return a.Command(command.Leaf{
		Name: "add", Args: "[NAME] [--] [COMMAND...]", Usage: "register an MCP server, contact it and list its tools", Flags: flags, Run: addServer,
		More: "nizectl servers add toolbox -- nize-toolbox\n" +
			"nizectl servers add files -- npx -y @modelcontextprotocol/server-filesystem /srv/docs\n" +
			"nizectl servers add tracker --url https://mcp.example.com/mcp --header-secret Authorization < key.txt\n" +
			"nizectl servers add shop --openapi https://shop.example.com/openapi.json --allow 'GET *' --header-secret Authorization < key.txt\n" +
			"nizectl servers add --registry io.github.acme/files\n" +
			"nizectl servers add deploy-script --external --title \"Deploy script\"",
	})
}

func addServer(ctx context.Context, c *command.Call) error {
	from := serverFromFlags
	if c.Cmd.IsSet("registry") {
		if c.Cmd.IsSet("credential") {
			return command.Usagef("--credential does nothing with --registry: add the server, then nizectl servers edit NAME --credential ID")
		}
		from = func(c *command.Call) (api.AddServerRequest, []secret, error) { return addFromRegistry(ctx, c) }
	}
	add, secrets, err := from(c)
	if err != nil {
		return err
	}
	name := add.Server.Name
	if len(secrets) > 0 {
		// An existing server keeps its credentials: this command must not replace them.
		if _, err := api.GetServer.Call(ctx, c.API, api.ServerRequest{Name: name}); err == nil {
			return command.Failf(api.ExitConflict, "server %q already exists; to change it: nizectl servers edit %s", name, name)
		} else if api.ExitCode(err) != api.ExitNotFound {
			return err
		}
	}
	undo, err := putSecrets(ctx, c, name, secrets)
	if err != nil {
		return err
	}
	done := showStart(ctx, c, name)
	view, err := api.AddServer.Call(ctx, c.API, add)
	done()
	if err != nil {
		undo(context.WithoutCancel(ctx))
		return err
	}
	return reportAdded(c, view)
}

func reportAdded(c *command.Call, view api.ServerView) error {
	if c.JSON {
		return c.PrintJSON(view)
	}
	name := view.Server.Name
	switch {
	case view.Unreachable && len(view.Warnings) > 0: // the warnings contain the reason
		c.Note("%s is kept, though it can't be reached", name)
	case view.Unreachable:
		c.Note("%s is kept, though it can't be reached: %s", name, view.LastError)
	case view.Server.Transport == store.External:
		c.Note("%s added: a source of asks; its program asks at POST /asks, or by nizectl hook", name)
	default:
		ToolTable(c.App, view.Tools).Print("the server offers no tools")
		c.Note("%s added: %s", name, view.Server.Where())
	}
	for _, w := range view.Warnings {
		c.Note("warning: %s", w)
	}
	if view.Held > 0 {
		c.Note("%s held back: see nizectl servers trust %s", areHeld(view.Held), name)
	}
	if len(view.Server.Visibility) == 0 {
		c.Note("only admins can use it; to share it: nizectl servers share %s --with all|group:G|user:U", name)
	}
	return nil
}

// serverFromFlags parses the command line of add without prompting.
func serverFromFlags(c *command.Call) (api.AddServerRequest, []secret, error) {
	none := api.AddServerRequest{}
	if strings.TrimSpace(c.Arg(0)) == "" {
		return none, nil, command.Usagef("servers add needs NAME: nizectl servers add NAME [--] [COMMAND...]")
	}
	for _, flag := range []string{"version", "kind", "arg"} {
		if c.Cmd.IsSet(flag) {
			return none, nil, command.Usagef("--%s has no effect without --registry", flag)
		}
	}
	s := store.Server{Name: c.Arg(0), Cwd: c.Cmd.String("cwd"), URL: c.Cmd.String("url")}
	if isURL(s.Name) {
		return none, nil, command.Usagef("the name comes first: nizectl servers add NAME %s", s.Name)
	}
	if err := store.CheckSlug(s.Name); err != nil {
		return none, nil, err
	}
	if err := setWhere(c, &s, c.Args[1:]); err != nil {
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
		plain, hidden := c.Cmd.StringSlice(kind.flag), c.Cmd.StringSlice(kind.flag+"-secret")
		if kind.fits {
			declared, err := credentialValue(c, s.Transport)
			if err != nil {
				return none, nil, err
			}
			plain = append(plain, declared...)
		}
		if len(plain)+len(hidden) > 0 && !kind.fits {
			return none, nil, command.Usagef("--%s does nothing for a server over %s: use %s", kind.flag, s.Transport, kind.instead)
		}
		m, err := readValues(kind.flag, plain, hidden)
		if err != nil {
			return none, nil, err
		}
		*kind.into = m
		for _, k := range hidden {
			secrets = append(secrets, secret{name: k, what: kind.what + " " + k})
		}
	}
	patch, err := patchFromFlags(c)
	if err != nil {
		return none, nil, err
	}
	s.TrustAnnotations = s.Transport == store.OpenAPI // nize derives them from the methods
	api.Change(&s, patch)
	return api.AddServerRequest{Server: s, Force: c.Cmd.Bool("force")}, secrets, nil
}

// isURL reports whether a word is the URL of an HTTP server.
func isURL(word string) bool {
	lower := strings.ToLower(word)
	return strings.HasPrefix(lower, "http://") || strings.HasPrefix(lower, "https://")
}

// hostAndPort matches a URL without its scheme. A command may have such a name, but no
// port.
var hostAndPort = regexp.MustCompile(`^[A-Za-z0-9.-]+:[0-9]+(/.*)?$`)

// setWhere sets how the server is reached: a command or a URL.
func setWhere(c *command.Call, s *store.Server, argv []string) error {
	s.Transport = store.Transport(c.Cmd.String("transport"))
	if c.Cmd.IsSet("openapi") || c.Cmd.IsSet("base-url") {
		return setDocument(c, s, argv)
	}
	if c.Cmd.Bool("external") {
		if s.URL != "" || len(argv) > 0 || s.Cwd != "" || s.Transport != "" && s.Transport != store.External {
			return command.Usagef("a source with --external has no command, --url, --cwd or other --transport: nizectl servers add %s --external", s.Name)
		}
		s.Transport = store.External
		return nil
	}
	if s.URL == "" && len(argv) == 1 && isURL(argv[0]) && (s.Transport == "" || s.Transport == store.HTTP || s.Transport == store.SSE) {
		s.URL, argv = argv[0], nil // no command has such a name
	}
	switch {
	case s.URL != "" && len(argv) > 0:
		return command.Usagef("give a command or --url, not both")
	case len(argv) > 1 && isURL(argv[0]):
		return command.Usagef("a URL takes no arguments, but %s is followed by %q", argv[0], argv[1])
	case len(argv) > 0 && (strings.Contains(argv[0], "://") && !isURL(argv[0]) || hostAndPort.MatchString(argv[0])):
		return command.Usagef("%s is not a command; if it is a server's URL, begin it with http:// or https://", argv[0])
	case s.URL == "" && len(argv) == 0:
		return command.Usagef("servers add needs a command after -- or --url: nizectl servers add %s -- COMMAND, or --url URL", s.Name)
	case s.URL != "":
		if s.Transport == "" {
			s.Transport = store.HTTP
		}
		if s.Transport != store.HTTP && s.Transport != store.SSE {
			return command.Usagef("--transport %s does not fit --url: use http or sse", s.Transport)
		}
		if s.Cwd != "" {
			return command.Usagef("--cwd does nothing for a URL")
		}
		return checkURL(s.URL)
	}
	if s.Transport == "" {
		s.Transport = store.Stdio
	}
	if s.Transport != store.Stdio {
		return command.Usagef("--transport %s needs --url", s.Transport)
	}
	for i, arg := range argv {
		if store.LooksSecret(arg) {
			return command.Usagef("word %d of the command looks like a key, and anyone on this machine can read a command line; pass it with --env-secret NAME", i+1)
		}
	}
	s.Command, s.Args = resolve(c, argv[0]), argv[1:]
	if s.Cwd != "" {
		abs, err := filepath.Abs(s.Cwd)
		if err != nil {
			return command.Usagef("--cwd %s: %v", s.Cwd, err)
		}
		s.Cwd = abs
	}
	return nil
}

// setDocument sets how the service of an OpenAPI document is reached.
func setDocument(c *command.Call, s *store.Server, argv []string) error {
	document := c.Cmd.String("openapi")
	switch {
	case document == "" && s.Document == "":
		return command.Usagef("--base-url needs --openapi: the document that describes the service there")
	case len(argv) > 0 || s.URL != "":
		return command.Usagef("--openapi can't be combined with these; give the service's URL with --base-url, and no command")
	case s.Transport != "" && s.Transport != store.OpenAPI:
		return command.Usagef("--transport %s does not fit --openapi", s.Transport)
	case s.Cwd != "":
		return command.Usagef("--cwd does nothing for an OpenAPI document")
	}
	s.Transport = store.OpenAPI
	if document != "" {
		s.Document = document
	}
	if isURL(s.Document) {
		if err := checkAddress("openapi", s.Document); err != nil {
			return err
		}
	} else {
		abs, err := filepath.Abs(s.Document) // nized reads it, with another working directory
		if err != nil {
			return command.Usagef("--openapi %s: %v", s.Document, err)
		}
		s.Document = abs
	}
	if s.URL = c.Cmd.String("base-url"); s.URL != "" {
		return checkAddress("base-url", s.URL)
	}
	return nil
}

func checkURL(raw string) error { return checkAddress("url", raw) }

func checkAddress(flag, raw string) error {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return command.Usagef("--%s %s: want an http or https URL", flag, raw)
	}
	secretQuery := false
	for key, vals := range u.Query() {
		secretQuery = secretQuery || store.SecretValue(key, strings.Join(vals, ""))
	}
	if u.User != nil || secretQuery || store.LooksSecret(raw) {
		return command.Usagef("--%s contains what looks like a key; pass it with --header-secret NAME", flag)
	}
	return nil
}

// resolve returns the command's absolute path: from the person's own PATH, or beside
// nizectl, where nize-toolbox is. If it is in neither place, the daemon reports the error.
func resolve(c *command.Call, command string) string {
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
