package main

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/command"
	"nize/cmd/nizectl/display"
	"nize/daemon/api"
	"nize/store"
)

func configCommand(a *command.App) *cli.Command {
	user := func() []cli.Flag {
		return []cli.Flag{&cli.StringFlag{Name: "user", Usage: "a person's own value (default: the system's)"}}
	}
	read := func() []cli.Flag {
		return append(user(), &cli.StringFlag{Name: "reason", Usage: "`WHY`, recorded in the audit trail; needed to read another person's long texts"})
	}
	return command.Group("config", "read and change settings",
		a.Command(command.Leaf{Name: "list", Usage: "list settings with their values and sources", Run: configList, Flags: read()}),
		a.Command(command.Leaf{Name: "get", Args: "KEY", Usage: "print a setting's value", Names: settingNames, Run: configGet, Flags: read()}),
		a.Command(command.Leaf{Name: "set", Args: "KEY VALUE", Usage: "set a setting", More: "VALUE - reads standard input.", Names: settingNames, Run: configSet, Flags: append(user(), command.YesFlag())}),
		a.Command(command.Leaf{Name: "explain", Args: "KEY", Usage: "explain which layer decides a setting", More: "It shows the value of every layer, and how to change it.", Names: settingNames, Run: configExplain, Flags: read()}),
		a.Command(command.Leaf{Name: "unset", Args: "KEY", Usage: "reset a setting to its default", Names: settingNames, Run: configUnset, Flags: user()}),
	)
}

func settingNames(ctx context.Context, c *api.Client) ([]string, error) {
	list, err := api.ListSettings.Call(ctx, c, api.ListSettingsRequest{})
	return command.Each(list.Items, func(s api.Setting) string { return s.Name }), err
}

// settings returns all settings of the system, or of the person given by --user.
func settings(ctx context.Context, c *command.Call) ([]api.Setting, error) {
	list, err := api.ListSettings.Call(ctx, c.API, api.ListSettingsRequest{User: c.Cmd.String("user"), Reason: c.Cmd.String("reason")})
	return list.Items, err
}

func configList(ctx context.Context, c *command.Call) error {
	list, err := settings(ctx, c)
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(command.Items(list))
	}
	t := c.Table("KEY", "VALUE", "FROM", "DESCRIPTION").Text(1, 2, 3)
	for i, s := range list {
		if i == 0 || list[i-1].Category != s.Category {
			t.Row(s.CategoryLabel.String()+":", "", "", "")
		}
		from := s.Source
		if s.Where != "" {
			from += " " + s.Where
		}
		t.Row(s.Name, s.Value, from, s.Help.String())
	}
	t.Print("no settings")
	return nil
}

func configGet(ctx context.Context, c *command.Call) error {
	list, err := settings(ctx, c)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(list, func(s api.Setting) bool { return s.Name == c.Arg(0) })
	if i < 0 {
		return store.Unknown("setting", c.Arg(0), command.Each(list, func(s api.Setting) string { return s.Name }))
	}
	if c.JSON {
		return c.PrintJSON(list[i])
	}
	c.Line("%s", display.CleanLines(list[i].Value))
	return nil
}

func configSet(ctx context.Context, c *command.Call) error {
	value := c.Arg(1)
	if value == "-" {
		text, err := c.TextOrFile("the value", value)
		if err != nil {
			return err
		}
		value = strings.TrimRight(text, "\r\n")
	}
	if c.Arg(0) == "approvals.mode" && value == "none" {
		if err := c.Confirm("With approvals.mode none, tools run without approval, even those that change or delete data. Narrower alternatives: nizectl approvals grants add TOOL, or nizectl servers edit SERVER --approval never. Set it?"); err != nil {
			return err
		}
	}
	s, err := api.PutSetting.Call(ctx, c.API, api.PutSettingRequest{Key: c.Arg(0), Value: value, User: c.Cmd.String("user")})
	if err != nil {
		return err
	}
	return c.Report(s, "%s is %s", s.Name, settingText(s))
}

func configUnset(ctx context.Context, c *command.Call) error {
	s, err := api.UnsetSetting.Call(ctx, c.API, api.UnsetSettingRequest{Key: c.Arg(0), User: c.Cmd.String("user")})
	if err != nil {
		return err
	}
	return c.Report(s, "%s is %s again (%s)", s.Name, settingText(s), s.Source)
}

// settingText returns a value as part of a sentence.
func settingText(s api.Setting) string {
	if s.Value == "" {
		return "empty"
	}
	return command.Clip(s.Value, 60)
}

// wanted returns the type and range of a setting's values.
func wanted(s api.Setting) string {
	switch {
	case len(s.Choices) > 0:
		return "one of " + strings.Join(s.Choices, ", ")
	case s.Min != "" && s.Max != "":
		return string(s.Kind) + " from " + s.Min + " to " + s.Max
	case s.Min != "":
		return string(s.Kind) + " from " + s.Min
	}
	return string(s.Kind)
}

func configExplain(ctx context.Context, c *command.Call) error {
	e, err := api.ExplainSetting.Call(ctx, c.API, api.ExplainSettingRequest{Key: c.Arg(0), User: c.Cmd.String("user"), Reason: c.Cmd.String("reason")})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(e)
	}
	t := c.Table("", "LAYER", "VALUE", "WHERE").Text(2)
	for _, l := range e.Layers {
		mark, value, where := "", "-", l.Where
		if l.Decides {
			mark = "*"
		}
		if l.Set {
			value = cmp.Or(l.Value, "(empty)")
		}
		if l.Note != "" {
			where += " (" + l.Note + ")"
		}
		t.Row(mark, l.Name, value, where)
	}
	t.Print("no layers")
	c.Line("")
	c.Line("%s: %s (%s)", display.Clean(e.CategoryLabel.String()), display.Clean(e.Label.String()), display.Clean(wanted(e.Setting)))
	c.Line("%s", display.Clean(e.Help.String()))
	c.Line("%s is %s. To change it: %s", display.Clean(e.Name), display.Clean(command.Clip(cmp.Or(e.Value, "(empty)"), 60)), display.CleanLines(e.Change))
	return nil
}
