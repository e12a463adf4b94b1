package main

import (
	"cmp"
	"context"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/command"
	"nize/cmd/nizectl/display"
	"nize/daemon/api"
)

// loginCommand is the group of commands.
func loginCommand(a *command.App) *cli.Command {
	user := func(usage string) cli.Flag { return &cli.StringFlag{Name: "user", Usage: usage} }
	group := a.Command(command.Leaf{Name: "login", Usage: "print an address that signs a browser in", Run: loginStart, Flags: []cli.Flag{user("the user of the browser (admins only; default: you)")}})
	group.Commands = []*cli.Command{
		a.Command(command.Leaf{Name: "approve", Args: "CODE", Usage: "confirm a page's code and print its number", Run: loginApprove, Flags: []cli.Flag{user("the user who signs in (admins only; default: you)")}}),
		a.Command(command.Leaf{Name: "deny", Args: "CODE", Usage: "deny the request of a page", Run: loginDeny}),
		a.Command(command.Leaf{Name: "list", Usage: "list the browsers that are signed in", Run: loginList, Flags: append(command.PageFlags(), user("only this person's"))}),
		a.Command(command.Leaf{Name: "revoke", Args: "ID", Usage: "sign a browser out", IDs: loginIDs, Run: loginRevoke}),
	}
	return group
}

func loginStart(ctx context.Context, c *command.Call) error {
	made, err := api.StartLogin.Call(ctx, c.API, api.StartLoginRequest{User: c.Cmd.String("user")})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(made)
	}
	c.Line("%s", display.Clean(made.URL.Reveal()))
	c.Note("signs a browser in as %s, once; it ends %s", made.UserName, c.When(made.Expires))
	return nil
}

func loginApprove(ctx context.Context, c *command.Call) error {
	done, err := api.ApproveLogin.Call(ctx, c.API, api.LoginCodeRequest{Code: c.Arg(0), User: c.Cmd.String("user")})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(done)
	}
	c.Line("%s", display.Clean(done.Number.Reveal()))
	c.Note("to be typed into the page; it signs %s in there", done.UserName)
	loginDescribe(c, done.SignInRequest)
	return nil
}

func loginDescribe(c *command.Call, r api.SignInRequest) {
	if r.Client == "" {
		c.Note("a browser, from %s (%s)", r.Address, display.Clean(r.Browser))
		return
	}
	c.Note("%s (%s), which receives its code at %s, may: %s; requested from %s (%s)", display.Clean(r.Client), display.Clean(cmp.Or(r.Host, "an unverified name")), display.Clean(r.Redirect), display.Clean(r.Scope), r.Address, display.Clean(r.Browser))
}

func loginDeny(ctx context.Context, c *command.Call) error {
	r, err := api.DenyLogin.Call(ctx, c.API, api.LoginCodeRequest{Code: c.Arg(0)})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(r)
	}
	c.Note("denied")
	loginDescribe(c, r)
	return nil
}

func loginList(ctx context.Context, c *command.Call) error {
	list, err := api.ListLogins.Call(ctx, c.API, api.ListTokensRequest{User: c.Cmd.String("user"), Cursor: c.Cmd.String("cursor"), Limit: c.Cmd.Int("limit")})
	if err != nil {
		return err
	}
	defer c.More(list.Next)
	if c.JSON {
		return c.PrintJSON(command.Items(list.Items))
	}
	t := c.Table("ID", "USER", "BROWSER", "ADDRESS", "SINCE", "LAST USED", "EXPIRES")
	for _, s := range list.Items {
		t.Row(s.ID, cmp.Or(s.UserName, s.User), s.SignedIn.Browser, s.SignedIn.Address, c.When(s.Created), c.When(s.LastUsed), c.When(s.Expires))
	}
	t.Print("no browser is signed in: nizectl login prints an address that does it")
	return nil
}

func loginIDs(ctx context.Context, c *api.Client) ([]command.ID, error) {
	list, err := api.ListLogins.Call(ctx, c, api.ListTokensRequest{Limit: 500})
	return command.Each(list.Items, func(t api.TokenView) command.ID { return command.ID{ID: t.ID, About: t.SignedIn.Browser} }), err
}

func loginRevoke(ctx context.Context, c *command.Call) error {
	if _, err := api.RevokeLogin.Call(ctx, c.API, api.LoginIDRequest{ID: c.Arg(0)}); err != nil {
		return err
	}
	return c.Report(api.Empty{}, "signed out")
}
