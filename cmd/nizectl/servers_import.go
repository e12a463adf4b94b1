package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v3"

	"nize/daemon/api"
)

// maxImport bounds the file of an MCP client.
const maxImport = 4 << 20

func (a *app) serversImport() *cli.Command {
	return a.command(leaf{
		name: "import", args: "FILE", usage: "register the servers of another MCP client's file", run: serversImport,
		flags: []cli.Flag{
			&cli.BoolFlag{Name: "dry-run", Usage: "judge the file, but contact and store nothing"},
			&cli.BoolFlag{Name: "force", Usage: "keep those, too, that can't be reached now"},
		},
		more: "nizectl servers import ~/.cursor/mcp.json\n" +
			"nizectl servers import ~/.claude.json --dry-run\n" +
			"It reads what Claude Desktop, Claude Code, Cursor and VS Code write; - is standard input.",
	})
}

// serversImport prints a row for each entry. One that is not registered in the
// end makes it exit 1.
func serversImport(ctx context.Context, c *call) error {
	text, err := c.importText(c.arg(0))
	if err != nil {
		return err
	}
	req := api.Import{Text: text, Force: c.cmd.Bool("force"), DryRun: c.cmd.Bool("dry-run")}
	var lines []api.ImportLine
	done := c.busy("importing %s …", c.arg(0))
	for line, err := range c.api.ImportServers(ctx, req) {
		if err != nil {
			done()
			return fmt.Errorf("%s: %w", c.arg(0), err)
		}
		lines = append(lines, line)
	}
	done()
	if c.json {
		if err := c.printJSON(items(lines)); err != nil {
			return err
		}
	} else {
		c.printImport(lines)
	}
	return c.importEnd(lines, req.DryRun)
}

func (c *call) importText(path string) (string, error) {
	in := c.in
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return "", usagef("reading the file: %v", err)
		}
		defer f.Close()
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, maxImport+1))
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", path, err)
	}
	if len(b) > maxImport {
		return "", usagef("%s is over %d MiB: put its mcpServers into a file of their own", path, maxImport>>20)
	}
	return string(b), nil
}

func (c *call) printImport(lines []api.ImportLine) {
	t := c.table("ENTRY", "SERVER", "STATUS", "TOOLS", "WHY")
	t.numbers(3)
	t.state = 2
	for _, l := range lines {
		entry, tools := l.Entry, ""
		if l.Project != "" {
			entry += " (" + l.Project + ")"
		}
		if l.Status == api.ImportAdded {
			tools = fmt.Sprint(l.Tools)
		}
		why := l.Reason
		if why == "" {
			why = l.Where
		}
		t.row(entry, l.Name, l.Status, tools, why)
	}
	t.print("the file holds no servers")
	for _, l := range lines {
		if len(l.Sealed) > 0 && l.Status == api.ImportNew {
			c.note("%s: %s would be sealed as credentials of the server", l.Name, strings.Join(l.Sealed, ", "))
		} else if len(l.Sealed) > 0 {
			c.note("%s: %s sealed as credentials of the server", l.Name, strings.Join(l.Sealed, ", "))
		}
		for _, n := range l.Notes {
			c.note("%s: %s", l.Name, n)
		}
		if l.Held > 0 {
			c.note("%s: %s held back: see nizectl servers trust %s", l.Name, count(l.Held, "tool is"), l.Name)
		}
	}
}

// importEnd sums up; what was not registered is a failure.
func (c *call) importEnd(lines []api.ImportLine, dry bool) error {
	var added, bad []string
	for _, l := range lines {
		switch {
		case l.Status == api.ImportAdded || l.Status == api.ImportNew || l.Stored:
			added = append(added, l.Name)
		case l.Status != api.ImportExists:
			bad = append(bad, l.Entry)
		}
	}
	if !c.json && len(added) > 0 {
		if dry {
			c.note("%s would be added: %s", count(len(added), "server"), strings.Join(added, ", "))
		} else {
			c.note("%s added; only admins can use them; to share one: nizectl servers share NAME --with all|group:G|user:U", count(len(added), "server"))
		}
	}
	if len(bad) > 0 {
		return failf(api.ExitFailed, "%s of %s not taken over: %s", fmt.Sprint(len(bad)), count(len(lines), "server"), strings.Join(bad, ", "))
	}
	return nil
}
