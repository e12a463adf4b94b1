package main

import (
	"context"
	"errors"
	"runtime"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/command"
	"nize/cmd/nizectl/display"
	"nize/daemon/api"
)

// versions is the --json output of version.
type versions struct {
	Nizectl string `json:"nizectl"`
	Nized   string `json:"nized,omitempty"` // "" if no daemon runs
	Go      string `json:"go"`
}

func versionCommand(a *command.App) *cli.Command {
	return a.Command(command.Leaf{Name: "version", Usage: "print the versions of nizectl and nized",
		Run: func(ctx context.Context, c *command.Call) error {
			v := versions{Nizectl: api.Version, Go: runtime.Version()}
			st, err := api.GetStatus.Call(ctx, c.API, api.Empty{})
			if err != nil && !errors.Is(err, api.ErrNoDaemon) {
				c.Note("nizectl: asking nized for its version: %v", err)
			}
			v.Nized = st.Version
			if c.JSON {
				return c.PrintJSON(v)
			}
			c.Line("nizectl %s", v.Nizectl)
			if v.Nized != "" {
				c.Line("nized   %s", display.Clean(v.Nized))
			}
			return nil
		}})
}
