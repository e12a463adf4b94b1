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
	"nize/daemon/api"
)

func (a *app) dev() *cli.Command {
	return group("dev", "pretended platforms on this machine, to try and to develop the chat front ends", a.command(leaf{
		name: "slack", usage: "serve a pretended Slack with a page to act as its people", run: devSlack,
		more: "A workspace in memory: channels, threads, dialogs, commands, App Home, with Slack's limits\n" +
			"and error codes. It is gone when the command ends (Ctrl-C). No account is needed, and\n" +
			"nothing leaves the machine.",
		flags: []cli.Flag{
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
func devSlack(ctx context.Context, c *call) error {
	listener, err := listenLoopback(c.cmd.String("listen"))
	if err != nil {
		return err
	}
	if at := c.cmd.String("http"); at != "" {
		if u, err := url.Parse(at); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			listener.Close()
			return usagef("--http %q is no address of an app: give http://127.0.0.1:19560", at)
		}
	}
	slack := slacktest.New(slacktest.Options{
		BotToken: "xoxb-fake-" + rand.Text(), AppToken: "xapp-1-" + slacktest.App + "-fake-" + rand.Text(), SigningSecret: hexText(), Endpoint: c.cmd.String("http"),
	})
	defer slack.Close()
	served := &page.Page{Slack: slack, Key: rand.Text()}
	if err := slack.StartWith(listener, served.Handler()); err != nil {
		return fmt.Errorf("serving the pretended Slack: %w", err)
	}
	out := pretended{Page: served.Address(slack.URL()), APIURL: slack.APIURL(), BotToken: slack.BotToken(), AppToken: slack.AppToken(), SigningSecret: slack.SigningSecret()}
	if c.json {
		err = c.printJSON(out)
	} else {
		c.line("A pretended Slack, until Ctrl-C. Open in a browser: %s", out.Page)
		c.line("")
		c.line("To connect nized to it:")
		c.line("  nizectl config set slack.api_url %s", out.APIURL)
		second := out.AppToken
		if c.cmd.String("http") != "" {
			second = out.SigningSecret
		}
		c.line("  printf '%%s\\n' %s %s | nizectl bots slack connect", out.BotToken, second)
		c.line("and to leave it again: nizectl bots slack disconnect --yes; nizectl config unset slack.api_url")
	}
	if err != nil {
		return err
	}
	if err := c.out.Flush(); err != nil {
		return failf(api.ExitFailed, "writing the answer: %v", err)
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
		return nil, usagef("--listen %q is no address: give 127.0.0.1:PORT", address)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, usagef("--listen %q is not on the loopback: give 127.0.0.1:PORT; whoever reaches the page acts as anybody", address)
	}
	listener, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, failf(api.ExitFailed, "%s is taken: give another port, or 127.0.0.1:0 for any", address)
	}
	if err != nil {
		return nil, failf(api.ExitFailed, "listening on %s: %v", address, err)
	}
	return listener, nil
}
