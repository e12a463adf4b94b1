//go:build unix

package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"nize/store"
)

// directProcess is a child of the daemon itself. It has its own process group, which is
// killed when its leader exits. But if the daemon is killed, its children keep running, and
// so does a descendant that left the group. Outside Linux, nothing more is possible.
type directProcess struct {
	pid  int
	done chan struct{}
	err  error // set before done is closed
}

// SpawnDirect starts a command without the guard.
func SpawnDirect(c Command) (Child, error) {
	cmd := &exec.Cmd{Path: c.Path, Args: append([]string{c.Path}, c.Args...), Env: c.Env, Dir: c.Dir,
		Stdin: c.Files[0], Stdout: c.Files[1], Stderr: c.Files[2],
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true}}
	if err := cmd.Start(); err != nil {
		return nil, spawnError(err)
	}
	p := &directProcess{pid: cmd.Process.Pid, done: make(chan struct{})}
	go func() { // ends with the process, which close kills
		defer close(p.done)
		p.err = cmd.Wait()
		_ = killGroup(p.pid, syscall.SIGKILL) // kills the rest of the group; an empty group is no error here
	}()
	return p, nil
}

// spawnError removes the path from the error: the caller adds it.
func spawnError(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

func (p *directProcess) PID() int              { return p.pid }
func (p *directProcess) Done() <-chan struct{} { return p.done }

func (p *directProcess) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

// Limit returns false: the caller must enforce the limit.
func (p *directProcess) Limit(store.Size) bool { return false }

func (p *directProcess) Signal(sig syscall.Signal) error { return killGroup(p.pid, sig) }

// killGroup signals a process group. It returns os.ErrProcessDone if the group no longer
// exists.
func killGroup(pid int, sig syscall.Signal) error {
	err := syscall.Kill(-pid, sig)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	if err != nil {
		return fmt.Errorf("signalling group %d: %w", pid, err)
	}
	return nil
}
