package command

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"nize/daemon/api"
	"nize/store"
)

// Completer requests names from the daemon.
type Completer func(ctx context.Context, c *api.Client) ([]string, error)

// flagValues completes the values of flags, by flag.
var flagValues = map[string]Completer{
	"add": UserNames, "agent": AgentNames, "channel": ChannelNames, "domain": DomainNames, "members": UserNames, "model": ModelNames, "remove": UserNames, "server": ServerNames, "tool": ToolNames, "user": UserNames, "with": audienceNames,
	"audience": Fixed("mcp", "api"),
	"approve":  Fixed("ask", "all", "none"),
	"by":       Fixed(store.UsageGroupings...),
	"mode":     Fixed(store.Modes...),
	"language": Fixed("en", "zh", "zh-Hans", "zh-Hant"),
	"servers":  ServerNames,
	"role":     Fixed("admin", "member"),
}

// Fixed returns a completer of constant names.
func Fixed(list ...string) Completer {
	return func(context.Context, *api.Client) ([]string, error) { return list, nil }
}

// filesLine makes the shell complete file names, which it doesn't do by itself.
const filesLine = ":files"

// takesFile reports whether the next argument of a form is a file.
func takesFile(form string, args []string) bool {
	words := strings.Fields(strings.ReplaceAll(form, "[--] ", ""))
	if len(args) >= len(words) || len(args) > 0 && strings.HasPrefix(args[len(args)-1], "-") {
		return false
	}
	return strings.Trim(words[len(args)], "[].") == "FILE"
}

// complete completes flags, subcommands, and live names for the first argument and for the
// flags of [flagValues]. It prints nothing if there is no daemon. It never runs in Before,
// which the library also calls here.
func (a *App) complete(l Leaf) cli.ShellCompleteFunc {
	return func(ctx context.Context, cmd *cli.Command) {
		args := cmd.Args().Slice()
		if f := flagAwaiting(cmd, args); f != nil {
			if usage := f.GetUsage(); strings.Contains(usage, "`FILE`") || strings.Contains(usage, "`DIR") {
				fmt.Fprintln(cmd.Root().Writer, filesLine)
			}
			a.offer(ctx, cmd, flagValues[f.Names()[0]])
			return
		}
		cli.DefaultCompleteWithFlags(ctx, cmd)
		if len(args) == 0 {
			a.offer(ctx, cmd, l.Names)
		}
		if takesFile(l.Args, args) {
			fmt.Fprintln(cmd.Root().Writer, filesLine)
		}
	}
}

// flagAwaiting returns the flag that lacks its value at the end of the line, where the
// library leaves it among the arguments.
func flagAwaiting(cmd *cli.Command, args []string) interface {
	cli.Flag
	cli.DocGenerationFlag
} {
	if len(args) == 0 || !strings.HasPrefix(args[len(args)-1], "-") {
		return nil
	}
	name := strings.TrimLeft(args[len(args)-1], "-")
	for _, c := range cmd.Lineage() {
		for _, f := range c.VisibleFlags() {
			if d, ok := f.(interface {
				cli.Flag
				cli.DocGenerationFlag
			}); ok && slices.Contains(f.Names(), name) && d.TakesValue() {
				return d
			}
		}
	}
	return nil
}

// offer prints names for the shell.
func (a *App) offer(ctx context.Context, cmd *cli.Command, names Completer) {
	if names == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, a.TabWait)
	defer cancel()
	quiet := *a // notes would appear in the line being typed
	quiet.Err = io.Discard
	client := quiet.Client(cmd.String("socket"))
	client.Warn = nil
	defer client.Close()
	all, err := names(ctx, client)
	if err != nil {
		return // an error would appear in the line being typed
	}
	for _, name := range all {
		if completable(name) {
			fmt.Fprintln(cmd.Root().Writer, strings.ReplaceAll(name, ":", `\:`)) // a bare colon ends the name
		}
	}
}

// completable reports whether a name may be passed to a shell: bash expands completions,
// including $(…).
func completable(name string) bool {
	if name == "" || name[0] == '-' {
		return false
	}
	return strings.IndexFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./@:", r))
	}) < 0
}
