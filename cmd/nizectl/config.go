package main

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/display"
	"nize/daemon/api"
	"nize/store"
)

func (a *app) config() *cli.Command {
	user := func() []cli.Flag {
		return []cli.Flag{&cli.StringFlag{Name: "user", Usage: "a person's own value (default: the system's)"}}
	}
	return group("config", "settings",
		a.command(leaf{name: "list", usage: "list settings with their values and where these come from", run: configList, flags: user()}),
		a.command(leaf{name: "get", args: "KEY", usage: "print a setting's value", names: settingNames, run: configGet, flags: user()}),
		a.command(leaf{name: "set", args: "KEY VALUE", usage: "set a setting; VALUE - reads standard input", names: settingNames, run: configSet, flags: user()}),
		a.command(leaf{name: "explain", args: "KEY", usage: "show what every layer says of a setting, which one decides, and how to change it", names: settingNames, run: configExplain, flags: user()}),
		a.command(leaf{name: "unset", args: "KEY", usage: "go back to the default", names: settingNames, run: configUnset, flags: user()}),
	)
}

func settingNames(ctx context.Context, c *api.Client) ([]string, error) {
	list, err := api.ListSettings.Call(ctx, c, api.ListSettingsRequest{})
	return each(list.Items, func(s api.Setting) string { return s.Name }), err
}

// settings are all of the system's, or of the person that --user names.
func settings(ctx context.Context, c *call) ([]api.Setting, error) {
	list, err := api.ListSettings.Call(ctx, c.api, api.ListSettingsRequest{User: c.cmd.String("user")})
	return list.Items, err
}

func configList(ctx context.Context, c *call) error {
	list, err := settings(ctx, c)
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(items(list))
	}
	t := c.table("KEY", "VALUE", "FROM", "WHAT IT IS").text(1, 2, 3)
	for _, s := range list {
		from := s.Source
		if s.Where != "" {
			from += " " + s.Where
		}
		t.row(s.Name, clip(s.Value, 40), from, s.Help)
	}
	t.print("no settings")
	return nil
}

func configGet(ctx context.Context, c *call) error {
	list, err := settings(ctx, c)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(list, func(s api.Setting) bool { return s.Name == c.arg(0) })
	if i < 0 {
		return store.Unknown("setting", c.arg(0), each(list, func(s api.Setting) string { return s.Name }))
	}
	if c.json {
		return c.printJSON(list[i])
	}
	c.line("%s", display.CleanLines(list[i].Value))
	return nil
}

func configSet(ctx context.Context, c *call) error {
	value := c.arg(1)
	if value == "-" {
		text, err := c.textOrFile("the value", value)
		if err != nil {
			return err
		}
		value = strings.TrimRight(text, "\r\n")
	}
	s, err := api.PutSetting.Call(ctx, c.api, api.PutSettingRequest{Key: c.arg(0), Value: value, User: c.cmd.String("user")})
	if err != nil {
		return err
	}
	return c.report(s, "%s is %s", s.Name, settingText(s))
}

func configUnset(ctx context.Context, c *call) error {
	s, err := api.UnsetSetting.Call(ctx, c.api, api.UnsetSettingRequest{Key: c.arg(0), User: c.cmd.String("user")})
	if err != nil {
		return err
	}
	return c.report(s, "%s is %s again (%s)", s.Name, settingText(s), s.Source)
}

// settingText is a value within a sentence.
func settingText(s api.Setting) string {
	if s.Value == "" {
		return "empty"
	}
	return clip(s.Value, 60)
}

func configExplain(ctx context.Context, c *call) error {
	e, err := api.ExplainSetting.Call(ctx, c.api, api.ExplainSettingRequest{Key: c.arg(0), User: c.cmd.String("user")})
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(e)
	}
	t := c.table("", "LAYER", "VALUE", "WHERE")
	for _, l := range e.Layers {
		mark, value, where := "", "-", l.Where
		if l.Decides {
			mark = "*"
		}
		if l.Set {
			value = clip(cmp.Or(l.Value, "(empty)"), 60)
		}
		if l.Note != "" {
			where += " (" + l.Note + ")"
		}
		t.row(mark, l.Name, value, where)
	}
	t.print("no layers")
	c.line("")
	c.line("%s", display.Clean(e.Help))
	c.line("%s is %s. To change it: %s", e.Name, clip(cmp.Or(e.Value, "(empty)"), 60), display.CleanLines(e.Change))
	return nil
}
