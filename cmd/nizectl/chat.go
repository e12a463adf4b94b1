package main

import (
	"context"
	"os/signal"
	"syscall"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/chat"
)

func (a *app) chat() *cli.Command {
	command := a.command(leaf{name: "chat", usage: "talk to the assistant in this terminal", run: runChat, flags: []cli.Flag{
		&cli.StringFlag{Name: "message", Aliases: []string{"m"}, Usage: "one turn with this `TEXT`, for scripts"},
		&cli.StringFlag{Name: "agent", Usage: "the agent to talk to (default: the default one)"},
		&cli.StringFlag{Name: "model", Usage: "the model's name (default: the agent's)"},
		&cli.StringSliceFlag{Name: "server", Usage: "a server whose tools may be used; may be repeated (default: all)"},
		&cli.StringFlag{Name: "resume", Usage: "go on with the conversation of this `ID`"},
		&cli.StringFlag{Name: "approve", Usage: "ask, all or none: what becomes of calls that need a yes (default: ask on a terminal, else none)"},
		&cli.BoolFlag{Name: "plain", Usage: "line by line, without redrawing"},
	}})
	command.Commands = a.conversations()
	return command
}

// runChat hands over to the package chat, which reads keys and Ctrl-C itself: once
// stops the turn, twice leaves. So only SIGTERM still ends the context.
func runChat(ctx context.Context, c *call) error {
	if c.cmd.IsSet("message") && c.cmd.String("message") == "" {
		return usagef("-m is empty: say something, or leave it out to chat")
	}
	ctx, stop := signal.NotifyContext(context.WithoutCancel(ctx), syscall.SIGTERM)
	defer stop()
	return chat.Run(ctx, chat.Options{
		Client: c.api, In: c.in, Out: c.raw, Err: c.err, TTY: c.inTTY && c.outTTY,
		Agent: c.cmd.String("agent"), Model: c.cmd.String("model"), Servers: c.cmd.StringSlice("server"),
		Resume: c.cmd.String("resume"), Message: c.cmd.String("message"), Approve: c.cmd.String("approve"),
		Plain: c.cmd.Bool("plain"), JSON: c.json,
		Getenv: c.env, Now: c.now,
	})
}
