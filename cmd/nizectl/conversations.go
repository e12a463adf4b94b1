package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/display"
	"nize/daemon/api"
	"nize/store"
)

// conversations are the commands about what was said, beside chat itself.
func (a *app) conversations() []*cli.Command {
	return []*cli.Command{
		a.command(leaf{name: "list", usage: "list the conversations that you began, in any chat", run: conversationsList}),
		a.command(leaf{name: "show", args: "ID", usage: "show a conversation that you took part in", names: conversationIDs, run: conversationsShow,
			flags: []cli.Flag{&cli.StringFlag{Name: "reason", Usage: "`WHY`, kept in the audit; admins need one to read others' conversations"}}}),
		a.command(leaf{name: "forget", args: "ID", usage: "erase a conversation, also what others said in it", names: conversationIDs, run: conversationsForget,
			flags: []cli.Flag{yesFlag()}}),
	}
}

func conversationIDs(ctx context.Context, c *api.Client) ([]string, error) {
	list, err := c.Threads(ctx)
	return each(list, func(th store.Thread) string { return th.ID }), err
}

func conversationsList(ctx context.Context, c *call) error {
	list, err := c.api.Threads(ctx)
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(items(list))
	}
	t := c.table("ID", "WHERE", "LAST", "ABOUT").text(3)
	for _, th := range list {
		t.row(th.ID, string(th.Address.Surface), c.when(th.Updated), clip(th.Title, 60))
	}
	t.print("no conversations")
	return nil
}

func conversationsShow(ctx context.Context, c *call) error {
	view, err := c.api.ReadThread(ctx, c.arg(0), c.cmd.String("reason"))
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(view)
	}
	c.field("conversation", view.Thread.ID)
	c.field("where", string(view.Thread.Address.Surface))
	c.field("about", view.Thread.Title)
	for _, t := range view.Turns {
		c.line("")
		c.line("%s", c.paint(bold, speaker(t)+", "+c.when(t.At)+":"))
		for _, tc := range t.Calls {
			c.line("%s", display.CleanLines(indent(tc.Name+" "+tc.Args)))
		}
		if strings.TrimSpace(t.Text) != "" {
			c.line("%s", display.CleanLines(indent(t.Text)))
		}
	}
	for _, card := range view.Cards {
		c.note("%s waits: nizectl approvals show %s", card.Tool, card.Call)
	}
	return nil
}

// speaker is who says a turn.
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
	}
	if t.Model == "" {
		return "assistant"
	}
	return fmt.Sprintf("assistant (%s)", t.Model)
}

func conversationsForget(ctx context.Context, c *call) error {
	if err := c.confirm("Erase conversation %s: what was said in it, also by others, what its tools were asked and answered, and what the audit tells of it? This can't be taken back.", c.arg(0)); err != nil {
		return err
	}
	f, err := c.api.ForgetThread(ctx, c.arg(0))
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(f)
	}
	c.note("conversation %s is forgotten: %s, %s and %s erased", c.arg(0), count(f.Turns, "message"), count(f.Calls, "call"), count(f.Events, "event"))
	c.note("what stands in the chat itself stays there; usage figures stay, and backups made before hold what they held")
	return nil
}
