package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/command"
	"nize/cmd/nizectl/display"
	"nize/daemon/api"
	"nize/store"
)

func modelsCommand(a *command.App) *cli.Command {
	return command.Group("models", "manage model names, fallbacks and prices",
		a.Command(command.Leaf{Name: "list", Usage: "list model names, or what a provider offers", Run: modelsList, Flags: []cli.Flag{
			&cli.StringFlag{Name: "provider", Usage: "list the models that this `PROVIDER` offers"},
		}}),
		a.Command(command.Leaf{Name: "add", Aliases: []string{"set"}, Args: "LOGICAL PROVIDER/MODEL", Usage: "map a name to a provider's model", Names: command.ModelNames, Run: modelsSet, Flags: []cli.Flag{whoFlag(), untriedFlag(),
			&cli.IntFlag{Name: "window", Usage: "`TOKENS` that the model accepts, prompt and answer together (default: from the built-in table); 0 resets it"}},
			More: "nizectl models add smart openai/MODEL"}),
		a.Command(command.Leaf{Name: "default", Args: "LOGICAL", Usage: "make a name the default", Names: command.ModelNames, Run: modelsDefault}),
		a.Command(command.Leaf{Name: "fallback", Args: "LOGICAL [PROVIDER/MODEL...]", Usage: "set the fallback models, in order", More: "Without a model it clears them.", Names: command.ModelNames, Run: modelsFallback, Flags: []cli.Flag{untriedFlag()}}),
		a.Command(command.Leaf{Name: "price", Args: "PROVIDER/MODEL", Usage: "show or set what a model costs", Names: modelTargets, Run: modelsPrice,
			More: "In US dollars per million tokens.\nnizectl models price openai/MODEL --in 1.25 --cached 0.125 --out 10",
			Flags: []cli.Flag{
				&cli.FloatFlag{Name: "in", Usage: "`USD` for the prompt"},
				&cli.FloatFlag{Name: "out", Usage: "`USD` for the answer, including reasoning"},
				&cli.FloatFlag{Name: "cached", Usage: "`USD` for the cached part of the prompt (default: as --in)"},
				&cli.BoolFlag{Name: "unset", Usage: "delete the price that was set"},
			}}),
		a.Command(command.Leaf{Name: "remove", Args: "LOGICAL", Usage: "remove a name", Names: command.ModelNames, Run: modelsRemove, Flags: []cli.Flag{command.YesFlag()}}),
	)
}

// modelTargets completes the targets of names.
func modelTargets(ctx context.Context, c *api.Client) ([]string, error) {
	list, err := api.ListModels.Call(ctx, c, api.Empty{})
	var targets []string
	for _, m := range list.Items {
		targets = append(append(targets, m.Target), m.Fallbacks...)
	}
	slices.Sort(targets)
	return slices.Compact(targets), err
}

// untriedFlag accepts a model that the provider does not list.
func untriedFlag() cli.Flag {
	return &cli.BoolFlag{Name: "force", Usage: "even if the provider does not list the model"}
}

// offeredModels lists the models of a provider.
func offeredModels(ctx context.Context, c *command.Call, provider string) error {
	done := c.Busy("asking %s …", provider)
	test, err := api.TestProvider.Call(ctx, c.API, api.ProviderRequest{Name: provider})
	done()
	if err != nil {
		return err
	}
	if !test.OK {
		return command.Failf(api.ExitFailed, "%s does not list its models: %s", provider, test.Error)
	}
	type offered struct {
		ID       string `json:"id"` // provider/model
		Provider string `json:"provider"`
		Model    string `json:"model"`
	}
	list := command.Each(test.Models, func(m string) offered { return offered{provider + "/" + m, provider, m} })
	if c.JSON {
		return c.PrintJSON(command.Items(list))
	}
	for _, m := range list {
		c.Line("%s", display.Clean(m.ID))
	}
	c.Note("%s offers %s; to use one: nizectl models add LOGICAL %s/MODEL", provider, command.Count(len(list), "model"), provider)
	return nil
}

func modelsList(ctx context.Context, c *command.Call) error {
	if provider := c.Cmd.String("provider"); provider != "" {
		return offeredModels(ctx, c, provider)
	}
	list, err := api.ListModels.Call(ctx, c.API, api.Empty{})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(command.Items(list.Items))
	}
	t := c.Table("NAME", "MODEL", "DEFAULT", "AVAILABLE", "IMAGES", "WINDOW", "PRICE", "FALLBACKS", "WHO", "FROM")
	for _, m := range list.Items {
		def, available, images := "", "yes", "no"
		if m.Images {
			images = "yes"
		}
		if m.Default {
			def = "default"
		}
		if !m.Available {
			available = "no: " + m.Why.String()
		}
		window := "unknown"
		if m.EffectiveWindow > 0 {
			window = strconv.Itoa(m.EffectiveWindow)
		}
		t.Row(m.Name, m.Target, def, available, images, window, priceText(m.Price), strings.Join(m.Fallbacks, ", "), strings.Join(m.Who, ", "), m.Origin)
	}
	t.Print("no model names, so the assistant is offline: nizectl models add smart PROVIDER/MODEL")
	return nil
}

