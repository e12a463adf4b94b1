package main

import (
	"context"
	"net/url"
	"strings"

	"github.com/urfave/cli/v3"

	"nize/bots/discord/invite"
	"nize/bots/slack/manifest"
	"nize/cmd/nizectl/command"
	"nize/cmd/nizectl/display"
	"nize/daemon/api"
	"nize/store"
)

var slackTexts = botTexts{
	title:     "Slack",
	usage:     "check two tokens from standard input and start the bot",
	more:      "nizectl bots slack connect < tokens.txt\n\nOne line each, in any order: the bot token (xoxb-…) and the app-level token (xapp-…), or the signing secret for HTTP mode.",
	tokens:    []string{"the bot token (xoxb-…), or the other", "the app-level token (xapp-…), or the signing secret"},
	first:     "nizectl bots slack manifest, then nizectl bots slack connect < tokens.txt",
	endpoints: "in the app's settings, these are the request URLs of events, of interactivity, and of /nize:",
	commands: func(a *command.App) []*cli.Command {
		return []*cli.Command{a.Command(command.Leaf{Name: "manifest", Usage: "print the app manifest for Slack", Run: slackManifest, Flags: []cli.Flag{
			&cli.StringFlag{Name: "http", Usage: "for HTTP mode, with request URLs at this https `ORIGIN` of nized"}},
			More: "Create the app at https://api.slack.com/apps with \"From a manifest\", install it, and make an app-level token with connections:write."})}
	},
}

func slackManifest(_ context.Context, c *command.Call) error {
	text := manifest.JSON
	if at := c.Cmd.String("http"); at != "" {
		u, err := url.Parse(at)
		if err != nil || u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
			return command.Usagef("--http %q is not an address that Slack can reach: give https://nize.example.com", at)
		}
		text = manifest.HTTP("https://" + u.Host)
	}
	c.Line("%s", strings.TrimRight(string(text), "\n"))
	return nil
}

var discordTexts = botTexts{
	title: "Discord",
	usage: "check a token from standard input and start the bot",
	more: "nizectl bots discord connect --guild ID < token.txt\n\nThe token is the one of the app's page Bot at https://discord.com/developers/applications, shown once by Reset Token. " +
		"The id of the server is in its menu in Discord, in developer mode. nize leaves every other server that it is let into.",
	tokens: []string{"the bot token"},
	first:  "nizectl bots discord invite-url --app ID, then nizectl bots discord connect --guild ID < token.txt",
	team:   &cli.StringFlag{Name: "guild", Usage: "work in the server with this `ID`"},
	commands: func(a *command.App) []*cli.Command {
		return []*cli.Command{a.Command(command.Leaf{Name: "invite-url", Usage: "print the address that invites the bot", Run: discordInvite, Flags: []cli.Flag{
			&cli.StringFlag{Name: "app", Usage: "the app's Application `ID` (default: the connected app)"},
			&cli.StringFlag{Name: "guild", Usage: "for the server with this `ID`"}}})}
	},
}

func discordInvite(ctx context.Context, c *command.Call) error {
	app := c.Cmd.String("app")
	if app == "" {
		list, err := api.ListBots.Call(ctx, c.API, api.Empty{})
		if err != nil {
			return err
		}
		for _, b := range list.Items {
			if b.Surface == store.OnDiscord {
				app = b.App
			}
		}
	}
	for _, id := range []string{app, c.Cmd.String("guild")} {
		if strings.Trim(id, "0123456789") != "" {
			return command.Usagef("%q is not a Discord id; it consists of digits", id)
		}
	}
	if app == "" {
		return command.Usagef("no bot is connected yet: give --app ID, the Application ID of the app's page General Information")
	}
	at := invite.URL(app, c.Cmd.String("guild"))
	if c.JSON {
		return c.PrintJSON(map[string]string{"url": at})
	}
	c.Line("%s", display.Clean(at))
	return nil
}

// botAccessCommand sets who may use a bot, if its platform knows more about people than
// bots.access.
func botAccessCommand(a *command.App) *cli.Command {
	return command.Group("access", "set who may use a bot",
		a.Command(command.Leaf{Name: string(store.OnDiscord), Usage: "set who may use nize on Discord", Run: discordAccess, Flags: []cli.Flag{
			&cli.StringFlag{Name: "role", Usage: "people with the `ROLE`, by id or name"},
			&cli.BoolFlag{Name: "everyone", Usage: "everyone in the server"},
			&cli.BoolFlag{Name: "admins", Usage: "admins of nize and people who manage the server (the default)"}},
			More: "Admins may always use it.\nFor other platforms, use the setting bots.access."}))
}

func discordAccess(ctx context.Context, c *command.Call) error {
	req := api.BotAccessRequest{Name: string(store.OnDiscord), Role: c.Cmd.String("role")}
	given := 0
	for flag, who := range map[string]string{"everyone": "everyone", "admins": "admins"} {
		if c.Cmd.Bool(flag) {
			req.Who = who
			given++
		}
	}
	if req.Role != "" {
		given++
	}
	if given != 1 {
		return command.Usagef("bots access discord takes one of --role ROLE, --everyone and --admins")
	}
	set, err := api.SetBotAccess.Call(ctx, c.API, req)
	if err != nil {
		return err
	}
	who := map[string]string{"everyone": "everyone in the server", "admins": "admins of nize and people who manage the server"}[set.Access]
	if who == "" {
		who = "those with the role " + set.Role + ", and admins"
	}
	return c.Report(set, "on Discord, nize answers %s from now on", who)
}
