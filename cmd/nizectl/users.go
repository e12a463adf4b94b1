package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/command"
	"nize/daemon/api"
	"nize/store"
)

func usersCommand(a *command.App) *cli.Command {
	users := []*cli.Command{
		a.Command(command.Leaf{Name: "list", Usage: "list people, their roles and identities", Run: usersList}),
		a.Command(command.Leaf{Name: "show", Args: "USER", Usage: "show a person, their identities, tokens and hooks", Names: command.UserNames, Run: usersShow}),
		a.Command(command.Leaf{Name: "add", Args: "NAME", Usage: "add a person who is in no chat yet",
			Flags: []cli.Flag{&cli.StringFlag{Name: "role", Usage: "admin or member", Value: string(store.Member)}}, Run: usersAdd}),
		a.Command(command.Leaf{Name: "edit", Args: "USER", Usage: "change a person's name or email address", Names: command.UserNames, Flags: []cli.Flag{
			&cli.StringFlag{Name: "display-name", Usage: "`NAME` that people see"},
			&cli.StringFlag{Name: "email", Usage: "`ADDRESS` of the person, seen by admins; with oidc.link_by_email it links their sign-in; an empty one removes it"},
		}, Run: usersEdit}),
		a.Command(command.Leaf{Name: "role", Args: "USER ROLE", Usage: "make a person an admin or a member", Names: command.UserNames, Run: usersRole}),
		a.Command(command.Leaf{Name: "disable", Args: "USER", Usage: "disable a person, their sessions, tokens and pending calls", Names: command.UserNames,
			Flags: []cli.Flag{command.YesFlag()}, Run: usersDisable}),
		a.Command(command.Leaf{Name: "enable", Args: "USER", Usage: "enable a disabled person again", Names: command.UserNames, Run: usersEnable}),
	}
	users = append(users, usersLinksCommands(a)...)
	return command.Group("users", "manage people, roles and linked accounts", append(users, usersLeaversCommands(a)...)...)
}

func usersList(ctx context.Context, c *command.Call) error {
	list, err := api.ListUsers.Call(ctx, c.API, api.Empty{})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(command.Items(list.Items))
	}
	t := c.Table("NAME", "ROLE", "STATE", "IDENTITIES", "ID")
	t.State = 2
	for _, u := range list.Items {
		t.Row(u.Name, string(u.Role), string(u.State), strings.Join(u.Identities, ", "), u.ID)
	}
	t.Print("nobody yet")
	return nil
}

func usersShow(ctx context.Context, c *command.Call) error {
	u, err := api.GetUser.Call(ctx, c.API, api.GetUserRequest{ID: c.Arg(0)})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(u)
	}
	c.Field("name", u.Name)
	if u.Email != "" {
		c.Field("email", u.Email)
	}
	c.Field("role", string(u.Role))
	c.Field("state", string(u.State))
	c.Field("identities", strings.Join(u.Identities, ", "))
	c.Field("id", u.ID)
	c.Field("known since", c.When(u.Created))
	c.Field("teams", strings.Join(u.Teams, ", "))
	c.Field("groups", strings.Join(u.Groups, ", "))
	c.Field("tokens", strings.Join(u.Tokens, ", "))
	c.Field("waiting", command.Count(u.Waiting, "call"))
	c.Field("grants", command.Count(u.Grants, "standing answer"))
	c.Field("credentials", fmt.Sprint(u.Credentials))
	return nil
}

func usersAdd(ctx context.Context, c *command.Call) error {
	role, err := roleOf(c.Cmd.String("role"))
	if err != nil {
		return err
	}
	u, err := api.AddUser.Call(ctx, c.API, api.AddUserRequest{Name: c.Arg(0), Role: role})
	if err != nil {
		return err
	}
	return c.Report(u, "%s added as %s; for a token: nizectl tokens add NAME --user %s", u.Name, u.Role, u.Name)
}

func usersEdit(ctx context.Context, c *command.Call) error {
	req := api.PatchUserRequest{ID: c.Arg(0)}
	for flag, field := range map[string]**string{"display-name": &req.Name, "email": &req.Email} {
		if c.Cmd.IsSet(flag) {
			value := c.Cmd.String(flag)
			*field = &value
		}
	}
	if req.Name == nil && req.Email == nil {
		return command.Usagef("say what to change: --display-name or --email")
	}
	u, err := api.PatchUser.Call(ctx, c.API, req)
	if err != nil {
		return err
	}
	return c.Report(u, "%s is changed", u.Name)
}

func roleOf(text string) (store.Role, error) {
	role := store.Role(text)
	if role != store.Admin && role != store.Member {
		return "", command.Usagef("role %s: want admin or member", text)
	}
	return role, nil
}

func usersRole(ctx context.Context, c *command.Call) error {
	role, err := roleOf(c.Arg(1))
	if err != nil {
		return err
	}
	u, err := api.PatchUser.Call(ctx, c.API, api.PatchUserRequest{ID: c.Arg(0), Role: &role})
	if err != nil {
		return err
	}
	if err := c.Report(u, "%s is %s", u.Name, u.Role); err != nil || c.JSON {
		return err
	}
	noteLacking(c, u.Lacking)
	return nil
}

func usersDisable(ctx context.Context, c *command.Call) error {
	was, err := api.GetUser.Call(ctx, c.API, api.GetUserRequest{ID: c.Arg(0)})
	if err != nil {
		return err
	}
	ends := endsOf(was)
	if err := c.Confirm("Disable %s, and end %s?", was.Name, ends); err != nil {
		return err
	}
	state := store.Disabled
	u, err := api.PatchUser.Call(ctx, c.API, api.PatchUserRequest{ID: was.ID, State: &state})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(u)
	}
	c.Note("%s is disabled; ended: %s", u.Name, ends)
	for _, g := range u.Emptied {
		c.Note("the group %s has no members left: nizectl groups edit %s --add USER", g, g)
	}
	noteLacking(c, u.Lacking)
	return nil
}

// noteLacking prints whose calls no one, or too few people, could approve after a change.
func noteLacking(c *command.Call, names []string) {
	for _, name := range names {
		if name == "approvals.approvers" {
			c.Note("too few are left to approve calls: nizectl config set approvals.approvers WHO")
			continue
		}
		if strings.Contains(name, ":") { // a server's name has no colon
			c.Note("too few are left to approve calls in the channel %s: nizectl bots channels add %s --approvers WHO", name, name)
			continue
		}
		c.Note("too few are left to approve calls of the server %s: nizectl servers edit %s --approvers WHO", name, name)
	}
}

// endsOf returns what acts in a person's name.
func endsOf(u api.UserView) string {
	return fmt.Sprintf("%s, %s, %s, %s and %s", command.Count(len(u.Tokens), "token"), command.Count(u.Waiting, "waiting call"),
		command.Count(u.Grants, "standing answer"), command.Count(u.Credentials, "personal credential"), command.Count(len(u.Groups), "group membership"))
}

func usersEnable(ctx context.Context, c *command.Call) error {
	state := store.Active
	u, err := api.PatchUser.Call(ctx, c.API, api.PatchUserRequest{ID: c.Arg(0), State: &state})
	if err != nil {
		return err
	}
	return c.Report(u, "%s is active again; what was revoked stays revoked", u.Name)
}
