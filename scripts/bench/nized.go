package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"nize/daemon/api"
	"nize/store"
)

// nized is a running daemon.
type nized struct {
	dir     string
	cmd     *exec.Cmd
	log     *os.File
	started time.Time // just before it was executed
	addr    string
	api     *api.Client
	http    *http.Client
	exited  chan struct{}
}

// patience is how long any operation of the daemon may take before the bench gives up.
const patience = 5 * time.Minute

// startNized starts bin/nized on the directory and returns once it is ready.
func (b *bench) startNized(ctx context.Context, name string, env ...string) (*nized, error) {
	d := &nized{dir: filepath.Join(b.dir, name), http: &http.Client{Transport: &http.Transport{}}, exited: make(chan struct{})}
	var err error
	if d.log, err = os.OpenFile(d.dir+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return nil, fmt.Errorf("opening nized's log: %w", err)
	}
	d.cmd = exec.CommandContext(ctx, filepath.Join(b.bin, "nized"), "--data-dir", d.dir, "--listen", "127.0.0.1:0")
	d.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.dir}, env...)
	if url := os.Getenv("NIZE_DATABASE"); url != "" && name == "calls" {
		d.cmd.Env = append(d.cmd.Env, "NIZE_DATABASE="+url)
	}
	d.cmd.Stderr = d.log
	d.cmd.Cancel = func() error { return d.cmd.Process.Signal(syscall.SIGTERM) }
	d.cmd.WaitDelay = 20 * time.Second
	d.started = time.Now()
	if err := d.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting nized: %w", err)
	}
	go func() {
		_ = d.cmd.Wait() // stop reads the state
		close(d.exited)
	}()
	d.api = api.New(api.SocketIn(d.dir))
	if err := d.until(ctx, "to be ready", d.ready); err != nil {
		return nil, errors.Join(err, d.stop())
	}
	return d, nil
}

// ready reports whether /readyz succeeds.
func (d *nized) ready(ctx context.Context) bool {
	addr, err := os.ReadFile(filepath.Join(d.dir, "nized.addr"))
	if err != nil {
		return false
	}
	d.addr = strings.TrimSpace(string(addr))
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+d.addr+"/readyz", nil)
	if err != nil {
		return false
	}
	resp, err := d.http.Do(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close() // the status is all that counts
	return resp.StatusCode == http.StatusOK
}

// until polls every millisecond.
func (d *nized) until(ctx context.Context, what string, ok func(context.Context) bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok(ctx) {
		select {
		case <-tick.C:
		case <-d.exited:
			return fmt.Errorf("waiting for nized %s: it ended: %s", what, d.tail())
		case <-ctx.Done():
			return fmt.Errorf("waiting for nized %s: %w: %s", what, context.Cause(ctx), d.tail())
		}
	}
	return nil
}

// tail returns the end of its log.
func (d *nized) tail() string {
	b, err := os.ReadFile(d.dir + ".log")
	if err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(b[max(0, len(b)-2000):]))
}

// stop ends it and waits; it must exit successfully.
func (d *nized) stop() error {
	d.api.Close()
	d.http.CloseIdleConnections()
	defer d.log.Close()
	_ = d.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-d.exited:
	case <-time.After(patience):
		_ = d.cmd.Process.Kill() // the error below reports it
		<-d.exited
	}
	if code := d.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("nized ended with %d: %s", code, d.tail())
	}
	return nil
}

// register adds servers of the upstream by their numbers, eight at a time;
// number i is called system-i.
func (d *nized) register(ctx context.Context, u *upstream, from, to int) error {
	slots := make(chan struct{}, 8)
	errs := make(chan error, to-from) // one for each
	var adding sync.WaitGroup
	for i := from; i < to; i++ {
		adding.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			view, err := api.AddServer.Call(ctx, d.api, api.AddServerRequest{Server: store.Server{
				Name: fmt.Sprintf("system-%d", i), Transport: store.HTTP, URL: u.url(i),
				TrustAnnotations: true, Approval: store.ApproveNever, MaxConcurrency: 2 * callers,
			}})
			switch {
			case err != nil:
				errs <- fmt.Errorf("adding server %d: %w", i, err)
			case view.Held > 0 || view.ToolCount < u.servers[i].Count:
				errs <- fmt.Errorf("adding server %d: %d tools came, %d are held back", i, view.ToolCount, view.Held)
			}
		})
	}
	adding.Wait()
	close(errs)
	var all []error
	for err := range errs {
		all = append(all, err)
	}
	return errors.Join(all...)
}

// token creates a bearer token.
func (d *nized) token(ctx context.Context) (string, error) {
	made, err := api.CreateToken.Call(ctx, d.api, api.CreateTokenRequest{Name: "bench", Overwrite: true})
	if err != nil {
		return "", fmt.Errorf("making a token: %w", err)
	}
	return made.Secret.Reveal(), nil
}

// finds returns a function that reports whether a search has the tool among its first
// results.
func (d *nized) finds(number int) func(context.Context) bool {
	want := generate(number)
	return func(ctx context.Context) bool {
		found, err := api.SearchTools.Call(ctx, d.api, api.SearchToolsRequest{Query: want.asks, TopK: 10})
		if err != nil {
			return false
		}
		for _, t := range found.Tools {
			if t.Name == want.name {
				return true
			}
		}
		return false
	}
}

// cpu returns its CPU time so far, 0 without /proc.
func (d *nized) cpu() time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", d.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	// The second field is the name, in parentheses, and may contain any character.
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	var ticks int
	for _, f := range fields[11:13] { // utime, stime (proc_pid_stat(5))
		n, err := strconv.Atoi(f)
		if err != nil {
			return 0
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond // USER_HZ is 100
}

// resident returns its memory, and that of its children (the guard), in MB.
func (d *nized) resident() (own, children float64) {
	pid := d.cmd.Process.Pid
	own = residentOf(pid)
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return own, 0
	}
	for _, path := range tasks {
		list, err := os.ReadFile(path)
		if err != nil {
			continue // the thread has ended
		}
		for f := range strings.FieldsSeq(string(list)) {
			if child, err := strconv.Atoi(f); err == nil {
				children += residentOf(child)
			}
		}
	}
	return own, children
}

func residentOf(pid int) float64 { return memoryOf(pid, "VmRSS:") }

// memoryOf returns one of the sizes in proc_pid_status(5), in MB.
func memoryOf(pid int, field string) float64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, field); ok {
			kb, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			if err != nil {
				return 0
			}
			return kb / 1024
		}
	}
	return 0
}
