package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/display"
	"nize/daemon/api"
	"nize/store"
)

func (a *app) models() *cli.Command {
	return group("models", "names for models, and what stands in for them",
		a.command(leaf{name: "list", usage: "list model names", run: modelsList}),
		a.command(leaf{name: "set", args: "LOGICAL PROVIDER/MODEL", usage: "map a name to a provider's model", names: modelNames, run: modelsSet, flags: []cli.Flag{whoFlag()},
			more: "nizectl models set smart openai/MODEL"}),
		a.command(leaf{name: "default", args: "LOGICAL", usage: "make a name the default", names: modelNames, run: modelsDefault}),
		a.command(leaf{name: "fallback", args: "LOGICAL [PROVIDER/MODEL...]", usage: "say what stands in, in order; none clears it", names: modelNames, run: modelsFallback}),
		a.command(leaf{name: "price", args: "PROVIDER/MODEL", usage: "show or set what a model costs, in US dollars per million tokens", names: modelTargets, run: modelsPrice,
			more: "nizectl models price openai/MODEL --in 1.25 --cached 0.125 --out 10",
			flags: []cli.Flag{
				&cli.FloatFlag{Name: "in", Usage: "`USD` for the prompt"},
				&cli.FloatFlag{Name: "out", Usage: "`USD` for the answer, its reasoning included"},
				&cli.FloatFlag{Name: "cached", Usage: "`USD` for what the provider had cached of the prompt (default: as --in)"},
				&cli.BoolFlag{Name: "unset", Usage: "forget what was set"},
			}}),
		a.command(leaf{name: "remove", args: "LOGICAL", usage: "remove a name", names: modelNames, run: modelsRemove, flags: []cli.Flag{yesFlag()}}),
	)
}

// modelTargets offers what the names are mapped to.
func modelTargets(ctx context.Context, c *api.Client) ([]string, error) {
	list, err := c.Models(ctx)
	var targets []string
	for _, m := range list {
		targets = append(append(targets, m.Target), m.Fallbacks...)
	}
	slices.Sort(targets)
	return slices.Compact(targets), err
}

func modelsList(ctx context.Context, c *call) error {
	list, err := c.api.Models(ctx)
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(items(list))
	}
	t := c.table("NAME", "MODEL", "DEFAULT", "AVAILABLE", "IMAGES", "PRICE", "FALLBACKS", "WHO")
	for _, m := range list {
		def, available, images := "", "yes", "no"
		if m.Images {
			images = "yes"
		}
		if m.Default {
			def = "default"
		}
		if !m.Available {
			available = "no: " + m.Why
		}
		t.row(m.Name, m.Target, def, available, images, priceText(m.Price), strings.Join(m.Fallbacks, ", "), strings.Join(m.Who, ", "))
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
	who, err := c.who()
	if err != nil {
		return err
	}
	m, err := c.api.SetModel(ctx, c.arg(0), api.SetModel{Target: c.arg(1), Who: who})
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

func modelsPrice(ctx context.Context, c *call) error {
	model := c.arg(0)
	if err := checkTarget(model); err != nil {
		return err
	}
	in, out, cached, unset := c.cmd.IsSet("in"), c.cmd.IsSet("out"), c.cmd.IsSet("cached"), c.cmd.Bool("unset")
	var p api.PriceView
	var err error
	switch {
	case unset && (in || out || cached):
		return usagef("give --unset or prices, not both")
	case unset:
		p, err = c.api.UnsetPrice(ctx, model)
	case in && out:
		set := api.SetPrice{In: c.cmd.Float("in"), Out: c.cmd.Float("out")}
		if cached {
			usd := c.cmd.Float("cached")
			set.Cached = &usd
		}
		p, err = c.api.SetPrice(ctx, model, set)
	case in || out || cached:
		return usagef("models price needs --in and --out, in US dollars per million tokens")
	default:
		p, err = c.api.Price(ctx, model)
	}
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(p)
	}
	c.line("%s", display.Clean(model+": "+priceText(p)))
	if p.Above != nil {
		c.note("with more than %d tokens in the prompt: %s in, %s cached, %s out", p.Above.Tokens, dollars(p.Above.In), dollars(p.Above.Cached), dollars(p.Above.Out))
	}
	if !p.Known && p.Source == "" {
		c.note("to set it: nizectl models price %s --in USD --out USD", model)
	}
	return nil
}

// priceText is a price and where it is from.
func priceText(p api.PriceView) string {
	switch {
	case p.Source == "local":
		return "costs nothing"
	case !p.Known && p.Source == "provider":
		return "named by the provider"
	case !p.Known:
		return "unknown"
	}
	text := fmt.Sprintf("%s in, %s cached, %s out", dollars(p.In), dollars(p.Cached), dollars(p.Out))
	if p.Source == "table" {
		return text + " (built in, " + p.AsOf + ")"
	}
	return text + " (set)"
}

// dollars writes a price with as many digits as it has.
func dollars(usd float64) string { return "$" + strconv.FormatFloat(usd, 'f', -1, 64) }
