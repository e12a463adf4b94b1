package main

import (
	"context"
	"time"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/command"
	"nize/cmd/nizectl/display"
	"nize/daemon/api"
	"nize/store"
)

func tokensCommand(a *command.App) *cli.Command {
	user := func() cli.Flag { return &cli.StringFlag{Name: "user", Usage: "the owner (default: you)"} }
	return command.Group("tokens", "manage bearer tokens of MCP clients",
		a.Command(command.Leaf{Name: "add", Args: "NAME", Usage: "create a token and print it once", Run: tokensCreate, Flags: []cli.Flag{
			user(),
			&cli.StringFlag{Name: "expires", Usage: "`HOW LONG` it is valid, such as 12h or 90d (default: 90d)"},
			&cli.StringSliceFlag{Name: "scope", Usage: "tools:PATTERN limits the tools it may use, expose:meta|native|all|PATTERN|NATIVETOOL selects the tools it lists by name; may be repeated"},
			&cli.StringFlag{Name: "audience", Usage: "mcp for MCP clients, api for the other HTTP routes, scim for a company's directory (default: mcp)"},
			&cli.BoolFlag{Name: "overwrite", Usage: "revoke an active token of that name"},
		}}),
		a.Command(command.Leaf{Name: "rotate", Args: "NAME", Usage: "replace a token and print the new one once", Names: tokenNames, Run: tokensRotate, Flags: []cli.Flag{
			user(),
			&cli.StringFlag{Name: "grace", Usage: "`HOW LONG` the old one stays valid, such as 10m (default: not at all)"},
		}}),
		a.Command(command.Leaf{Name: "list", Usage: "list tokens, never their secrets", Run: tokensList,
			Flags: append(command.PageFlags(), &cli.StringFlag{Name: "user", Usage: "only this owner's"}, &cli.BoolFlag{Name: "all", Usage: "include revoked tokens"})}),
		a.Command(command.Leaf{Name: "revoke", Args: "[NAME]", Usage: "revoke a token, or all", Names: tokenNames, Run: tokensRevoke, Flags: []cli.Flag{
			&cli.StringFlag{Name: "user", Usage: "the owner (default: you; with --all: everyone)"},
			&cli.BoolFlag{Name: "all", Usage: "revoke all tokens"},
			command.YesFlag(),
		}}),
	)
}

func tokensCreate(ctx context.Context, c *command.Call) error {
	expires, err := spanFlag(c, "expires")
	if err != nil {
		return err
	}
	made, err := api.CreateToken.Call(ctx, c.API, api.CreateTokenRequest{
		Name: c.Arg(0), User: c.Cmd.String("user"), Expires: expires,
		Scopes: c.Cmd.StringSlice("scope"), Audience: c.Cmd.String("audience"), Overwrite: c.Cmd.Bool("overwrite"),
	})
	if err != nil {
		return err
	}
	return printToken(c, made)
}

// printToken prints only the secret on standard output, so that scripts can capture it.
func printToken(c *command.Call, made api.CreatedToken) error {
	if c.JSON {
		return c.PrintJSON(api.MintedToken{Token: made.Token, Secret: made.Secret})
	}
	c.Line("%s", display.Clean(made.Secret.Reveal()))
	c.Note("shown this once; it expires %s", c.When(made.Token.Expires))
	return nil
}

// spanFlag returns the value of a duration flag; 0 if it was not given.
func spanFlag(c *command.Call, name string) (store.Duration, error) {
	text := c.Cmd.String(name)
	if !c.Cmd.IsSet(name) {
		return 0, nil
	}
	d, err := store.ParseSpan(text)
	if err != nil || d <= 0 {
		return 0, command.Usagef("--%s %s: write 90s, 15m, 24h or 30d", name, text)
	}
	return store.Duration(d), nil
}

func tokensRotate(ctx context.Context, c *command.Call) error {
	grace, err := spanFlag(c, "grace")
	if err != nil {
		return err
	}
	made, err := api.RotateToken.Call(ctx, c.API, api.RotateTokenRequest{Name: c.Arg(0), User: c.Cmd.String("user"), Grace: grace})
	if err != nil {
		return err
	}
	if grace > 0 && !c.JSON {
		defer c.Note("the old one works for another %s", command.Span(time.Duration(grace)))
	}
	return printToken(c, made)
}

func tokensList(ctx context.Context, c *command.Call) error {
	list, err := api.ListTokens.Call(ctx, c.API, api.ListTokensRequest{User: c.Cmd.String("user"), Cursor: c.Cmd.String("cursor"), Limit: c.Cmd.Int("limit"), Unrevoked: !c.Cmd.Bool("all")})
	if err != nil {
		return err
	}
	defer c.More(list.Next)
	if c.JSON {
		return c.PrintJSON(command.Items(list.Items))
	}
	t := c.Table("NAME", "USER", "FOR", "PREFIX", "CREATED", "LAST USED", "EXPIRES", "STATE")
	t.State = 7
	for _, tok := range list.Items {
		user := tok.UserName
		if user == "" {
			user = tok.User
		}
		t.Row(tok.Name, user, tok.Audience, tok.Prefix+"…", c.When(tok.Created), c.When(tok.LastUsed), c.When(tok.Expires), stateOf(c, tok))
	}
	t.Print("no tokens: nizectl tokens add NAME makes one")
	return nil
}

// stateOf describes the state of a token; a rotated one stays valid for a while.
func stateOf(c *command.Call, tok api.TokenView) string {
	if until, ok := tok.Rotated(time.Now()); ok && tok.State == "active" {
		return "rotated, works until " + c.When(until)
	}
	return tok.State
}

func tokensRevoke(ctx context.Context, c *command.Call) error {
	name, user, all := c.Arg(0), c.Cmd.String("user"), c.Cmd.Bool("all")
	var revoked api.Revoked
	var err error
	switch {
	case all && name != "":
		return command.Usagef("give a name or --all, not both")
	case !all && name == "":
		return command.Usagef("tokens revoke needs NAME or --all: nizectl tokens list shows the names")
	case all && user == "":
		err = c.Confirm("Revoke every token of every user?")
	case all:
		err = c.Confirm("Revoke every token of %s?", user)
	default:
		err = c.Confirm("Revoke the token %s?", name)
	}
	if err != nil {
		return err
	}
	if all {
		revoked, err = api.RevokeTokens.Call(ctx, c.API, api.RevokeTokensRequest{All: true, User: user})
	} else {
		revoked, err = api.RevokeToken.Call(ctx, c.API, api.RevokeTokenRequest{User: user, Name: name})
	}
	if err != nil {
		return err
	}
	return c.Report(revoked, "%s revoked", command.Count(revoked.Revoked, "token"))
}

func tokenNames(ctx context.Context, c *api.Client) ([]string, error) {
	items, err := api.ListTokens.Call(ctx, c, api.ListTokensRequest{Limit: 500})
	var names []string
	for _, t := range items.Items {
		if t.State == "active" {
			names = append(names, t.Name)
		}
	}
	return names, err
}
