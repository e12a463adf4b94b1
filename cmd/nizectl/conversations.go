package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/command"
	"nize/cmd/nizectl/display"
	"nize/daemon/api"
	"nize/store"
	"nize/store/printable"
)

// conversationsCommands returns the commands for conversations except chat itself.
func conversationsCommands(a *command.App) []*cli.Command {
	return []*cli.Command{
		a.Command(command.Leaf{Name: "list", Usage: "list the conversations that you began, in any chat", Run: conversationsList}),
		a.Command(command.Leaf{Name: "show", Args: "ID", Usage: "show a conversation that you took part in", IDs: conversationIDs, Run: conversationsShow,
			Flags: []cli.Flag{&cli.StringFlag{Name: "reason", Usage: "`WHY`, recorded in the audit trail; admins need one to read others' conversations"}}}),
		a.Command(command.Leaf{Name: "forget", Args: "ID", Usage: "erase a conversation, including messages of others", IDs: conversationIDs, Run: conversationsForget,
			Flags: []cli.Flag{command.YesFlag()}}),
	}
}

func conversationIDs(ctx context.Context, c *api.Client) ([]command.ID, error) {
	list, err := api.ListConversations.Call(ctx, c, api.Empty{})
	return command.Each(list.Items, func(th store.Thread) command.ID { return command.ID{ID: th.ID, About: th.Title} }), err
}

func conversationsList(ctx context.Context, c *command.Call) error {
	list, err := api.ListConversations.Call(ctx, c.API, api.Empty{})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(command.Items(list.Items))
	}
	t := c.Table("ID", "WHERE", "LAST", "ABOUT").Text(3)
	for _, th := range list.Items {
		t.Row(th.ID, string(th.Address.Surface), c.When(th.Updated), th.Title)
	}
	t.Print("no conversations")
	return nil
}

func conversationsShow(ctx context.Context, c *command.Call) error {
	view, err := api.ShowConversation.Call(ctx, c.API, api.ShowConversationRequest{ID: c.Arg(0), Reason: c.Cmd.String("reason")})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(view)
	}
	c.Field("conversation", view.Thread.ID)
	c.Field("where", string(view.Thread.Address.Surface))
	c.Field("about", view.Thread.Title)
	for _, t := range view.Turns {
		c.Line("")
		c.Line("%s", c.Paint(command.Bold, display.Clean(speaker(t))+", "+c.When(t.At)+":"))
		for _, tc := range t.Calls {
			c.Line("%s", display.CleanLines(command.Indent(tc.Name+" "+tc.Args)))
		}
		if text := store.WithRemark(t.Text, store.FinishRemark(t.Finish).String()); strings.TrimSpace(text) != "" {
			c.Line("%s", command.Indent(printable.Prose(text)))
		}
	}
	for _, card := range view.Cards {
		c.Note("%s waits: nizectl approvals show %s", card.Tool, card.Call)
	}
	return nil
}

// speaker returns the author of a turn.
func speaker(t store.Turn) string {
	switch t.Role {
	case store.FromUser:
		if t.By.Name != "" {
			return t.By.Name
		}
		return t.By.User
	case store.FromTool:
		return "result"
	case store.FromNize:
		return "nize"
	case store.FromSummary:
		return "summary for the model"
	case store.FromAgent:
		if t.As == store.FromUser {
			return "an agent, called by another one"
		}
		t.Role = t.As
		return "an agent's " + speaker(t)
	}
	if t.Model == "" {
		return "assistant"
	}
	return fmt.Sprintf("assistant (%s)", t.Model)
}

func conversationsForget(ctx context.Context, c *command.Call) error {
	if err := c.Confirm("Erase conversation %s: all messages in it, including those of others, the arguments and results of its calls, and their details in the audit trail? This can't be undone.", c.Arg(0)); err != nil {
		return err
	}
	f, err := api.ForgetConversation.Call(ctx, c.API, api.ConversationRequest{ID: c.Arg(0)})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(f)
	}
	c.Note("conversation %s is forgotten: %s, %s and %s erased", c.Arg(0), command.Count(f.Turns, "message"), command.Count(f.Calls, "call"), command.Count(f.Events, "event"))
	c.Note("the messages in the chat platform itself, usage figures and earlier backups are not changed")
	return nil
}
