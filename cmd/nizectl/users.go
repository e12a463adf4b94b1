package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"

	"nize/daemon/api"
	"nize/store"
)

func (a *app) users() *cli.Command {
	users := []*cli.Command{
		a.command(leaf{name: "list", usage: "list people, their roles and identities", run: usersList}),
		a.command(leaf{name: "show", args: "USER", usage: "show a person and what acts in their name", names: userNames, run: usersShow}),
		a.command(leaf{name: "add", args: "NAME", usage: "name a person who is in no chat yet, to make tokens for",
			flags: []cli.Flag{&cli.StringFlag{Name: "role", Usage: "admin or member", Value: string(store.Member)}}, run: usersAdd}),
		a.command(leaf{name: "role", args: "USER ROLE", usage: "make a person an admin or a member", names: userNames, run: usersRole}),
		a.command(leaf{name: "disable", args: "USER", usage: "shut a person out, and end what acts in their name", names: userNames,
			flags: []cli.Flag{yesFlag()}, run: usersDisable}),
		a.command(leaf{name: "enable", args: "USER", usage: "let a disabled person in again", names: userNames, run: usersEnable}),
	}
	users = append(users, a.usersLinks()...)
	return group("users", "the people that nize knows", append(users, a.usersLeavers()...)...)
}

func usersList(ctx context.Context, c *call) error {
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
}

func usersShow(ctx context.Context, c *call) error {
	u, err := c.api.User(ctx, c.arg(0))
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(u)
	}
	c.field("name", u.Name)
	c.field("role", string(u.Role))
	c.field("state", string(u.State))
	c.field("identities", strings.Join(u.Identities, ", "))
	c.field("id", u.ID)
	c.field("known since", c.when(u.Created))
	c.field("teams", strings.Join(u.Teams, ", "))
	c.field("groups", strings.Join(u.Groups, ", "))
	c.field("tokens", strings.Join(u.Tokens, ", "))
	c.field("waiting", count(u.Waiting, "call"))
	c.field("grants", count(u.Grants, "standing answer"))
	c.field("credentials", fmt.Sprint(u.Credentials))
	return nil
}

func usersAdd(ctx context.Context, c *call) error {
	role, err := roleOf(c.cmd.String("role"))
	if err != nil {
		return err
	}
	u, err := c.api.AddUser(ctx, api.AddUser{Name: c.arg(0), Role: role})
	if err != nil {
		return err
	}
	return c.report(u, "%s added as %s; for a token: nizectl tokens create NAME --user %s", u.Name, u.Role, u.Name)
}

func roleOf(text string) (store.Role, error) {
	role := store.Role(text)
	if role != store.Admin && role != store.Member {
		return "", usagef("role %s: want admin or member", text)
	}
	return role, nil
}

func usersRole(ctx context.Context, c *call) error {
	role, err := roleOf(c.arg(1))
	if err != nil {
		return err
	}
	u, err := c.api.PatchUser(ctx, c.arg(0), api.PatchUser{Role: &role})
	if err != nil {
		return err
	}
	if err := c.report(u, "%s is %s", u.Name, u.Role); err != nil || c.json {
		return err
	}
	c.noteLacking(u.Lacking)
	return nil
}

func usersDisable(ctx context.Context, c *call) error {
	was, err := c.api.User(ctx, c.arg(0))
	if err != nil {
		return err
	}
	ends := endsOf(was)
	if err := c.confirm("Disable %s, and end %s?", was.Name, ends); err != nil {
		return err
	}
	state := store.Disabled
	u, err := c.api.PatchUser(ctx, was.ID, api.PatchUser{State: &state})
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(u)
	}
	c.note("%s is disabled; ended: %s", u.Name, ends)
	for _, g := range u.Emptied {
		c.note("nobody is left in the group %s: nizectl groups edit %s --add USER", g, g)
	}
	c.noteLacking(u.Lacking)
	return nil
}

// noteLacking says whose calls nobody, or too few, could approve after a change.
func (c *call) noteLacking(names []string) {
	for _, name := range names {
		if name == "approvals.approvers" {
			c.note("too few are left to approve calls: nizectl config set approvals.approvers WHO")
			continue
		}
		if strings.Contains(name, ":") { // no server's name has one
			c.note("too few are left to approve calls in the channel %s: nizectl bots channels set %s --approvers WHO", name, name)
			continue
		}
		c.note("too few are left to approve calls of the server %s: nizectl servers edit %s --approvers WHO", name, name)
	}
}

// endsOf is what acts in a person's name.
func endsOf(u api.UserView) string {
	return fmt.Sprintf("%s, %s, %s, %s and %s", count(len(u.Tokens), "token"), count(u.Waiting, "waiting call"),
		count(u.Grants, "standing answer"), count(u.Credentials, "personal credential"), count(len(u.Groups), "group membership"))
}

func usersEnable(ctx context.Context, c *call) error {
	state := store.Active
	u, err := c.api.PatchUser(ctx, c.arg(0), api.PatchUser{State: &state})
	if err != nil {
		return err
	}
	return c.report(u, "%s is active again; what was revoked stays revoked", u.Name)
}
