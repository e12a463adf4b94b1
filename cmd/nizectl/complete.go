package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"

	"nize/daemon/api"
)

// completer asks the daemon for names.
type completer func(ctx context.Context, c *api.Client) ([]string, error)

// complete offers flags, subcommands and, for the first argument, live names.
// It says nothing where there is no daemon. It never runs in Before, which the
// library also calls here.
func (a *app) complete(names completer) cli.ShellCompleteFunc {
	return func(ctx context.Context, cmd *cli.Command) {
		args := cmd.Args().Slice()
		cli.DefaultCompleteWithFlags(ctx, cmd)
		if names == nil || len(args) > 0 {
			return
		}
		ctx, cancel := context.WithTimeout(ctx, a.tabWait)
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

func serverNames(ctx context.Context, c *api.Client) ([]string, error) {
	items, err := c.Servers(ctx)
	return each(items, func(s api.ServerView) string { return s.Server.Name }), err
}

// toolNames offers server.tool, since a colon ends a word in a shell; toolID
// reads it back.
func toolNames(ctx context.Context, c *api.Client) ([]string, error) {
	items, err := c.Tools(ctx, "")
	return each(items, func(t api.ToolView) string { return strings.Replace(t.ID, ":", ".", 1) }), err
}

func domainNames(ctx context.Context, c *api.Client) ([]string, error) {
	items, err := c.Domains(ctx)
	return each(items, func(d api.Domain) string { return d.ID }), err
}

func tokenNames(ctx context.Context, c *api.Client) ([]string, error) {
	items, err := c.Tokens(ctx, "")
	var names []string
	for _, t := range items {
		if t.State == "active" {
			names = append(names, t.Name)
		}
	}
	return names, err
}

// each maps a list.
func each[T, U any](list []T, f func(T) U) []U {
	out := make([]U, len(list))
	for i, v := range list {
		out[i] = f(v)
	}
	return out
}
