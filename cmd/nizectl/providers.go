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

// kinds of providers.
var kinds = []string{"openai", "azure", "openrouter", "deepseek", "groq", "ollama", "openai-compatible", "offline"}

func (a *app) providers() *cli.Command {
	return group("providers", "accounts at model services",
		a.command(leaf{name: "add", args: "NAME", usage: "add a provider, or give it a new key, from standard input", run: providersAdd, flags: []cli.Flag{
			&cli.StringFlag{Name: "kind", Usage: "one of " + strings.Join(kinds, ", ") + " (default: NAME, where it is one)"},
			&cli.StringFlag{Name: "base-url", Usage: "the service's `URL`, for azure and openai-compatible"},
			&cli.StringFlag{Name: "key-file", Usage: "read the key from this `FILE`", TakesFile: true},
			&cli.BoolFlag{Name: "no-key", Usage: "the service needs none"},
		}, more: "nizectl providers add openai < key.txt"}),
		a.command(leaf{name: "list", usage: "list providers, never their keys", run: providersList}),
		a.command(leaf{name: "test", args: "NAME", usage: "try a provider's key", names: providerNames, run: providersTest}),
		a.command(leaf{name: "enable", args: "NAME", usage: "offer a provider's models", names: providerNames, run: providersSwitch(true)}),
		a.command(leaf{name: "disable", args: "NAME", usage: "stop offering a provider's models", names: providerNames, run: providersSwitch(false)}),
		a.command(leaf{name: "remove", args: "NAME", usage: "remove a provider and its key", names: providerNames, run: providersRemove, flags: []cli.Flag{yesFlag()}}),
	)
}

func providerNames(ctx context.Context, c *api.Client) ([]string, error) {
	list, err := c.Providers(ctx)
	return each(list, func(p store.Provider) string { return p.Name }), err
}

func providersAdd(ctx context.Context, c *call) error {
	p, needsKey, err := c.providerFromFlags()
	if err != nil {
		return err
	}
	if needsKey {
		key, err := c.providerKey(p.Name)
		if err != nil {
			return err
		}
		p.Key = api.NewSecret(key)
	}
	made, err := c.api.AddProvider(ctx, p)
	if err != nil {
		return err
	}
	return c.report(made, "provider %s (%s) is ready; name one of its models: nizectl models set smart %s/MODEL", made.Name, made.Kind, made.Name)
}

// providerFromFlags reads the command line and says whether a key is to be read.
func (c *call) providerFromFlags() (p api.AddProvider, needsKey bool, err error) {
	p = api.AddProvider{Name: c.arg(0), Kind: c.cmd.String("kind"), BaseURL: c.cmd.String("base-url")}
	if store.LooksSecret(p.Name) {
		return p, false, usagef("that looks like a key, not a name: nizectl providers add NAME < key.txt")
	}
	if p.Kind == "" {
		p.Kind = p.Name
	}
	if !slices.Contains(kinds, p.Kind) {
		if near := store.Nearest(p.Kind, kinds); near != "" && !c.cmd.IsSet("kind") {
			return p, false, usagef("%q is no kind of provider: did you mean %s? (or add --kind)", p.Kind, near)
		}
		return p, false, usagef("%q is no kind of provider: add --kind with one of %s", p.Kind, strings.Join(kinds, ", "))
	}
	if p.BaseURL == "" && (p.Kind == "openai-compatible" || p.Kind == "azure") {
		return p, false, usagef("a provider of kind %s needs --base-url URL", p.Kind)
	}
	if p.BaseURL != "" && !strings.HasPrefix(p.BaseURL, "https://") && !strings.HasPrefix(p.BaseURL, "http://") {
		return p, false, usagef("--base-url %s: want an http or https URL", p.BaseURL)
	}
	noKey := c.cmd.Bool("no-key")
	if noKey && c.cmd.IsSet("key-file") {
		return p, false, usagef("give --key-file or --no-key, not both")
	}
	keyless := p.Kind == "ollama" || p.Kind == "offline"
	return p, c.cmd.IsSet("key-file") || !noKey && !keyless, nil
}

func (c *call) providerKey(name string) (string, error) {
	what := "the key of " + name
	if file := c.cmd.String("key-file"); file != "" {
		text, err := c.textOrFile(what, "@"+file)
		if err != nil {
			return "", err
		}
		return oneWord(checkSecret(what, text))
	}
	return oneWord(c.secretLine(what))
}

// oneWord refuses a key with spaces or control characters: it goes into a header.
func oneWord(key string, err error) (string, error) {
	if err != nil {
		return "", err
	}
	key = strings.TrimSpace(key)
	if strings.IndexFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) >= 0 {
		return "", usagef("that is no key: it holds spaces or characters that no key has")
	}
	return key, nil
}

func providersList(ctx context.Context, c *call) error {
	list, err := c.api.Providers(ctx)
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(items(list))
	}
	t := c.table("NAME", "KIND", "STATE", "KEY", "BASE URL")
	t.state = 2
	for _, p := range list {
		state, key := "disabled", "-"
		if p.Enabled {
			state = "enabled"
		}
		if p.HasKey {
			key = "sealed"
		}
		t.row(p.Name, p.Kind, state, key, p.BaseURL)
	}
	t.print("no providers, so the assistant is offline: nizectl providers add NAME < key.txt")
	return nil
}

func providersTest(ctx context.Context, c *call) error {
	done := c.busy("asking %s …", c.arg(0))
	test, err := c.api.TestProvider(ctx, c.arg(0))
	done()
	if err != nil {
		return err
	}
	if c.json {
		if err := c.printJSON(test); err != nil {
			return err
		}
	}
	if !test.OK {
		text := fmt.Sprintf("%s does not work: %s", c.arg(0), test.Error)
		if test.Hint != "" {
			text += "; " + test.Hint
		}
		return failf(api.ExitFailed, "%s", text)
	}
	if !c.json {
		for _, m := range test.Models {
			c.line("%s", display.Clean(c.arg(0)+"/"+m))
		}
		c.note("%s works: %s in %s", c.arg(0), count(len(test.Models), "model"), millis(test.TookMS))
	}
	return nil
}

func providersSwitch(on bool) func(context.Context, *call) error {
	return func(ctx context.Context, c *call) error {
		p, err := c.api.EnableProvider(ctx, c.arg(0), on)
		if err != nil {
			return err
		}
		word := "disabled"
		if p.Enabled {
			word = "enabled"
		}
		return c.report(p, "provider %s %s", p.Name, word)
	}
}

func providersRemove(ctx context.Context, c *call) error {
	if err := c.confirm("Remove the provider %s and its key?", c.arg(0)); err != nil {
		return err
	}
	if err := c.api.RemoveProvider(ctx, c.arg(0)); err != nil {
		return err
	}
	return c.removed("provider", c.arg(0))
}
