package main

import (
	"context"
	"strings"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/command"
	"nize/daemon/api"
	"nize/store"
)

// channelKeys are the settings of a channel, as flags.
var channelKeys = []string{"agent", "model", "mode", "servers", "approvers", "language", "admins"}

func botChannelsCommand(a *command.App) *cli.Command {
	return command.Group("channels", "manage settings of channels",
		a.Command(command.Leaf{Name: "list", Usage: "list the channels that have settings", Run: channelsList}),
		a.Command(command.Leaf{Name: "add", Aliases: []string{"set"}, Args: "CHANNEL", Usage: "set up a channel, or change its settings", Names: command.ChannelNames, Run: channelsSet,
			More: "Settings that aren't given stay unchanged.\nCHANNEL is slack:TEAM/CHANNEL, or the channel's id alone, such as C0123456. The value default resets a setting.\n\n" +
				"Agent and model apply to conversations that begin later; all other settings apply at once.",
			Flags: []cli.Flag{
				&cli.StringFlag{Name: "agent", Usage: "the agent that answers there"},
				&cli.StringFlag{Name: "model", Usage: "the model, by its name"},
				&cli.StringFlag{Name: "mode", Usage: "which messages that don't address nize it answers: follow, mention or all"},
				&cli.StringFlag{Name: "servers", Usage: "`SERVERS`, comma-separated: use only their tools there; none, or default for all shared servers"},
				&cli.StringFlag{Name: "approvers", Usage: "`WHO` may approve calls there, unless an admin set it for the server or for all; as for servers"},
				&cli.StringFlag{Name: "language", Usage: "the language of messages to the whole channel: en, zh, zh-Hans or zh-Hant"},
				&cli.StringFlag{Name: "admins", Usage: "`WHO` administers it in addition to the platform's admins: user:U, group:G, comma-separated"},
			}}),
		a.Command(command.Leaf{Name: "unset", Args: "CHANNEL", Usage: "remove the settings of a channel", Names: command.ChannelNames, Run: channelsUnset, Flags: []cli.Flag{command.YesFlag()}}),
	)
}

func channelsList(ctx context.Context, c *command.Call) error {
	list, err := api.ListChannels.Call(ctx, c.API, api.Empty{})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(command.Items(list.Items))
	}
	t := c.Table("CHANNEL", "NAME", "AGENT", "MODEL", "MODE", "SERVERS", "APPROVERS", "LANGUAGE", "ADMINS")
	for _, v := range list.Items {
		servers := strings.Join(v.Servers, ", ")
		if v.Servers != nil && servers == "" {
			servers = "none"
		}
		t.Row(v.Place, v.Name, v.Agent, v.Model, v.Mode, servers, v.WhoPress, v.Language, v.WhoAdmins)
	}
	t.Print("no channel is set up: nizectl bots channels add CHANNEL --mode all")
	return nil
}

func channelsSet(ctx context.Context, c *command.Call) error {
	set := api.SetChannelRequest{Place: c.Arg(0)}
	given := false
	value := func(name string) *string {
		if !c.Cmd.IsSet(name) {
			return nil
		}
		given = true
		text := strings.TrimSpace(c.Cmd.String(name))
		if text == "default" {
			text = ""
		}
		return &text
	}
	set.Agent, set.Model, set.Mode, set.Language = value("agent"), value("model"), value("mode"), value("language")
	if who := value("approvers"); who != nil {
		p := store.Policy(*who)
		if _, err := store.ParsePolicy(*who); err != nil {
			return command.Usagef("--approvers: %v", err)
		}
		set.Approvers = &p
	}
	if who := value("admins"); who != nil {
		names := namesIn(*who)
		set.Admins = &names
	}
	switch list := value("servers"); {
	case list == nil:
	case *list == "":
		set.AllServers = true
	case *list == "none":
		set.Servers = &[]string{}
	default:
		names := namesIn(*list)
		set.Servers = &names
	}
	if !given {
		return command.Usagef("bots channels set needs one of --%s", strings.Join(channelKeys, ", --"))
	}
	v, err := api.SetChannel.Call(ctx, c.API, set)
	if err != nil {
		return err
	}
	return c.Report(v, "%s is set up", v.Place)
}

// namesIn splits a value at commas.
func namesIn(value string) []string {
	out := []string{}
	for w := range strings.SplitSeq(value, ",") {
		if w = strings.TrimSpace(w); w != "" {
			out = append(out, w)
		}
	}
	return out
}

func channelsUnset(ctx context.Context, c *command.Call) error {
	if err := c.Confirm("Forget how the channel %s is set up?", c.Arg(0)); err != nil {
		return err
	}
	if _, err := api.UnsetChannel.Call(ctx, c.API, api.UnsetChannelRequest{Place: c.Arg(0)}); err != nil {
		return err
	}
	return c.Removed("channel", c.Arg(0))
}
