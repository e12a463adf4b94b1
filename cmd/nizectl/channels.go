package main

import (
	"context"
	"strings"

	"github.com/urfave/cli/v3"

	"nize/daemon/api"
	"nize/store"
)

// channelKeys are what can be set of a channel, as flags.
var channelKeys = []string{"agent", "model", "mode", "servers", "approvers", "language", "admins"}

func (a *app) botChannels() *cli.Command {
	return group("channels", "how nize is set up in channels",
		a.command(leaf{name: "list", usage: "list the channels that are set up", run: channelsList}),
		a.command(leaf{name: "set", args: "CHANNEL", usage: "set a channel up; what is not given stays", names: channelNames, run: channelsSet,
			more: "CHANNEL is slack:TEAM/CHANNEL, or the channel's id alone, such as C0123456. The value default takes a setting back.\n\n" +
				"Agent and model are for conversations that begin afterwards; all else counts at once.",
			flags: []cli.Flag{
				&cli.StringFlag{Name: "agent", Usage: "the agent that answers there"},
				&cli.StringFlag{Name: "model", Usage: "the model, by its name"},
				&cli.StringFlag{Name: "mode", Usage: "which messages that do not address nize are answered: follow, mention or all"},
				&cli.StringFlag{Name: "servers", Usage: "`SERVERS`, with commas: only their tools are used there; none, or default for all that is shared"},
				&cli.StringFlag{Name: "approvers", Usage: "`WHO` may approve calls there, where no admin said it for the server or for all: as for servers"},
				&cli.StringFlag{Name: "language", Usage: "nize speaks it to the whole channel: en, zh, zh-Hans or zh-Hant"},
				&cli.StringFlag{Name: "admins", Usage: "`WHO` administers it besides the platform's admins: user:U, group:G, with commas"},
			}}),
		a.command(leaf{name: "unset", args: "CHANNEL", usage: "forget how a channel is set up", names: channelNames, run: channelsUnset, flags: []cli.Flag{yesFlag()}}),
	)
}

func channelsList(ctx context.Context, c *call) error {
	list, err := c.api.Channels(ctx)
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(items(list))
	}
	t := c.table("CHANNEL", "NAME", "AGENT", "MODEL", "MODE", "SERVERS", "APPROVERS", "LANGUAGE", "ADMINS")
	for _, v := range list {
		servers := strings.Join(v.Servers, ", ")
		if v.Servers != nil && servers == "" {
			servers = "none"
		}
		t.row(v.Place, v.Name, v.Agent, v.Model, v.Mode, servers, v.WhoPress, v.Language, v.WhoAdmins)
	}
	t.print("no channel is set up: nizectl bots channels set CHANNEL --mode all")
	return nil
}

func channelsSet(ctx context.Context, c *call) error {
	var set api.SetChannel
	given := false
	value := func(name string) *string {
		if !c.cmd.IsSet(name) {
			return nil
		}
		given = true
		text := strings.TrimSpace(c.cmd.String(name))
		if text == "default" {
			text = ""
		}
		return &text
	}
	set.Agent, set.Model, set.Mode, set.Language = value("agent"), value("model"), value("mode"), value("language")
	if who := value("approvers"); who != nil {
		p := store.Policy(*who)
		if _, err := store.ParsePolicy(*who); err != nil {
			return usagef("--approvers: %v", err)
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
		return usagef("bots channels set needs one of --%s", strings.Join(channelKeys, ", --"))
	}
	v, err := c.api.SetChannel(ctx, c.arg(0), set)
	if err != nil {
		return err
	}
	return c.report(v, "%s is set up", v.Place)
}

// namesIn are the parts of a value between commas.
func namesIn(value string) []string {
	out := []string{}
	for w := range strings.SplitSeq(value, ",") {
		if w = strings.TrimSpace(w); w != "" {
			out = append(out, w)
		}
	}
	return out
}

func channelsUnset(ctx context.Context, c *call) error {
	if err := c.confirm("Forget how the channel %s is set up?", c.arg(0)); err != nil {
		return err
	}
	if err := c.api.UnsetChannel(ctx, c.arg(0)); err != nil {
		return err
	}
	return c.removed("channel", c.arg(0))
}
