package main

import (
	"context"
	"strings"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/command"
	"nize/cmd/nizectl/display"
	"nize/daemon/api"
	"nize/store/project"
)

// projectsCommand is the group of commands.
func projectsCommand(a *command.App) *cli.Command {
	return command.Group("projects", "manage projects of programs, and their keys",
		a.Command(command.Leaf{Name: "add", Args: "PROJECT", Usage: "create a project", Run: projectsAdd, Flags: []cli.Flag{
			&cli.StringFlag{Name: "owner", Usage: "`USER` who owns it (default: you)"},
			usersFlag("members", "who may also act for it"),
			patternsFlag("unattended", "of tools that its rounds run without approval, for a request's own server only if the request sets require_approval never; a name alone is all tools of that server or server_label")}}),
		a.Command(command.Leaf{Name: "list", Usage: "list projects", Run: projectsList}),
		a.Command(command.Leaf{Name: "show", Args: "PROJECT", Usage: "show a project", Names: projectsNames, Run: projectsShow}),
		a.Command(command.Leaf{Name: "members", Args: "PROJECT", Usage: "list, add and remove members of a project", Names: projectsNames, Run: projectsMembers,
			Flags: []cli.Flag{usersFlag("add", "to add"), usersFlag("remove", "to remove")}}),
		a.Command(command.Leaf{Name: "unattended", Args: "PROJECT", Usage: "list, add and remove tools that run unattended", More: "Rounds of the project run them without approval.", Names: projectsNames, Run: projectsUnattended,
			Flags: []cli.Flag{patternsFlag("add", "to add"), patternsFlag("remove", "to remove")}}),
		a.Command(command.Leaf{Name: "remove", Args: "PROJECT", Usage: "remove a project and revoke its keys", Names: projectsNames, Run: projectsRemove,
			Flags: []cli.Flag{command.YesFlag()}}),
		command.Group("keys", "manage keys that programs send as x-api-key",
			a.Command(command.Leaf{Name: "add", Args: "PROJECT [NAME]", Usage: "create a key and print it once", More: "Without NAME it is called default.", Names: projectsNames, Run: projectsCreateKey}),
			a.Command(command.Leaf{Name: "list", Args: "PROJECT", Usage: "list the keys of a project", Names: projectsNames, Run: projectsListKeys}),
			a.Command(command.Leaf{Name: "revoke", Args: "PROJECT NAME", Usage: "revoke a key", Names: projectsNames, Run: projectsRevokeKey,
				Flags: []cli.Flag{command.YesFlag()}})))
}

func patternsFlag(name, usage string) cli.Flag {
	return &cli.StringSliceFlag{Name: name, Usage: "`PATTERNS`, server:tool or server:*, comma-separated, " + usage + "; may be repeated"}
}

func projectsUnattended(ctx context.Context, c *command.Call) error {
	req := api.PatchProjectRequest{Project: c.Arg(0), AddUnattended: usersOf(c, "add"), RemoveUnattended: usersOf(c, "remove")}
	if len(req.AddUnattended)+len(req.RemoveUnattended) == 0 {
		return projectsShow(ctx, c)
	}
	p, err := api.PatchProject.Call(ctx, c.API, req)
	if err != nil {
		return err
	}
	return projectsPrint(c, p)
}

func projectsNames(ctx context.Context, c *api.Client) ([]string, error) {
	list, err := api.ListProjects.Call(ctx, c, api.Empty{})
	return command.Each(list.Items, func(p api.ProjectView) string { return p.Name }), err
}

func projectsAdd(ctx context.Context, c *command.Call) error {
	p, err := api.AddProject.Call(ctx, c.API, api.AddProjectRequest{Name: c.Arg(0), Owner: c.Cmd.String("owner"), Members: usersOf(c, "members"), Unattended: usersOf(c, "unattended")})
	if err != nil {
		return err
	}
	if err := c.Report(p, "project %s made", p.Name); err != nil {
		return err
	}
	c.Note("its programs need a key: nizectl projects keys create %s; servers are shared with it by nizectl servers share SERVER --with project:%s", p.Name, p.Name)
	return nil
}

