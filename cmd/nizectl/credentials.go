package main

import (
	"context"
	"slices"

	"github.com/urfave/cli/v3"

	"nize/daemon/api"
	"nize/store"
)

func credentialFlags(more ...cli.Flag) []cli.Flag {
	return append([]cli.Flag{
		&cli.StringFlag{Name: "scope", Value: "system", Usage: "who it is for: system, team, project or user (members: user)"},
		&cli.StringFlag{Name: "owner", Usage: "the team's or project's id, or the user (default: you)"},
	}, more...)
}

func (a *app) credentials() *cli.Command {
	return group("credentials", "sealed values that servers and tools need",
		a.command(leaf{name: "set", args: "SERVICE NAME", usage: "seal a value from standard input, before or after the server exists", names: serverNames, run: credentialsSet,
			flags: credentialFlags(&cli.StringFlag{Name: "host", Usage: "the only `HOST` it may be sent to (default: the first that it is bound to)"}),
			more:  "nizectl credentials set tracker TRACKER < key.txt"}),
		a.command(leaf{name: "list", usage: "list credentials, never their values", run: credentialsList}),
		a.command(leaf{name: "remove", args: "SERVICE NAME", usage: "remove a credential", names: serverNames, run: credentialsRemove, flags: credentialFlags(yesFlag())}),
	)
}

// credentialKey reads what names a credential.
func (c *call) credentialKey() (store.CredentialKey, error) {
	key := store.CredentialKey{Scope: c.cmd.String("scope"), Owner: c.cmd.String("owner"), Service: c.arg(0), Name: c.arg(1)}
	if !slices.Contains([]string{"system", "team", "project", "user"}, key.Scope) {
		return key, usagef("--scope %s: want system, team, project or user", key.Scope)
	}
	if key.Scope != "system" && key.Scope != "user" && key.Owner == "" {
		return key, usagef("--scope %s needs --owner ID", key.Scope)
	}
	if key.Scope == "system" && key.Owner != "" {
		return key, usagef("--owner needs --scope team, project or user")
	}
	if !c.cmd.IsSet("scope") {
		key.Scope = "" // the shared one for admins, a member's own
	}
	return key, nil
}

func credentialsSet(ctx context.Context, c *call) error {
	key, err := c.credentialKey()
	if err != nil {
		return err
	}
	text, err := c.secretText("the value of " + key.Name)
	if err != nil {
		return err
	}
	put := api.PutCredential{CredentialKey: key, Host: c.cmd.String("host"), Secret: api.NewSecret(text)}
	if err := c.api.PutCredential(ctx, put); err != nil {
		return err
	}
	return c.report(key, "credential %s of %s is sealed", key.Name, key.Service)
}

func credentialsList(ctx context.Context, c *call) error {
	list, err := c.api.Credentials(ctx)
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(items(list))
	}
	t := c.table("SERVICE", "NAME", "SCOPE", "OWNER", "HOST", "UPDATED")
	for _, cr := range list {
		t.row(cr.Service, cr.Name, cr.Scope, cr.Owner, cr.Host, c.when(cr.Updated))
	}
	t.print("no credentials: nizectl credentials set SERVICE NAME < key.txt seals one")
	return nil
}

func credentialsRemove(ctx context.Context, c *call) error {
	key, err := c.credentialKey()
	if err != nil {
		return err
	}
	if err := c.confirm("Remove the credential %s of %s?", key.Name, key.Service); err != nil {
		return err
	}
	if err := c.api.DeleteCredential(ctx, key); err != nil {
		return err
	}
	return c.removed("credential", key.Service+"/"+key.Name)
}
