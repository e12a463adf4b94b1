package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/command"
	"nize/cmd/nizectl/display"
	"nize/daemon/api"
	"nize/store"
)

// kinds of providers.
var kinds = []string{"openai", "anthropic", "gemini", "mistral", "xai", "azure", "openrouter", "deepseek", "groq", "ollama", "openai-compatible"}

func providersCommand(a *command.App) *cli.Command {
	return command.Group("providers", "manage accounts at model services",
		a.Command(command.Leaf{Name: "add", Args: "NAME", Usage: "add a provider, or replace its key", Run: providersAdd, Flags: []cli.Flag{
			&cli.StringFlag{Name: "kind", Usage: "one of " + strings.Join(kinds, ", ") + " (default: NAME if it is one of these, otherwise determined by --base-url)"},
			&cli.StringFlag{Name: "base-url", Usage: "the service's `URL`, for any service with OpenAI's protocol"},
			&cli.StringFlag{Name: "key-file", Usage: "read the key from this `FILE`", TakesFile: true},
			&cli.BoolFlag{Name: "no-key", Usage: "the service needs none"},
			&cli.BoolFlag{Name: "force", Usage: "store it without testing it"},
		}, More: "The key is read from standard input or prompted for.\nnizectl providers add openai < key.txt"}),
		a.Command(command.Leaf{Name: "list", Usage: "list providers, never their keys", Run: providersList}),
		a.Command(command.Leaf{Name: "test", Args: "NAME", Usage: "test a provider's key", Names: providerNames, Run: providersTest}),
		a.Command(command.Leaf{Name: "enable", Args: "NAME", Usage: "offer a provider's models", Names: providerNames, Run: providersSwitch(true)}),
		a.Command(command.Leaf{Name: "disable", Args: "NAME", Usage: "stop offering a provider's models", Names: providerNames, Run: providersSwitch(false)}),
		a.Command(command.Leaf{Name: "remove", Args: "NAME", Usage: "remove a provider and its key", Names: providerNames, Run: providersRemove, Flags: []cli.Flag{command.YesFlag()}}),
	)
}

func providerNames(ctx context.Context, c *api.Client) ([]string, error) {
	list, err := api.ListProviders.Call(ctx, c, api.Empty{})
	return command.Each(list.Items, func(p store.Provider) string { return p.Name }), err
}

func providersAdd(ctx context.Context, c *command.Call) error {
	p, need, err := providerFromFlags(c)
	if err != nil {
		return err
	}
	if need != noKey {
		key, err := providerKey(c, p.Name, need == maybeKey)
		if err != nil {
			return err
		}
		p.Key = api.NewSecret(key)
	}
	done := c.Busy("asking %s …", p.Name)
	made, err := api.AddProvider.Call(ctx, c.API, p)
	done()
	if err != nil {
		return err
	}
	if made.Found == nil {
		return c.Report(made, "provider %s (%s) is stored untried; to try it: nizectl providers test %s", made.Name, made.Kind, made.Name)
	}
	at := ""
	if made.BaseURL != "" {
		at = " at " + made.BaseURL
	}
	next := "to see them: nizectl models list --provider " + made.Name
	if len(made.Found.Models) == 1 {
		next = "to use it: nizectl models add smart " + made.Name + "/" + made.Found.Models[0]
	}
	return c.Report(made, "provider %s (%s) works: %s%s in %s; %s", made.Name, made.Kind, command.Count(len(made.Found.Models), "model"), at, command.Millis(made.Found.TookMS), next)
}

// keyNeed is whether a provider needs a key.
type keyNeed int

const (
	noKey keyNeed = iota
	maybeKey
	needsKey
)

