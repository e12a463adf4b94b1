package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"nize/daemon"
	"nize/daemon/backup"
)

// copyDatabase is run by nizectl database copy, because nizectl opens no database.
func copyDatabase(usage cli.OnUsageErrorFunc) *cli.Command {
	return &cli.Command{
		Name: "copy", Usage: "copy a database to another place, while no nized uses either; it answers in JSON", Hidden: true,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "from", Usage: "data directory or postgres `URL`"},
			&cli.StringFlag{Name: "to", Usage: "data directory or postgres `URL`"},
		},
		OnUsageError: usage,
		Action:       runCopy,
	}
}

func runCopy(ctx context.Context, c *cli.Command) error {
	opt, err := options(c)
	if err != nil {
		return err
	}
	var ends [2]*backup.Directory
	for i, flag := range []string{"from", "to"} {
		at := c.String(flag)
		if at == "" || c.Args().Present() {
			return fmt.Errorf("copy needs --from URL --to URL, each a data directory or postgres://…; %w", errUsage)
		}
		d := &backup.Directory{Buckets: daemon.Buckets(), Env: opt.Env, Now: time.Now, Log: logger(os.Stderr, opt)}
		if strings.Contains(at, "://") && !strings.HasPrefix(at, "file://") {
			if d.Database, err = serverOf("--"+flag, at); err != nil {
				return err
			}
		} else {
			d.Path = strings.TrimPrefix(at, "file://")
		}
		ends[i] = d
	}
	// The key is in the data directory of either end, or else where nized has it.
	from, to := ends[0], ends[1]
	from.Path = cmp.Or(from.Path, to.Path, opt.DataDir)
	to.Path = cmp.Or(to.Path, from.Path)
	said, err := from.CopyTo(ctx, to)
	if err != nil {
		return fmt.Errorf("copying the database: %w", err)
	}
	return json.NewEncoder(os.Stdout).Encode(said)
}
