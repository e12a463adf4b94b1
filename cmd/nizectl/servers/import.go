package servers

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/command"
	"nize/daemon/api"
)

// maxImport limits the file of an MCP client.
const maxImport = 4 << 20

func importFileCommand(a *command.App) *cli.Command {
	return a.Command(command.Leaf{
		Name: "import", Args: "FILE", Usage: "register the servers of another MCP client's file", Run: importFile,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "dry-run", Usage: "check the file, but contact and store nothing"},
			&cli.BoolFlag{Name: "force", Usage: "also keep servers that can't be reached now"},
		},
		More: "nizectl servers import ~/.cursor/mcp.json\n" +
			"nizectl servers import ~/.claude.json --dry-run\n" +
			"nizectl servers import ~/.codex/config.toml\n" +
			"It reads the files of Claude Desktop, Claude Code and its plugins, Cursor, VS Code, Zed, Codex, opencode, Crush,\n" +
			"Windsurf, Cline, Roo, Kiro, Gemini CLI, Continue, Goose and LibreChat; - is standard input.",
	})
}

// importFile prints a row for each entry. If one could not be registered, the exit code is
// 1.
func importFile(ctx context.Context, c *command.Call) error {
	text, err := importText(c, c.Arg(0))
	if err != nil {
		return err
	}
	req := api.ImportServersRequest{Text: text, Force: c.Cmd.Bool("force"), DryRun: c.Cmd.Bool("dry-run")}
	var lines []api.ImportLine
	done := c.Busy("importing %s …", c.Arg(0))
	for line, err := range api.ImportServers.Call(ctx, c.API, req) {
		if err != nil {
			done()
			return fmt.Errorf("%s: %w", c.Arg(0), err)
		}
		lines = append(lines, line)
	}
	done()
	if c.JSON {
		if err := c.PrintJSON(command.Items(lines)); err != nil {
			return err
		}
	} else {
		printImport(c, lines)
	}
	return importEnd(c, lines, req.DryRun)
}

func importText(c *command.Call, path string) (string, error) {
	in := c.In
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return "", command.Usagef("reading the file: %v", err)
		}
		defer f.Close()
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, maxImport+1))
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", path, err)
	}
	if len(b) > maxImport {
		return "", command.Usagef("%s is over %d MiB: put its mcpServers into a file of their own", path, maxImport>>20)
	}
	return string(b), nil
}

func printImport(c *command.Call, lines []api.ImportLine) {
	t := c.Table("ENTRY", "SERVER", "STATUS", "TOOLS", "WHY").Text(4)
	t.Numbers(3)
	t.State = 2
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
		t.Row(entry, l.Name, l.Status, tools, why)
	}
	t.Print("the file holds no servers")
	for _, l := range lines {
		if len(l.Sealed) > 0 && l.Status == api.ImportNew {
			c.Note("%s: %s would be sealed as credentials of the server", l.Name, strings.Join(l.Sealed, ", "))
		} else if len(l.Sealed) > 0 {
			c.Note("%s: %s sealed as credentials of the server", l.Name, strings.Join(l.Sealed, ", "))
		}
		for _, n := range l.Notes {
			c.Note("%s: %s", l.Name, n)
		}
		if l.Held > 0 {
			c.Note("%s: %s held back: see nizectl servers trust %s", l.Name, areHeld(l.Held), l.Name)
		}
	}
}

// importEnd prints a summary and returns an error if an entry was not registered.
func importEnd(c *command.Call, lines []api.ImportLine, dry bool) error {
	var added, bad []string
	for _, l := range lines {
		switch {
		case l.Status == api.ImportAdded || l.Status == api.ImportNew || l.Stored:
			added = append(added, l.Name)
		case l.Status != api.ImportExists:
			bad = append(bad, l.Entry)
		}
	}
	if !c.JSON && len(added) > 0 {
		if dry {
			c.Note("%s would be added: %s", command.Count(len(added), "server"), strings.Join(added, ", "))
		} else {
			c.Note("%s added; only admins can use them; to share one: nizectl servers share NAME --with all|group:G|user:U", command.Count(len(added), "server"))
		}
	}
	if len(bad) > 0 {
		return command.Failf(api.ExitFailed, "%s of %s not imported: %s", fmt.Sprint(len(bad)), command.Count(len(lines), "server"), strings.Join(bad, ", "))
	}
	return nil
}
