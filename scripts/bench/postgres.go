package main

import (
	"context"
	"errors"
	"os"
	"time"

	"nize/store/kv/postgres/postgrestest"
)

// postgres compares calls of a nized with its database on a server with those of one with a
// file, round by round.
func (b *bench) postgres(ctx context.Context) (err error) {
	rows := []row{
		{what: "`execute_tool`, read-only, the database on a PostgreSQL, p50", floor: 1.3, aim: 1.1},
		{what: "the same, a tool that changes something", floor: 3, aim: 2},
	}
	if os.Getenv(postgrestest.Variable) == "" {
		for _, r := range rows {
			r.missing = "scripts/postgres.sh did not start it"
			b.table.add(r)
		}
		return nil
	}
	address, drop, err := postgrestest.Make()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, drop()) }()
	up, err := startUpstream(ctx, "", batch{})
	if err != nil {
		return err
	}
	defer up.kill()
	var clients []*client // of the file, of the server
	for name, env := range []string{"", "NIZE_DATABASE=" + address.Reveal()} {
		d, err := b.startNized(ctx, []string{"file", "server"}[name], env)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, d.stop()) }()
		if err := d.register(ctx, up, 0, 1); err != nil {
			return err
		}
		token, err := d.token(ctx)
		if err != nil {
			return err
		}
		c, err := connect(ctx, "http://"+d.addr+"/mcp", token)
		if err != nil {
			return err
		}
		defer c.close()
		clients = append(clients, c)
	}
	for i, tool := range []string{readTool, writeTool} {
		var took [2][]time.Duration
		var ratios []float64
		for n := range b.rounds + 1 { // the first warms up
			var now [2]time.Duration
			for who, c := range clients {
				now[who], err = p50(ctx, perRound, func(ctx context.Context, i int) error {
					return c.call(ctx, "execute_tool", execute{"system-0:" + tool, page{i}})
				})
				if err != nil {
					return err
				}
			}
			if n > 0 {
				took[0], took[1], ratios = append(took[0], now[0]), append(took[1], now[1]), append(ratios, float64(now[1])/float64(now[0]))
			}
		}
		r := rows[i]
		r.value, r.unit, r.ratio, r.counted = millis(median(took[1])), "ms", median(ratios), true
		r.reference = number(millis(median(took[0]))) + " ms with a file"
		b.table.add(r)
	}
	return nil
}
