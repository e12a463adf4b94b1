package main

import (
	"context"
	"strings"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/command"
	"nize/daemon/api"
	"nize/store"
)

func groupsCommand(a *command.App) *cli.Command {
	return command.Group("groups", "manage groups of people to share servers with",
		a.Command(command.Leaf{Name: "list", Usage: "list groups, their members and what they may use", Run: groupsList}),
		a.Command(command.Leaf{Name: "show", Args: "GROUP", Usage: "show a group", Names: groupNames, Run: groupsShow}),
		a.Command(command.Leaf{Name: "add", Args: "GROUP", Usage: "create a group",
			Flags: []cli.Flag{usersFlag("members", "in the group"),
				&cli.StringFlag{Name: "slack-usergroup", Usage: "`GROUP`, a Slack user group by id or handle, whose members are the group's"},
				&cli.StringFlag{Name: "discord-role", Usage: "`ROLE`, a role of the Discord server by id or name; people with the role are its members"},
				&cli.StringFlag{Name: "oidc-group", Usage: "`NAME` of a group at the identity provider, whose members as of their last sign-in are the group's"}}, Run: groupsAdd}),
		a.Command(command.Leaf{Name: "edit", Args: "GROUP", Usage: "add people to a group and remove them", Names: groupNames,
			Flags: []cli.Flag{usersFlag("add", "to add"), usersFlag("remove", "to remove")}, Run: groupsEdit}),
		a.Command(command.Leaf{Name: "remove", Args: "GROUP", Usage: "remove a group that nothing is shared with", Names: groupNames,
			Flags: []cli.Flag{command.YesFlag()}, Run: groupsRemove}),
	)
}

func usersFlag(name, usage string) cli.Flag {
	return &cli.StringSliceFlag{Name: name, Usage: "`USERS` " + usage + ", comma-separated; may be repeated"}
}

// usersOf splits the value of a usersFlag at commas, which names don't contain.
func usersOf(c *command.Call, flag string) []string {
	var out []string
	for _, value := range c.Cmd.StringSlice(flag) {
		for who := range strings.SplitSeq(value, ",") {
			if who = strings.TrimSpace(who); who != "" {
				out = append(out, who)
			}
		}
	}
	return out
}

func groupNames(ctx context.Context, c *api.Client) ([]string, error) {
	list, err := api.ListGroups.Call(ctx, c, api.Empty{})
	return command.Each(list.Items, func(g api.GroupView) string { return g.Name }), err
}

func memberNames(g api.GroupView) string {
	return strings.Join(command.Each(g.Members, func(m api.GroupMember) string { return m.Name }), ", ")
}

func groupsList(ctx context.Context, c *command.Call) error {
	list, err := api.ListGroups.Call(ctx, c.API, api.Empty{})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(command.Items(list.Items))
	}
	t := c.Table("GROUP", "MEMBERS", "SERVERS", "SOURCE", "LOOKED", "ERROR").Text(5)
	for _, g := range list.Items {
		looked := ""
		if g.Source != "" && !strings.HasPrefix(g.Source, store.OIDCSource) {
			looked = c.When(g.Looked)
		}
		t.Row(g.Name, memberNames(g), strings.Join(g.Servers, ", "), groupSource(g), looked, g.Error)
	}
	t.Print("no groups yet: nizectl groups add GROUP --members USER,USER or --slack-usergroup HANDLE")
	return nil
}

// groupSource returns where a group's members come from, "" for a list.
func groupSource(g api.GroupView) string {
	if g.Source == "" {
		return ""
	}
	if strings.HasPrefix(g.Source, store.OIDCSource) {
		return "oidc " + g.Handle
	}
	surface, _, _ := strings.Cut(g.Source, ":")
	return surface + " @" + g.Handle
}

func groupsShow(ctx context.Context, c *command.Call) error {
	g, err := api.GetGroup.Call(ctx, c.API, api.GetGroupRequest{Name: c.Arg(0)})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(g)
	}
	c.Field("group", g.Name)
	c.Field("made", c.When(g.Created))
	c.Field("servers", strings.Join(g.Servers, ", "))
	if g.Source != "" {
		c.Field("source", groupSource(g)+" ("+g.Source+")")
		if !strings.HasPrefix(g.Source, store.OIDCSource) {
			c.Field("looked", c.When(g.Looked))
		}
		if g.Error != "" {
			c.Field("error", g.Error)
		}
	}
	t := c.Table("MEMBER", "STATE", "ID")
	t.State = 1
	for _, m := range g.Members {
		t.Row(m.Name, string(m.State), m.ID)
	}
	empty := "it has no members: nizectl groups edit " + g.Name + " --add USER"
	if g.Source != "" {
		empty = "none of its members is known to nize yet; they are from their first message on"
	}
	if strings.HasPrefix(g.Source, store.OIDCSource) {
		empty = "none of its members has signed in yet"
	}
	t.Print(empty)
	return nil
}

func groupsAdd(ctx context.Context, c *command.Call) error {
	req := api.AddGroupRequest{Name: c.Arg(0), Members: usersOf(c, "members"), Usergroup: c.Cmd.String("slack-usergroup")}
	if role := c.Cmd.String("discord-role"); role != "" {
		if req.Usergroup != "" {
			return command.Usagef("groups add takes --slack-usergroup or --discord-role, not both: make two groups")
		}
		req.Usergroup = string(store.OnDiscord) + ":" + role
	}
	if len(req.Members) > 0 && req.Usergroup != "" {
		return command.Usagef("groups add takes --members, --slack-usergroup or --discord-role, not both: make two groups")
	}
	req.OIDCGroup = c.Cmd.String("oidc-group")
	if req.OIDCGroup != "" && (len(req.Members) > 0 || req.Usergroup != "") {
		return command.Usagef("groups add takes --oidc-group or another source of members, not both: make two groups")
	}
	g, err := api.AddGroup.Call(ctx, c.API, req)
	if err != nil {
		return err
	}
	if g.Source != "" {
		return c.Report(g, "%s are those of %s, %d of them known to nize now; to share with it: nizectl servers share NAME --with group:%s", g.Name, groupSource(g), len(g.Members), g.Name)
	}
	return c.Report(g, "%s has %s; to share with it: nizectl servers share NAME --with group:%s", g.Name, command.Count(len(g.Members), "member"), g.Name)
}

func groupsEdit(ctx context.Context, c *command.Call) error {
	p := api.PatchGroupRequest{Name: c.Arg(0), Add: usersOf(c, "add"), Remove: usersOf(c, "remove")}
	if len(p.Add)+len(p.Remove) == 0 {
		return command.Usagef("groups edit needs --add or --remove")
	}
	g, err := api.PatchGroup.Call(ctx, c.API, p)
	if err != nil {
		return err
	}
	return c.Report(g, "%s has %s: %s", g.Name, command.Count(len(g.Members), "member"), memberNames(g))
}

func groupsRemove(ctx context.Context, c *command.Call) error {
	if err := c.Confirm("Remove the group %s?", c.Arg(0)); err != nil {
		return err
	}
	if _, err := api.RemoveGroup.Call(ctx, c.API, api.RemoveGroupRequest{Name: c.Arg(0)}); err != nil {
		return err
	}
	return c.Removed("group", c.Arg(0))
}
