package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"nize/daemon/api"
	"nize/store"
)

// serverFlags are the settings of a server, for add and edit.
func serverFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "description", Usage: "what the server is for, in a sentence"},
		&cli.StringFlag{Name: "domain", Usage: "the field its tools belong to (default: its name)"},
		&cli.StringFlag{Name: "timeout", Usage: "of one call, such as 30s or 5m"},
		&cli.IntFlag{Name: "max-concurrency", Usage: "calls at once (default: 8)"},
		&cli.StringFlag{Name: "approval", Usage: "when its calls need a yes: auto, always or never"},
		&cli.StringFlag{Name: "auth", Usage: "`WHOSE` credentials it is called with: none (the requester's own, else the team's, else the shared ones), user-apikey or team-apikey"},
		&cli.StringFlag{Name: "approvers", Usage: "`WHO` may approve its calls: requester, admins, channel-admins, channel, user:U, group:G, several with commas, or such as '2 of group:ops not requester'; empty is the default"},
		&cli.BoolFlag{Name: "trust-annotations", Usage: "believe what it says of its tools (read-only and so on)"},
		&cli.BoolFlag{Name: "untrusted-output", Usage: "what its tools return taints the conversation"},
		&cli.BoolFlag{Name: "private", Usage: "in a channel, what its tools return goes to who asked alone"},
		&cli.BoolFlag{Name: "accept-new", Usage: "accept tools that it adds later"},
		&cli.BoolFlag{Name: "keep-alive", Usage: "never close it for being idle"},
		&cli.StringFlag{Name: "idle-timeout", Usage: "close it after so long without a call, such as 10m (default: 10m for a command, never for a URL)"},
		&cli.StringFlag{Name: "memory-limit", Usage: "kill a command that holds more, such as 512MiB (the default; Linux only)"},
		&cli.StringFlag{Name: "rate-limit", Usage: "calls in an interval, such as 60/1m; 0 is no limit"},
		&cli.StringSliceFlag{Name: "allow", Usage: "`TOOL` or pattern that may be used; may be repeated (default: all)"},
	}
}

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