// checkTarget returns an error if target is not provider/model.
func checkTarget(target string) error {
	provider, model, ok := strings.Cut(target, "/")
	if !ok || provider == "" || model == "" {
		return command.Usagef("%q is not a model: write PROVIDER/MODEL, such as openai/MODEL", target)
	}
	return nil
}

func modelsSet(ctx context.Context, c *command.Call) error {
	if err := checkTarget(c.Arg(1)); err != nil {
		return err
	}
	who, err := who(c)
	if err != nil {
		return err
	}
	req := api.SetModelRequest{Name: c.Arg(0), Target: c.Arg(1), Who: who, Force: c.Cmd.Bool("force")}
	if window := c.Cmd.Int("window"); c.Cmd.IsSet("window") {
		req.Window = &window
	}
	m, err := api.SetModel.Call(ctx, c.API, req)
	if err != nil {
		return err
	}
	sayUnchecked(c, m)
	return c.Report(m, "%s is %s%s", m.Name, m.Target, defaultWord(m.ModelName))
}

// sayUnchecked prints that the existence of the model could not be checked.
func sayUnchecked(c *command.Call, m api.MappedModel) {
	if m.Unchecked != "" && !c.JSON {
		c.Note("it could not be checked whether there is %s", m.Unchecked)
	}
}

func defaultWord(m store.ModelName) string {
	if m.Default {
		return ", the default"
	}
	return ""
}

func modelsDefault(ctx context.Context, c *command.Call) error {
	m, err := api.SetDefaultModel.Call(ctx, c.API, api.ModelRequest{Name: c.Arg(0)})
	if err != nil {
		return err
	}
	return c.Report(m, "%s (%s) is the default", m.Name, m.Target)
}

func modelsFallback(ctx context.Context, c *command.Call) error {
	for _, target := range c.Args[1:] {
		if err := checkTarget(target); err != nil {
			return err
		}
	}
	m, err := api.SetFallbacks.Call(ctx, c.API, api.SetFallbacksRequest{Name: c.Arg(0), Fallbacks: command.Items(c.Args[1:]), Force: c.Cmd.Bool("force")})
	if err != nil {
		return err
	}
	sayUnchecked(c, m)
	if len(m.Fallbacks) == 0 {
		return c.Report(m, "%s has no fallback", m.Name)
	}
	return c.Report(m, "%s falls back to %s", m.Name, strings.Join(m.Fallbacks, ", "))
}

func modelsRemove(ctx context.Context, c *command.Call) error {
	if err := c.Confirm("Remove the model name %s?", c.Arg(0)); err != nil {
		return err
	}
	if _, err := api.RemoveModel.Call(ctx, c.API, api.ModelRequest{Name: c.Arg(0)}); err != nil {
		return err
	}
	return c.Removed("model name", c.Arg(0))
}

func modelsPrice(ctx context.Context, c *command.Call) error {
	model := c.Arg(0)
	if err := checkTarget(model); err != nil {
		return err
	}
	in, out, cached, unset := c.Cmd.IsSet("in"), c.Cmd.IsSet("out"), c.Cmd.IsSet("cached"), c.Cmd.Bool("unset")
	var p api.PriceView
	var err error
	switch {
	case unset && (in || out || cached):
		return command.Usagef("give --unset or prices, not both")
	case unset:
		p, err = api.UnsetPrice.Call(ctx, c.API, api.PriceRequest{Model: model})
	case in && out:
		set := api.SetPriceRequest{Model: model, In: c.Cmd.Float("in"), Out: c.Cmd.Float("out")}
		if cached {
			usd := c.Cmd.Float("cached")
			set.Cached = &usd
		}
		p, err = api.SetPrice.Call(ctx, c.API, set)
	case in || out || cached:
		return command.Usagef("models price needs --in and --out, in US dollars per million tokens")
	default:
		p, err = api.GetPrice.Call(ctx, c.API, api.PriceRequest{Model: model})
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(p)
	}
	c.Line("%s", display.Clean(model+": "+priceText(p)))
	if p.Above != nil {
		c.Note("with more than %d tokens in the prompt: %s in, %s cached, %s out", p.Above.Tokens, dollars(p.Above.In), dollars(p.Above.Cached), dollars(p.Above.Out))
	}
	if !p.Known && p.Source == "" {
		c.Note("to set it: nizectl models price %s --in USD --out USD", model)
	}
	return nil
}

// priceText returns a price and its source.
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

// dollars formats a price with all its digits.
func dollars(usd float64) string { return "$" + strconv.FormatFloat(usd, 'f', -1, 64) }
