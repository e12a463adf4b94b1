package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/url"
	"syscall"

	"github.com/urfave/cli/v3"

	"nize/bots/chattest/page"
	"nize/bots/discord/discordtest"
	discordpage "nize/bots/discord/discordtest/page"
	"nize/bots/slack/slacktest"
	slackpage "nize/bots/slack/slacktest/page"
	"nize/cmd/nizectl/command"
	"nize/daemon/api"
)

func devCommand(a *command.App) *cli.Command {
	return command.Group("dev", "pretended platforms on this machine, to try and to develop the chat front ends", a.Command(command.Leaf{
		Name: "slack", Usage: "serve a pretended Slack with a page to act as its people", Run: devSlack,
		More: "A workspace in memory: channels, threads, dialogs, commands, App Home, with Slack's limits\n" +
			"and error codes. It is gone when the command ends (Ctrl-C). No account is needed, and\n" +
			"nothing leaves the machine.",
		Flags: []cli.Flag{
			listenFlag(),
			&cli.StringFlag{Name: "http", Usage: "the app is at this base `URL` in HTTP mode, instead of Socket Mode"},
		}}), a.Command(command.Leaf{
		Name: "discord", Usage: "serve a pretended Discord with a page to act as its people", Run: devDiscord,
		More: "A server in memory: channels, threads, dialogs, commands, with Discord's limits, rate limits\n" +
			"and error codes. It is gone when the command ends (Ctrl-C). No account is needed, and\n" +
			"nothing leaves the machine.",
		Flags: []cli.Flag{listenFlag()},
	}))
}

func listenFlag() cli.Flag {
	return &cli.StringFlag{Name: "listen", Value: "127.0.0.1:0", Usage: "a loopback `ADDRESS`; port 0 is any free one"}
}

// pretended is what dev prints with --json.
type pretended struct {
	Page          string `json:"page"`
	APIURL        string `json:"api_url"`
	BotToken      string `json:"bot_token"`
	AppToken      string `json:"app_token,omitempty"`
	SigningSecret string `json:"signing_secret,omitempty"`
	Guild         string `json:"guild,omitempty"`
}

// devSlack serves until it is interrupted. The tokens are new each time: any
// program of this machine can reach the port, and only those who read this
// terminal should be able to act.
func devSlack(ctx context.Context, c *command.Call) error {
	listener, err := listenLoopback(c.Cmd.String("listen"))
	if err != nil {
		return err
	}
	if at := c.Cmd.String("http"); at != "" {
		if u, err := url.Parse(at); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			listener.Close()
			return command.Usagef("--http %q is not the address of an app: give http://127.0.0.1:19560", at)
		}
	}
	slack := slacktest.New(slacktest.Options{
		BotToken: "xoxb-fake-" + rand.Text(), AppToken: "xapp-1-" + slacktest.App + "-fake-" + rand.Text(), SigningSecret: hexText(), Endpoint: c.Cmd.String("http"),
	})
	defer slack.Close()
	served := &page.Page{Platform: slackpage.Platform{Server: slack}, Key: rand.Text()}
	if err := slack.StartWith(listener, served.Handler()); err != nil {
		return fmt.Errorf("serving the pretended Slack: %w", err)
	}
	second := slack.AppToken()
	if c.Cmd.String("http") != "" {
		second = slack.SigningSecret()
	}
	return untilInterrupted(ctx, c, "slack", pretended{Page: served.Address(slack.URL()), APIURL: slack.APIURL(), BotToken: slack.BotToken(), AppToken: slack.AppToken(), SigningSecret: slack.SigningSecret()},
		fmt.Sprintf("printf '%%s\\n' %s %s | nizectl bots slack connect", slack.BotToken(), second))
}

// devDiscord serves until it is interrupted, with a token of its own, as
// devSlack does.
func devDiscord(ctx context.Context, c *command.Call) error {
	listener, err := listenLoopback(c.Cmd.String("listen"))
	if err != nil {
		return err
	}
	discord := discordtest.New(discordtest.Options{Token: "fake." + rand.Text()[:6] + "." + rand.Text()})
	defer discord.Close()
	served := &page.Page{Platform: discordpage.Platform{Server: discord}, Key: rand.Text()}
	if err := discord.Serve(listener, served.Handler()); err != nil {
		return fmt.Errorf("serving the pretended Discord: %w", err)
	}
	return untilInterrupted(ctx, c, "discord", pretended{Page: served.Address(discord.URL()), APIURL: discord.APIURL(), BotToken: discord.BotToken(), Guild: discordtest.Guild},
		fmt.Sprintf("printf '%%s\\n' %s | nizectl bots discord connect --guild %s", discord.BotToken(), discordtest.Guild))
}

// untilInterrupted prints what is served and how nized is connected to it, and
// waits.
func untilInterrupted(ctx context.Context, c *command.Call, name string, out pretended, connect string) (err error) {
	if c.JSON {
		err = c.PrintJSON(out)
	} else {
		c.Line("A pretended %s, until Ctrl-C. Open in a browser: %s", map[string]string{"slack": "Slack", "discord": "Discord"}[name], out.Page)
		c.Line("")
		c.Line("To connect nized to it:")
		c.Line("  nizectl config set %s.api_url %s", name, out.APIURL)
		c.Line("  %s", connect)
		c.Line("and to leave it again: nizectl bots %[1]s disconnect --yes; nizectl config unset %[1]s.api_url", name)
	}
	if err != nil {
		return err
	}
	if err := c.Out.Flush(); err != nil {
		return command.Failf(api.ExitFailed, "writing the answer: %v", err)
	}
	<-ctx.Done()
	return nil
}

// hexText is 32 random characters of the form of a signing secret.
func hexText() string {
	raw := make([]byte, 16)
	_, _ = rand.Read(raw) // never fails
	return hex.EncodeToString(raw)
}

// listenLoopback takes a port of the loopback and of nothing else.
func listenLoopback(address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, command.Usagef("--listen %q is not an address: give 127.0.0.1:PORT", address)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, command.Usagef("--listen %q is not on the loopback: give 127.0.0.1:PORT; anyone who reaches the page acts as anybody", address)
	}
	listener, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, command.Failf(api.ExitFailed, "%s is taken: give another port, or 127.0.0.1:0 for any", address)
	}
	if err != nil {
		return nil, command.Failf(api.ExitFailed, "listening on %s: %v", address, err)
	}
	return listener, nil
}
