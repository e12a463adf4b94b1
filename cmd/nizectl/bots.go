package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/command"
	"nize/cmd/nizectl/display"
	"nize/daemon/api"
	"nize/store"
)

// botTexts are the texts about connecting a bot of one platform.
type botTexts struct {
	title     string                              // the platform's name as displayed
	usage     string                              // of connect
	more      string                              // of connect
	tokens    []string                            // prompts, one per line of input
	first     string                              // how to begin: shown if there is no bot
	team      cli.Flag                            // of connect: the workspace or guild; nil if a token contains it
	endpoints string                              // text before the paths at which the platform reaches nized
	commands  func(a *command.App) []*cli.Command // commands of this platform only
}

// textsOf returns the texts of a platform; the default asks for one token.
func textsOf(at store.Surface) botTexts {
	switch at {
	case store.OnSlack:
		return slackTexts
	case store.OnDiscord:
		return discordTexts
	}
	return botTexts{title: string(at), usage: "check a token from standard input and start the bot", tokens: []string{"the token"}, commands: func(*command.App) []*cli.Command { return nil }}
}

func botsCommand(a *command.App) *cli.Command {
	all := command.Group("bots", "connect Slack and Discord; manage the bots",
		a.Command(command.Leaf{Name: "status", Usage: "show the state of each bot", Run: botsStatus}),
		botChannelsCommand(a),
		botAccessCommand(a),
	)
	for _, at := range store.ChatSurfaces {
		name, texts := string(at), textsOf(at)
		var flags []cli.Flag
		if texts.team != nil {
			flags = append(flags, texts.team)
		}
		connect := a.Command(command.Leaf{Name: "connect", Usage: texts.usage, Run: botsConnect(name, texts), More: texts.more, Flags: flags})
		all.Commands = append(all.Commands, command.Group(name, "manage the bot on "+texts.title, slices.Concat(texts.commands(a), []*cli.Command{connect}, botCommandsCommands(a, name))...))
	}
	return all
}

// botCommandsCommands returns the commands of every bot.
func botCommandsCommands(a *command.App, name string) []*cli.Command {
	return []*cli.Command{
		a.Command(command.Leaf{Name: "start", Usage: "start the bot, now and with the daemon", Run: botsSwitch(name, true)}),
		a.Command(command.Leaf{Name: "stop", Usage: "stop the bot until it is started again", Run: botsSwitch(name, false)}),
		a.Command(command.Leaf{Name: "sweep", Usage: "find people who left the platform, now", More: "The daemon does it once a day.", Run: botsSweep(name)}),
		a.Command(command.Leaf{Name: "claim", Usage: "make a new code that makes its sender an admin", Run: botsClaim(name)}),
		a.Command(command.Leaf{Name: "disconnect", Usage: "stop the bot and delete its tokens", Run: botsDisconnect(name), Flags: []cli.Flag{command.YesFlag()}}),
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
	var first []string
	for _, at := range store.ChatSurfaces {
		first = append(first, textsOf(at).first)
	}
	t.Print("no bots: " + strings.Join(first, "; or "))
	return nil
}

// botsConnect reads tokens, one per line, and never echoes them.
func botsConnect(name string, texts botTexts) func(context.Context, *command.Call) error {
	return func(ctx context.Context, c *command.Call) error {
		req := api.ConnectBotRequest{Name: name}
		if texts.team != nil {
			flag := texts.team.Names()[0]
			if req.Team = c.Cmd.String(flag); req.Team == "" {
				return command.Usagef("--%s is missing: see nizectl bots %s connect --help", flag, name)
			}
		}
		for _, what := range texts.tokens {
			c.SkipBlank()
			text, err := command.OneWord(c.SecretLine(what))
			if err != nil {
				return err
			}
			req.Tokens = append(req.Tokens, api.NewSecret(text))
		}
		done := c.Busy("asking %s…", texts.title)
		made, err := api.ConnectBot.Call(ctx, c.API, req)
		done()
		if err != nil {
			return err
		}
		if c.JSON {
			return c.PrintJSON(made)
		}
		c.Line("connected to %s (%s) as %s", display.Clean(made.TeamName), display.Clean(made.Team), display.Clean(made.User))
		for _, advice := range made.Advice {
			c.Note("%s", display.Clean(advice))
		}
		printClaim(c, made.Claim)
		if len(made.Endpoints) > 0 {
			c.Note("%s", texts.endpoints)
			for _, at := range made.Endpoints {
				c.Note("  %s", at)
			}
			if strings.HasPrefix(made.Endpoints[0], "/") {
				c.Note("behind the https address at which %s reaches nized; nized --public-url makes it known", texts.title)
			}
		}
		return nil
	}
}

// printClaim prints the message that makes its sender an admin.
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

// swept returns when the bot last looked for people who left.
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
		return c.Report(b, "looking up everyone on %s, about 40 a minute; nizectl bots status shows the progress", name)
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
