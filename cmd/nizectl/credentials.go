package main

import (
	"context"
	"slices"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/command"
	"nize/daemon/api"
	"nize/store"
)

func credentialFlags(more ...cli.Flag) []cli.Flag {
	return append([]cli.Flag{
		&cli.StringFlag{Name: "scope", Value: "system", Usage: "who it is for: system, team, project or user (members: user)"},
		&cli.StringFlag{Name: "owner", Usage: "the team's id, the project, or the user (default: you)"},
	}, more...)
}

func credentialsCommand(a *command.App) *cli.Command {
	return command.Group("credentials", "sealed values that servers and tools need",
		a.Command(command.Leaf{Name: "set", Args: "SERVICE NAME", Usage: "seal a value from standard input, before or after the server exists", Names: command.ServerNames, Run: credentialsSet,
			Flags: credentialFlags(&cli.StringFlag{Name: "host", Usage: "the only `HOST` it may be sent to (default: the first that it is bound to)"}),
			More:  "nizectl credentials set tracker TRACKER < key.txt\nnizectl credentials set \"Mon MCP\" TRACKER --scope project --owner sales < key.txt  # by the label that its programs give a server"}),
		a.Command(command.Leaf{Name: "list", Usage: "list credentials, never their values", Run: credentialsList}),
		a.Command(command.Leaf{Name: "remove", Args: "SERVICE NAME", Usage: "remove a credential", Names: command.ServerNames, Run: credentialsRemove, Flags: credentialFlags(command.YesFlag())}),
	)
}

// credentialKey reads what names a credential.
func credentialKey(c *command.Call) (store.CredentialKey, error) {
	key := store.CredentialKey{Scope: c.Cmd.String("scope"), Owner: c.Cmd.String("owner"), Service: c.Arg(0), Name: c.Arg(1)}
	if !slices.Contains([]string{"system", "team", "project", "user"}, key.Scope) {
		return key, command.Usagef("--scope %s: want system, team, project or user", key.Scope)
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

func credentialsSet(ctx context.Context, c *command.Call) error {
	key, err := credentialKey(c)
	if err != nil {
		return err
	}
	text, err := c.SecretText("the value of " + key.Name)
	if err != nil {
		return err
	}
	put := api.PutCredentialRequest{CredentialKey: key, Host: c.Cmd.String("host"), Secret: api.NewSecret(text)}
	if _, err := api.PutCredential.Call(ctx, c.API, put); err != nil {
		return err
	}
	return c.Report(key, "credential %s of %s is sealed", key.Name, key.Service)
}

func credentialsList(ctx context.Context, c *command.Call) error {
	list, err := api.ListCredentials.Call(ctx, c.API, api.Empty{})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(command.Items(list.Items))
	}
	t := c.Table("SERVICE", "NAME", "SCOPE", "OWNER", "HOST", "UPDATED")
	for _, cr := range list.Items {
		t.Row(cr.Service, cr.Name, cr.Scope, cr.Owner, cr.Host, c.When(cr.Updated))
	}
	t.Print("no credentials: nizectl credentials set SERVICE NAME < key.txt seals one")
	return nil
}

func credentialsRemove(ctx context.Context, c *command.Call) error {
	key, err := credentialKey(c)
	if err != nil {
		return err
	}
	if err := c.Confirm("Remove the credential %s of %s?", key.Name, key.Service); err != nil {
		return err
	}
	if _, err := api.DeleteCredential.Call(ctx, c.API, api.DeleteCredentialRequest(key)); err != nil {
		return err
	}
	return c.Removed("credential", key.Service+"/"+key.Name)
}
