package main

import (
	"context"
	"strings"

	"github.com/urfave/cli/v3"

	"nize/daemon/api"
	"nize/store"
)

func (a *app) models() *cli.Command {
	return group("models", "names for models, and what stands in for them",
		a.command(leaf{name: "list", usage: "list model names", run: modelsList}),
		a.command(leaf{name: "set", args: "LOGICAL PROVIDER/MODEL", usage: "map a name to a provider's model", names: modelNames, run: modelsSet,
			more: "nizectl models set smart openai/MODEL"}),
		a.command(leaf{name: "default", args: "LOGICAL", usage: "make a name the default", names: modelNames, run: modelsDefault}),
		a.command(leaf{name: "fallback", args: "LOGICAL [PROVIDER/MODEL...]", usage: "say what stands in, in order; none clears it", names: modelNames, run: modelsFallback}),
		a.command(leaf{name: "remove", args: "LOGICAL", usage: "remove a name", names: modelNames, run: modelsRemove, flags: []cli.Flag{yesFlag()}}),
	)
}

func modelNames(ctx context.Context, c *api.Client) ([]string, error) {
	list, err := c.Models(ctx)
	return each(list, func(m api.ModelView) string { return m.Name }), err
}

func modelsList(ctx context.Context, c *call) error {
	list, err := c.api.Models(ctx)
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(items(list))
	}
	t := c.table("NAME", "MODEL", "DEFAULT", "AVAILABLE", "FALLBACKS")
	for _, m := range list {
		def, available := "", "yes"
		if m.Default {
			def = "default"
		}
		if !m.Available {
			available = "no: " + m.Why
		}
		t.row(m.Name, m.Target, def, available, strings.Join(m.Fallbacks, ", "))
	}
	t.print("no model names, so the assistant is offline: nizectl models set smart PROVIDER/MODEL")
	return nil
}

// checkTarget wants provider/model.
func checkTarget(target string) error {
	provider, model, ok := strings.Cut(target, "/")
	if !ok || provider == "" || model == "" {
		return usagef("%q is no model: write PROVIDER/MODEL, such as openai/MODEL", target)
	}
	return nil
}

func modelsSet(ctx context.Context, c *call) error {
	if err := checkTarget(c.arg(1)); err != nil {
		return err
	}
	m, err := c.api.SetModel(ctx, c.arg(0), api.SetModel{Target: c.arg(1)})
	if err != nil {
		return err
	}
	return c.report(m, "%s is %s%s", m.Name, m.Target, defaultWord(m))
}

func defaultWord(m store.ModelName) string {
	if m.Default {
		return ", the default"
	}
	return ""
}

func modelsDefault(ctx context.Context, c *call) error {
	m, err := c.api.DefaultModel(ctx, c.arg(0))
	if err != nil {
		return err
	}
	return c.report(m, "%s (%s) is the default", m.Name, m.Target)
}

func modelsFallback(ctx context.Context, c *call) error {
	for _, target := range c.args[1:] {
		if err := checkTarget(target); err != nil {
			return err
		}
	}
	m, err := c.api.SetFallbacks(ctx, c.arg(0), api.SetFallbacks{Fallbacks: items(c.args[1:])})
	if err != nil {
		return err
	}
	if len(m.Fallbacks) == 0 {
		return c.report(m, "%s has no fallback", m.Name)
	}
	return c.report(m, "%s falls back to %s", m.Name, strings.Join(m.Fallbacks, ", "))
}

func modelsRemove(ctx context.Context, c *call) error {
	if err := c.confirm("Remove the model name %s?", c.arg(0)); err != nil {
		return err
	}
	if err := c.api.RemoveModel(ctx, c.arg(0)); err != nil {
		return err
	}
	return c.removed("model name", c.arg(0))
}