// secret is a header or variable whose value is not on the command line.
type secret struct {
	name string
	what string
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

// keyName and fieldName are what a variable and a header may be called.
var (
	keyName   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	fieldName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
)

// readValues reads K=V words and names of secrets into one map.
func readValues(flag string, plain, hidden []string) (map[string]store.Value, error) {
	valid := keyName
	if flag == "header" {
		valid = fieldName
	}
	m := map[string]store.Value{}
	put := func(k string, v store.Value) error {
		if !valid.MatchString(k) {
			return usagef("--%s: %q is no name of a %s", flag, k, flag)
		}
		if _, twice := m[k]; twice {
			return usagef("--%s %s is given twice", flag, k)
		}
		m[k] = v
		return nil
	}
	for _, word := range plain {
		k, text, ok := strings.Cut(word, "=")
		if !ok {
			return nil, usagef("--%s %s: want K=V", flag, word)
		}
		v := readValue(text)
		if v.SecretKey == "" && store.SecretValue(k, text) {
			return nil, usagef("--%s %s holds what looks like a key; everybody on this machine can read a command line: use --%s-secret %s, which asks or reads a line of standard input", flag, k, flag, k)
		}
		if strings.ContainsAny(text, "\x00\r\n") {
			return nil, usagef("--%s %s holds a line break or a zero byte", flag, k)
		}
		if err := put(k, v); err != nil {
			return nil, err
		}
	}
	for _, k := range hidden {
		if name, _, ok := strings.Cut(k, "="); ok {
			return nil, usagef("--%s-secret takes a name alone, never a value: --%s-secret %s asks, or reads a line of standard input", flag, flag, name)
		}
		if err := put(k, store.Value{SecretKey: k}); err != nil {
			return nil, err
		}
	}
	if len(m) == 0 {
		return nil, nil
	}
	return m, nil
}

// readValue reads {"secret_key":"NAME"} as a reference and all else as text:
// a variable may well hold other JSON.
func readValue(text string) store.Value {
	var ref struct {
		SecretKey string `json:"secret_key"`
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if strings.HasPrefix(text, "{") && dec.Decode(&ref) == nil && ref.SecretKey != "" {
		return store.Value{SecretKey: ref.SecretKey}
	}
	return store.Value{Text: text}
}

// putSecrets reads the secrets and seals them as the server's credentials. The
// function returned removes those that were not there before.
func (c *call) putSecrets(ctx context.Context, server string, secrets []secret) (undo func(context.Context), err error) {
	var made []store.CredentialKey
	undo = func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		for _, key := range made {
			if err := c.api.DeleteCredential(ctx, key); err != nil {
				c.note("nizectl: credential %s of %s is left over: %v", key.Name, key.Service, err)
			}
		}
	}
	if len(secrets) == 0 {
		return undo, nil
	}
	before, err := c.api.Credentials(ctx)
	if err != nil {
		return undo, err
	}
	for _, s := range secrets {
		text, err := c.secretLine(s.what)
		if err != nil {
			undo(context.WithoutCancel(ctx))
			return undo, err
		}
		key := store.CredentialKey{Scope: "system", Service: server, Name: s.name}
		if err := c.api.PutCredential(ctx, api.PutCredential{CredentialKey: key, Secret: api.NewSecret(text)}); err != nil {
			undo(context.WithoutCancel(ctx))
			return undo, fmt.Errorf("storing %s: %w", s.what, err)
		}
		if !slices.ContainsFunc(before, func(have store.Credential) bool { return have.CredentialKey == key }) {
			made = append(made, key)
		}
	}
	return undo, nil
}

// patchFromFlags reads those settings of a server that were given.
func (c *call) patchFromFlags() (api.PatchServer, error) {
	var p api.PatchServer
	text := func(name string) *string {
		if !c.cmd.IsSet(name) {
			return nil
		}
		v := c.cmd.String(name)
		return &v
	}
	on := func(name string) *bool {
		if !c.cmd.IsSet(name) {
			return nil
		}
		v := c.cmd.Bool(name)
		return &v
	}
	p.Description, p.Domain = text("description"), text("domain")
	p.TrustAnnotations, p.UntrustedOutput, p.AcceptNew = on("trust-annotations"), on("untrusted-output"), on("accept-new")
	p.Private = on("private")
	if v := text("timeout"); v != nil {
		d, err := store.ParseSpan(*v)
		if err != nil || d <= 0 {
			return p, usagef("--timeout %s: write 30s, 5m or 1h", *v)
		}
		span := store.Duration(d)
		p.Timeout = &span
	}
	if c.cmd.IsSet("max-concurrency") {
		n := c.cmd.Int("max-concurrency")
		if n < 1 || n > 1000 {
			return p, usagef("--max-concurrency %d: want 1 to 1000", n)
		}
		p.MaxConcurrency = &n
	}
	if v := text("approval"); v != nil {
		mode := store.Approval(*v)
		if mode != store.ApproveAuto && mode != store.ApproveAlways && mode != store.ApproveNever {
			return p, usagef("--approval %s: want auto, always or never", *v)
		}
		p.Approval = &mode
	}
	if v := text("auth"); v != nil {
		a, err := store.ParseAuth(*v)
		if err != nil {
			return p, usagef("--auth: %v", err)
		}
		p.Auth = &a
	}
	if v := text("approvers"); v != nil {
		who := store.Policy(strings.TrimSpace(*v))
		if who != "" {
			a, err := store.ParsePolicy(*v)
			if err != nil {
				return p, usagef("--approvers: %v", err)
			}
			who = a.Policy()
		}
		p.Approvers = &who
	}
	p.KeepAlive = on("keep-alive")
	if v := text("idle-timeout"); v != nil {
		d, err := store.ParseSpan(*v)
		if err != nil {
			return p, usagef("--idle-timeout %s: write 30s, 10m or 1h; 0s is the default", *v)
		}
		span := store.Duration(d)
		p.IdleTimeout = &span
	}
	if v := text("memory-limit"); v != nil {
		size, err := store.ParseSize(*v)
		if err != nil {
			return p, usagef("--memory-limit %s: write 512MiB or 2GiB; 0 is the default", *v)
		}
		p.MemoryLimit = &size
	}
	if v := text("rate-limit"); v != nil {
		rate, err := store.ParseRate(*v)
		if err != nil {
			return p, usagef("--rate-limit %s: write calls and interval, such as 60/1m; 0 is no limit", *v)
		}
		p.RateLimit = &rate
	}
	if c.cmd.IsSet("allow") {
		allowed := slices.DeleteFunc(c.cmd.StringSlice("allow"), func(s string) bool { return s == "" })
		p.AllowedTools = &allowed
	}
	return p, nil
}

func applyPatch(s *store.Server, p api.PatchServer) {
	set(&s.Description, p.Description)
	set(&s.Domain, p.Domain)
	set(&s.Timeout, p.Timeout)
	set(&s.MaxConcurrency, p.MaxConcurrency)
	set(&s.Approval, p.Approval)
	set(&s.Auth, p.Auth)
	set(&s.Approvers, p.Approvers)
	set(&s.TrustAnnotations, p.TrustAnnotations)
	set(&s.UntrustedOutput, p.UntrustedOutput)
	set(&s.Private, p.Private)
	set(&s.AcceptNew, p.AcceptNew)
	set(&s.AllowedTools, p.AllowedTools)
	set(&s.KeepAlive, p.KeepAlive)
	set(&s.IdleTimeout, p.IdleTimeout)
	set(&s.MemoryLimit, p.MemoryLimit)
	set(&s.RateLimit, p.RateLimit)
}

func set[T any](into *T, value *T) {
	if value != nil {
		*into = *value
	}
}
