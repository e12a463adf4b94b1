package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"nize/daemon/api"
	"nize/store/journal"
)

const (
	perRound = 300  // calls one after the other
	atOnce   = 1500 // calls by all callers together
	warmUp   = 300
)

type page struct {
	Page int `json:"page"`
}

type execute struct {
	Tool   string `json:"tool_id"`
	Params page   `json:"params"`
}

// ways are the same call on different ways; hop's passes through a server of the SDK that
// only forwards it with the SDK's client.
type ways struct{ direct, hop, gateway work }

// calls measures the first rows of the table: the cost of the gateway, with its hooks and
// its audit trail.
func (b *bench) calls(ctx context.Context) (err error) {
	up, err := startUpstream(ctx, "", batch{})
	if err != nil {
		return err
	}
	defer up.kill()
	d, err := b.startNized(ctx, "calls")
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
	direct, err := connect(ctx, up.url(0), "")
	if err != nil {
		return err
	}
	defer direct.close()
	between, err := startUpstream(ctx, "", batch{Beyond: up.url(0)})
	if err != nil {
		return err
	}
	defer between.kill()
	hop, err := connect(ctx, between.url(0), "")
	if err != nil {
		return err
	}
	defer hop.close()
	gateway, err := connect(ctx, "http://"+d.addr+"/mcp", token)
	if err != nil {
		return err
	}
	defer gateway.close()

	waysTo := func(tool string) ways {
		return ways{
			direct: func(ctx context.Context, i int) error { return direct.call(ctx, tool, page{i}) },
			hop:    func(ctx context.Context, i int) error { return hop.call(ctx, tool, page{i}) },
			gateway: func(ctx context.Context, i int) error {
				return gateway.call(ctx, "execute_tool", execute{"system-0:" + tool, page{i}})
			},
		}
	}
	read, write := waysTo(readTool), waysTo(writeTool)
	for _, w := range []work{read.direct, read.hop, read.gateway, write.gateway} {
		if _, err := p50(ctx, warmUp, w); err != nil {
			return err
		}
	}
	if err := b.latency(ctx, d, read, write); err != nil {
		return err
	}
	if err := b.throughput(ctx, d, read, write); err != nil {
		return err
	}
	if err := b.crowd(ctx, d, read.gateway); err != nil {
		return err
	}
	if err := b.syncs(ctx, d, read.gateway); err != nil {
		return err
	}
	if err := b.hooks(ctx, d, read.gateway); err != nil {
		return err
	}
	gateway.meter.bytes.Store(0)
	if _, err := gateway.session.ListTools(ctx, nil); err != nil {
		return fmt.Errorf("listing the gateway's tools: %w", err)
	}
	b.table.add(row{what: "`tools/list` of the gateway, on the wire", value: float64(gateway.meter.bytes.Load()) / 1000, unit: "kB", floor: 5, aim: 3.5, counted: true})
	return nil
}

// latency compares one caller's calls, round by round.
func (b *bench) latency(ctx context.Context, d *nized, read, write ways) error {
	var directs, hops, reads, writes, flushes []time.Duration
	var hopRatios, readRatios, writeRatios []float64
	var cpu, changingCPU time.Duration
	disk, err := journal.Open(filepath.Join(b.dir, "flushed"), []byte("no secret"), 0)
	if err != nil {
		return fmt.Errorf("opening a journal: %w", err)
	}
	defer disk.Close()
	record := make([]byte, 512) // as large as that of such a call
	for range b.rounds {
		disk.Turn()
		disk.Done()
		flush, err := p50(ctx, perRound, func(context.Context, int) error {
			seq, err := disk.Append(record)
			if err != nil {
				return err
			}
			return disk.Flush(seq)
		})
		if err != nil {
			return err
		}
		direct, err := p50(ctx, perRound, read.direct)
		if err != nil {
			return err
		}
		hop, err := p50(ctx, perRound, read.hop)
		if err != nil {
			return err
		}
		begin := d.cpu()
		through, err := p50(ctx, perRound, read.gateway)
		if err != nil {
			return err
		}
		cpu += d.cpu() - begin
		begin = d.cpu()
		changing, err := p50(ctx, perRound, write.gateway)
		if err != nil {
			return err
		}
		changingCPU += d.cpu() - begin
		directs, hops, reads, writes, flushes = append(directs, direct), append(hops, hop), append(reads, through), append(writes, changing), append(flushes, flush)
		hopRatios = append(hopRatios, float64(hop)/float64(direct))
		readRatios = append(readRatios, float64(through)/float64(direct))
		writeRatios = append(writeRatios, float64(changing)/float64(direct))
	}
	reference := number(millis(median(directs))) + " ms direct"
	b.table.add(row{what: "`execute_tool`, read-only, one caller, p50", value: millis(median(reads)), unit: "ms", reference: reference,
		ratio: median(readRatios), floor: 2.5, aim: 1.6, counted: true})
	b.table.add(row{what: "the same through a hop of the SDK's server and client alone", value: millis(median(hops)), unit: "ms", reference: reference, ratio: median(hopRatios)})
	b.table.add(row{what: "`execute_tool`, a tool that changes something", value: millis(median(writes)), unit: "ms", reference: reference, ratio: median(writeRatios)})
	b.table.add(row{what: "the flush to disk alone that such a call has to wait for", value: millis(median(flushes)), unit: "ms", reference: reference, ratio: float64(median(flushes)) / float64(median(directs))})
	b.table.add(row{what: "its CPU per read-only call", value: millis(cpu) / float64(b.rounds*perRound), unit: "ms", floor: 0.8, aim: 0.4, missing: noProc(cpu)})
	b.table.add(row{what: "its CPU per call that changes something", value: millis(changingCPU) / float64(b.rounds*perRound), unit: "ms", floor: 1.6, aim: 0.8, missing: noProc(changingCPU)})
	return nil
}

