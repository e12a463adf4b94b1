package main

import (
	"context"
	"strings"

	"github.com/urfave/cli/v3"
)

func (a *app) users() *cli.Command {
	return group("users", "the people that nize knows",
		a.command(leaf{name: "list", usage: "list people, their roles and identities", run: func(ctx context.Context, c *call) error {
			list, err := c.api.Users(ctx)
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(items(list))
			}
			t := c.table("NAME", "ROLE", "STATE", "IDENTITIES", "ID")
			t.state = 2
			for _, u := range list {
				t.row(u.Name, string(u.Role), string(u.State), strings.Join(u.Identities, ", "), u.ID)
			}
			t.print("nobody yet")
			return nil
		}}))
}
