package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/command"
	"nize/daemon/api"
	"nize/store"
)

func alertsCommand(a *command.App) *cli.Command {
	return command.Group("alerts", "manage incidents and alert destinations",
		a.Command(command.Leaf{Name: "list", Usage: "list open incidents and the command that fixes each", Run: alertsList,
			Flags: []cli.Flag{&cli.BoolFlag{Name: "all", Usage: "include incidents that have ended"}}}),
		a.Command(command.Leaf{Name: "ack", Args: "ID", Usage: "acknowledge an incident", More: "It stays listed until it ends.", IDs: incidentIDs, Run: alertsAck}),
		a.Command(command.Leaf{Name: "test", Usage: "send a test message to alerts.to", Run: alertsTest,
			More: "To set where alerts go: nizectl config set alerts.to https://…\n" +
				"To sign them: (printf whsec_; head -c 32 /dev/urandom | base64) | nizectl credentials add alerts WEBHOOK_SECRET"}),
	)
}

func incidentIDs(ctx context.Context, c *api.Client) ([]command.ID, error) {
	list, err := api.ListAlerts.Call(ctx, c, api.ListAlertsRequest{All: false})
	var ids []command.ID
	for _, i := range list.Items {
		if i.State == store.IncidentOpen {
			ids = append(ids, command.ID{ID: i.ID, About: i.Title.String()})
		}
	}
	return ids, err
}

func alertsList(ctx context.Context, c *command.Call) error {
	list, err := api.ListAlerts.Call(ctx, c.API, api.ListAlertsRequest{All: c.Cmd.Bool("all")})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(command.Items(list.Items))
	}
	t := c.Table("ID", "STATE", "SINCE", "WHAT", "TO DO").Text(3)
	t.State = 1
	for _, i := range list.Items {
		since := i.Opened
		if !i.Active() {
			since = i.Recovered
		}
		cure := i.Cure
		if !i.Active() {
			cure = "-"
		}
		t.Row(i.ID, string(i.State), c.When(since), i.Title.String(), cure)
	}
	t.Print("no incident")
	for _, i := range list.Items {
		if i.Active() && i.Delivery.Error != "" {
			c.Note("warning: the message about %s was not delivered: %s", i.ID, i.Delivery.Error)
		}
	}
	return nil
}

func alertsAck(ctx context.Context, c *command.Call) error {
	i, err := api.AckAlert.Call(ctx, c.API, api.AckAlertRequest{ID: c.Arg(0)})
	if err != nil {
		return err
	}
	return c.Report(i, "noted that you have seen it: %s", i.Title.String())
}

func alertsTest(ctx context.Context, c *command.Call) error {
	done := c.Busy("asking alerts.to…")
	said, err := api.TestAlert.Call(ctx, c.API, api.Empty{})
	done()
	if err != nil {
		return err
	}
	signed := "unsigned"
	if said.Signed {
		signed = "signed"
	}
	return c.Report(said, "%s", fmt.Sprintf("%s took the test message %s (%s)", said.To, said.ID, signed))
}
