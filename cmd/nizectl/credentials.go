package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/command"
	"nize/cmd/nizectl/servers"
	"nize/daemon/api"
	"nize/store"
	"nize/store/credential"
)

func keyFlags(more ...cli.Flag) []cli.Flag {
	return append([]cli.Flag{
		&cli.StringFlag{Name: "scope", Value: "system", Usage: "who it is for: system, team, project or user (members: user; declared credentials: according to their mode)"},
		&cli.StringFlag{Name: "owner", Usage: "the team's id, the project, or the user (default: you)"},
	}, more...)
}

// credentialsCommand is the group of commands.
func credentialsCommand(a *command.App) *cli.Command {
	return command.Group("credentials", "manage sealed values that servers and tools need",
		a.Command(command.Leaf{Name: "add", Aliases: []string{"set"}, Args: "SERVICE [NAME]", Usage: "seal a value from standard input", Names: credentialsServices, Run: credentialsSet,
			Flags: keyFlags(&cli.StringFlag{Name: "host", Usage: "the only `HOST` it may be sent to (default: the first server that uses it)"}),
			More: "The server need not exist yet. For a declared credential omit NAME.\nnizectl credentials add tracker TRACKER < key.txt\n" +
				"nizectl credentials add jira                                  # a declared one; shows its instructions, and prompts\n" +
				"nizectl credentials add \"Mon MCP\" TRACKER --scope project --owner sales < key.txt  # by the label that its programs give a server"}),
		a.Command(command.Leaf{Name: "list", Usage: "list credentials, never their values", Run: credentialsList,
			Flags: []cli.Flag{&cli.BoolFlag{Name: "declared", Usage: "declared credentials, and whether you have them"}}}),
		a.Command(command.Leaf{Name: "declare", Args: "ID", Usage: "declare a credential that tools and servers share", Names: credentialsDeclaredNames, Run: credentialsDeclare, Flags: []cli.Flag{
			&cli.StringFlag{Name: "name", Usage: "its name for people (default: ID)"},
			&cli.StringFlag{Name: "mode", Usage: "who provides it, and how: user-apikey or team-apikey, a key; user-oauth or team-oauth, by signing in"},
			&cli.StringFlag{Name: "instructions", Usage: "instructions shown with the prompt, such as where to get one"},
			&cli.StringFlag{Name: "when-missing", Usage: "for people without it: hide its tools (the default), or error: calls return what is missing"},
			&cli.StringFlag{Name: "host", Usage: "the only `HOST` that it may be sent to (default: the first one; required for signing in)"},
			&cli.StringFlag{Name: "authorization-url", Usage: "where people sign in; the service's redirect address is nize's /oauth/callback"},
			&cli.StringFlag{Name: "token-url", Usage: "where nize requests tokens"},
			&cli.StringFlag{Name: "issuer", Usage: "the issuer `URL` in the service's responses, if it is not the origin of the authorization URL, such as a realm's or a tenant's"},
			&cli.StringFlag{Name: "revocation-url", Usage: "where nize revokes tokens, if the service supports it"},
			&cli.StringFlag{Name: "client-id", Usage: "the client `ID` registered for nize; its secret is prompted for"},
			&cli.StringFlag{Name: "client-auth", Usage: "how nize sends that secret, `basic or post` (default: basic, and post if that is refused)"},
			&cli.StringSliceFlag{Name: "scope", Usage: "ask for this `SCOPE`; may be repeated"}},
			More: "nizectl credentials declare jira --name Jira --mode team-apikey --instructions 'Enter your Jira API token (Atlassian Settings > API tokens)'\n" +
				"nizectl credentials declare tracker --mode user-oauth --authorization-url https://auth.example.com/authorize --token-url https://auth.example.com/token --client-id nize-4711 --scope read --host api.example.com < secret.txt\n" +
				"nizectl servers add jira-mcp --url https://mcp.example.com/mcp --credential jira\n" +
				"an extension names it in extension.json: \"credentialId\": \"jira\""}),
		a.Command(command.Leaf{Name: "connect", Args: "ID", Usage: "connect a declared credential by signing in", Names: credentialsDeclaredNames, Run: credentialsConnect, Flags: []cli.Flag{ownerFlag(), servers.PasteFlag()},
			More: "nizectl credentials connect tracker\nnizectl credentials connect tracker --owner slack:T012345    # a team's"}),
		a.Command(command.Leaf{Name: "disconnect", Args: "ID", Usage: "delete a sign-in, and revoke it if possible", Names: credentialsDeclaredNames, Run: credentialsDisconnect, Flags: []cli.Flag{ownerFlag(), command.YesFlag()}}),
		a.Command(command.Leaf{Name: "show", Args: "ID", Usage: "show a declared credential and what uses it", Names: credentialsDeclaredNames, Run: credentialsShow}),
		a.Command(command.Leaf{Name: "remove", Args: "SERVICE [NAME]", Usage: "remove a credential, or a declaration", More: "Without NAME: the declaration of that id and all its values.", Names: credentialsServices, Run: credentialsRemove, Flags: keyFlags(command.YesFlag())}),
	)
}

