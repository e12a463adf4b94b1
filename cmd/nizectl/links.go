package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/command"
	"nize/cmd/nizectl/display"
	"nize/daemon/api"
	"nize/store"
)

func usersLinksCommands(a *command.App) []*cli.Command {
	return []*cli.Command{
		a.Command(command.Leaf{Name: "link", Args: "[CODE]", Usage: "create a code, or redeem one to link accounts", Run: usersLink,
			More: "Create a code where you are signed in as one user, and redeem it where you are signed in as the other; the accounts are then joined.",
			Flags: []cli.Flag{
				&cli.StringFlag{Name: "user", Usage: "create a code for this person (admins only)"},
				&cli.StringFlag{Name: "role", Usage: "the role of the joined user, admin or member (admins only; default: the lower of the two)"},
				command.YesFlag(),
			}}),
		a.Command(command.Leaf{Name: "unlink", Args: "USER IDENTITY", Usage: "remove an identity from a person", Names: command.UserNames, Run: usersUnlink, Flags: []cli.Flag{command.YesFlag()}}),
	}
}

func usersLink(ctx context.Context, c *command.Call) error {
	if len(c.Args) == 0 {
		return makeLink(ctx, c)
	}
	if c.Cmd.IsSet("user") {
		return command.Usagef("--user is for creating a code; with a CODE you are joined yourself")
	}
	use := api.UseLinkRequest{Code: api.NewSecret(c.Arg(0))}
	if c.Cmd.IsSet("role") {
		role, err := roleOf(c.Cmd.String("role"))
		if err != nil {
			return err
		}
		use.Role = role
	}
	who, err := api.ShowLink.Call(ctx, c.API, use)
	if err != nil {
		return err
	}
	if err := c.Confirm("Join %s with you, %s? You stay, and come in as either.", described(who.Other), described(who.You)); err != nil {
		return err
	}
	j, err := api.Join.Call(ctx, c.API, use)
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(j)
	}
	c.Note("%s is %s with %s", j.User.Name, j.User.Role, strings.Join(j.User.Identities, ", "))
	c.Note("the standing answers of %s were dropped and its waiting calls cancelled; the rest is yours", j.Absorbed.Name)
	if len(j.Renamed) > 0 {
		c.Note("tokens with names that you already had were renamed to %s", strings.Join(j.Renamed, ", "))
	}
	return nil
}

// described returns the name and identities by which others know a user.
func described(u store.User) string {
	return fmt.Sprintf("%s (%s, %s)", u.Name, u.Role, strings.Join(u.Identities, ", "))
}

func makeLink(ctx context.Context, c *command.Call) error {
	if c.Cmd.IsSet("role") {
		return command.Usagef("--role is only valid with a CODE")
	}
	code, err := api.MakeLink.Call(ctx, c.API, api.MakeLinkRequest{User: c.Cmd.String("user")})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(code)
	}
	c.Line("%s", display.Clean(code.Code.Reveal()))
	c.Note("valid once, until %s: redeeming it with nizectl users link CODE joins an account with %s", c.When(code.Expires), code.User.Name)
	return nil
}

func usersUnlink(ctx context.Context, c *command.Call) error {
	if err := c.Confirm("Remove %s from %s? A person who returns with it will be a new user.", c.Arg(1), c.Arg(0)); err != nil {
		return err
	}
	u, err := api.Unlink.Call(ctx, c.API, api.UnlinkRequest{ID: c.Arg(0), Identity: c.Arg(1)})
	if err != nil {
		return err
	}
	return c.Report(u, "%s has %s", u.Name, strings.Join(u.Identities, ", "))
}
