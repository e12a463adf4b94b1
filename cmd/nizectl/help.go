package main

import (
	"context"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"nize"
	"nize/cmd/nizectl/chat"
	"nize/cmd/nizectl/command"
	"nize/store"
)

// helpCommand explains a command or prints a page of the documentation. It exists only at
// the root, since in every group it would shadow a name.
func helpCommand(a *command.App) *cli.Command {
	return a.Command(command.Leaf{Name: "help", Args: "[COMMAND|TOPIC...]", Usage: "explain a command or print a topic", Names: command.Fixed(topicNames()...), Run: func(ctx context.Context, c *command.Call) error {
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
		return showHelp(c.App, at)
	}})
}

// showHelp prints the help of the whole program and the topics.
func showHelp(a *command.App, root *cli.Command) error {
	if err := cli.ShowRootCommandHelp(root); err != nil {
		return err
	}
	a.PrintPairs("topics", command.Each(nize.Topics, func(t nize.Topic) [2]string { return [2]string{t.Name, t.About} }))
	a.Line("\n%s", a.Wrap("nizectl help TOPIC prints one, nizectl help COMMAND explains a command. Nouns may be singular; ls is list, rm is remove.", 0))
	return nil
}

// topic prints the page that args names, or the parts of it whose heading contains the
// words that follow.
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

// printPage prints a page, or the parts of it whose heading contains the words. On a
// terminal it is rendered, and shown in a pager if it is long.
func printPage(c *command.Call, t nize.Topic, words string) error {
	text := strings.TrimSpace(t.Text())
	if words != "" {
		var heads, found []string
		for _, part := range strings.Split(text, "\n## ")[1:] {
			head, _, _ := strings.Cut(part, "\n")
			heads = append(heads, head)
			if strings.Contains(strings.ToLower(head), words) {
				found = append(found, "## "+strings.TrimSpace(part))
			}
		}
		if len(found) == 0 {
			return command.Usagef("help: %s has no part about %q; its parts: %s", t.Name, words, strings.Join(heads, ", "))
		}
		text = strings.Join(found, "\n\n")
	}
	if !c.OutTTY {
		c.Line("%s", text)
		return nil
	}
	return c.Page(chat.RenderPage(forTerminal(t, text), c.Columns(), c.Env))
}

var (
	pageLink  = regexp.MustCompile(`\[([^\[\]]+)\]\(([^)\s]+)\)`)
	pagePiece = regexp.MustCompile(`(?m)^(<[^>]+>)+\n?|!\[[^\]]*\]\([^)]*\)`)
)

// forTerminal removes from a page what a terminal can't follow: pictures, and links to
// files; a link to another page is replaced by its topic.
func forTerminal(t nize.Topic, text string) string {
	text = pagePiece.ReplaceAllString(text, "")
	return pageLink.ReplaceAllStringFunc(text, func(link string) string {
		m := pageLink.FindStringSubmatch(link)
		if strings.Contains(m[2], "://") {
			return link
		}
		file, _, _ := strings.Cut(m[2], "#")
		to := path.Join(path.Dir(t.Path), file)
		i := slices.IndexFunc(nize.Topics, func(other nize.Topic) bool { return other.Path == to || path.Dir(other.Path) == to })
		if file == "" || i < 0 || nize.Topics[i].Name == t.Name || strings.Contains(m[1], "nizectl help") {
			return m[1]
		}
		return m[1] + " (`nizectl help " + nize.Topics[i].Name + "`)"
	})
}

func topicNames() []string {
	return command.Each(nize.Topics, func(t nize.Topic) string { return t.Name })
}
