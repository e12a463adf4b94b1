package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"nize/daemon/api"
	"nize/store"
	"nize/store/database"
	"nize/store/kv"
	"nize/store/seal"
)

const (
	trailUsers = 50
	trailTools = 200
	trailRare  = 100_000 // one event in so many has a unique user and tool
)

// trail measures the audit trail at a size that a busy team reaches in a year. The events
// are written with the store's own code: at 15,000 calls a second through a gateway it
// would take longer than the rest of the bench.
func (b *bench) trail(ctx context.Context) (err error) {
	if b.events == 0 {
		return nil
	}
	dir := filepath.Join(b.dir, "trail")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("making a directory: %w", err)
	}
	of := fmt.Sprintf(", %d audit events", b.events)
	took, err := b.writeTrail(ctx, dir)
	if err != nil {
		return err
	}
	b.table.add(row{what: "events written to the audit trail" + of, value: float64(b.events) / took.Seconds(), unit: "/s"})
	info, err := os.Stat(filepath.Join(dir, "nize.db"))
	if err != nil {
		return fmt.Errorf("looking at the database: %w", err)
	}
	b.table.add(row{what: "size of the database" + of, value: float64(info.Size()) / 1e6, unit: "MB", reference: fmt.Sprintf("%d bytes each", info.Size()/int64(b.events))})
	if err := b.readTrail(ctx, of); err != nil {
		return err
	}
	return b.pruneTrail(ctx, dir, of)
}

func openStore(ctx context.Context, dir string, modules ...kv.Bucket) (*database.DB, error) {
	master, err := seal.Open(filepath.Join(dir, "nize.key"), store.Secret{})
	if err != nil {
		return nil, fmt.Errorf("opening the key: %w", err)
	}
	return database.Open(ctx, database.Options{Path: filepath.Join(dir, "nize.db"), Master: master, Buckets: modules})
}

// writeTrail appends the events in the form that calls of tools leave.
func (b *bench) writeTrail(ctx context.Context, dir string) (took time.Duration, err error) {
	db, err := openStore(ctx, dir)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	callers := make([]store.Caller, trailUsers+1)
	for i := range callers {
		u, err := db.EnsureUser(ctx, fmt.Sprintf("slack:T:U%d", i), fmt.Sprintf("person-%d", i), store.Member)
		if err != nil {
			return 0, err
		}
		callers[i] = store.Caller{User: u.ID, Name: u.Name, Surface: store.OnMCP, Address: "127.0.0.1", Token: store.NewID(time.Now())}
	}
	data := json.RawMessage(`{"args":{"time":"12:00","zone":"Europe/Berlin"},"output":{"text":"it is noon"},"digest":"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef","took_ms":3}`)
	began := time.Now()
	for i := range b.events {
		by, tool := callers[i%trailUsers], fmt.Sprintf("system-%d:tool-%d", i%20, i%trailTools)
		if i%trailRare == trailRare/2 {
			by, tool = callers[trailUsers], "rare:tool"
		}
		db.AddEvent(by, store.Event{Kind: "call.done", Subject: store.NewID(began), Tool: tool, Outcome: store.Done, Data: data})
		if i%trailRare == 0 && ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
	}
	if err := db.Flush(ctx); err != nil {
		return 0, err
	}
	return time.Since(began), nil
}

// readTrail times the usual queries of people and programs.
func (b *bench) readTrail(ctx context.Context, of string) (err error) {
	d, err := b.startNized(ctx, "trail")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	rare := fmt.Sprintf("person-%d", trailUsers)
	for _, args := range [][]string{
		{"audit"}, {"audit", "--user", "person-7"}, {"audit", "--tool", "system-7:tool-7"},
		{"audit", "--user", rare}, {"audit", "--tool", "rare:*"}, {"audit", "--surface", "slack"}, {"audit", "--since", "1h", "--until", "30m"},
	} {
		took, printed, err := b.whole(ctx, d, args)
		if err != nil {
			return err
		}
		text := "`nizectl"
		for _, a := range args {
			text += " " + a
		}
		b.table.add(row{what: text + "`" + of, value: millis(took), unit: "ms", reference: fmt.Sprintf("%d lines", printed)})
	}
	began := time.Now()
	v, err := api.CheckAudit(ctx, d.api, api.VerifyAuditRequest{}, nil)
	if err == nil && !v.OK {
		err = errors.New(v.Error)
	}
	if err != nil {
		return fmt.Errorf("verifying the trail: %w", err)
	}
	took := time.Since(began)
	b.table.add(row{what: "`nizectl audit verify`" + of, value: took.Seconds(), unit: "s", reference: fmt.Sprintf("%.0f events/s", float64(v.Events)/took.Seconds())})
	began = time.Now()
	var size sink
	if _, err := api.SaveAudit(ctx, d.api, api.AuditRequest{}, &size); err != nil {
		return fmt.Errorf("exporting the trail: %w", err)
	}
	took = time.Since(began)
	b.table.add(row{what: "`nizectl audit export`" + of, value: took.Seconds(), unit: "s", reference: fmt.Sprintf("%.0f MB/s", float64(size)/1e6/took.Seconds())})
	return nil
}

// sink counts what is written to it.
type sink int64

func (s *sink) Write(b []byte) (int, error) {
	*s += sink(len(b))
	return io.Discard.Write(b)
}

// pruneTrail deletes every event, while calls that must be on disk before they run are
// begun one after the other.
func (b *bench) pruneTrail(ctx context.Context, dir, of string) (err error) {
	db, err := openStore(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	by := store.Caller{User: "bench", Surface: store.OnMCP}
	begin := func() (time.Duration, error) {
		c := store.Call{ID: store.NewID(time.Now()), Server: "s", Tool: "t", Args: json.RawMessage(`{}`), By: "bench", State: store.Running}
		began := time.Now()
		err := db.Begin(ctx, by, c)
		return time.Since(began), err
	}
	var quiet, busy []time.Duration
	for range 200 {
		took, err := begin()
		if err != nil {
			return err
		}
		quiet = append(quiet, took)
	}
	pruned := make(chan error, 1)
	began := time.Now()
	go func() {
		_, err := db.Prune(ctx, store.Retention{Audit: time.Nanosecond})
		pruned <- err
	}()
	for done := false; !done; {
		select {
		case err := <-pruned:
			if err != nil {
				return fmt.Errorf("pruning the trail: %w", err)
			}
			done = true
		default:
			took, err := begin()
			if err != nil {
				return err
			}
			busy = append(busy, took)
		}
	}
	took := time.Since(began)
	b.table.add(row{what: "longest wait of a write while all are pruned" + of, value: millis(slices.Max(busy)), unit: "ms",
		reference: fmt.Sprintf("%s ms at the median, in %.0f s; without pruning %s, longest %s", number(millis(median(busy))), took.Seconds(), number(millis(median(quiet))), number(millis(slices.Max(quiet))))})
	return nil
}
