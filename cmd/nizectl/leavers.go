package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/command"
	"nize/daemon/api"
	"nize/store/printable"
)

func usersLeaversCommands(a *command.App) []*cli.Command {
	return []*cli.Command{
		a.Command(command.Leaf{Name: "remove", Args: "USER", Usage: "remove a person and keep the record", More: "Records of what they did stay until their retention ends; nizectl users forget erases them.", Names: command.UserNames, Run: usersRemove,
			Flags: []cli.Flag{command.YesFlag()}}),
		a.Command(command.Leaf{Name: "export", Args: "USER", Usage: "export a person's stored data as JSON lines", Names: command.UserNames, Run: usersExport,
			Flags: []cli.Flag{&cli.StringFlag{Name: "reason", Usage: "`WHY`, recorded in the audit trail; needed for anyone but yourself"}}}),
		a.Command(command.Leaf{Name: "forget", Args: "USER", Usage: "remove a person and erase their stored data", Names: command.UserNames, Run: usersForget,
			Flags: []cli.Flag{command.YesFlag()}}),
	}
}

func usersRemove(ctx context.Context, c *command.Call) error {
	was, err := api.GetUser.Call(ctx, c.API, api.GetUserRequest{ID: c.Arg(0)})
	if err != nil {
		return err
	}
	if err := c.Confirm("Remove %s, and end %s?", was.Name, endsOf(was)); err != nil {
		return err
	}
	if was, err = api.RemoveUser.Call(ctx, c.API, api.RemoveUserRequest{ID: was.ID}); err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(was)
	}
	c.Note("%s is removed; ended: %s", was.Name, endsOf(was))
	c.Note("kept until their retention ends: conversations, documents, calls, usage and audit; to erase them: nizectl users forget %s", was.ID)
	if reaches(was.Identities) {
		c.Note("a person who returns with %s is admitted as a new user; to keep a person out, disable them instead", strings.Join(was.Identities, ", "))
	}
	return nil
}

// reaches reports whether a person can sign in with one of the identities.
func reaches(identities []string) bool {
	for _, id := range identities {
		if !strings.HasPrefix(id, "named:") {
			return true
		}
	}
	return false
}

func usersExport(ctx context.Context, c *command.Call) error {
	for r, err := range api.ExportUser.Call(ctx, c.API, api.ExportUserRequest{ID: c.Arg(0), Reason: c.Cmd.String("reason")}) {
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(c.Out, `{"kind":%q,"record":%s}`+"\n", r.Kind, printable.JSON(r.Record)); err != nil {
			return fmt.Errorf("writing the export: %w", err)
		}
	}
	return nil
}

func usersForget(ctx context.Context, c *command.Call) error {
	if err := c.Confirm("Remove %s, and erase their conversations, the content of their calls, and their name everywhere? This can't be undone.", c.Arg(0)); err != nil {
		return err
	}
	f, err := api.ForgetUser.Call(ctx, c.API, api.ForgetUserRequest{ID: c.Arg(0)})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(f)
	}
	c.Note("%s is forgotten: %s, %s in others' conversations, %s, %s and %s erased", c.Arg(0),
		command.Count(f.Conversations, "conversation"), command.Count(f.Turns, "message"), command.Count(f.Documents, "document"), command.Count(f.Calls, "call"), command.Count(f.Events, "event"))
	c.Note("usage figures stay, under an id without a name; earlier backups are not changed")
	if f.Running > 0 {
		c.Note("%s not ended yet; repeat this with the id once they have", command.Count(f.Running, "call has"))
	}
	return nil
}
