package main

import (
	"context"
	"errors"
	"runtime"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/display"
	"nize/daemon/api"
)

// versions is what version prints with --json.
type versions struct {
	Nizectl string `json:"nizectl"`
	Nized   string `json:"nized,omitempty"` // "" where no daemon runs
	Go      string `json:"go"`
}

func (a *app) version() *cli.Command {
	return a.command(leaf{name: "version", usage: "print the version of nizectl and, if it runs, of nized",
		run: func(ctx context.Context, c *call) error {
			v := versions{Nizectl: api.Version, Go: runtime.Version()}
			st, err := api.GetStatus.Call(ctx, c.api, api.Empty{})
			if err != nil && !errors.Is(err, api.ErrNoDaemon) {
				c.note("nizectl: asking nized for its version: %v", err)
			}
			v.Nized = st.Version
			if c.json {
				return c.printJSON(v)
			}
			c.line("nizectl %s", v.Nizectl)
			if v.Nized != "" {
				c.line("nized   %s", display.Clean(v.Nized))
			}
			return nil
		}})
}