// hooks compares calls without a configured hook with calls through five of the built-in
// types, round by round.
func (b *bench) hooks(ctx context.Context, d *nized, read work) error {
	names := []string{"audit", "access-control", "rate-limit", "param-sanitizer", "secret-redaction"}
	configs := map[string]string{
		"access-control": `{"allow":["system-0:*"]}`, "rate-limit": `{"calls":100000,"per":"1h","by":["user","tool"]}`,
		"param-sanitizer": `{"rules":[{"pointer":"/page","pattern":"^secret$","action":"forbid"}]}`,
	}
	for _, name := range names {
		config, off := configs[name], false
		if config == "" {
			config = "{}"
		}
		if _, err := api.AddHook.Call(ctx, d.api, api.AddHookRequest{Name: name, Type: name, Tool: "system-0:*", Config: json.RawMessage(config), Enabled: &off}); err != nil {
			return fmt.Errorf("adding hook %s: %w", name, err)
		}
	}
	measure := func(on bool) (time.Duration, error) {
		for _, name := range names {
			if _, err := api.PatchHook.Call(ctx, d.api, api.PatchHookRequest{HookRequest: api.HookRequest{Name: name}, Enabled: &on}); err != nil {
				return 0, fmt.Errorf("switching hook %s: %w", name, err)
			}
		}
		return p50(ctx, perRound, read)
	}
	var without, with []time.Duration
	var ratios []float64
	for range b.rounds {
		off, err := measure(false)
		if err != nil {
			return err
		}
		on, err := measure(true)
		if err != nil {
			return err
		}
		without, with, ratios = append(without, off), append(with, on), append(ratios, float64(on)/float64(off))
	}
	if _, err := measure(false); err != nil {
		return err
	}
	b.table.add(row{what: "`execute_tool`, read-only, through five configured hooks, p50", value: millis(median(with)), unit: "ms",
		reference: number(millis(median(without))) + " ms without", ratio: median(ratios), floor: 1.5, aim: 1.1, counted: true})
	return nil
}

// noProc returns why a figure from /proc is missing.
func noProc[T time.Duration | float64](value T) string {
	if value == 0 {
		return "there is no /proc"
	}
	return ""
}

// throughput compares all callers' calls, round by round.
func (b *bench) throughput(ctx context.Context, d *nized, read, write ways) error {
	var directs, hops, reads, writes, hopRatios, readRatios, writeRatios []float64
	var cpu time.Duration
	for range b.rounds {
		direct, err := rate(ctx, callers, atOnce, read.direct)
		if err != nil {
			return err
		}
		hop, err := rate(ctx, callers, atOnce, read.hop)
		if err != nil {
			return err
		}
		begin := d.cpu()
		through, err := rate(ctx, callers, atOnce, read.gateway)
		if err != nil {
			return err
		}
		cpu += d.cpu() - begin
		changing, err := rate(ctx, callers, atOnce, write.gateway)
		if err != nil {
			return err
		}
		directs, hops, reads, writes = append(directs, direct), append(hops, hop), append(reads, through), append(writes, changing)
		hopRatios, readRatios, writeRatios = append(hopRatios, hop/direct), append(readRatios, through/direct), append(writeRatios, changing/direct)
	}
	reference := number(median(directs)) + "/s direct"
	b.table.add(row{what: "its throughput at 16 callers", value: median(reads), unit: "calls/s", reference: reference,
		ratio: median(readRatios), floor: 0.45, aim: 0.68, more: true, counted: true})
	b.table.add(row{what: "the same through a hop of the SDK's server and client alone", value: median(hops), unit: "calls/s", reference: reference, ratio: median(hopRatios)})
	b.table.add(row{what: "its throughput, a tool that changes something", value: median(writes), unit: "calls/s", reference: reference, ratio: median(writeRatios)})
	b.table.add(row{what: "its CPU per read-only call at 16 callers", value: millis(cpu) / float64(b.rounds*atOnce), unit: "ms", missing: noProc(cpu)})
	return nil
}

