// Package credentials has the commands about sealed values: those of one server, and
// declared ones, which tools and servers share.
package credentials

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/command"
	"nize/daemon/api"
	"nize/store"
	"nize/store/credential"
)

func keyFlags(more ...cli.Flag) []cli.Flag {
	return append([]cli.Flag{
		&cli.StringFlag{Name: "scope", Value: "system", Usage: "who it is for: system, team, project or user (members: user; of a declared one: as its mode says)"},
		&cli.StringFlag{Name: "owner", Usage: "the team's id, the project, or the user (default: you)"},
	}, more...)
}

// Command is the group of commands.
func Command(a *command.App) *cli.Command {
	return command.Group("credentials", "sealed values that servers and tools need",
		a.Command(command.Leaf{Name: "set", Args: "SERVICE [NAME]", Usage: "seal a value from standard input, before or after the server exists; of a declared credential without NAME", Names: services, Run: set,
			Flags: keyFlags(&cli.StringFlag{Name: "host", Usage: "the only `HOST` it may be sent to (default: the first that it is bound to)"}),
			More: "nizectl credentials set tracker TRACKER < key.txt\n" +
				"nizectl credentials set jira                                  # a declared one; says what to give, and asks\n" +
				"nizectl credentials set \"Mon MCP\" TRACKER --scope project --owner sales < key.txt  # by the label that its programs give a server"}),
		a.Command(command.Leaf{Name: "list", Usage: "list credentials, never their values", Run: list,
			Flags: []cli.Flag{&cli.BoolFlag{Name: "declared", Usage: "the declared ones, and whether you have them"}}}),
		a.Command(command.Leaf{Name: "declare", Args: "ID", Usage: "declare a credential that tools and servers share, or change what is declared", Names: declaredNames, Run: declare, Flags: []cli.Flag{
			&cli.StringFlag{Name: "name", Usage: "what people read (default: ID)"},
			&cli.StringFlag{Name: "mode", Usage: "who gives it: user-apikey or team-apikey"},
			&cli.StringFlag{Name: "instructions", Usage: "what people read where they are asked for it, such as where to get one"},
			&cli.StringFlag{Name: "when-missing", Usage: "hide: who has none isn't offered what needs it (the default); error: a call says what is missing"},
			&cli.StringFlag{Name: "host", Usage: "the only `HOST` that a server may get it on (default: the first that it is sent to)"}},
			More: "nizectl credentials declare jira --name Jira --mode team-apikey --instructions 'Enter your Jira API token (Atlassian Settings > API tokens)'\n" +
				"nizectl servers add jira-mcp --url https://mcp.example.com/mcp --credential jira\n" +
				"an extension names it in extension.json: \"credentialId\": \"jira\""}),
		a.Command(command.Leaf{Name: "show", Args: "ID", Usage: "show a declared credential, and what is called with it", Names: declaredNames, Run: show}),
		a.Command(command.Leaf{Name: "remove", Args: "SERVICE [NAME]", Usage: "remove a credential; of a declared one without NAME: the declaration, and all values of it", Names: services, Run: remove, Flags: keyFlags(command.YesFlag())}),
	)
}

func declaredNames(ctx context.Context, c *api.Client) ([]string, error) {
	list, err := api.ListDeclarations.Call(ctx, c, api.Empty{})
	return command.Each(list.Items, func(d api.DeclarationView) string { return d.ID }), err
}

func services(ctx context.Context, c *api.Client) ([]string, error) {
	names, err := declaredNames(ctx, c)
	if err != nil {
		return nil, err
	}
	servers, err := command.ServerNames(ctx, c)
	return append(names, servers...), err
}

// keyOf reads what names a credential.
func keyOf(c *command.Call) (store.CredentialKey, error) {
	key := store.CredentialKey{Scope: c.Cmd.String("scope"), Owner: c.Cmd.String("owner"), Service: c.Arg(0), Name: c.Arg(1)}
	if !slices.Contains([]string{"system", "team", "project", "user"}, key.Scope) {
		return key, command.Usagef("--scope %s: want system, team, project or user", key.Scope)
	}
	if !c.Cmd.IsSet("scope") && key.Name == "" {
		key.Scope = "" // as the declaration says
		return key, nil
	}
	if key.Scope != "system" && key.Scope != "user" && key.Owner == "" {
		return key, command.Usagef("--scope %s needs --owner", key.Scope)
	}
	if key.Scope == "system" && key.Owner != "" {
		return key, command.Usagef("--owner needs --scope team, project or user")
	}
	if !c.Cmd.IsSet("scope") {
		key.Scope = "" // the shared one for admins, a member's own
	}
	return key, nil
}

func set(ctx context.Context, c *command.Call) error {
	key, err := keyOf(c)
	if err != nil {
		return err
	}
	what := "the value of " + key.Name
	if key.Name == "" {
		d, err := api.GetDeclaration.Call(ctx, c.API, api.DeclarationRequest{ID: key.Service})
		if err != nil {
			return err
		}
		if key.Name = credential.KeyName; d.Instructions != "" {
			c.Note("%s: %s", d.Name, d.Instructions)
		}
		what = "the key for " + d.Name
	}
	text, err := c.SecretText(what)
	if err != nil {
		return err
	}
	put := api.PutCredentialRequest{CredentialKey: key, Host: c.Cmd.String("host"), Secret: api.NewSecret(text)}
	if _, err := api.PutCredential.Call(ctx, c.API, put); err != nil {
		return err
	}
	return c.Report(key, "credential %s of %s is sealed", key.Name, key.Service)
}

