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
	"nize/cmd/nizectl/display"
	"nize/daemon/api"
	"nize/store"
)

func (a *app) bots() *cli.Command {
	return group("bots", "nize's accounts on chat platforms",
		a.command(leaf{name: "status", usage: "show how each bot fares", run: botsStatus}),
		a.botChannels(),
		group("slack", "the bot on Slack", append([]*cli.Command{
			a.command(leaf{name: "manifest", usage: "print the app as Slack is to make it", run: slackManifest, flags: []cli.Flag{
				&cli.StringFlag{Name: "http", Usage: "for HTTP mode, with request URLs at this https `ORIGIN` of nized"}},
				more: "Create the app at https://api.slack.com/apps with \"From a manifest\", install it, and make an app-level token with connections:write."}),
			a.command(leaf{name: "connect", usage: "check two tokens from standard input and start the bot", run: botsConnect("slack"),
				more: "nizectl bots slack connect < tokens.txt\n\nOne line each, in any order: the bot token (xoxb-…) and the app-level token (xapp-…), or the signing secret for HTTP mode."}),
		}, a.botCommands("slack")...)...),
	)
}

// botCommands are those that every bot has.
func (a *app) botCommands(name string) []*cli.Command {
	return []*cli.Command{
		a.command(leaf{name: "start", usage: "start the bot; it starts with the daemon from now on", run: botsSwitch(name, true)}),
		a.command(leaf{name: "stop", usage: "stop the bot; it stays stopped over restarts", run: botsSwitch(name, false)}),
		a.command(leaf{name: "sweep", usage: "look now for people who left the platform, as is done once a day", run: botsSweep(name)}),
		a.command(leaf{name: "claim", usage: "make a new code that makes its sender an admin", run: botsClaim(name)}),
		a.command(leaf{name: "disconnect", usage: "stop the bot and forget its tokens", run: botsDisconnect(name), flags: []cli.Flag{yesFlag()}}),
	}
}

func botsStatus(ctx context.Context, c *call) error {
	list, err := c.api.Bots(ctx)
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(items(list))
	}
	t := c.table("BOT", "STATE", "SINCE", "TEAM", "MODE", "EVENTS", "LAST EVENT", "SWEPT", "ERROR").text(8)
	t.state = 1
	for _, b := range list {
		state := b.State
		if !b.Enabled {
			state = "stopped"
		}
		t.row(string(b.Surface), state, c.when(b.Since), b.TeamName, b.Mode, strconv.FormatInt(b.Events, 10), c.when(b.LastEvent), c.swept(b.Sweep), b.Error)
	}
	t.print("no bots: nizectl bots slack manifest, then nizectl bots slack connect < tokens.txt")
	return nil
}

func slackManifest(_ context.Context, c *call) error {
	text := manifest.JSON
	if at := c.cmd.String("http"); at != "" {
		u, err := url.Parse(at)
		if err != nil || u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
			return usagef("--http %q is no address that Slack could reach: give https://nize.example.com", at)
		}
		text = manifest.HTTP("https://" + u.Host)
	}
	c.line("%s", strings.TrimRight(string(text), "\n"))
	return nil
}

// botsConnect reads two tokens, one a line, and never echoes them.
func botsConnect(name string) func(context.Context, *call) error {
	return func(ctx context.Context, c *call) error {
		var req api.ConnectBot
		for _, what := range []string{"the bot token (xoxb-…), or the other", "the app-level token (xapp-…), or the signing secret"} {
			c.skipBlank()
			text, err := oneWord(c.secretLine(what))
			if err != nil {
				return err
			}
			req.Tokens = append(req.Tokens, api.NewSecret(text))
		}
		done := c.busy("asking Slack…")
		made, err := c.api.ConnectBot(ctx, name, req)
		done()
		if err != nil {
			return err
		}
		if c.json {
			return c.printJSON(made)
		}
		c.line("connected to %s (%s) as %s", display.Clean(made.TeamName), made.Team, made.User)
		c.claim(made.Claim)
		if len(made.Endpoints) > 0 {
			c.note("in the app's settings, these are the request URLs of events, of interactivity, and of /nize:")
			for _, at := range made.Endpoints {
				c.note("  %s", at)
			}
			if strings.HasPrefix(made.Endpoints[0], "/") {
				c.note("behind the https address at which Slack reaches nized; nized --public-url makes it known")
			}
		}
		return nil
	}
}

// claim prints the one line that makes its sender an admin.
func (c *call) claim(claim api.Claim) {
	c.line("%s", claim.Send)
	c.note("send that line in the chat before %s to become an admin there; it works once", claim.Expires.Local().Format(time.TimeOnly))
}

func botsClaim(name string) func(context.Context, *call) error {
	return func(ctx context.Context, c *call) error {
		claim, err := c.api.ClaimBot(ctx, name)
		if err != nil {
			return err
		}
		if c.json {
			return c.printJSON(claim)
		}
		c.claim(claim)
		return nil
	}
}

func botsSwitch(name string, on bool) func(context.Context, *call) error {
	return func(ctx context.Context, c *call) error {
		b, err := c.api.SwitchBot(ctx, name, on)
		if err != nil {
			return err
		}
		word := "stopped"
		if on {
			word = "started"
		}
		return c.report(b, "%s %s", name, word)
	}
}

// swept says when it was last looked for people who left.
func (c *call) swept(s *store.Sweep) string {
	switch {
	case s == nil:
		return "-"
	case s.UnderWay():
		return fmt.Sprintf("under way, %d so far", s.Checked)
	case s.Failed > 0:
		return fmt.Sprintf("%s, %d not found out", c.when(s.Ended), s.Failed)
	}
	return c.when(s.Ended)
}

func botsSweep(name string) func(context.Context, *call) error {
	return func(ctx context.Context, c *call) error {
		b, err := c.api.SweepBot(ctx, name)
		if err != nil {
			return err
		}
		return c.report(b, "looking up everybody on %s, some 40 a minute; nizectl bots status says how far it is", name)
	}
}

func botsDisconnect(name string) func(context.Context, *call) error {
	return func(ctx context.Context, c *call) error {
		if err := c.confirm("Stop the bot on %s and forget its tokens?", name); err != nil {
			return err
		}
		if err := c.api.RemoveBot(ctx, name); err != nil {
			return err
		}
		return c.removed("bot", name)
	}
}
