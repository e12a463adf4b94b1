package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"nize/daemon/api"
	"nize/store"
)

const (
	goodServers = 5
	firePause   = 20 * time.Millisecond // between the calls of one caller
	calmTime    = 15 * time.Second      // alone, before and after
	fireTime    = time.Minute           // the first of it, and as long again
)

// fire measures the effect of hostile servers on calls of good ones: their latency, the
// daemon's CPU and memory.
func (b *bench) fire(ctx context.Context) (err error) {
	up, err := startUpstream(ctx, "", make([]batch, goodServers)...)
	if err != nil {
		return err
	}
	defer up.kill()
	sites, err := startHostile(ctx)
	if err != nil {
		return err
	}
	defer sites.kill()
	d, err := b.startNized(ctx, "fire")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	if err := d.register(ctx, up, 0, goodServers); err != nil {
		return err
	}
	token, err := d.token(ctx)
	if err != nil {
		return err
	}
	call, before, end, err := d.calmCalls(ctx, up, token)
	if err != nil {
		return err
	}
	defer end()
	attackers, err := connect(ctx, "http://"+d.addr+"/mcp", token)
	if err != nil {
		return err
	}
	defer attackers.close()
	names, stop := d.attack(ctx, sites, attackers)
	defer stop()
	first, err := d.underLoad(ctx, call, fireTime)
	if err != nil {
		return err
	}
	raging, err := d.underLoad(ctx, call, fireTime)
	if err != nil {
		return err
	}
	stop()
	for _, name := range names {
		yes := true
		if _, err := api.PatchServer.Call(ctx, d.api, api.PatchServerRequest{Name: name, Disabled: &yes}); err != nil && !errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("disabling %s: %w", name, err)
		}
	}
	if _, err := d.underLoad(ctx, call, calmTime/3); err != nil {
		return err
	}
	after, err := d.underLoad(ctx, call, calmTime)
	if err != nil {
		return err
	}
	alone := (before.p95 + after.p95) / 2
	reference := fmt.Sprintf("alone %s ms before, %s ms after (direct %s and %s ms)", number(millis(before.p95)), number(millis(after.p95)), number(millis(before.direct)), number(millis(after.direct)))
	for _, p := range []struct {
		when string
		load
		floor, aim float64
	}{{"in the first minute", first, 0, 0}, {"after it", raging, 3, 1.5}} {
		b.table.add(row{what: "calls of 5 good servers beside 20 hostile ones " + p.when + ", p95 (p50 " + number(millis(p.p50)) + " ms)", value: millis(p.p95), unit: "ms",
			reference: reference + "; direct now " + number(millis(p.direct)) + " ms", ratio: float64(p.p95) / float64(alone), floor: p.floor, aim: p.aim, counted: true})
	}
	b.table.add(row{what: "... nized's CPU in the first minute", value: first.cores, unit: "cores", reference: number(before.cores) + " alone", missing: noProc(first.cores)})
	b.table.add(row{what: "... after it", value: raging.cores, unit: "cores", reference: number(after.cores) + " alone", floor: 0.5, counted: true, missing: noProc(raging.cores)})
	b.table.add(row{what: "... nized's own memory, the most of both minutes", value: max(first.memory, raging.memory), unit: "MB",
		reference: fmt.Sprintf("%s before, %s after", number(before.memory), number(after.memory)), missing: noProc(first.memory)})
	b.table.add(row{what: "... its log", value: float64(first.logged+raging.logged) / 1000, unit: "kB"})
	return nil
}

// calmCalls connects to the good servers through nized and directly, and measures calls of
// them without other load. The caller must call end.
func (d *nized) calmCalls(ctx context.Context, up *upstream, token string) (call ways, calm load, end func(), err error) {
	var open []*client
	end = func() {
		for _, c := range open {
			c.close()
		}
	}
	defer func() {
		if err != nil {
			end()
		}
	}()
	for i := range 1 + goodServers { // the gateway, then the servers
		url, with := "http://"+d.addr+"/mcp", token
		if i > 0 {
			url, with = up.url(i-1), ""
		}
		c, err := connect(ctx, url, with)
		if err != nil {
			return call, calm, end, err
		}
		open = append(open, c)
	}
	call = ways{direct: func(ctx context.Context, server int) error {
		return open[1+server].call(ctx, readTool, page{server})
	}, gateway: func(ctx context.Context, server int) error {
		return open[0].call(ctx, "execute_tool", execute{fmt.Sprintf("system-%d:%s", server, readTool), page{server}})
	}}
	if _, err = d.underLoad(ctx, call, calmTime/3); err != nil {
		return call, calm, end, err
	}
	calm, err = d.underLoad(ctx, call, calmTime)
	return call, calm, end, err
}

