package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"nize/store/kv/bolt"
	"nize/store/kv/postgres/postgrestest"
)

const (
	storedBefore = 500  // calls that fill the first pages
	storedCalls  = 6000 // whose bytes are counted
	// twentyBytes is the result of each call; its arguments have as many.
	twentyBytes = "12 seats, from 18:30"
	firstPage   = 10_000_000_000
)

// storage measures how many bytes a call with 20 bytes each way takes on disk, by bucket:
// of a tool that reads, and of one that changes something, which is on disk before it runs.
func (b *bench) storage(ctx context.Context) (err error) {
	up, err := startUpstream(ctx, "", batch{Text: twentyBytes})
	if err != nil {
		return err
	}
	defer up.kill()
	for _, tool := range []string{readTool, writeTool} {
		if err := b.storageFile(ctx, up, tool); err != nil {
			return err
		}
	}
	return b.storageServer(ctx, up)
}

// storedWork returns calls of a tool whose arguments are 20 bytes.
func storedWork(c *client, tool string) work {
	return func(ctx context.Context, i int) error {
		return c.call(ctx, "execute_tool", execute{"system-0:" + tool, page{firstPage + i}})
	}
}

// during runs fn with a client of a nized that is started for it and stopped afterwards.
func (b *bench) during(ctx context.Context, name string, up *upstream, env []string, fn func(*client) error) (err error) {
	d, err := b.startNized(ctx, name, env...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	if up != nil {
		if err := d.register(ctx, up, 0, 1); err != nil {
			return err
		}
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
	return fn(c)
}

func toolWord(tool string) string {
	if tool == readTool {
		return "that reads"
	}
	return "that changes something"
}

func (b *bench) storageFile(ctx context.Context, up *upstream, tool string) error {
	name := "storage-" + tool
	path := filepath.Join(b.dir, name, "nize.db")
	make := func(n int) func(*client) error {
		return func(c *client) error {
			_, err := rate(ctx, callers, n, storedWork(c, tool))
			return err
		}
	}
	if err := b.during(ctx, name, up, nil, make(storedBefore)); err != nil {
		return err
	}
	before, err := bolt.ReadSizes(path)
	if err != nil {
		return err
	}
	if err := b.during(ctx, name, nil, nil, make(storedCalls)); err != nil {
		return err
	}
	after, err := bolt.ReadSizes(path)
	if err != nil {
		return err
	}
	of := ", a call " + toolWord(tool)
	used := (after.Used - after.Free) - (before.Used - before.Free)
	b.table.add(row{what: "bytes on disk" + of, value: float64(used) / storedCalls, unit: "B", floor: 1200, counted: true,
		reference: fmt.Sprintf("%.0f MB of free pages in a file of %.0f MB", float64(after.Free)/1e6, float64(after.File)/1e6)})
	buckets := int64(0)
	for _, a := range after.Buckets {
		was := bolt.BucketSize{}
		if i := slices.IndexFunc(before.Buckets, func(o bolt.BucketSize) bool { return o.Name == a.Name }); i >= 0 {
			was = before.Buckets[i]
		}
		keys, data, pages := a.Keys-was.Keys, a.Data-was.Data, a.Pages-was.Pages
		buckets += pages
		if pages < storedCalls/10 { // a bucket that doesn't grow with calls
			continue
		}
		b.table.add(row{what: "… in bucket " + a.Name + of, value: float64(pages) / storedCalls, unit: "B",
			reference: fmt.Sprintf("%.1f entries of %.0f B; pages %.0f %% full", float64(keys)/storedCalls, float64(data)/float64(max(keys, 1)), 100*float64(data)/float64(pages))})
	}
	b.table.add(row{what: "… of the engine beside the buckets" + of, value: float64(used-buckets) / storedCalls, unit: "B"})
	return os.RemoveAll(filepath.Join(b.dir, name))
}

func (b *bench) storageServer(ctx context.Context, up *upstream) (err error) {
	const what = "WAL of a PostgreSQL"
	if os.Getenv(postgrestest.Variable) == "" {
		b.table.add(row{what: what + ", a call " + toolWord(writeTool), missing: "scripts/postgres.sh did not start it"})
		return nil
	}
	for _, tool := range []string{readTool, writeTool} {
		if err := b.storageIn(ctx, up, tool, what); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) storageIn(ctx context.Context, up *upstream, tool, what string) (err error) {
	address, drop, err := postgrestest.Make()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, drop()) }()
	var before, after postgrestest.Sizes
	// After a checkpoint each page is logged completely, once. Servers are configured for
	// one an hour, or per gigabyte; here none occurs.
	err = b.during(ctx, "storage-server-"+tool, up, []string{"NIZE_DATABASE=" + address.Reveal()}, func(c *client) error {
		if _, err := rate(ctx, callers, storedBefore, storedWork(c, tool)); err != nil {
			return err
		}
		if before, err = postgrestest.ReadSizes(address); err != nil {
			return err
		}
		if _, err = rate(ctx, callers, storedCalls, storedWork(c, tool)); err != nil {
			return err
		}
		after, err = postgrestest.ReadSizes(address)
		return err
	})
	if err != nil {
		return err
	}
	of := ", a call " + toolWord(tool)
	per := func(after, before int64) float64 { return float64(after-before) / storedCalls }
	b.table.add(row{what: what + of, value: per(after.Log, before.Log), unit: "B", floor: 2000, counted: true})
	b.table.add(row{what: "… in its table" + of, value: per(after.Table, before.Table), unit: "B"})
	b.table.add(row{what: "… in its index" + of, value: per(after.Index, before.Index), unit: "B"})
	for _, a := range after.Buckets {
		was := postgrestest.BucketSize{}
		if i := slices.IndexFunc(before.Buckets, func(o postgrestest.BucketSize) bool { return o.Name == a.Name }); i >= 0 {
			was = before.Buckets[i]
		}
		if a.Data-was.Data < storedCalls/10 {
			continue
		}
		b.table.add(row{what: "… keys and values in bucket " + a.Name + of, value: per(a.Data, was.Data), unit: "B",
			reference: fmt.Sprintf("%.1f rows of %.0f B", float64(a.Rows-was.Rows)/storedCalls, float64(a.Data-was.Data)/float64(max(1, a.Rows-was.Rows)))})
	}
	return nil
}
