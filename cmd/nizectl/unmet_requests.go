package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/command"
	"nize/daemon/api"
	"nize/store"
)

// toolsWantedCommand lists unmet requests.
func toolsWantedCommand(a *command.App) *cli.Command {
	return a.Command(command.Leaf{Name: "wanted", Usage: "rank requests that no tool could serve", More: "It covers the last 30 days, without names.", Run: toolsWanted, Flags: []cli.Flag{
		&cli.StringFlag{Name: "forget", Usage: "delete the request that `TEXT` counts for, instead of listing"},
		&cli.BoolFlag{Name: "forget-all", Usage: "delete all requests, instead of listing"}, command.YesFlag(),
	}})
}

func toolsWanted(ctx context.Context, c *command.Call) error {
	text, all := c.Cmd.String("forget"), c.Cmd.Bool("forget-all")
	switch {
	case all && c.Cmd.IsSet("forget"):
		return command.Usagef("use --forget or --forget-all, not both")
	case c.Cmd.IsSet("forget") && len(store.RequestWords(text)) == 0:
		return command.Usagef("--forget %q: name a request", text)
	case all || c.Cmd.IsSet("forget"):
		return forgetUnmetRequests(ctx, c, text)
	}
	list, err := api.ListUnmetRequests.Call(ctx, c.API, api.Empty{})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(command.Items(list.Items))
	}
	t := c.Table("TIMES", "LAST", "REQUESTED").Numbers(0).Text(2)
	for _, w := range list.Items {
		t.Row(fmt.Sprint(w.Count), c.When(w.Last), w.Text)
	}
	t.Print("there are no unmet requests")
	return nil
}

func forgetUnmetRequests(ctx context.Context, c *command.Call, text string) error {
	if text == "" {
		if err := c.Confirm("Delete all unmet requests?"); err != nil {
			return err
		}
	}
	gone, err := api.ForgetUnmetRequests.Call(ctx, c.API, api.ForgetUnmetRequestsRequest{Text: text, All: text == ""})
	if err != nil {
		return err
	}
	return c.Report(gone, "forgotten: %d", gone.Forgotten)
}
