package main

import (
	"context"
	"time"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/display"
	"nize/daemon/api"
	"nize/store"
)

func (a *app) tokens() *cli.Command {
	user := func() cli.Flag { return &cli.StringFlag{Name: "user", Usage: "the owner (default: you)"} }
	return group("tokens", "bearer tokens for MCP clients",
		a.command(leaf{name: "create", args: "NAME", usage: "make a token and print it, once", run: tokensCreate, flags: []cli.Flag{
			user(),
			&cli.StringFlag{Name: "expires", Usage: "`HOW LONG` it works, such as 12h or 90d (default: 90d)"},
			&cli.StringSliceFlag{Name: "scope", Usage: "tools:PATTERN; may be repeated"},
			&cli.StringFlag{Name: "audience", Usage: "mcp for MCP clients, api for the other HTTP routes (default: mcp)"},
			&cli.BoolFlag{Name: "overwrite", Usage: "revoke an active token of that name"},
		}}),
		a.command(leaf{name: "rotate", args: "NAME", usage: "replace a token and print the new one, once", names: tokenNames, run: tokensRotate, flags: []cli.Flag{
			user(),
			&cli.StringFlag{Name: "grace", Usage: "`HOW LONG` the old one still works, such as 10m (default: not at all)"},
		}}),
		a.command(leaf{name: "list", usage: "list tokens, never their secrets", run: tokensList,
			flags: []cli.Flag{&cli.StringFlag{Name: "user", Usage: "only this owner's"}}}),
		a.command(leaf{name: "revoke", args: "[NAME]", usage: "revoke a token, or all", names: tokenNames, run: tokensRevoke, flags: []cli.Flag{
			&cli.StringFlag{Name: "user", Usage: "the owner (default: you; with --all: everybody)"},
			&cli.BoolFlag{Name: "all", Usage: "revoke all tokens"},
			yesFlag(),
		}}),
	)
}

func tokensCreate(ctx context.Context, c *call) error {
	expires, err := c.spanFlag("expires")
	if err != nil {
		return err
	}
	made, err := c.api.CreateToken(ctx, api.CreateToken{
		Name: c.arg(0), User: c.cmd.String("user"), Expires: expires,
		Scopes: c.cmd.StringSlice("scope"), Audience: c.cmd.String("audience"), Overwrite: c.cmd.Bool("overwrite"),
	})
	if err != nil {
		return err
	}
	return c.printToken(made)
}

// printToken prints the secret alone on standard output, so that it can be
// caught by a script.
func (c *call) printToken(made api.CreatedToken) error {
	if c.json {
		return c.printJSON(api.MintedToken{Token: made.Token, Secret: made.Secret})
	}
	c.line("%s", display.Clean(made.Secret.Reveal()))
	c.note("shown this once; it expires %s", c.when(made.Token.Expires))
	return nil
}

// spanFlag reads a flag that is a duration; 0 where it was not given.
func (c *call) spanFlag(name string) (store.Duration, error) {
	text := c.cmd.String(name)
	if !c.cmd.IsSet(name) {
		return 0, nil
	}
	d, err := store.ParseSpan(text)
	if err != nil || d <= 0 {
		return 0, usagef("--%s %s: write 90s, 15m, 24h or 30d", name, text)
	}
	return store.Duration(d), nil
}

func tokensRotate(ctx context.Context, c *call) error {
	grace, err := c.spanFlag("grace")
	if err != nil {
		return err
	}
	made, err := c.api.RotateToken(ctx, c.arg(0), api.RotateToken{User: c.cmd.String("user"), Grace: grace})
	if err != nil {
		return err
	}
	if grace > 0 && !c.json {
		defer c.note("the old one works for another %s", span(time.Duration(grace)))
	}
	return c.printToken(made)
}

func tokensList(ctx context.Context, c *call) error {
	list, err := c.api.Tokens(ctx, c.cmd.String("user"))
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(items(list))
	}
	t := c.table("NAME", "USER", "FOR", "PREFIX", "CREATED", "LAST USED", "EXPIRES", "STATE")
	t.state = 7
	for _, tok := range list {
		user := tok.UserName
		if user == "" {
			user = tok.User
		}
		t.row(tok.Name, user, tok.Audience, tok.Prefix+"…", c.when(tok.Created), c.when(tok.LastUsed), c.when(tok.Expires), tok.State)
	}
	t.print("no tokens: nizectl tokens create NAME makes one")
	return nil
}

func tokensRevoke(ctx context.Context, c *call) error {
	name, user, all := c.arg(0), c.cmd.String("user"), c.cmd.Bool("all")
	var revoked api.Revoked
	var err error
	switch {
	case all && name != "":
		return usagef("give a name or --all, not both")
	case !all && name == "":
		return usagef("tokens revoke needs NAME or --all: nizectl tokens list shows the names")
	case all && user == "":
		err = c.confirm("Revoke every token of everybody?")
	case all:
		err = c.confirm("Revoke every token of %s?", user)
	default:
		err = c.confirm("Revoke the token %s?", name)
	}
	if err != nil {
		return err
	}
	if all {
		revoked, err = c.api.RevokeTokens(ctx, user)
	} else {
		revoked, err = c.api.RevokeToken(ctx, user, name)
	}
	if err != nil {
		return err
	}
	return c.report(revoked, "%s revoked", count(revoked.Revoked, "token"))
}

func tokenNames(ctx context.Context, c *api.Client) ([]string, error) {
	items, err := c.Tokens(ctx, "")
	var names []string
	for _, t := range items {
		if t.State == "active" {
			names = append(names, t.Name)
		}
	}
	return names, err
}
