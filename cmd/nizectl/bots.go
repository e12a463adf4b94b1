package main

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"nize/bots/slack/manifest"
	"nize/cmd/nizectl/command"
	"nize/cmd/nizectl/display"
	"nize/daemon/api"
	"nize/store"
)

func botsCommand(a *command.App) *cli.Command {
	return command.Group("bots", "nize's accounts on chat platforms",
		a.Command(command.Leaf{Name: "status", Usage: "show how each bot fares", Run: botsStatus}),
		botChannelsCommand(a),
		command.Group("slack", "the bot on Slack", append([]*cli.Command{
			a.Command(command.Leaf{Name: "manifest", Usage: "print the app as Slack is to make it", Run: slackManifest, Flags: []cli.Flag{
				&cli.StringFlag{Name: "http", Usage: "for HTTP mode, with request URLs at this https `ORIGIN` of nized"}},
				More: "Create the app at https://api.slack.com/apps with \"From a manifest\", install it, and make an app-level token with connections:write."}),
			a.Command(command.Leaf{Name: "connect", Usage: "check two tokens from standard input and start the bot", Run: botsConnect("slack"),
				More: "nizectl bots slack connect < tokens.txt\n\nOne line each, in any order: the bot token (xoxb-…) and the app-level token (xapp-…), or the signing secret for HTTP mode."}),
		}, botCommandsCommands(a, "slack")...)...),
	)
}

// botCommandsCommands are those that every bot has.
func botCommandsCommands(a *command.App, name string) []*cli.Command {
	return []*cli.Command{
		a.Command(command.Leaf{Name: "start", Usage: "start the bot; it starts with the daemon from now on", Run: botsSwitch(name, true)}),
		a.Command(command.Leaf{Name: "stop", Usage: "stop the bot; it stays stopped over restarts", Run: botsSwitch(name, false)}),
		a.Command(command.Leaf{Name: "sweep", Usage: "look now for people who left the platform, as is done once a day", Run: botsSweep(name)}),
		a.Command(command.Leaf{Name: "claim", Usage: "make a new code that makes its sender an admin", Run: botsClaim(name)}),
		a.Command(command.Leaf{Name: "disconnect", Usage: "stop the bot and forget its tokens", Run: botsDisconnect(name), Flags: []cli.Flag{command.YesFlag()}}),
	}
}

func botsStatus(ctx context.Context, c *command.Call) error {
	list, err := api.ListBots.Call(ctx, c.API, api.Empty{})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(command.Items(list.Items))
	}
	t := c.Table("BOT", "STATE", "SINCE", "TEAM", "MODE", "EVENTS", "LAST EVENT", "SWEPT", "ERROR").Text(8)
	t.State = 1
	for _, b := range list.Items {
		state := b.State
		if !b.Enabled {
			state = "stopped"
		}
		t.Row(string(b.Surface), state, c.When(b.Since), b.TeamName, b.Mode, strconv.FormatInt(b.Events, 10), c.When(b.LastEvent), swept(c, b.Sweep), b.Error)
	}
	t.Print("no bots: nizectl bots slack manifest, then nizectl bots slack connect < tokens.txt")
	return nil
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

// botsConnect reads two tokens, one a line, and never echoes them.
func botsConnect(name string) func(context.Context, *command.Call) error {
	return func(ctx context.Context, c *command.Call) error {
		req := api.ConnectBotRequest{Name: name}
		for _, what := range []string{"the bot token (xoxb-…), or the other", "the app-level token (xapp-…), or the signing secret"} {
			c.SkipBlank()
			text, err := oneWord(c.SecretLine(what))
			if err != nil {
				return err
			}
			req.Tokens = append(req.Tokens, api.NewSecret(text))
		}
		done := c.Busy("asking Slack…")
		made, err := api.ConnectBot.Call(ctx, c.API, req)
		done()
		if err != nil {
			return err
		}
		if c.JSON {
			return c.PrintJSON(made)
		}
		c.Line("connected to %s (%s) as %s", display.Clean(made.TeamName), made.Team, made.User)
		printClaim(c, made.Claim)
		if len(made.Endpoints) > 0 {
			c.Note("in the app's settings, these are the request URLs of events, of interactivity, and of /nize:")
			for _, at := range made.Endpoints {
				c.Note("  %s", at)
			}
			if strings.HasPrefix(made.Endpoints[0], "/") {
				c.Note("behind the https address at which Slack reaches nized; nized --public-url makes it known")
			}
		}
		return nil
	}
}

// printClaim prints the one line that makes its sender an admin.
func printClaim(c *command.Call, claim api.Claim) {
	c.Line("%s", display.Clean(claim.Send))
	c.Note("send that line in the chat before %s to become an admin there; it works once", claim.Expires.Local().Format(time.TimeOnly))
}

func botsClaim(name string) func(context.Context, *command.Call) error {
	return func(ctx context.Context, c *command.Call) error {
		claim, err := api.ClaimBot.Call(ctx, c.API, api.BotRequest{Name: name})
		if err != nil {
			return err
		}
		if c.JSON {
			return c.PrintJSON(claim)
		}
		printClaim(c, claim)
		return nil
	}
}

func botsSwitch(name string, on bool) func(context.Context, *command.Call) error {
	return func(ctx context.Context, c *command.Call) error {
		op, word := api.StopBot, "stopped"
		if on {
			op, word = api.StartBot, "started"
		}
		b, err := op.Call(ctx, c.API, api.BotRequest{Name: name})
		if err != nil {
			return err
		}
		return c.Report(b, "%s %s", name, word)
	}
}

// swept says when it was last looked for people who left.
func swept(c *command.Call, s *store.Sweep) string {
	switch {
	case s == nil:
		return "-"
	case s.UnderWay():
		return fmt.Sprintf("under way, %d so far", s.Checked)
	case s.Failed > 0:
		return fmt.Sprintf("%s, %d not found out", c.When(s.Ended), s.Failed)
	}
	return c.When(s.Ended)
}

func botsSweep(name string) func(context.Context, *command.Call) error {
	return func(ctx context.Context, c *command.Call) error {
		b, err := api.SweepBot.Call(ctx, c.API, api.BotRequest{Name: name})
		if err != nil {
			return err
		}
		return c.Report(b, "looking up everybody on %s, some 40 a minute; nizectl bots status says how far it is", name)
	}
}

func botsDisconnect(name string) func(context.Context, *command.Call) error {
	return func(ctx context.Context, c *command.Call) error {
		if err := c.Confirm("Stop the bot on %s and forget its tokens?", name); err != nil {
			return err
		}
		if _, err := api.RemoveBot.Call(ctx, c.API, api.BotRequest{Name: name}); err != nil {
			return err
		}
		return c.Removed("bot", name)
	}
}
