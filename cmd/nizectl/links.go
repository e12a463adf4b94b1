package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/display"
	"nize/daemon/api"
	"nize/store"
)

func (a *app) usersLinks() []*cli.Command {
	return []*cli.Command{
		a.command(leaf{name: "link", args: "[CODE]", usage: "make a code, or join your identities with whose code it is", run: usersLink,
			more: "Make a code where you come in as one user, and give it where you come in as the other, who then is both.",
			flags: []cli.Flag{
				&cli.StringFlag{Name: "user", Usage: "make a code of this person (admins)"},
				&cli.StringFlag{Name: "role", Usage: "admin or member, for both together (admins; default: the lower of the two)"},
				yesFlag(),
			}}),
		a.command(leaf{name: "unlink", args: "USER IDENTITY", usage: "take an identity from a person", names: userNames, run: usersUnlink, flags: []cli.Flag{yesFlag()}}),
	}
}

func usersLink(ctx context.Context, c *call) error {
	if len(c.args) == 0 {
		return c.makeLink(ctx)
	}
	if c.cmd.IsSet("user") {
		return usagef("--user makes a code; with a CODE it is you who is joined")
	}
	use := api.UseLink{Code: api.NewSecret(c.arg(0))}
	if c.cmd.IsSet("role") {
		role, err := roleOf(c.cmd.String("role"))
		if err != nil {
			return err
		}
		use.Role = role
	}
	who, err := c.api.LookAtLink(ctx, use)
	if err != nil {
		return err
	}
	if err := c.confirm("Join %s with you, %s? You stay, and come in as either.", described(who.Other), described(who.You)); err != nil {
		return err
	}
	j, err := c.api.Join(ctx, use)
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(j)
	}
	c.note("%s is %s with %s", j.User.Name, j.User.Role, strings.Join(j.User.Identities, ", "))
	c.note("the standing answers of %s were dropped and its waiting calls cancelled; the rest is yours", j.Absorbed.Name)
	if len(j.Renamed) > 0 {
		c.note("tokens whose name you had already are now %s", strings.Join(j.Renamed, ", "))
	}
	return nil
}

// described is a user as somebody else can tell whom they mean.
func described(u store.User) string {
	return fmt.Sprintf("%s (%s, %s)", u.Name, u.Role, strings.Join(u.Identities, ", "))
}

func (c *call) makeLink(ctx context.Context) error {
	if c.cmd.IsSet("role") {
		return usagef("--role goes with the CODE that joins")
	}
	code, err := c.api.MakeLink(ctx, api.MakeLink{User: c.cmd.String("user")})
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(code)
	}
	c.line("%s", display.Clean(code.Code.Reveal()))
	c.note("good once, until %s: who gives it with nizectl users link CODE becomes %s too", c.when(code.Expires), code.User.Name)
	return nil
}

func usersUnlink(ctx context.Context, c *call) error {
	if err := c.confirm("Take %s from %s? Who comes with it then is somebody new.", c.arg(1), c.arg(0)); err != nil {
		return err
	}
	u, err := c.api.Unlink(ctx, c.arg(0), c.arg(1))
	if err != nil {
		return err
	}
	return c.report(u, "%s has %s", u.Name, strings.Join(u.Identities, ", "))
}
