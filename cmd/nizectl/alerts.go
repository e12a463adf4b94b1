package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v3"

	"nize/daemon/api"
	"nize/store"
)

func (a *app) alerts() *cli.Command {
	return group("alerts", "incidents, and who is told of them",
		a.command(leaf{name: "list", usage: "list the incidents that are open, and the command that fixes each", run: alertsList,
			flags: []cli.Flag{&cli.BoolFlag{Name: "all", Usage: "those that are over too"}}}),
		a.command(leaf{name: "ack", args: "ID", usage: "say that somebody has seen an incident; it stays until it is over", names: incidentIDs, run: alertsAck}),
		a.command(leaf{name: "test", usage: "send a test message to alerts.to", run: alertsTest,
			more: "To set where alerts go: nizectl config set alerts.to https://…\n" +
				"To sign them: (printf whsec_; head -c 32 /dev/urandom | base64) | nizectl credentials set alerts WEBHOOK_SECRET"}),
	)
}

func incidentIDs(ctx context.Context, c *api.Client) ([]string, error) {
	list, err := api.ListAlerts.Call(ctx, c, api.ListAlertsRequest{All: false})
	var ids []string
	for _, i := range list.Items {
		if i.State == store.IncidentOpen {
			ids = append(ids, i.ID)
		}
	}
	return ids, err
}

func alertsList(ctx context.Context, c *call) error {
	list, err := api.ListAlerts.Call(ctx, c.api, api.ListAlertsRequest{All: c.cmd.Bool("all")})
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(items(list.Items))
	}
	t := c.table("ID", "STATE", "SINCE", "WHAT", "TO DO").text(3)
	t.state = 1
	for _, i := range list.Items {
		since := i.Opened
		if !i.Active() {
			since = i.Recovered
		}
		t.row(i.ID, string(i.State), c.when(since), clip(i.Title, 60), i.Cure)
	}
	t.print("no incident")
	for _, i := range list.Items {
		if i.Active() && i.Delivery.Error != "" {
			c.note("warning: the message about %s was not delivered: %s", i.ID, i.Delivery.Error)
		}
	}
	return nil
}

func alertsAck(ctx context.Context, c *call) error {
	i, err := api.AckAlert.Call(ctx, c.api, api.AckAlertRequest{ID: c.arg(0)})
	if err != nil {
		return err
	}
	return c.report(i, "noted that you have seen it: %s", i.Title)
}

func alertsTest(ctx context.Context, c *call) error {
	done := c.busy("asking alerts.to…")
	said, err := api.TestAlert.Call(ctx, c.api, api.Empty{})
	done()
	if err != nil {
		return err
	}
	signed := "unsigned"
	if said.Signed {
		signed = "signed"
	}
	return c.report(said, "%s", fmt.Sprintf("%s took the test message %s (%s)", said.To, said.ID, signed))
}