func list(ctx context.Context, c *command.Call) error {
	declared, err := api.ListDeclarations.Call(ctx, c.API, api.Empty{})
	if err != nil {
		return err
	}
	if c.Cmd.Bool("declared") {
		if c.JSON {
			return c.PrintJSON(command.Items(declared.Items))
		}
		return table(c, declared.Items)
	}
	list, err := api.ListCredentials.Call(ctx, c.API, api.Empty{})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(command.Items(list.Items))
	}
	if len(declared.Items) > 0 {
		if err := table(c, declared.Items); err != nil {
			return err
		}
		c.Line("")
	}
	t := c.Table("SERVICE", "NAME", "SCOPE", "OWNER", "HOST", "UPDATED")
	for _, cr := range list.Items {
		t.Row(cr.Service, cr.Name, cr.Scope, cr.Owner, cr.Host, c.When(cr.Updated))
	}
	t.Print("no credentials: nizectl credentials set SERVICE NAME < key.txt seals one")
	return nil
}

func table(c *command.Call, list []api.DeclarationView) error {
	t := c.Table("DECLARED", "NAME", "MODE", "WHEN MISSING", "YOU")
	for _, d := range list {
		t.Row(d.ID, d.Name, string(d.Mode), d.WhenMissing, connected(d))
	}
	t.Print("nothing is declared: nizectl credentials declare ID --mode user-apikey")
	return nil
}

func connected(d api.DeclarationView) string {
	if d.Connected {
		return "connected"
	}
	return "not connected"
}

func declare(ctx context.Context, c *command.Call) error {
	d := credential.Declaration{ID: c.Arg(0)}
	if old, err := api.GetDeclaration.Call(ctx, c.API, api.DeclarationRequest{ID: d.ID}); err == nil {
		d = old.Declaration // what is not given stays
	} else if api.ExitCode(err) != api.ExitNotFound {
		return err
	}
	for flag, into := range map[string]*string{"name": &d.Name, "instructions": &d.Instructions, "when-missing": &d.WhenMissing, "host": &d.Host} {
		if c.Cmd.IsSet(flag) {
			*into = c.Cmd.String(flag)
		}
	}
	if c.Cmd.IsSet("mode") {
		d.Mode = credential.Mode(c.Cmd.String("mode"))
	}
	if d.Mode == "" {
		return command.Usagef("credentials declare needs --mode: user-apikey, where each person gives a key of theirs, or team-apikey, where the admins of a team give one for all in it")
	}
	made, err := api.Declare.Call(ctx, c.API, api.DeclareRequest{ID: d.ID, Declaration: d})
	if err != nil {
		return err
	}
	return c.Report(made, "credential %s is declared; give it with nizectl credentials set %s, or in a chat with /nize credentials connect %s", made.ID, made.ID, made.ID)
}

func show(ctx context.Context, c *command.Call) error {
	d, err := api.GetDeclaration.Call(ctx, c.API, api.DeclarationRequest{ID: c.Arg(0)})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(d)
	}
	c.Field("credential", d.ID)
	c.Field("name", d.Name)
	c.Field("mode", string(d.Mode))
	c.Field("instructs", d.Instructions)
	c.Field("when missing", d.WhenMissing)
	c.Field("host", d.Host)
	c.Field("you", connected(d))
	c.Field("given", command.Count(d.Given, "value"))
	c.Field("servers", strings.Join(d.Servers, ", "))
	c.Field("tools", strings.Join(d.Tools, ", "))
	return nil
}

func remove(ctx context.Context, c *command.Call) error {
	key, err := keyOf(c)
	if err != nil {
		return err
	}
	if key.Name == "" {
		return removeDeclared(ctx, c, key.Service)
	}
	if err := c.Confirm("Remove the credential %s of %s?", key.Name, key.Service); err != nil {
		return err
	}
	if _, err := api.DeleteCredential.Call(ctx, c.API, api.DeleteCredentialRequest(key)); err != nil {
		return err
	}
	return c.Removed("credential", key.Service+"/"+key.Name)
}

// removeDeclared removes a declaration. One person's or one team's value of it is
// removed by its name.
func removeDeclared(ctx context.Context, c *command.Call, id string) error {
	if c.Cmd.IsSet("scope") || c.Cmd.IsSet("owner") {
		return command.Usagef("to remove one value: nizectl credentials remove %s %s --scope user|team --owner WHO", id, credential.KeyName)
	}
	d, err := api.GetDeclaration.Call(ctx, c.API, api.DeclarationRequest{ID: id})
	if err != nil {
		return err
	}
	values := ""
	if d.Given > 0 {
		values = fmt.Sprintf(" and the %s that were given", command.Count(d.Given, "value"))
	}
	if err := c.Confirm("Remove the declared credential %s%s?", d.ID, values); err != nil {
		return err
	}
	if _, err := api.RemoveDeclaration.Call(ctx, c.API, api.DeclarationRequest{ID: d.ID}); err != nil {
		return err
	}
	return c.Removed("declared credential", d.ID)
}
