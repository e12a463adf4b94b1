package main

import (
	"context"
	"os/signal"
	"syscall"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/chat"
	"nize/cmd/nizectl/command"
)

func chatCommand(a *command.App) *cli.Command {
	command := a.Command(command.Leaf{Name: "chat", Usage: "talk to the assistant in this terminal", Run: runChat, Flags: []cli.Flag{
		&cli.StringFlag{Name: "message", Aliases: []string{"m"}, Usage: "one turn with this `TEXT`, for scripts"},
		&cli.StringFlag{Name: "agent", Usage: "the agent to talk to (default: the default one)"},
		&cli.StringFlag{Name: "model", Usage: "the model's name (default: the agent's)"},
		&cli.StringSliceFlag{Name: "server", Usage: "a server whose tools may be used; may be repeated (default: all)"},
		&cli.StringFlag{Name: "resume", Usage: "continue the conversation with this `ID`"},
		&cli.StringFlag{Name: "approve", Usage: "how to answer calls that need approval: ask, all or none (default: ask on a terminal, otherwise none)"},
		&cli.BoolFlag{Name: "ephemeral", Hidden: true, Usage: "the daemon ends with this chat: don't say how to go on with it"},
		&cli.BoolFlag{Name: "plain", Usage: "line by line, without redrawing"},
	}})
	command.Commands = conversationsCommands(a)
	return command
}

// runChat runs the package chat, which reads keys and Ctrl-C itself: pressed once it stops
// the turn, twice it leaves. So only SIGTERM ends the context.
func runChat(ctx context.Context, c *command.Call) error {
	if c.Cmd.IsSet("message") && c.Cmd.String("message") == "" {
		return command.Usagef("-m is empty: give a message, or omit -m to chat")
	}
	resume := c.Cmd.String("resume")
	if resume != "" {
		var err error
		if resume, err = command.WholeID(ctx, c.API, resume, conversationIDs); err != nil {
			return err
		}
	}
	ctx, stop := signal.NotifyContext(context.WithoutCancel(ctx), syscall.SIGTERM)
	defer stop()
	return chat.Run(ctx, chat.Options{
		Client: c.API, In: c.In, Out: c.Raw, Err: c.Err, TTY: c.InTTY && c.OutTTY,
		Agent: c.Cmd.String("agent"), Model: c.Cmd.String("model"), Servers: c.Cmd.StringSlice("server"),
		Resume: resume, Message: c.Cmd.String("message"), Approve: c.Cmd.String("approve"),
		Plain: c.Cmd.Bool("plain"), Ephemeral: c.Cmd.Bool("ephemeral"), JSON: c.JSON,
		Getenv: c.Env, Now: c.Now,
	})
}
