package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"nize/daemon/api"
	"nize/store"
	"nize/store/database"
	"nize/store/seal"
)

const (
	spendCalls   = 1_000_000
	spendDays    = 400 // the default retention of usage
	spendPeople  = 50
	spendModels  = 20
	spendThread  = 10 // calls of one conversation
	spendBatch   = 20_000
	spendReports = 20 // of each grouping
)

// usage measures the report over 1,000,000 model calls, of 30 days and of all, through the
// real daemon's socket. The rows are written with the store's own code, in big
// transactions, while no daemon runs.
func (b *bench) usage(ctx context.Context) (err error) {
	d, err := b.startNized(ctx, "usage")
	if err != nil {
		return err
	}
	if err := d.stop(); err != nil {
		return err
	}
	now := time.Now()
	if err := spend(ctx, d.dir, now); err != nil {
		return err
	}
	if d, err = b.startNized(ctx, "usage"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	for _, days := range []int{30, spendDays} {
		for _, by := range store.UsageGroupings {
			q := api.GetUsageRequest{By: by, Since: now.AddDate(0, 0, -days), Top: 40}
			took, err := p50(ctx, spendReports, func(ctx context.Context, _ int) error {
				report, err := api.GetUsage.Call(ctx, d.api, q)
				if err == nil && report.Total.Calls == 0 && by != "tool" {
					err = errors.New("the report is empty")
				}
				return err
			})
			if err != nil {
				return fmt.Errorf("asking for usage by %s: %w", by, err)
			}
			b.table.add(row{what: fmt.Sprintf("usage of %d days by %s, 1,000,000 model calls in %d days", days, by, spendDays), value: millis(took), unit: "ms", floor: 50, aim: 5})
		}
	}
	took, _, err := b.whole(ctx, d, []string{"usage", "--by", "conversation", "--since", "400d"})
	if err != nil {
		return err
	}
	b.table.add(row{what: "`nizectl usage --by conversation --since 400d`, whole process, 100,000 conversations", value: millis(took), unit: "ms"})
	return nil
}

// spend writes the calls into a data directory that no daemon uses.
func spend(ctx context.Context, dir string, now time.Time) (err error) {
	master, err := seal.Open(filepath.Join(dir, "nize.key"), store.Secret{})
	if err != nil {
		return fmt.Errorf("opening the key: %w", err)
	}
	db, err := database.Open(ctx, database.Options{Path: filepath.Join(dir, "nize.db"), Master: master})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	const apart = spendDays * 24 * time.Hour / spendCalls
	rows := make([]store.Spend, spendBatch)
	for i := 0; i < spendCalls; i += spendBatch {
		for j := range rows {
			n := i + j
			at := now.Add(-time.Duration(spendCalls-n) * apart)
			rows[j] = store.Spend{
				ID: fmt.Sprintf("01S%023d", n), At: at, User: fmt.Sprintf("01U%023d", n/spendThread%spendPeople), Team: "local",
				Thread: fmt.Sprintf("01T%023d", n/spendThread), Agent: "main", Provider: "main", Model: fmt.Sprint("model-", n%spendModels),
				Prompt: int64(1000 + n%100), Completion: 10, MicroUSD: 300, Priced: true, Took: time.Second,
			}
		}
		if err := db.AddSpends(ctx, rows); err != nil {
			return err
		}
	}
	return nil
}