// crowd measures nized's own memory during many concurrent calls, without the pages of its
// files, which the system reclaims when it needs them.
func (b *bench) crowd(ctx context.Context, d *nized, read work) error {
	ended := make(chan error, 1)
	go func() {
		_, err := rate(ctx, crowd, 6*atOnce, read)
		ended <- err
	}()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for most := 0.0; ; {
		select {
		case err := <-ended:
			if err != nil {
				return err
			}
			b.table.add(row{what: "its own memory at 64 callers, at most", value: most, unit: "MB", floor: 90, aim: 70, missing: noProc(most)})
			return nil
		case <-tick.C:
			most = max(most, memoryOf(d.cmd.Process.Pid, "RssAnon:"))
		}
	}
}

// syncs counts the daemon's flushes to disk while all callers read.
func (b *bench) syncs(ctx context.Context, d *nized, read work) error {
	r := row{what: "fsyncs per read-only call at 16 callers", floor: 0.1, aim: 0.02, counted: true}
	path, err := exec.LookPath("strace")
	if err != nil {
		r.missing = "it needs strace"
		b.table.add(r)
		return nil
	}
	out := filepath.Join(b.dir, "strace.out")
	trace := exec.CommandContext(ctx, path, "-f", "-c", "-e", "trace=fsync,fdatasync", "-o", out, "-p", strconv.Itoa(d.cmd.Process.Pid))
	said, err := trace.StderrPipe()
	if err != nil {
		return fmt.Errorf("making a pipe: %w", err)
	}
	if err := trace.Start(); err != nil {
		return fmt.Errorf("starting strace: %w", err)
	}
	line, _ := bufio.NewReader(said).ReadString('\n') // "Process N attached", or an error
	if !strings.Contains(line, "attached") {
		_ = trace.Wait() // its output has the reason
		r.missing = "strace may not attach here: " + strings.TrimSpace(line)
		b.table.add(r)
		return nil
	}
	_, err = rate(ctx, callers, atOnce, read)
	if err == nil {
		err = trace.Process.Signal(os.Interrupt)
	}
	_ = trace.Wait() // it ends by the signal
	if err != nil {
		return fmt.Errorf("counting fsyncs: %w", err)
	}
	n, err := straceCalls(out)
	if err != nil {
		return err
	}
	r.value = float64(n) / atOnce
	b.table.add(r)
	return nil
}

// straceCalls sums the calls in the summary of strace -c: "% time, seconds,
// usecs/call, calls, errors, syscall".
func straceCalls(path string) (int, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, fmt.Errorf("reading what strace counted: %w", err)
	}
	sum := 0
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 5 || f[len(f)-1] != "fsync" && f[len(f)-1] != "fdatasync" {
			continue
		}
		n, err := strconv.Atoi(f[3])
		if err != nil {
			return 0, fmt.Errorf("reading what strace counted: %w", err)
		}
		sum += n
	}
	return sum, nil
}

// comesBack measures how soon the same session of a client works again after an upstream
// was unavailable for five seconds.
func (b *bench) comesBack(ctx context.Context) (err error) {
	up, err := startUpstream(ctx, "", batch{})
	if err != nil {
		return err
	}
	defer func() { up.kill() }() // the current one at that time
	d, err := b.startNized(ctx, "comes-back")
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
	gateway, err := connect(ctx, "http://"+d.addr+"/mcp", token)
	if err != nil {
		return err
	}
	defer gateway.close()
	works := func(ctx context.Context) bool {
		return gateway.call(ctx, "execute_tool", execute{"system-0:" + readTool, page{1}}) == nil
	}
	if !works(ctx) {
		return errors.New("the first call failed")
	}
	up.kill()
	// A client that retries from time to time meanwhile, as people do.
	away := time.NewTimer(5 * time.Second)
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for gone := true; gone; {
		select {
		case <-tick.C:
			if works(ctx) {
				return errors.New("a call worked without its upstream")
			}
		case <-away.C:
			gone = false
		}
	}
	if up, err = startUpstream(ctx, up.addr, batch{}); err != nil {
		return err
	}
	begin := time.Now()
	if err := d.until(ctx, "to reach the upstream again", works); err != nil {
		return err
	}
	b.table.add(row{what: "an upstream comes back after 5 s: the same session works after", value: millis(time.Since(begin)), unit: "ms", floor: 1000, aim: 200})
	return nil
}