// load is the result of a measurement during calls.
type load struct {
	p50, p95 time.Duration
	direct   time.Duration // p95 of the same calls without nized
	cores    float64       // of nized
	memory   float64       // of nized, the maximum, in MB, without the mapped database
	logged   int64         // bytes of nized's log
}

// underLoad calls each good server, one call after the other with a pause, and returns an
// error unless each succeeds.
func (d *nized) underLoad(ctx context.Context, call ways, lasts time.Duration) (load, error) {
	return d.paced(ctx, call, lasts, goodServers, firePause)
}

// paced calls that many of the good servers with that pause.
func (d *nized) paced(ctx context.Context, call ways, lasts time.Duration, servers int, pause time.Duration) (load, error) {
	var l load
	var took, direct [goodServers][]time.Duration
	var running sync.WaitGroup
	errs := make(chan error, goodServers) // one for each
	begin, cpu, logged := time.Now(), d.cpu(), d.logSize()
	for server := range servers {
		running.Go(func() {
			for time.Since(begin) < lasts && ctx.Err() == nil {
				for _, w := range []struct {
					call work
					took *[]time.Duration
				}{{call.gateway, &took[server]}, {call.direct, &direct[server]}} {
					sent := time.Now()
					if err := w.call(ctx, server); err != nil {
						errs <- err
						return
					}
					*w.took = append(*w.took, time.Since(sent))
				}
				time.Sleep(pause)
			}
		})
	}
	for time.Since(begin) < lasts && ctx.Err() == nil {
		l.memory = max(l.memory, memoryOf(d.cmd.Process.Pid, "RssAnon:"))
		time.Sleep(50 * time.Millisecond)
	}
	running.Wait()
	l.cores = (d.cpu() - cpu).Seconds() / time.Since(begin).Seconds()
	l.logged = d.logSize() - logged
	select {
	case err := <-errs:
		return l, err
	default:
	}
	all, without := slices.Concat(took[:]...), slices.Concat(direct[:]...)
	if len(all) == 0 {
		return l, context.Cause(ctx)
	}
	slices.Sort(all)
	slices.Sort(without)
	l.p50, l.p95, l.direct = all[len(all)/2], all[len(all)*95/100], without[len(without)*95/100]
	return l, nil
}

func (d *nized) logSize() int64 {
	fi, err := d.log.Stat()
	if err != nil {
		return 0
	}
	return fi.Size()
}

// attack registers the hostile servers in the background, since some never respond, and
// keeps calling each of them until stop.
func (d *nized) attack(ctx context.Context, sites *hostileHTTP, by *client) (names []string, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	own, err := os.Executable()
	if err != nil {
		own = os.Args[0]
	}
	var records []store.Server
	for _, kind := range hostileChildren {
		records = append(records, store.Server{Name: "child-" + kind, Transport: store.Stdio, Command: own, Env: map[string]store.Value{hostileEnv: {Text: kind}}, KeepAlive: true})
	}
	for _, kind := range hostileSites {
		records = append(records, store.Server{Name: "site-" + kind, Transport: store.HTTP, URL: "http://" + sites.addr + "/" + kind})
	}
	var attacking sync.WaitGroup
	for _, r := range records {
		names = append(names, r.Name)
		r.TrustAnnotations, r.Approval = true, store.ApproveNever
		attacking.Go(func() {
			_, err := api.AddServer.Call(ctx, d.api, api.AddServerRequest{Server: r, Force: true})
			for err == nil && ctx.Err() == nil {
				_ = by.call(ctx, "execute_tool", execute{r.Name + ":" + hostileTool, page{}}) // any result is fine
				select {
				case <-time.After(time.Second):
				case <-ctx.Done():
				}
			}
			if err != nil && ctx.Err() == nil {
				fmt.Fprintf(os.Stderr, "bench: adding %s: %v\n", r.Name, err)
			}
		})
	}
	return names, func() { cancel(); attacking.Wait() }
}

// hostileHTTP is the process of the hostile servers over HTTP.
type hostileHTTP struct {
	addr string
	cmd  *exec.Cmd
}

func startHostile(ctx context.Context) (*hostileHTTP, error) {
	own, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	cmd := exec.CommandContext(ctx, own)
	cmd.Env = append(os.Environ(), hostileEnv+"=http")
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil { // closing it ends the process
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the hostile servers: %w", err)
	}
	h := &hostileHTTP{cmd: cmd}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		h.kill()
		return nil, fmt.Errorf("waiting for the hostile servers: %w", err)
	}
	h.addr = strings.TrimSpace(line)
	return h, nil
}

func (h *hostileHTTP) kill() {
	_ = h.cmd.Process.Kill() // it may have ended
	_ = h.cmd.Wait()         // "killed" is expected
}
