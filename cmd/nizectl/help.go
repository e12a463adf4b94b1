package main

import (
	"context"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"nize"
	"nize/cmd/nizectl/command"
	"nize/store"
)

// helpCommand explains a command or prints a page of the documentation; it stands at
// the root alone, since one in every group would shadow a name.
func helpCommand(a *command.App) *cli.Command {
	return a.Command(command.Leaf{Name: "help", Args: "[COMMAND|TOPIC...]", Usage: "explain a command or a topic", Names: command.Fixed(topicNames()...), Run: func(ctx context.Context, c *command.Call) error {
		at := c.Cmd.Root()
		for i, word := range c.Args {
			sub := at.Command(word)
			if sub == nil {
				return topic(c, at, c.Args[i:])
			}
			if i == len(c.Args)-1 {
				return cli.ShowCommandHelp(ctx, at, word)
			}
			at = sub
		}
		if err := cli.ShowRootCommandHelp(at); err != nil {
			return err
		}
		c.Line("\nTOPICS (nizectl help TOPIC; a word after it picks the parts with it in their heading):")
		for _, t := range nize.Topics {
			c.Line("   %-12s  %s", t.Name, t.About)
		}
		return nil
	}})
}

// topic prints the page that args name, or the parts of it whose heading has
// the words that follow.
func topic(c *command.Call, at *cli.Command, args []string) error {
	names := command.Visible(at)
	if at == c.Cmd.Root() {
		names = append(names, topicNames()...)
		if i := slices.Index(topicNames(), args[0]); i >= 0 {
			return printPage(c, nize.Topics[i], strings.ToLower(strings.Join(args[1:], " ")))
		}
	}
	if near := store.Nearest(args[0], names); near != "" {
		return command.Usagef("help: unknown command or topic %q; did you mean %s?", args[0], near)
	}
	return command.Usagef("help: unknown command %q: %s has %s", args[0], at.FullName(), strings.Join(names, ", "))
}

func printPage(c *command.Call, t nize.Topic, words string) error {
	parts := strings.Split(t.Text(), "\n## ")
	if words == "" {
		c.Line("%s", strings.TrimSpace(t.Text()))
		return nil
	}
	var heads []string
	found := false
	for _, part := range parts[1:] {
		head, _, _ := strings.Cut(part, "\n")
		heads = append(heads, head)
		if strings.Contains(strings.ToLower(head), words) {
			c.Line("## %s\n", strings.TrimSpace(part))
			found = true
		}
	}
	if !found {
		return command.Usagef("help: %s has no part about %q; its parts: %s", t.Name, words, strings.Join(heads, ", "))
	}
	return nil
}

func topicNames() []string {
	return command.Each(nize.Topics, func(t nize.Topic) string { return t.Name })
}