// providerFromFlags parses the command line and returns whether a key must be read.
func providerFromFlags(c *command.Call) (p api.AddProviderRequest, need keyNeed, err error) {
	p = api.AddProviderRequest{Name: c.Arg(0), Kind: c.Cmd.String("kind"), BaseURL: c.Cmd.String("base-url"), Try: !c.Cmd.Bool("force")}
	if store.LooksSecret(p.Name) {
		return p, noKey, command.Usagef("that looks like a key, not a name: nizectl providers add NAME < key.txt")
	}
	byAddress := p.BaseURL != "" && !slices.Contains(kinds, p.Name) // then the daemon determines the kind
	if p.Kind == "" && !byAddress {
		p.Kind = p.Name
	}
	if p.Kind != "" && !slices.Contains(kinds, p.Kind) {
		if near := store.Nearest(p.Kind, kinds); near != "" && !c.Cmd.IsSet("kind") {
			return p, noKey, command.Usagef("%q is not a kind of provider: did you mean %s? (or add --base-url)", p.Kind, near)
		}
		return p, noKey, command.Usagef("%q is not a kind of provider: add --base-url URL, or --kind with one of %s", p.Kind, strings.Join(kinds, ", "))
	}
	if p.BaseURL == "" && (p.Kind == "openai-compatible" || p.Kind == "azure") {
		return p, noKey, command.Usagef("a provider of kind %s needs --base-url URL", p.Kind)
	}
	if p.BaseURL != "" && !strings.HasPrefix(p.BaseURL, "https://") && !strings.HasPrefix(p.BaseURL, "http://") {
		return p, noKey, command.Usagef("--base-url %s: want an http or https URL", p.BaseURL)
	}
	switch without, file := c.Cmd.Bool("no-key"), c.Cmd.IsSet("key-file"); {
	case without && file:
		return p, noKey, command.Usagef("give --key-file or --no-key, not both")
	case without, p.Kind == "ollama" && !file:
		return p, noKey, nil
	case !file && (p.Kind == "" || p.Kind == "openai-compatible"):
		return p, maybeKey, nil
	}
	return p, needsKey, nil
}

// providerKey reads a key; if the service may need none, an empty line is accepted.
func providerKey(c *command.Call, name string, maybe bool) (string, error) {
	what := "the key of " + name
	if file := c.Cmd.String("key-file"); file != "" {
		text, err := c.TextOrFile(what, "@"+file)
		if err != nil {
			return "", err
		}
		return command.OneWord(command.CheckSecret(what, text))
	}
	if maybe {
		return command.OneWord(c.OptionalLine(what))
	}
	return command.OneWord(c.SecretLine(what))
}

func providersList(ctx context.Context, c *command.Call) error {
	list, err := api.ListProviders.Call(ctx, c.API, api.Empty{})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(command.Items(list.Items))
	}
	t := c.Table("NAME", "KIND", "STATE", "KEY", "BASE URL", "FROM")
	t.State = 2
	for _, p := range list.Items {
		state, key := "disabled", "-"
		if p.Enabled {
			state = "enabled"
		}
		if p.HasKey {
			key = "sealed"
		}
		t.Row(p.Name, p.Kind, state, key, p.BaseURL, p.Origin)
	}
	t.Print("no providers, so the assistant is offline: nizectl providers add NAME < key.txt")
	return nil
}

func providersTest(ctx context.Context, c *command.Call) error {
	done := c.Busy("asking %s …", c.Arg(0))
	test, err := api.TestProvider.Call(ctx, c.API, api.ProviderRequest{Name: c.Arg(0)})
	done()
	if err != nil {
		return err
	}
	if c.JSON {
		if err := c.PrintJSON(test); err != nil {
			return err
		}
	}
	if !test.OK {
		text := fmt.Sprintf("%s does not work: %s", c.Arg(0), test.Error)
		if test.Hint != "" {
			text += "; " + test.Hint
		}
		return command.Failf(api.ExitFailed, "%s", text)
	}
	if !c.JSON {
		for _, m := range test.Models {
			c.Line("%s", display.Clean(c.Arg(0)+"/"+m))
		}
		c.Note("%s works: %s in %s", c.Arg(0), command.Count(len(test.Models), "model"), command.Millis(test.TookMS))
	}
	return nil
}

func providersSwitch(on bool) func(context.Context, *command.Call) error {
	op := api.EnableProvider
	if !on {
		op = api.DisableProvider
	}
	return func(ctx context.Context, c *command.Call) error {
		p, err := op.Call(ctx, c.API, api.ProviderRequest{Name: c.Arg(0)})
		if err != nil {
			return err
		}
		word := "disabled"
		if p.Enabled {
			word = "enabled"
		}
		return c.Report(p, "provider %s %s", p.Name, word)
	}
}

func providersRemove(ctx context.Context, c *command.Call) error {
	if err := c.Confirm("Remove the provider %s and its key?", c.Arg(0)); err != nil {
		return err
	}
	if _, err := api.RemoveProvider.Call(ctx, c.API, api.ProviderRequest{Name: c.Arg(0)}); err != nil {
		return err
	}
	return c.Removed("provider", c.Arg(0))
}
