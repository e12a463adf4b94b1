package servers

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/command"
	"nize/cmd/nizectl/display"
	"nize/daemon/api"
)

func loginCommand(a *command.App) *cli.Command {
	return a.Command(command.Leaf{Name: "login", Args: "NAME", Usage: "sign in at a server with OAuth, in a browser", Names: command.ServerNames, Run: logIn,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "user", Usage: "for one `PERSON` only, who continues in their own browser (default: shared by everyone)"},
			&cli.StringFlag{Name: "team", Usage: "for the `TEAM` with that id"},
			&cli.StringFlag{Name: "client-id", Usage: "the client `ID` registered at the sign-in service; its secret is prompted for"},
			&cli.StringSliceFlag{Name: "scope", Usage: "ask for this `SCOPE` and no others; may be repeated"},
			&cli.BoolFlag{Name: "pkce-unlisted", Usage: "use a sign-in service that does not advertise PKCE with S256, now and later, because its operator confirms that it supports it"},
			&cli.BoolFlag{Name: "no-resource", Usage: "don't send which server the token is for, now and later, because some sign-in services refuse that (Microsoft Entra ID)"},
			PasteFlag(),
			&cli.BoolFlag{Name: "status", Usage: "show the current login"},
			&cli.BoolFlag{Name: "forget", Usage: "delete the login, and revoke it if possible"},
			command.YesFlag(),
		},
		More: "nizectl servers login tracker\nnizectl servers login tracker --user ann\nnizectl servers login tracker --client-id nize-4711 < secret.txt\nnizectl servers login tracker --status"})
}

func logIn(ctx context.Context, c *command.Call) error {
	login := api.LoginRequest{Name: c.Arg(0), User: c.Cmd.String("user"), Team: c.Cmd.String("team")}
	status, forget := c.Cmd.Bool("status"), c.Cmd.Bool("forget")
	switch {
	case login.User != "" && login.Team != "":
		return command.Usagef("--user and --team: a login is for one of them")
	case status && forget, (status || forget) && (c.Cmd.Bool("paste") || c.Cmd.IsSet("client-id") || c.Cmd.IsSet("scope") || c.Cmd.Bool("pkce-unlisted") || c.Cmd.Bool("no-resource")):
		return command.Usagef("--status and --forget can only be combined with --user or --team")
	case status:
		return showLogin(ctx, c, login)
	case forget:
		return forgetLogin(ctx, c, login)
	}
	req := api.LoginServerRequest{Name: login.Name, User: login.User, Team: login.Team, ClientID: c.Cmd.String("client-id"), Scopes: c.Cmd.StringSlice("scope"), PKCEUnlisted: c.Cmd.Bool("pkce-unlisted"), NoResource: c.Cmd.Bool("no-resource"), Paste: c.Cmd.Bool("paste")}
	if req.ClientID != "" {
		secret, err := c.OptionalLine("the secret of client " + req.ClientID)
		if err != nil {
			return err
		}
		req.ClientSecret = api.NewSecret(secret)
	}
	flow, err := api.LoginServer.Call(ctx, c.API, req)
	if err != nil {
		return err
	}
	if flow.State == api.LoginDone {
		return c.Report(flow, "%s is connected; people get in through %s with the company's identity provider", flow.Server, flow.Issuer)
	}
	if req.Paste {
		return PasteFlow(ctx, c, flow)
	}
	return ShowFlow(ctx, c, flow)
}

// ShowFlow prints where to continue a login, and on a terminal waits for its end.
func ShowFlow(ctx context.Context, c *command.Call, flow api.LoginFlow) error {
	if c.JSON {
		return c.PrintJSON(flow)
	}
	c.Note("open this within ten minutes, in a browser on this machine or one that reaches nize; you sign in at %s:", flow.Issuer)
	c.Line("%s", display.Clean(flow.URL))
	if !c.InTTY {
		return nil
	}
	return follow(ctx, c, flow)
}

// PasteFlag returns the flag for [PasteFlow].
func PasteFlag() cli.Flag {
	return &cli.BoolFlag{Name: "paste", Usage: "for a browser that can't reach nize: read the URL where it ended from standard input"}
}

// PasteFlow completes a login with the URL at which the browser ended.
func PasteFlow(ctx context.Context, c *command.Call, flow api.LoginFlow) error {
	c.Note("open this in a browser; you sign in at %s:", flow.Issuer)
	if c.JSON {
		c.Note("%s", flow.URL)
	} else {
		c.Line("%s", display.Clean(flow.URL))
		if err := c.Flush(); err != nil {
			return err
		}
	}
	address, err := c.AskLine("the URL at which the browser ended, whatever the page shows: ")
	if err != nil {
		return err
	}
	flow, err = api.FinishLogin.Call(ctx, c.API, api.FinishLoginRequest{Name: flow.Server, Flow: flow.ID, Address: api.NewSecret(strings.TrimSpace(address))})
	if err != nil {
		return err
	}
	return c.Report(flow, "%s is connected", flow.Server)
}

// follow waits for the result in the browser.
func follow(ctx context.Context, c *command.Call, flow api.LoginFlow) error {
	done := c.Busy("waiting for the browser")
	defer done()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for flow.State == api.LoginWaiting {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		next, err := api.GetLoginFlow.Call(ctx, c.API, api.LoginFlowRequest{Name: flow.Server, Flow: flow.ID})
		if err != nil {
			return err
		}
		flow = next
	}
	if flow.State == api.LoginFailed {
		return errors.New(flow.Server + " was not connected: " + flow.Error)
	}
	done()
	return c.Report(flow, "%s is connected", flow.Server)
}

func showLogin(ctx context.Context, c *command.Call, req api.LoginRequest) error {
	v, err := api.GetLogin.Call(ctx, c.API, req)
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(v)
	}
	c.Field("server", v.Server)
	c.Field("for", v.For)
	c.Field("state", v.State)
	c.Field("reason", v.Reason)
	c.Field("signed in at", v.Issuer)
	c.Field("as client", v.Client)
	c.Field("scopes", strings.Join(v.Scopes, " "))
	c.Field("also wanted", strings.Join(v.Wanted, " "))
	if !v.Since.IsZero() {
		c.Field("since", c.When(v.Since))
	}
	switch {
	case v.Renews:
		c.Field("renewed", "by itself")
	case !v.Expires.IsZero():
		c.Field("ends", c.When(v.Expires))
	}
	return nil
}

func forgetLogin(ctx context.Context, c *command.Call, req api.LoginRequest) error {
	if err := c.Confirm("Forget the login at %s?", req.Name); err != nil {
		return err
	}
	v, err := api.ForgetLogin.Call(ctx, c.API, req)
	if err != nil {
		return err
	}
	if v.Warning != "" {
		c.Note("warning: its tokens may still be good elsewhere: %s", v.Warning)
	}
	if v.Revoked {
		return c.Report(v, "the login at %s is forgotten, and revoked", req.Name)
	}
	return c.Report(v, "the login at %s is deleted; it could not be revoked at the sign-in service", req.Name)
}
