// Package dev serves simulated Slack and Discord platforms on this machine, for
// development.
//
// `nizectl dev slack` and `nizectl dev discord` offer a page to act as the platform's
// people. With --connect the daemon uses the simulation until the command ends.
package dev

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"syscall"

	"github.com/urfave/cli/v3"

	"nize/bots/chattest/page"
	"nize/bots/discord/discordtest"
	discordpage "nize/bots/discord/discordtest/page"
	"nize/bots/slack/manifest"
	"nize/bots/slack/slacktest"
	slackpage "nize/bots/slack/slacktest/page"
	"nize/cmd/nizectl/command"
	"nize/daemon/api"
)

// Command is the group of commands.
func Command(a *command.App) *cli.Command {
	return command.Group("dev", "try the chat front ends without an account", a.Command(command.Leaf{
		Name: "slack", Usage: "serve a simulated Slack and its page", Run: devSlack,
		More: "A workspace in memory with channels, threads, dialogs, commands and App Home, and with Slack's limits\n" +
			"and error codes. It is gone when the command ends (Ctrl-C). No account is needed, and\n" +
			"nothing leaves the machine.",
		Flags: []cli.Flag{
			listenFlag(), connectFlag("Slack"),
			&cli.StringFlag{Name: "http", Usage: "the app is at this base `URL` in HTTP mode, instead of Socket Mode"},
		}}), a.Command(command.Leaf{
		Name: "discord", Usage: "serve a simulated Discord and its page", Run: devDiscord,
		More: "A server in memory: channels, threads, dialogs, commands, with Discord's limits, rate limits\n" +
			"and error codes. It is gone when the command ends (Ctrl-C). No account is needed, and\n" +
			"nothing leaves the machine.",
		Flags: []cli.Flag{listenFlag(), connectFlag("Discord")},
	}))
}

func listenFlag() cli.Flag {
	return &cli.StringFlag{Name: "listen", Value: "127.0.0.1:0", Usage: "a loopback `ADDRESS`; port 0 is any free one"}
}

func connectFlag(title string) cli.Flag {
	return &cli.BoolFlag{Name: "connect", Usage: "connect nized's bot on " + title + " to it; at the end its account and address are restored, and the simulated people are removed"}
}

// pretended is the --json output of dev.
type pretended struct {
	Page          string `json:"page"`
	APIURL        string `json:"api_url"`
	BotToken      string `json:"bot_token"`
	AppToken      string `json:"app_token,omitempty"`
	SigningSecret string `json:"signing_secret,omitempty"`
	Guild         string `json:"guild,omitempty"`
	*connected           // with --connect
}

// double is a running simulated platform.
type double struct {
	name, title string
	page        *page.Page
	tokens      []string // credentials of nized's bot
	team        string   // set if the platform's tokens don't contain it
	out         pretended
	other       string          // the command that connects nized by hand
	people      func() []string // the identities of its people
}

