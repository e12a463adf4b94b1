package main

import (
	"context"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"nize"
	"nize/store"
)

// help explains a command or prints a page of the documentation; it stands at
// the root alone, since one in every group would shadow a name.
func (a *app) help() *cli.Command {
	return a.command(leaf{name: "help", args: "[COMMAND|TOPIC...]", usage: "explain a command or a topic", names: fixed(topicNames()...), run: func(ctx context.Context, c *call) error {
		at := c.cmd.Root()
		for i, word := range c.args {
			sub := at.Command(word)
			if sub == nil {
				return c.topic(at, c.args[i:])
			}
			if i == len(c.args)-1 {
				return cli.ShowCommandHelp(ctx, at, word)
			}
			at = sub
		}
		if err := cli.ShowRootCommandHelp(at); err != nil {
			return err
		}
		c.line("\nTOPICS (nizectl help TOPIC; a word after it picks the parts with it in their heading):")
		for _, t := range nize.Topics {
			c.line("   %-12s  %s", t.Name, t.About)
		}
		return nil
	}})
}

// topic prints the page that args name, or the parts of it whose heading has
// the words that follow.
func (c *call) topic(at *cli.Command, args []string) error {
	names := visible(at)
	if at == c.cmd.Root() {
		names = append(names, topicNames()...)
		if i := slices.Index(topicNames(), args[0]); i >= 0 {
			return c.page(nize.Topics[i], strings.ToLower(strings.Join(args[1:], " ")))
		}
	}
	if near := store.Nearest(args[0], names); near != "" {
		return usagef("help: unknown command or topic %q; did you mean %s?", args[0], near)
	}
	return usagef("help: unknown command %q: %s has %s", args[0], at.FullName(), strings.Join(names, ", "))
}

func (c *call) page(t nize.Topic, words string) error {
	parts := strings.Split(t.Text(), "\n## ")
	if words == "" {
		c.line("%s", strings.TrimSpace(t.Text()))
		return nil
	}
	var heads []string
	found := false
	for _, part := range parts[1:] {
		head, _, _ := strings.Cut(part, "\n")
		heads = append(heads, head)
		if strings.Contains(strings.ToLower(head), words) {
			c.line("## %s\n", strings.TrimSpace(part))
			found = true
		}
	}
	if !found {
		return usagef("help: %s has no part about %q; its parts: %s", t.Name, words, strings.Join(heads, ", "))
	}
	return nil
}

func topicNames() []string { return each(nize.Topics, func(t nize.Topic) string { return t.Name }) }
