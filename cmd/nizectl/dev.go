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

	"nize/bots/slack/slacktest"
	"nize/bots/slack/slacktest/page"
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
			&cli.StringFlag{Name: "listen", Value: "127.0.0.1:0", Usage: "a loopback `ADDRESS`; port 0 is any free one"},
			&cli.StringFlag{Name: "http", Usage: "the app is at this base `URL` in HTTP mode, instead of Socket Mode"},
		}}))
}

// pretended is what dev slack prints with --json.
type pretended struct {
	Page          string `json:"page"`
	APIURL        string `json:"api_url"`
	BotToken      string `json:"bot_token"`
	AppToken      string `json:"app_token"`
	SigningSecret string `json:"signing_secret"`
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
	served := &page.Page{Slack: slack, Key: rand.Text()}
	if err := slack.StartWith(listener, served.Handler()); err != nil {
		return fmt.Errorf("serving the pretended Slack: %w", err)
	}
	out := pretended{Page: served.Address(slack.URL()), APIURL: slack.APIURL(), BotToken: slack.BotToken(), AppToken: slack.AppToken(), SigningSecret: slack.SigningSecret()}
	if c.JSON {
		err = c.PrintJSON(out)
	} else {
		c.Line("A pretended Slack, until Ctrl-C. Open in a browser: %s", out.Page)
		c.Line("")
		c.Line("To connect nized to it:")
		c.Line("  nizectl config set slack.api_url %s", out.APIURL)
		second := out.AppToken
		if c.Cmd.String("http") != "" {
			second = out.SigningSecret
		}
		c.Line("  printf '%%s\\n' %s %s | nizectl bots slack connect", out.BotToken, second)
		c.Line("and to leave it again: nizectl bots slack disconnect --yes; nizectl config unset slack.api_url")
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
