package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"nize/daemon/api"
	"nize/store"
)

// Completer asks the daemon for names.
type Completer func(ctx context.Context, c *api.Client) ([]string, error)

// flagValues are the names that a flag's value can be, by the flag.
var flagValues = map[string]Completer{
	"add": UserNames, "agent": AgentNames, "channel": ChannelNames, "domain": DomainNames, "members": UserNames, "model": ModelNames, "remove": UserNames, "server": ServerNames, "tool": ToolNames, "user": UserNames,
	"audience": Fixed("mcp", "api"),
	"approve":  Fixed("ask", "all", "none"),
	"by":       Fixed(store.UsageGroupings...),
	"mode":     Fixed(store.Modes...),
	"language": Fixed("en", "zh", "zh-Hans", "zh-Hant"),
	"servers":  ServerNames,
	"role":     Fixed("admin", "member"),
}

// Fixed completes what is always the same.
func Fixed(list ...string) Completer {
	return func(context.Context, *api.Client) ([]string, error) { return list, nil }
}

// complete offers flags, subcommands, and live names for the first argument
// and for the flags of [flagValues]. It says nothing where there is no daemon.
// It never runs in Before, which the library also calls here.
func (a *App) complete(names Completer) cli.ShellCompleteFunc {
	return func(ctx context.Context, cmd *cli.Command) {
		args := cmd.Args().Slice()
		if values, ok := flagAwaiting(cmd, args); ok {
			a.offer(ctx, cmd, values)
			return
		}
		cli.DefaultCompleteWithFlags(ctx, cmd)
		if len(args) == 0 {
			a.offer(ctx, cmd, names)
		}
	}
}

// flagAwaiting says whether the line ends with a flag that lacks its value,
// which the library leaves among the arguments, and what the value can be.
func flagAwaiting(cmd *cli.Command, args []string) (Completer, bool) {
	if len(args) == 0 || !strings.HasPrefix(args[len(args)-1], "-") {
		return nil, false
	}
	name := strings.TrimLeft(args[len(args)-1], "-")
	for _, c := range cmd.Lineage() {
		for _, f := range c.VisibleFlags() {
			if d, ok := f.(cli.DocGenerationFlag); ok && slices.Contains(f.Names(), name) && d.TakesValue() {
				return flagValues[f.Names()[0]], true
			}
		}
	}
	return nil, false
}

// offer prints names for the shell.
func (a *App) offer(ctx context.Context, cmd *cli.Command, names Completer) {
	if names == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, a.TabWait)
	defer cancel()
	client := a.client(cmd)
	client.Warn = nil
	defer client.Close()
	all, err := names(ctx, client)
	if err != nil {
		return // a half-typed line is no place for an error
	}
	for _, name := range all {
		if completable(name) {
			fmt.Fprintln(cmd.Root().Writer, name)
		}
	}
}

// completable says whether a name may be handed to a shell: bash expands what
// it gets ($(…) too), and all shells cut at a colon.
func completable(name string) bool {
	if name == "" || name[0] == '-' {
		return false
	}
	return strings.IndexFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./@", r))
	}) < 0
}