func projectsList(ctx context.Context, c *command.Call) error {
	list, err := api.ListProjects.Call(ctx, c.API, api.Empty{})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(command.Items(list.Items))
	}
	t := c.Table("PROJECT", "OWNER", "MEMBERS", "MADE", "ID").Text(2)
	for _, p := range list.Items {
		t.Row(p.Name, p.OwnerName, strings.Join(p.MemberNames, ", "), c.When(p.Created), p.ID)
	}
	t.Print("no projects yet: nizectl projects add PROJECT")
	return nil
}

func projectsShow(ctx context.Context, c *command.Call) error {
	p, err := api.GetProject.Call(ctx, c.API, api.ProjectRequest{Project: c.Arg(0)})
	if err != nil {
		return err
	}
	return projectsPrint(c, p)
}

func projectsPrint(c *command.Call, p api.ProjectView) error {
	if c.JSON {
		return c.PrintJSON(p)
	}
	c.Field("project", p.Name)
	c.Field("id", p.ID)
	c.Field("owner", p.OwnerName)
	c.Field("members", strings.Join(p.MemberNames, ", "))
	if len(p.Unattended) > 0 {
		c.Field("unattended", strings.Join(p.Unattended, ", "))
	}
	c.Field("made", c.When(p.Created))
	return nil
}

func projectsMembers(ctx context.Context, c *command.Call) error {
	req := api.PatchProjectRequest{Project: c.Arg(0), Add: usersOf(c, "add"), Remove: usersOf(c, "remove")}
	if len(req.Add)+len(req.Remove) == 0 {
		return projectsShow(ctx, c)
	}
	p, err := api.PatchProject.Call(ctx, c.API, req)
	if err != nil {
		return err
	}
	return projectsPrint(c, p)
}

func projectsRemove(ctx context.Context, c *command.Call) error {
	if err := c.Confirm("Remove project %s? Its keys stop working at once.", c.Arg(0)); err != nil {
		return err
	}
	if _, err := api.RemoveProject.Call(ctx, c.API, api.ProjectRequest{Project: c.Arg(0)}); err != nil {
		return err
	}
	return c.Removed("project", c.Arg(0))
}

func projectsCreateKey(ctx context.Context, c *command.Call) error {
	made, err := api.CreateProjectKey.Call(ctx, c.API, api.CreateProjectKeyRequest{Project: c.Arg(0), Name: c.Arg(1)})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(made)
	}
	c.Line("%s", display.Clean(made.Secret.Reveal()))
	c.Note("key %s of %s: send it as x-api-key; it is not shown again", made.Name, c.Arg(0))
	return nil
}

func projectsListKeys(ctx context.Context, c *command.Call) error {
	list, err := api.ListProjectKeys.Call(ctx, c.API, api.ProjectRequest{Project: c.Arg(0)})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(command.Items(list.Items))
	}
	t := c.Table("KEY", "STATE", "PREFIX", "CREATED", "LAST USED")
	t.State = 1
	for _, k := range list.Items {
		t.Row(k.Name, projectsStateOf(k), k.Prefix, c.When(k.Created), c.When(k.LastUsed))
	}
	t.Print("no keys yet: nizectl projects keys create " + c.Arg(0))
	return nil
}

func projectsStateOf(k project.Key) string {
	if !k.Revoked.IsZero() {
		return "revoked"
	}
	return "active"
}

func projectsRevokeKey(ctx context.Context, c *command.Call) error {
	if err := c.Confirm("Revoke key %s of project %s? Programs that use it are refused from then on.", c.Arg(1), c.Arg(0)); err != nil {
		return err
	}
	k, err := api.RevokeProjectKey.Call(ctx, c.API, api.ProjectKeyRequest{Project: c.Arg(0), Key: c.Arg(1)})
	if err != nil {
		return err
	}
	return c.Report(k, "key %s revoked", k.Name)
}
