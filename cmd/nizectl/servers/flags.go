package servers

import (
	"cmp"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/command"
	"nize/daemon/api"
	"nize/store"
)

// serverFlags returns the flags for a server's settings, for add and edit.
func serverFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "title", Usage: "a title for people and models (default: the server's own)"},
		&cli.StringFlag{Name: "description", Usage: "what the server is for, in a sentence"},
		&cli.StringFlag{Name: "domain", Usage: "the domain of its tools (default: its name)"},
		&cli.StringFlag{Name: "timeout", Usage: "of one call, such as 30s or 5m"},
		&cli.StringFlag{Name: "start-timeout", Usage: "to start and initialize, such as 5m (default: 3m for npx, uvx, docker and others that install first, else 30s, for a URL 10s); 0s is the default"},
		&cli.IntFlag{Name: "max-concurrency", Usage: "calls at once (default: 8)"},
		&cli.StringFlag{Name: "approval", Usage: "when its calls need approval: auto, always or never"},
		&cli.StringFlag{Name: "auth", Usage: "`WHOSE` credentials it is called with: none (the requester's own, else the team's, else the shared ones), user-apikey or team-apikey, user-oauth or team-oauth (by signing in)"},
		&cli.BoolFlag{Name: "enterprise", Usage: "with --auth user-oauth: the company's identity provider signs people in there, without a browser"},
		&cli.StringFlag{Name: "credential", Usage: "the declared credential `ID` that it is called with, in its header Authorization; K=ID for another header, or a variable of a command"},
		&cli.StringFlag{Name: "approvers", Usage: "`WHO` may approve its calls: requester, admins, channel-admins, channel, user:U, group:G, comma-separated, or such as '2 of group:ops not requester'; empty is the default"},
		&cli.BoolFlag{Name: "trust-annotations", Usage: "trust its claims about its tools (read-only and so on)"},
		&cli.BoolFlag{Name: "untrusted-output", Usage: "its tools' results taint the conversation"},
		&cli.BoolFlag{Name: "private", Usage: "in a channel, only the requester sees its tools' results"},
		&cli.BoolFlag{Name: "accept-new", Usage: "accept tools that it adds later"},
		&cli.BoolFlag{Name: "keep-alive", Usage: "never close it when idle"},
		&cli.StringFlag{Name: "idle-timeout", Usage: "close it after so long without a call, such as 10m (default: 10m for a command, never for a URL)"},
		&cli.StringFlag{Name: "memory-limit", Usage: "kill a command that uses more memory, such as 512MiB (the default; Linux only)"},
		&cli.StringFlag{Name: "rate-limit", Usage: "calls in an interval, such as 60/1m; 0 is no limit"},
		&cli.StringSliceFlag{Name: "allow", Usage: "`TOOL` or pattern that may be used, of an OpenAPI document also a method and a path, such as 'GET /users*'; may be repeated (default: all)"},
	}
}

// patchFromFlags returns the given settings of a server.
func patchFromFlags(c *command.Call) (api.PatchServerRequest, error) {
	var p api.PatchServerRequest
	for name, into := range map[string]**bool{
		"trust-annotations": &p.TrustAnnotations, "untrusted-output": &p.UntrustedOutput,
		"private": &p.Private, "accept-new": &p.AcceptNew, "keep-alive": &p.KeepAlive, "enterprise": &p.Enterprise,
	} {
		if c.Cmd.IsSet(name) {
			on := c.Cmd.Bool(name)
			*into = &on
		}
	}
	if c.Cmd.IsSet("allow") {
		allowed := slices.DeleteFunc(c.Cmd.StringSlice("allow"), func(s string) bool { return s == "" })
		p.AllowedTools = &allowed
	}
	if c.Cmd.IsSet("max-concurrency") {
		n := c.Cmd.Int("max-concurrency")
		if n < 1 || n > 1000 {
			return p, command.Usagef("--max-concurrency %d: want 1 to 1000", n)
		}
		p.MaxConcurrency = &n
	}
	return p, cmp.Or(
		given(c, "title", &p.Title, plainText),
		given(c, "description", &p.Description, plainText),
		given(c, "domain", &p.Domain, plainText),
		given(c, "timeout", &p.Timeout, timeoutFlag),
		given(c, "start-timeout", &p.StartTimeout, startFlag),
		given(c, "approval", &p.Approval, approvalFlag),
		given(c, "auth", &p.Auth, authFlag),
		given(c, "approvers", &p.Approvers, approversFlag),
		given(c, "idle-timeout", &p.IdleTimeout, idleFlag),
		given(c, "memory-limit", &p.MemoryLimit, memoryFlag),
		given(c, "rate-limit", &p.RateLimit, rateFlag),
	)
}