// devSlack serves until it is interrupted. The tokens are new each time: any program of
// this machine can reach the port, but only people who read this terminal should be able to
// act.
func devSlack(ctx context.Context, c *command.Call) error {
	listener, err := listenLoopback(c.Cmd.String("listen"))
	if err != nil {
		return err
	}
	if at := c.Cmd.String("http"); at != "" {
		if c.Cmd.Bool("connect") {
			listener.Close()
			return command.Usagef("--connect uses Socket Mode, which --http excludes: give one of them")
		}
		if u, err := url.Parse(at); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			listener.Close()
			return command.Usagef("--http %q is not the base URL of an app, such as http://127.0.0.1:19560", at)
		}
	}
	slack := slacktest.New(slacktest.Options{
		BotToken: "xoxb-fake-" + rand.Text(), AppToken: "xapp-1-" + slacktest.App + "-fake-" + rand.Text(), SigningSecret: hexText(), Endpoint: c.Cmd.String("http"),
	})
	defer slack.Close()
	served := &page.Page{Platform: slackpage.Platform{Server: slack, Commands: slackCommands()}, Key: rand.Text()}
	if err := slack.StartWith(listener, served.Handler()); err != nil {
		return fmt.Errorf("serving the pretended Slack: %w", err)
	}
	second := slack.AppToken()
	if c.Cmd.String("http") != "" {
		second = slack.SigningSecret()
	}
	people := func() []string {
		return command.Each(slack.Users(), func(u slacktest.User) string { return "slack:" + u.Team + ":" + u.ID })
	}
	return untilInterrupted(ctx, c, double{name: "slack", people: people, title: "Slack", page: served, tokens: []string{slack.BotToken(), second},
		out:   pretended{Page: served.Address(slack.URL()), APIURL: slack.APIURL(), BotToken: slack.BotToken(), AppToken: slack.AppToken(), SigningSecret: slack.SigningSecret()},
		other: fmt.Sprintf("printf '%%s\\n' %s %s | nizectl bots slack connect", slack.BotToken(), second)})
}

// slackCommands returns the lines offered by the app's manifest.
func slackCommands() (list []page.Command) {
	for _, cmd := range manifest.Commands() {
		list = append(list, page.Command{Line: cmd.Name, About: cmd.About})
		for _, word := range strings.Split(strings.Trim(cmd.Hint, "[]"), "|") {
			if word = strings.TrimSpace(word); word != "" && word != "question" { // a placeholder for any text
				list = append(list, page.Command{Line: cmd.Name + " " + word})
			}
		}
	}
	return list
}

// devDiscord serves until it is interrupted, with a new token each time, like devSlack.
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
	people := func() []string {
		return command.Each(discord.Users(), func(u discordtest.User) string { return "discord:" + u.ID })
	}
	return untilInterrupted(ctx, c, double{name: "discord", people: people, title: "Discord", page: served, tokens: []string{discord.BotToken()}, team: discordtest.Guild,
		out:   pretended{Page: served.Address(discord.URL()), APIURL: discord.APIURL(), BotToken: discord.BotToken(), Guild: discordtest.Guild},
		other: fmt.Sprintf("printf '%%s\\n' %s | nizectl bots discord connect --guild %s", discord.BotToken(), discordtest.Guild)})
}

// untilInterrupted prints what is served and how to connect nized to it, or connects it,
// and waits.
func untilInterrupted(ctx context.Context, c *command.Call, d double) (err error) {
	if c.Cmd.Bool("connect") {
		return connect(ctx, c, d)
	}
	if c.JSON {
		err = c.PrintJSON(d.out)
	} else {
		c.Line("A pretended %s, until Ctrl-C. Open in a browser: %s", d.title, d.out.Page)
		c.Line("")
		c.Line("To connect nized to it (nizectl dev %s --connect does, and undoes it at the end):", d.name)
		c.Line("  nizectl config set %s.api_url %s", d.name, d.out.APIURL)
		c.Line("  %s", d.other)
		c.Line("and to disconnect it again: nizectl bots %[1]s disconnect --yes; nizectl config unset %[1]s.api_url", d.name)
	}
	if err := printed(c, err); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// printed flushes the output before a wait.
func printed(c *command.Call, err error) error {
	if err != nil {
		return err
	}
	if err := c.Out.Flush(); err != nil {
		return command.Failf(api.ExitFailed, "writing the answer: %v", err)
	}
	return nil
}

// hexText returns 32 random characters in the form of a signing secret.
func hexText() string {
	raw := make([]byte, 16)
	_, _ = rand.Read(raw) // never fails
	return hex.EncodeToString(raw)
}

// listenLoopback listens on the loopback interface only.
func listenLoopback(address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, command.Usagef("--listen %q is not an address: give 127.0.0.1:PORT", address)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, command.Usagef("--listen %q is not on the loopback: give 127.0.0.1:PORT; anyone who reaches the page can act as any person", address)
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
