package main

import (
	"context"
	"strings"

	"github.com/urfave/cli/v3"

	"nize/daemon/api"
)

func (a *app) groups() *cli.Command {
	return group("groups", "people by name, to share servers with",
		a.command(leaf{name: "list", usage: "list groups, their members and what they may use", run: groupsList}),
		a.command(leaf{name: "show", args: "GROUP", usage: "show a group", names: groupNames, run: groupsShow}),
		a.command(leaf{name: "add", args: "GROUP", usage: "make a group",
			flags: []cli.Flag{usersFlag("members", "who is in it"),
				&cli.StringFlag{Name: "slack-usergroup", Usage: "`GROUP`, a Slack user group by id or handle: who is in it there is in it here"}}, run: groupsAdd}),
		a.command(leaf{name: "edit", args: "GROUP", usage: "take people in and out", names: groupNames,
			flags: []cli.Flag{usersFlag("add", "who comes in"), usersFlag("remove", "who goes")}, run: groupsEdit}),
		a.command(leaf{name: "remove", args: "GROUP", usage: "remove a group with which nothing is shared", names: groupNames,
			flags: []cli.Flag{yesFlag()}, run: groupsRemove}),
	)
}

func usersFlag(name, usage string) cli.Flag {
	return &cli.StringSliceFlag{Name: name, Usage: "`USERS`, with commas: " + usage + "; may be repeated"}
}

// usersOf reads a flag of usersFlag: nobody has a comma in their name.
func (c *call) usersOf(flag string) []string {
	var out []string
	for _, value := range c.cmd.StringSlice(flag) {
		for who := range strings.SplitSeq(value, ",") {
			if who = strings.TrimSpace(who); who != "" {
				out = append(out, who)
			}
		}
	}
	return out
}

func groupNames(ctx context.Context, c *api.Client) ([]string, error) {
	items, err := c.Groups(ctx)
	return each(items, func(g api.GroupView) string { return g.Name }), err
}

func memberNames(g api.GroupView) string {
	return strings.Join(each(g.Members, func(m api.GroupMember) string { return m.Name }), ", ")
}

func groupsList(ctx context.Context, c *call) error {
	list, err := c.api.Groups(ctx)
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(items(list))
	}
	t := c.table("GROUP", "MEMBERS", "SERVERS", "SOURCE", "LOOKED", "ERROR").text(5)
	for _, g := range list {
		looked := ""
		if g.Source != "" {
			looked = c.when(g.Looked)
		}
		t.row(g.Name, memberNames(g), strings.Join(g.Servers, ", "), groupSource(g), looked, g.Error)
	}
	t.print("no groups yet: nizectl groups add GROUP --members USER,USER or --slack-usergroup HANDLE")
	return nil
}

// groupSource says where a group's members are kept, "" for here.
func groupSource(g api.GroupView) string {
	if g.Source == "" {
		return ""
	}
	surface, _, _ := strings.Cut(g.Source, ":")
	return surface + " @" + g.Handle
}

func groupsShow(ctx context.Context, c *call) error {
	g, err := c.api.Group(ctx, c.arg(0))
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(g)
	}
	c.field("group", g.Name)
	c.field("made", c.when(g.Created))
	c.field("servers", strings.Join(g.Servers, ", "))
	if g.Source != "" {
		c.field("source", groupSource(g)+" ("+g.Source+")")
		c.field("looked", c.when(g.Looked))
		if g.Error != "" {
			c.field("error", g.Error)
		}
	}
	t := c.table("MEMBER", "STATE", "ID")
	t.state = 1
	for _, m := range g.Members {
		t.row(m.Name, string(m.State), m.ID)
	}
	empty := "nobody is in it: nizectl groups edit " + g.Name + " --add USER"
	if g.Source != "" {
		empty = "nobody in it is known to nize: they are from their first message on"
	}
	t.print(empty)
	return nil
}

func groupsAdd(ctx context.Context, c *call) error {
	req := api.AddGroup{Name: c.arg(0), Members: c.usersOf("members"), SlackUsergroup: c.cmd.String("slack-usergroup")}
	if len(req.Members) > 0 && req.SlackUsergroup != "" {
		return usagef("groups add takes --members or --slack-usergroup, not both: make two groups")
	}
	g, err := c.api.AddGroup(ctx, req)
	if err != nil {
		return err
	}
	if g.Source != "" {
		return c.report(g, "%s are those of %s, %d of them known to nize now; to share with it: nizectl servers share NAME --with group:%s", g.Name, groupSource(g), len(g.Members), g.Name)
	}
	return c.report(g, "%s has %s; to share with it: nizectl servers share NAME --with group:%s", g.Name, count(len(g.Members), "member"), g.Name)
}

func groupsEdit(ctx context.Context, c *call) error {
	p := api.PatchGroup{Add: c.usersOf("add"), Remove: c.usersOf("remove")}
	if len(p.Add)+len(p.Remove) == 0 {
		return usagef("groups edit needs --add or --remove")
	}
	g, err := c.api.PatchGroup(ctx, c.arg(0), p)
	if err != nil {
		return err
	}
	return c.report(g, "%s has %s: %s", g.Name, count(len(g.Members), "member"), memberNames(g))
}

func groupsRemove(ctx context.Context, c *call) error {
	if err := c.confirm("Remove the group %s?", c.arg(0)); err != nil {
		return err
	}
	if err := c.api.RemoveGroup(ctx, c.arg(0)); err != nil {
		return err
	}
	return c.removed("group", c.arg(0))
}
