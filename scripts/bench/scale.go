package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"nize/daemon/documents"
	"nize/store"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

const (
	manyTools  = 5000
	perServer  = 1000 // tools of one upstream
	settle     = 3 * time.Second
	restarts   = 5
	oldServers = 100
	oldTools   = 10_000
	queries    = 200
)

type discover struct {
	Query string `json:"query"`
	TopK  int    `json:"top_k,omitempty"`
}

// start measures a first start with thousands of new tools, and memory.
func (b *bench) start(ctx context.Context) (err error) {
	batches := split(manyTools, perServer)
	up, err := startUpstream(ctx, "", batches...)
	if err != nil {
		return err
	}
	defer up.kill()
	d, err := b.startNized(ctx, "start")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	if err := d.register(ctx, up, 0, len(batches)); err != nil {
		return err
	}
	for _, batch := range batches { // the last tool of each server
		if err := d.until(ctx, "to find what it was given", d.finds(batch.First+batch.Count-1)); err != nil {
			return err
		}
	}
	took := time.Since(d.started)
	select {
	case <-time.After(settle):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	own, guard := d.resident()
	if err := b.search(ctx, d, manyTools, row{floor: 5, aim: 2}); err != nil {
		return err
	}
	b.table.add(row{what: "first start with 5,000 new tools of 5 servers until search answers", value: millis(took), unit: "ms", floor: 1500, aim: 500})
	if err := b.idle(ctx); err != nil {
		return err
	}
	b.table.add(row{what: "resident memory with 5,000 tools", value: own, unit: "MB", reference: guardText(guard), floor: 80, aim: 45, missing: noProc(own)})
	return nil
}

func guardText(mb float64) string { return fmt.Sprintf("and its guard process %s MB", number(mb)) }

// idle measures an idle daemon.
func (b *bench) idle(ctx context.Context) (err error) {
	d, err := b.startNized(ctx, "idle")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	select {
	case <-time.After(settle):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	own, guard := d.resident()
	b.table.add(row{what: "resident memory, idle", value: own, unit: "MB", reference: guardText(guard), floor: 30, aim: 20, missing: noProc(own)})
	return nil
}

// discovery measures discover_tools with few tools and with many.
func (b *bench) discovery(ctx context.Context) (err error) {
	batches := []batch{{First: 0, Count: 50}, {First: 50, Count: 950}}
	up, err := startUpstream(ctx, "", batches...)
	if err != nil {
		return err
	}
	defer up.kill()
	d, err := b.startNized(ctx, "discovery")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	for i, limits := range []row{{floor: 2, aim: 0.7}, {floor: 3, aim: 1}} {
		if err := d.register(ctx, up, i, i+1); err != nil {
			return err
		}
		if err := b.search(ctx, d, batches[i].First+batches[i].Count, limits); err != nil {
			return err
		}
	}
	return nil
}

// search measures discover_tools over HTTP, one caller, 200 different requests; limits
// contains the limits.
func (b *bench) search(ctx context.Context, d *nized, tools int, limits row) error {
	token, err := d.token(ctx)
	if err != nil {
		return err
	}
	gateway, err := connect(ctx, "http://"+d.addr+"/mcp", token)
	if err != nil {
		return err
	}
	defer gateway.close()
	ask := func(ctx context.Context, i int) error {
		return gateway.call(ctx, "discover_tools", discover{Query: generate(i * 7919 % tools).asks}) // a prime, to spread over the tools
	}
	if _, err := p50(ctx, 50, ask); err != nil {
		return err
	}
	took, err := p50(ctx, queries, ask)
	if err != nil {
		return err
	}
	limits.what, limits.value, limits.unit = fmt.Sprintf("`discover_tools` over HTTP at %d tools, p50", tools), millis(took), "ms"
	b.table.add(limits)
	if tools != manyTools {
		return nil
	}
	gateway.meter.bytes.Store(0)
	if err := gateway.call(ctx, "discover_tools", discover{Query: generate(1234).asks, TopK: 10}); err != nil {
		return err
	}
	b.table.add(row{what: "`discover_tools` answer of 10, on the wire", value: float64(gateway.meter.bytes.Load()) / 1000, unit: "kB", floor: 4, aim: 2.5, counted: true})
	return nil
}

// restart measures a start with existing data.
func (b *bench) restart(ctx context.Context) (err error) {
	batches := split(oldTools, oldTools/oldServers)
	up, err := startUpstream(ctx, "", batches...)
	if err != nil {
		return err
	}
	defer up.kill()
	d, err := b.startNized(ctx, "restart")
	if err != nil {
		return err
	}
	if err := errors.Join(d.register(ctx, up, 0, len(batches)), d.stop()); err != nil {
		return err
	}
	var took []time.Duration
	for range restarts {
		if d, err = b.startNized(ctx, "restart"); err != nil {
			return err
		}
		err := d.until(ctx, "to find what it had stored", d.finds(oldTools-1))
		took = append(took, time.Since(d.started))
		if err := errors.Join(err, d.stop()); err != nil {
			return err
		}
	}
	b.table.add(row{what: "restart with 100 servers and 10,000 stored tools until ready and found", value: millis(median(took)), unit: "ms", floor: 500, aim: 100})
	return nil
}

// programs measures the files, and nizectl as a whole process.
func (b *bench) programs(ctx context.Context) (err error) {
	d, err := b.startNized(ctx, "programs")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	took, err := p50(ctx, 60, func(ctx context.Context, _ int) error {
		cmd := exec.CommandContext(ctx, filepath.Join(b.bin, "nizectl"), "status", "--json")
		cmd.Env = []string{"NIZE_SOCKET=" + d.api.Socket, "HOME=" + b.dir}
		return cmd.Run()
	})
	if err != nil {
		return fmt.Errorf("running nizectl status: %w", err)
	}
	b.table.add(row{what: "`nizectl status --json`, whole process", value: millis(took), unit: "ms", floor: 20, aim: 8})
	for _, name := range []string{"nized", "nizectl"} {
		fi, err := os.Stat(filepath.Join(b.bin, name))
		if err != nil {
			return fmt.Errorf("looking at %s: %w", name, err)
		}
		b.table.add(row{what: "size of " + name, value: float64(fi.Size()) / 1e6, unit: "MB"})
	}
	return nil
}

const (
	documentCount = 10_000
	documentSize  = 100_000
	documentWords = 200_000 // different ones, with the frequencies of a natural language
)

// documents measures the search in a gigabyte of documents, sealed in the database as
// usual, and its memory.
func (b *bench) documents(ctx context.Context) (err error) {
	dir := filepath.Join(b.dir, "documents")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("making a directory: %w", err)
	}
	disk, err := openStore(ctx, dir, documents.Buckets...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, disk.Close(), os.RemoveAll(dir)) }()
	db, random := documents.Over(disk), rand.New(rand.NewPCG(1, 2))
	words := make([]string, documentWords)
	for i := range words {
		word := make([]byte, 3+random.IntN(7))
		for j := range word {
			word[j] = byte('a' + random.IntN(26))
		}
		words[i] = string(word)
	}
	by, scope := store.Caller{User: "ann", Surface: store.OnCLI}, documents.ScopeOf(documents.Team, "local")
	began := time.Now()
	var writers sync.WaitGroup
	numbers, failed := make(chan int), make(chan error, 4) // one for each writer
	for w := range cap(failed) {
		writers.Go(func() {
			often := rand.NewZipf(rand.New(rand.NewPCG(3, uint64(w))), 1.1, 5, documentWords-1)
			for n := range numbers {
				var text strings.Builder
				for i := 0; text.Len() < documentSize; i++ {
					text.WriteString(words[often.Uint64()] + " \n"[min(i%12/11, 1):][:1])
				}
				d := documents.Document{Scope: scope, Name: fmt.Sprintf("document %d", n), Type: "text/plain"}
				if _, err := db.Put(ctx, by, d, documents.Split(text.String()), documents.Limits{Count: documentCount, Stored: 1 << 40}); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	for n := range documentCount {
		select {
		case numbers <- n:
		case err := <-failed:
			return err
		}
		if n%32 == 31 {
			if err := db.Merge(ctx, scope); err != nil {
				return err
			}
		}
	}
	close(numbers)
	writers.Wait()
	of := fmt.Sprintf(", %d documents of %d kB", documentCount, documentSize/1000)
	b.table.add(row{what: "documents saved" + of, value: documentCount / time.Since(began).Seconds(), unit: "/s"})
	before := heap()
	often := rand.NewZipf(random, 1.1, 5, documentWords-1)
	took, err := searches(queries*3, func(int) (time.Duration, error) {
		query := words[often.Uint64()] + " " + words[often.Uint64()] + " " + words[often.Uint64()]
		begin := time.Now()
		_, err := db.Search(ctx, []documents.Scope{scope}, query, 10)
		return time.Since(begin), err
	})
	if err != nil {
		return err
	}
	b.table.add(row{what: "a search in all documents, 3 words, p50" + of, value: millis(median(took)), unit: "ms", floor: 20, reference: fmt.Sprintf("p99 %s ms; heap %s MB more", number(millis(late(took))), number(max(heap()-before, 0)))})
	return nil
}
