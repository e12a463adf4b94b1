package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/command"
	"nize/cmd/nizectl/display"
	"nize/daemon/api"
)

func toolsRendererCommand(a *command.App) *cli.Command {
	return command.Group("renderer", "manage how a tool's results are shown",
		a.Command(command.Leaf{Name: "add", Aliases: []string{"set"}, Args: "TOOL FILE", Usage: "show results with a renderer from a file", Names: command.ToolNames, Run: rendererSet,
			More: "FILE - is standard input.\nIt takes precedence over the renderer of an extension. For renderers, see: nizectl help gateway"}),
		a.Command(command.Leaf{Name: "show", Args: "TOOL", Usage: "print the renderer that was set", Names: command.ToolNames, Run: rendererShow}),
		a.Command(command.Leaf{Name: "remove", Args: "TOOL", Usage: "remove the renderer that was set", Names: command.ToolNames, Run: rendererRemove, Flags: []cli.Flag{command.YesFlag()}}),
	)
}

func rendererSet(ctx context.Context, c *command.Call) error {
	file := c.Arg(1)
	if file != "-" {
		file = "@" + file
	}
	text, err := c.TextOrFile("FILE", file)
	if err != nil {
		return err
	}
	set, err := api.PutRenderer.Call(ctx, c.API, api.PutRendererRequest{ID: toolID(c.Arg(0)), Document: text})
	if err != nil {
		return err
	}
	return c.Report(set, "results of %s are shown by this renderer from now on", set.Tool)
}

func rendererShow(ctx context.Context, c *command.Call) error {
	set, err := api.GetRenderer.Call(ctx, c.API, api.ToolRequest{ID: toolID(c.Arg(0))})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(set)
	}
	_, err = fmt.Fprint(c.Out, display.CleanLines(set.Document))
	return err
}

func rendererRemove(ctx context.Context, c *command.Call) error {
	id := toolID(c.Arg(0))
	if err := c.Confirm("Remove the renderer of %s?", id); err != nil {
		return err
	}
	if _, err := api.RemoveRenderer.Call(ctx, c.API, api.ToolRequest{ID: id}); err != nil {
		return err
	}
	return c.Removed("renderer", id)
}