func ownerFlag() cli.Flag {
	return &cli.StringFlag{Name: "owner", Usage: "the team's id, or the person (default: you)"}
}

func credentialsDeclaredNames(ctx context.Context, c *api.Client) ([]string, error) {
	list, err := api.ListDeclarations.Call(ctx, c, api.Empty{})
	return command.Each(list.Items, func(d api.DeclarationView) string { return d.ID }), err
}

func credentialsServices(ctx context.Context, c *api.Client) ([]string, error) {
	names, err := credentialsDeclaredNames(ctx, c)
	if err != nil {
		return nil, err
	}
	all, err := command.ServerNames(ctx, c)
	return append(names, all...), err
}

// credentialsKeyOf returns the key of the credential given by flags and arguments.
func credentialsKeyOf(c *command.Call) (store.CredentialKey, error) {
	key := store.CredentialKey{Scope: c.Cmd.String("scope"), Owner: c.Cmd.String("owner"), Service: c.Arg(0), Name: c.Arg(1)}
	if !slices.Contains([]string{"system", "team", "project", "user"}, key.Scope) {
		return key, command.Usagef("--scope %s: want system, team, project or user", key.Scope)
	}
	if !c.Cmd.IsSet("scope") && key.Name == "" {
		key.Scope = "" // determined by the declaration
		return key, nil
	}
	if key.Scope != "system" && key.Scope != "user" && key.Owner == "" {
		return key, command.Usagef("--scope %s needs --owner", key.Scope)
	}
	if key.Scope == "system" && key.Owner != "" {
		return key, command.Usagef("--owner needs --scope team, project or user")
	}
	if !c.Cmd.IsSet("scope") {
		key.Scope = "" // the shared one for admins, a member's own otherwise
	}
	return key, nil
}

func credentialsSet(ctx context.Context, c *command.Call) error {
	key, err := credentialsKeyOf(c)
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

func credentialsList(ctx context.Context, c *command.Call) error {
	declared, err := api.ListDeclarations.Call(ctx, c.API, api.Empty{})
	if err != nil {
		return err
	}
	if c.Cmd.Bool("declared") {
		if c.JSON {
			return c.PrintJSON(command.Items(declared.Items))
		}
		return credentialsTable(c, declared.Items)
	}
	list, err := api.ListCredentials.Call(ctx, c.API, api.Empty{})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(command.Items(list.Items))
	}
	if len(declared.Items) > 0 {
		if err := credentialsTable(c, declared.Items); err != nil {
			return err
		}
		c.Line("")
	}
	t := c.Table("SERVICE", "NAME", "SCOPE", "OWNER", "HOST", "UPDATED")
	for _, cr := range list.Items {
		t.Row(cr.Service, cr.Name, cr.Scope, cr.Owner, cr.Host, c.When(cr.Updated))
	}
	t.Print("no credentials: nizectl credentials add SERVICE NAME < key.txt seals one")
	return nil
}

func credentialsTable(c *command.Call, list []api.DeclarationView) error {
	t := c.Table("DECLARED", "NAME", "MODE", "WHEN MISSING", "YOU")
	for _, d := range list {
		t.Row(d.ID, d.Name, string(d.Mode), d.WhenMissing, credentialsConnected(d))
	}
	t.Print("nothing is declared: nizectl credentials declare ID --mode user-apikey")
	return nil
}

func credentialsConnected(d api.DeclarationView) string {
	if d.Connected {
		return "connected"
	}
	return "not connected"
}

func credentialsDeclare(ctx context.Context, c *command.Call) error {
	d := credential.Declaration{ID: c.Arg(0)}
	if old, err := api.GetDeclaration.Call(ctx, c.API, api.DeclarationRequest{ID: d.ID}); err == nil {
		d = old.Declaration // fields that aren't given are kept
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
		return command.Usagef("credentials declare needs --mode: user-apikey if each person provides their own key, team-apikey if a team's admins provide one for all its members, user-oauth or team-oauth if they sign in")
	}
	secret, err := credentialsDeclareOAuth(c, &d)
	if err != nil {
		return err
	}
	made, err := api.Declare.Call(ctx, c.API, api.DeclareRequest{ID: d.ID, Declaration: d, ClientSecret: secret})
	if err != nil {
		return err
	}
	if made.Mode.SignsIn() {
		return c.Report(made, "credential %s is declared; connect it with nizectl credentials connect %s, or in a chat with /nize credentials connect %s", made.ID, made.ID, made.ID)
	}
	return c.Report(made, "credential %s is declared; set it with nizectl credentials add %s, or in a chat with /nize credentials connect %s", made.ID, made.ID, made.ID)
}

