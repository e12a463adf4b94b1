package slack

import (
	"context"

	"nize/bots"
	"nize/bots/account"
	"nize/bots/slack/incoming"
	"nize/bots/slack/people"
	"nize/bots/slack/view"
	"nize/store"
)

// Dialogs for commands (bots.Form).

// runForm shows a command's dialog and reports whether it did; if not, the caller runs the
// command.
func (c *commander) runForm(ctx context.Context, p people.Person, g given) bool {
	if g.cmd.Form == nil || g.asked.Words != "" || g.trigger == "" {
		return false
	}
	form := account.MakeForm(ctx, g.cmd, g.asked, c.log, c.wg.Go)
	if form == nil {
		return false
	}
	view, err := view.FormModal(*form, view.Filling{Command: g.cmd.Name, Channel: g.asked.At.Channel, Thread: g.asked.At.Thread}, p.Words())
	if err == nil {
		_, err = c.wire.OpenView(ctx, g.trigger, view)
	}
	if err != nil {
		c.log.Info("a dialog was not opened", "command", g.cmd.Name, "err", err)
	}
	return err == nil
}

// readForm reads a submitted dialog: the command as it was given, and the changed values.
func (c *commander) readForm(i incoming.Interaction, p people.Person) (cmd bots.Command, asked bots.Asked, values map[string][]string, err error) {
	bad := store.Errorf("%w dialog", store.ErrInvalid)
	f, ok := view.ReadFilling(i)
	if !ok {
		return cmd, asked, nil, bad
	}
	cmd, _, _, ok = c.list.Find(p.Caller(), f.Command, false)
	if !ok || cmd.Form == nil || i.View.CallbackID != view.FormView+":"+cmd.Name {
		return cmd, asked, nil, bad
	}
	return cmd, p.Asked(place(c.team, f.Channel, f.Thread), ""), f.Changed(i), nil
}

// checkForm returns the mistakes in a dialog before it is closed.
func (c *commander) checkForm(ctx context.Context, i incoming.Interaction) map[string]string {
	p, err := c.people.Who(ctx, i.User.ID, people.Recent)
	if err != nil || p.User.ID == "" {
		return nil // reported when it is processed
	}
	cmd, asked, values, err := c.readForm(i, p)
	if err != nil {
		return nil
	}
	wrong := map[string]string{}
	for name, text := range cmd.Form.Check(ctx, asked, values) {
		if _, ok := i.View.State.Values["field-"+name]; ok {
			wrong["field-"+name] = text
		}
	}
	return wrong
}

// submitForm applies a dialog.
func (c *commander) submitForm(ctx context.Context, p people.Person, i incoming.Interaction) error {
	cmd, asked, values, err := c.readForm(i, p)
	if err != nil {
		return c.posts.TellError(ctx, p, "", "", err)
	}
	if len(values) == 0 {
		return nil
	}
	if asked.At.Channel != "" {
		return c.runCommand(ctx, p, given{cmd: account.Filled(cmd, values), asked: asked})
	}
	answer, err := c.list.Run(ctx, account.Filled(cmd, values), asked)
	if err != nil {
		c.log.Error("running a command", "command", cmd.Name, "err", err)
	}
	return c.homes.Draw(ctx, p, view.HomeState{}, answer.Text)
}
