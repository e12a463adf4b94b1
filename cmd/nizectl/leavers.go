package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"
)

func (a *app) usersLeavers() []*cli.Command {
	return []*cli.Command{
		a.command(leaf{name: "remove", args: "USER", usage: "take a person out; what they did stays until its retention ends", names: userNames, run: usersRemove,
			flags: []cli.Flag{yesFlag()}}),
		a.command(leaf{name: "export", args: "USER", usage: "everything that is kept about a person, as lines of JSON", names: userNames, run: usersExport,
			flags: []cli.Flag{&cli.StringFlag{Name: "reason", Usage: "`WHY`, kept in the audit; needed for others than yourself"}}}),
		a.command(leaf{name: "forget", args: "USER", usage: "remove a person and erase what is kept of them", names: userNames, run: usersForget,
			flags: []cli.Flag{yesFlag()}}),
	}
}

func usersRemove(ctx context.Context, c *call) error {
	was, err := c.api.User(ctx, c.arg(0))
	if err != nil {
		return err
	}
	if err := c.confirm("Remove %s, and end %s?", was.Name, endsOf(was)); err != nil {
		return err
	}
	if was, err = c.api.RemoveUser(ctx, was.ID); err != nil {
		return err
	}
	if c.json {
		return c.printJSON(was)
	}
	c.note("%s is removed; ended: %s", was.Name, endsOf(was))
	c.note("kept until their retention ends: conversations, calls, usage and audit; to erase them: nizectl users forget %s", was.ID)
	if reaches(was.Identities) {
		c.note("who comes with %s again is let in as somebody new; to keep a person out, disable them instead", strings.Join(was.Identities, ", "))
	}
	return nil
}

// reaches says whether somebody can come in with one of the identities.
func reaches(identities []string) bool {
	for _, id := range identities {
		if !strings.HasPrefix(id, "named:") {
			return true
		}
	}
	return false
}

func usersExport(ctx context.Context, c *call) error {
	for r, err := range c.api.ExportUser(ctx, c.arg(0), c.cmd.String("reason")) {
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(c.out, `{"kind":%q,"record":%s}`+"\n", r.Kind, r.Record); err != nil {
			return fmt.Errorf("writing the export: %w", err)
		}
	}
	return nil
}

func usersForget(ctx context.Context, c *call) error {
	if err := c.confirm("Remove %s, and erase their conversations, what was in their calls, and their name everywhere? This can't be taken back.", c.arg(0)); err != nil {
		return err
	}
	f, err := c.api.ForgetUser(ctx, c.arg(0))
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(f)
	}
	c.note("%s is forgotten: %s, %s in others' conversations, %s and %s erased", c.arg(0),
		count(f.Conversations, "conversation"), count(f.Turns, "message"), count(f.Calls, "call"), count(f.Events, "event"))
	c.note("usage stays, under an id that is nobody's name; backups made before hold what they held")
	if f.Running > 0 {
		c.note("%s not ended yet; ask again then, by id", count(f.Running, "call has"))
	}
	return nil
}
