package main

import (
	"context"
	"net/url"
	"strings"

	"github.com/urfave/cli/v3"

	"nize/bots/slack/manifest"
	"nize/cmd/nizectl/command"
)

var slackTexts = botTexts{
	title:     "Slack",
	usage:     "check two tokens from standard input and start the bot",
	more:      "nizectl bots slack connect < tokens.txt\n\nOne line each, in any order: the bot token (xoxb-…) and the app-level token (xapp-…), or the signing secret for HTTP mode.",
	tokens:    []string{"the bot token (xoxb-…), or the other", "the app-level token (xapp-…), or the signing secret"},
	first:     "nizectl bots slack manifest, then nizectl bots slack connect < tokens.txt",
	endpoints: "in the app's settings, these are the request URLs of events, of interactivity, and of /nize:",
	commands: func(a *command.App) []*cli.Command {
		return []*cli.Command{a.Command(command.Leaf{Name: "manifest", Usage: "print the app as Slack is to make it", Run: slackManifest, Flags: []cli.Flag{
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