// credentialValue returns the header or variable set by --credential, as K=V; nil if it is
// not given.
func credentialValue(c *command.Call, over store.Transport) ([]string, error) {
	if !c.Cmd.IsSet("credential") {
		return nil, nil
	}
	k, id, ok := strings.Cut(c.Cmd.String("credential"), "=")
	switch {
	case !ok && over == store.Stdio:
		return nil, command.Usagef("--credential %s: name the variable of the command, such as --credential API_KEY=%s", k, k)
	case !ok:
		k, id = "Authorization", k
	}
	if err := store.CheckSlug(id); err != nil {
		return nil, command.Usagef("--credential: %v", err)
	}
	return []string{k + `={"credential":"` + id + `"}`}, nil
}

// given parses a flag into its field, which stays nil if the flag was not given.
func given[T any](c *command.Call, name string, into **T, parse func(string) (T, error)) error {
	if !c.Cmd.IsSet(name) {
		return nil
	}
	v, err := parse(c.Cmd.String(name))
	if err != nil {
		return err
	}
	*into = &v
	return nil
}

func plainText(v string) (string, error) { return v, nil }

func timeoutFlag(v string) (store.Duration, error) {
	d, err := store.ParseSpan(v)
	if err != nil || d <= 0 {
		return 0, command.Usagef("--timeout %s: write 30s, 5m or 1h", v)
	}
	return store.Duration(d), nil
}

func idleFlag(v string) (store.Duration, error) {
	d, err := store.ParseSpan(v)
	if err != nil {
		return 0, command.Usagef("--idle-timeout %s: write 30s, 10m or 1h; 0s is the default", v)
	}
	return store.Duration(d), nil
}

func startFlag(v string) (store.Duration, error) {
	d, err := store.ParseSpan(v)
	if err != nil {
		return 0, command.Usagef("--start-timeout %s: write 30s, 5m or 1h; 0s is the default", v)
	}
	return store.Duration(d), nil
}

func approvalFlag(v string) (store.Approval, error) {
	mode := store.Approval(v)
	if mode != store.ApproveAuto && mode != store.ApproveAlways && mode != store.ApproveNever {
		return "", command.Usagef("--approval %s: want auto, always or never", v)
	}
	return mode, nil
}

func authFlag(v string) (store.Auth, error) {
	a, err := store.ParseAuth(v)
	if err != nil {
		return "", command.Usagef("--auth: %v", err)
	}
	return a, nil
}

// approversFlag accepts an empty value for the default.
func approversFlag(v string) (store.Policy, error) {
	if strings.TrimSpace(v) == "" {
		return "", nil
	}
	a, err := store.ParsePolicy(v)
	if err != nil {
		return "", command.Usagef("--approvers: %v", err)
	}
	return a.Policy(), nil
}

func memoryFlag(v string) (store.Size, error) {
	size, err := store.ParseSize(v)
	if err != nil {
		return 0, command.Usagef("--memory-limit %s: write 512MiB or 2GiB; 0 is the default", v)
	}
	return size, nil
}

func rateFlag(v string) (store.Rate, error) {
	rate, err := store.ParseRate(v)
	if err != nil {
		return store.Rate{}, command.Usagef("--rate-limit %s: write calls and interval, such as 60/1m; 0 is no limit", v)
	}
	return rate, nil
}
