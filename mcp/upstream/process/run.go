package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"nize/store"
)

// Job is a command that reads its input, writes its output and exits.
type Job struct {
	Argv  []string // the program by its path, or by a name on nized's PATH
	Env   []string
	Dir   string
	Input []byte
	// MaxOutput limits the output in bytes. A job that writes more is killed.
	MaxOutput int

	// Memory and Processes limit the job and its descendants while it runs, if the system
	// can measure them; 0 means unlimited.
	Memory    store.Size
	Processes int
}

// JobError means that a job failed through its own fault.
type JobError struct {
	Why  string // "ended with exit status 1"
	Last string // the end of its standard error; untrusted text
}

func (e *JobError) Error() string { return "it " + e.Why }

const (
	watchEvery = 100 * time.Millisecond // between measurements of a job's use
	orphanTime = time.Second            // for pipes that another process holds open after a job's exit
	keptErrors = 2 << 10                // bytes of standard error that are kept
	mostErrors = 4 << 20                // bytes of standard error that a job may write
)

// Run runs a job until it exits or ctx ends, and returns its output. When it returns, its
// whole process group has exited, and with a guard all its descendants. If the failure is
// the job's own fault, it returns a *[JobError].
func Run(ctx context.Context, spawn func(Command) (Child, error), job Job) ([]byte, error) {
	path, err := exec.LookPath(job.Argv[0])
	if err != nil {
		return nil, fmt.Errorf("finding its command: %w", err)
	}
	var ours, theirs [3]*os.File
	for i := range ours {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, fmt.Errorf("making a pipe: %w", err)
		}
		defer r.Close() // closing twice is harmless
		defer w.Close()
		if ours[i], theirs[i] = r, w; i == 0 {
			ours[i], theirs[i] = w, r
		}
	}
	child, err := spawn(Command{Path: path, Args: job.Argv[1:], Dir: job.Dir, Env: job.Env, Files: theirs, Memory: job.Memory, Processes: job.Processes})
	for _, f := range theirs {
		f.Close() // the child has its own
	}
	if err != nil {
		return nil, fmt.Errorf("starting its command: %w", err)
	}
	r := &run{child: child, ours: ours}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer func() { // also for processes that left the group and still hold the pipes
		r.kill("")
		<-child.Done()
	}()
	defer context.AfterFunc(ctx, func() { r.kill("") })()
	wg.Go(func() {
		_, _ = ours[0].Write(job.Input) // a job that doesn't read its input may still answer
		ours[0].Close()
	})
	wg.Go(func() { r.watch(job) })
	told := make(chan struct{})
	wg.Go(func() { defer close(told); r.readErrors() })
	out, err := io.ReadAll(io.LimitReader(ours[1], int64(job.MaxOutput)+1))
	if len(out) > job.MaxOutput {
		r.kill(fmt.Sprintf("wrote an answer of more than %d bytes", job.MaxOutput))
	}
	select {
	case <-child.Done():
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if why := r.reason(); why != "" {
		return nil, &JobError{Why: why}
	}
	if ended := child.Err(); ended != nil {
		if over := new(MemoryError); errors.As(ended, &over) {
			return nil, &JobError{Why: fmt.Sprintf("was killed: it held more memory than its limit of %s", over.Limit)}
		}
		<-told
		return nil, &JobError{Why: "ended with " + ended.Error(), Last: strings.TrimSpace(strings.ToValidUTF8(string(r.last), "\uFFFD"))}
	}
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, fmt.Errorf("reading its answer: %w", err)
	}
	return out, nil
}

// run is a job in progress.
type run struct {
	child Child
	ours  [3]*os.File
	last  []byte // the end of standard error; written by readErrors only

	mu  sync.Mutex
	why string // reason for the kill
}

// kill ends the job. It closes the pipes, because a descendant may hold the other ends.
func (r *run) kill(why string) {
	r.mu.Lock()
	if r.why == "" {
		r.why = why
	}
	r.mu.Unlock()
	select {
	case <-r.child.Done():
	default:
		_ = r.child.Signal(syscall.SIGKILL) // it may have exited already
	}
	for _, f := range r.ours {
		f.Close()
	}
}

func (r *run) reason() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.why
}

// readErrors stores the end of standard error.
func (r *run) readErrors() {
	part, total := make([]byte, 4<<10), 0
	for {
		n, err := r.ours[2].Read(part)
		r.last = append(r.last, part[:n]...)
		r.last = r.last[max(0, len(r.last)-keptErrors):]
		if total += n; total > mostErrors {
			r.kill(fmt.Sprintf("wrote more than %d bytes to standard error", mostErrors))
			return
		}
		if err != nil {
			return
		}
	}
}

// watch enforces the job's limits until it has exited. The content of the pipes is then
// read, without waiting for other processes that hold them.
func (r *run) watch(job Job) {
	kernel := r.child.Limit(job.Memory)
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-r.child.Done():
			for _, f := range r.ours[1:] {
				_ = f.SetReadDeadline(time.Now().Add(orphanTime)) // closing has the same effect
			}
			return
		case <-tick.C:
		}
		used, ok := Measure(r.child)
		if !ok {
			continue
		}
		if used := used[0].Memory; !kernel && job.Memory > 0 && used > job.Memory {
			r.kill(fmt.Sprintf("was killed: it held %d MiB of memory, over its limit of %s", used>>20, job.Memory))
		}
		if n := len(used[0].PIDs); job.Processes > 0 && n > job.Processes {
			r.kill(fmt.Sprintf("was killed: it ran %d processes at once, over its limit of %d", n, job.Processes))
		}
	}
}