// credentialsDeclareOAuth applies the flags about signing in to a declaration, and prompts
// for its client secret. The secret belongs to the URLs, so it is requested again if they
// change.
func credentialsDeclareOAuth(c *command.Call, d *credential.Declaration) (secret api.Secret, err error) {
	if !d.Mode.SignsIn() {
		for _, flag := range []string{"authorization-url", "token-url", "revocation-url", "issuer", "client-id", "client-auth", "scope"} {
			if c.Cmd.IsSet(flag) {
				return secret, command.Usagef("--%s is for the modes user-oauth and team-oauth; this is %s", flag, d.Mode)
			}
		}
		d.OAuth = nil
		return secret, nil
	}
	var o credential.OAuth
	if d.OAuth != nil {
		o = *d.OAuth
	}
	for flag, into := range map[string]*string{"authorization-url": &o.AuthorizationURL, "token-url": &o.TokenURL, "revocation-url": &o.RevocationURL, "issuer": &o.Issuer, "client-id": &o.ClientID} {
		if c.Cmd.IsSet(flag) {
			*into = c.Cmd.String(flag)
		}
	}
	switch how := c.Cmd.String("client-auth"); {
	case how == "basic", how == "post":
		o.ClientAuth = "client_secret_" + how
	case c.Cmd.IsSet("client-auth"):
		return secret, command.Usagef("--client-auth %s: want basic or post", how)
	}
	if c.Cmd.IsSet("scope") {
		o.Scopes = c.Cmd.StringSlice("scope")
	}
	ask := c.Cmd.IsSet("client-id")
	if !ask && !o.SameClient(d.OAuth) {
		return secret, command.Usagef("credentials declare needs --client-id if a URL of the service is set, because the client's secret is sent there")
	}
	if d.OAuth = &o; ask {
		var text string
		text, err = c.OptionalLine("the secret of client " + o.ClientID)
		secret = api.NewSecret(text)
	}
	return secret, err
}

func credentialsConnect(ctx context.Context, c *command.Call) error {
	flow, err := api.LoginDeclared.Call(ctx, c.API, api.LoginDeclaredRequest{ID: c.Arg(0), Owner: c.Cmd.String("owner"), Paste: c.Cmd.Bool("paste")})
	if err != nil {
		return err
	}
	if c.Cmd.Bool("paste") {
		return servers.PasteFlow(ctx, c, flow)
	}
	return servers.ShowFlow(ctx, c, flow)
}

func credentialsDisconnect(ctx context.Context, c *command.Call) error {
	if err := c.Confirm("Delete the sign-in to %s?", c.Arg(0)); err != nil {
		return err
	}
	key := api.DeleteCredentialRequest{Service: c.Arg(0), Name: store.LoginName, Owner: c.Cmd.String("owner")}
	if _, err := api.DeleteCredential.Call(ctx, c.API, key); err != nil {
		return err
	}
	return c.Report(key, "%s is disconnected", c.Arg(0))
}

func credentialsShow(ctx context.Context, c *command.Call) error {
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
	if d.OAuth != nil {
		c.Field("sign in at", d.OAuth.AuthorizationURL)
		c.Field("issuer", d.OAuth.Issued())
		c.Field("tokens from", d.OAuth.TokenURL)
		c.Field("revoked at", d.OAuth.RevocationURL)
		c.Field("as client", d.OAuth.ClientID)
		c.Field("scopes", strings.Join(d.OAuth.Scopes, " "))
	}
	c.Field("you", credentialsConnected(d))
	c.Field("given", command.Count(d.Given, "value"))
	c.Field("servers", strings.Join(d.Servers, ", "))
	c.Field("tools", strings.Join(d.Tools, ", "))
	return nil
}

func credentialsRemove(ctx context.Context, c *command.Call) error {
	key, err := credentialsKeyOf(c)
	if err != nil {
		return err
	}
	if key.Name == "" {
		return credentialsRemoveDeclared(ctx, c, key.Service)
	}
	if err := c.Confirm("Remove the credential %s of %s?", key.Name, key.Service); err != nil {
		return err
	}
	if _, err := api.DeleteCredential.Call(ctx, c.API, api.DeleteCredentialRequest(key)); err != nil {
		return err
	}
	return c.Removed("credential", key.Service+"/"+key.Name)
}

// credentialsRemoveDeclared removes a declaration. One person's or one team's value of it is
// removed by its name.
func credentialsRemoveDeclared(ctx context.Context, c *command.Call, id string) error {
	if c.Cmd.IsSet("scope") || c.Cmd.IsSet("owner") {
		return command.Usagef("to remove one value: nizectl credentials remove %s %s --scope user|team --owner WHO", id, credential.KeyName)
	}
	d, err := api.GetDeclaration.Call(ctx, c.API, api.DeclarationRequest{ID: id})
	if err != nil {
		return err
	}
	values := ""
	if d.Given > 0 {
		values = fmt.Sprintf(" and its %s", command.Count(d.Given, "value"))
	}
	if err := c.Confirm("Remove the declared credential %s%s?", d.ID, values); err != nil {
		return err
	}
	if _, err := api.RemoveDeclaration.Call(ctx, c.API, api.DeclarationRequest{ID: d.ID}); err != nil {
		return err
	}
	return c.Removed("declared credential", d.ID)
}
