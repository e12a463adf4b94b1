package main

import (
	"context"
	"strings"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/command"
	"nize/daemon/api"
)

// identityCommand is the group of commands.
func identityCommand(a *command.App) *cli.Command {
	return command.Group("identity", "sign people in with the company's account",
		command.Group("oidc", "manage the identity provider (OpenID Connect)",
			a.Command(command.Leaf{Name: "set", Usage: "set the provider, or replace it", Run: identitySet, Flags: []cli.Flag{
				&cli.StringFlag{Name: "issuer", Usage: "`URL` where the provider publishes /.well-known/openid-configuration"},
				&cli.StringFlag{Name: "client-id", Usage: "`ID` of nize at the provider"},
				&cli.StringFlag{Name: "name", Usage: "`NAME` of the provider for people (default: the issuer's host)"},
				&cli.StringSliceFlag{Name: "scope", Usage: "`SCOPE` to request in addition to openid, profile and email; may be repeated"},
				&cli.StringFlag{Name: "groups-claim", Usage: "`CLAIM` with a person's groups (default: groups)"},
				&cli.BoolFlag{Name: "force", Usage: "store it without contacting the provider"},
			}, More: "The client secret is read from standard input or prompted for; it is empty for a public client.\nnizectl identity oidc set --issuer https://login.acme.example --client-id nize --name Acme < secret.txt"}),
			a.Command(command.Leaf{Name: "show", Usage: "show the provider and what to register there", Run: identityShow}),
			a.Command(command.Leaf{Name: "test", Usage: "check everything that a sign-in needs from the provider", Run: identityTest}),
			a.Command(command.Leaf{Name: "remove", Usage: "remove the provider; people keep their other sign-ins", Run: identityRemove, Flags: []cli.Flag{command.YesFlag()}}),
		),
	)
}

func identitySet(ctx context.Context, c *command.Call) error {
	if c.Cmd.String("issuer") == "" || c.Cmd.String("client-id") == "" {
		return command.Usagef("--issuer URL and --client-id ID are needed; the provider shows both where nize is registered")
	}
	secret, err := c.OptionalLine("the client secret")
	if err != nil {
		return err
	}
	done := c.Busy("asking %s …", c.Cmd.String("issuer"))
	p, err := api.SetOIDC.Call(ctx, c.API, api.SetOIDCRequest{
		Issuer: c.Cmd.String("issuer"), Client: c.Cmd.String("client-id"), ClientSecret: api.NewSecret(secret), Name: c.Cmd.String("name"),
		Scopes: c.Cmd.StringSlice("scope"), GroupsClaim: c.Cmd.String("groups-claim"), Force: c.Cmd.Bool("force"),
	})
	done()
	if err != nil {
		return err
	}
	return c.Report(p, "people can sign in with %s; register %s there as redirect URI, then: nizectl identity oidc test", p.Name, p.RedirectURI)
}

func identityShow(ctx context.Context, c *command.Call) error {
	p, err := api.GetOIDC.Call(ctx, c.API, api.Empty{})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(p)
	}
	identityFields(c, p)
	return nil
}

func identityFields(c *command.Call, p api.OIDC) {
	secret := "none: a public client"
	if p.HasSecret {
		secret = "set"
	}
	c.Field("name", p.Name)
	c.Field("issuer", p.Issuer)
	c.Field("client id", p.Client)
	c.Field("secret", secret)
	c.Field("scopes", strings.Join(append([]string{"openid", "profile", "email"}, p.Scopes...), ", "))
	c.Field("groups", p.GroupsClaim)
	c.Field("redirect", p.RedirectURI)
	c.Field("logout", p.LogoutURI)
	c.Field("set", c.When(p.Updated))
}

func identityTest(ctx context.Context, c *command.Call) error {
	done := c.Busy("asking the provider …")
	t, err := api.TestOIDC.Call(ctx, c.API, api.Empty{})
	done()
	if err != nil {
		return err
	}
	failed := command.Failf(api.ExitFailed, "")
	if c.JSON {
		if err := c.PrintJSON(t); err != nil || t.OK {
			return err
		}
		return failed
	}
	table := c.Table("STEP", "STATE", "FOUND", "CURE").Text(2, 3)
	table.State = 1
	for _, s := range t.Steps {
		state := "ok"
		if !s.OK {
			state = "failed"
		}
		table.Row(s.Name, state, s.Text, s.Cure)
	}
	table.Print("nothing was tried")
	if t.OK {
		return nil
	}
	return failed
}

func identityRemove(ctx context.Context, c *command.Call) error {
	if err := c.Confirm("Remove the identity provider? No one will be able to sign in with it."); err != nil {
		return err
	}
	if _, err := api.RemoveOIDC.Call(ctx, c.API, api.Empty{}); err != nil {
		return err
	}
	return c.Removed("identity provider", "oidc")
}
