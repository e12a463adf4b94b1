package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"nize/store"
)

// spawnWait is the timeout for the guard to start a command.
const spawnWait = 5 * time.Second

// Guard spawns processes through a second process of the same program, which outlives the
// daemon just long enough to kill them all, however the daemon ended. It is safe for
// concurrent use.
//
// The guard process is the subreaper of all its descendants, so that none can leave its
// tree. When a child exits, the guard kills the child's descendants, in whatever session or
// group, before it reports the exit; when the socket to the daemon is closed, it kills
// every descendant. If the guard itself is killed, its direct children die with it
// (Pdeathsig), the daemon kills the processes with their marks, and the next Spawn starts a
// new guard.
type Guard struct {
	log *slog.Logger

	mu     sync.Mutex
	link   *guardLink // nil if there is no guard process
	closed bool
}

// guardLink is the daemon's end of the connection to one guard process.
type guardLink struct {
	log  *slog.Logger
	conn *net.UnixConn
	cmd  *exec.Cmd
	gone chan struct{} // closed when the guard process has exited and was cleaned up

	write sync.Mutex // one frame at a time

	mu       sync.Mutex
	next     uint64
	children map[uint64]*guarded
	dead     bool
}

// guarded is a child of the guard.
type guarded struct {
	link    *guardLink
	id      uint64
	pid     int           // set before started is closed
	mark    mark          // mark of its processes; set with pid
	kernel  bool          // the kernel enforces its limits; set with pid
	started chan struct{} // closed when it has started, or failed to
	done    chan struct{} // closed when it has exited
	err     error         // set before started or done is closed

	limiting sync.Mutex
	memory   store.Size // its limit; guarded by limiting
}

// StartGuard starts the guard process. ctx only limits the start.
func StartGuard(ctx context.Context, log *slog.Logger) (*Guard, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	g := &Guard{log: log}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if _, err := g.livingLink(); err != nil {
		return nil, err
	}
	return g, nil
}

// livingLink returns the link to a running guard, and starts one if there is none.
func (g *Guard) livingLink() (*guardLink, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, errors.New("the guard is closed")
	}
	if g.link != nil && g.link.alive() {
		return g.link, nil
	}
	if g.link != nil {
		g.log.Warn("the guard of the child processes died; starting a new one")
		<-g.link.gone
	}
	link, err := startLink(g.log)
	if err != nil {
		return nil, fmt.Errorf("starting the guard: %w", err)
	}
	g.link = link
	return link, nil
}

func startLink(log *slog.Logger) (*guardLink, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("making a socket pair: %w", err)
	}
	theirs := os.NewFile(uintptr(fds[1]), "guard")
	defer theirs.Close()
	ours := os.NewFile(uintptr(fds[0]), "daemon")
	conn, err := net.FileConn(ours)
	ours.Close()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Args = []string{"nized-guard"} // its name in ps
	cmd.Env = []string{guardEnv + "=3"}
	cmd.Dir = "/"
	cmd.Stderr = os.Stderr
	cmd.ExtraFiles = []*os.File{theirs}
	// Its own group, so that it doesn't get a terminal's signals to the daemon's group.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		conn.Close()
		return nil, err
	}
	l := &guardLink{log: log, conn: conn.(*net.UnixConn), cmd: cmd, gone: make(chan struct{}), children: map[uint64]*guarded{}}
	go l.readFrames() // ends when the guard exits; Close waits for over
	return l, nil
}

func (l *guardLink) alive() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.dead
}

// readFrames reads the guard's messages about the children until it exits, and then cleans
// up.
func (l *guardLink) readFrames() {
	defer close(l.gone)
	var err error
	for err == nil {
		var head [4]byte
		if _, err = io.ReadFull(l.conn, head[:]); err != nil {
			break
		}
		var f frame
		if f, err = readFrame(l.conn, head); err == nil {
			l.handleFrame(f)
		}
	}
	l.conn.Close()
	waited := l.cmd.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead = true
	l.killLeftLocked()
	for _, c := range l.children {
		c.endLocked(fmt.Errorf("the end of the guard (%v)", waited))
	}
	l.children = nil
}

// killLeftLocked kills the processes that a killed guard left behind. Its direct children
// have died with it, but their descendants have not. l.mu must be held.
func (l *guardLink) killLeftLocked() {
	marks := map[mark]bool{}
	for _, c := range l.children {
		if c.pid == 0 {
			continue
		}
		if c.mark != 0 {
			marks[c.mark] = true
		}
		if err := killGroup(c.pid, syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
			l.log.Warn("killing the processes that the guard left", "err", err)
		}
	}
	until := time.Now().Add(sweepTime)
	for left := len(marks) > 0; left && time.Now().Before(until); time.Sleep(time.Millisecond) {
		left = false
		for pid, e := range readTree() { // a process that forks while it is being killed is found in the next round
			if !e.zombie && marks[markOf(pid)] && unix.Kill(pid, unix.SIGKILL) == nil {
				left = true
			}
		}
	}
}

// handleFrame handles one message from the guard.
func (l *guardLink) handleFrame(f frame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f.Op == "ready" {
		if f.Kernel {
			l.log.Info("the kernel enforces the limits of child processes", "cgroup", f.Path)
		} else {
			l.log.Info("limits of child processes are sampled", "why", f.Err)
		}
		return
	}
	c := l.children[f.ID]
	if c == nil {
		return
	}
	switch f.Op {
	case "started":
		c.pid, c.mark, c.kernel = f.PID, f.Mark, f.Kernel
		if f.Err != "" {
			delete(l.children, f.ID)
			c.endLocked(errors.New(f.Err))
			return
		}
		close(c.started)
	case "ended":
		delete(l.children, f.ID)
		switch {
		case f.Over:
			c.endLocked(&MemoryError{f.Memory})
		case f.Err != "":
			c.endLocked(errors.New(f.Err))
		default:
			c.endLocked(nil)
		}
	}
}

// endLocked records the exit. The link's lock must be held.
func (c *guarded) endLocked(err error) {
	c.err = err
	select {
	case <-c.started:
	default:
		close(c.started)
	}
	close(c.done)
}

// Spawn starts a command as a child of the guard.
func (g *Guard) Spawn(cmd Command) (Child, error) {
	l, err := g.livingLink()
	if err != nil {
		return nil, err
	}
	c := &guarded{link: l, memory: cmd.Memory, started: make(chan struct{}), done: make(chan struct{})}
	l.mu.Lock()
	if l.dead {
		l.mu.Unlock()
		return nil, errors.New("the guard has just died")
	}
	l.next++
	c.id = l.next
	l.children[c.id] = c
	l.mu.Unlock()
	f := frame{Op: "spawn", ID: c.id, Path: cmd.Path, Args: cmd.Args, Env: cmd.Env, Dir: cmd.Dir, Memory: cmd.Memory, Processes: cmd.Processes}
	if err := l.send(f, &cmd.Files); err != nil {
		l.mu.Lock()
		delete(l.children, c.id)
		l.mu.Unlock()
		return nil, err
	}
	timer := time.NewTimer(spawnWait)
	defer timer.Stop()
	select {
	case <-c.started:
	case <-timer.C:
		// If it still starts, no caller would know of it.
		if err := l.send(frame{Op: "signal", ID: c.id, Sig: int(syscall.SIGKILL)}, nil); err != nil {
			l.log.Warn("killing a child that started late", "err", err)
		}
		return nil, fmt.Errorf("the guard did not answer within %s", spawnWait)
	}
	if c.pid == 0 {
		<-c.done
		return nil, c.err
	}
	return c, nil
}

// send writes one frame, and sends the descriptors with its first byte.
func (l *guardLink) send(f frame, files *[3]*os.File) error {
	b, err := encodeFrame(f)
	if err != nil {
		return err
	}
	var oob []byte
	if files != nil {
		oob = unix.UnixRights(int(files[0].Fd()), int(files[1].Fd()), int(files[2].Fd()))
	}
	l.write.Lock()
	defer l.write.Unlock()
	if err := l.conn.SetWriteDeadline(time.Now().Add(spawnWait)); err != nil {
		return fmt.Errorf("telling the guard: %w", err)
	}
	n, _, err := l.conn.WriteMsgUnix(b, oob, nil)
	if err == nil && n < len(b) {
		_, err = l.conn.Write(b[n:])
	}
	if err != nil {
		l.conn.Close() // after a partial frame the stream is unusable
		return fmt.Errorf("telling the guard: %w", err)
	}
	return nil
}

// Close ends the guard and all its descendants, and waits.
func (g *Guard) Close() error {
	g.mu.Lock()
	g.closed = true
	l := g.link
	g.mu.Unlock()
	if l == nil {
		return nil
	}
	if err := l.conn.CloseWrite(); err != nil && l.alive() {
		return fmt.Errorf("closing the guard: %w", err)
	}
	timer := time.AfterFunc(2*spawnWait, func() {
		l.log.Error("the guard does not end; killing it")
		l.cmd.Process.Kill() //nolint:errcheck // it may have just exited
	})
	defer timer.Stop()
	<-l.gone
	return nil
}

func (c *guarded) PID() int              { return c.pid }
func (c *guarded) Done() <-chan struct{} { return c.done }

func (c *guarded) Err() error {
	select {
	case <-c.done:
		return c.err
	default:
		return nil
	}
}

// Limit implements [Child].
func (c *guarded) Limit(memory store.Size) bool {
	if !c.kernel {
		return false
	}
	c.limiting.Lock()
	defer c.limiting.Unlock()
	if memory != c.memory {
		if err := c.link.send(frame{Op: "limit", ID: c.id, Memory: memory}, nil); err != nil {
			return false
		}
		c.memory = memory
	}
	return true
}

func (c *guarded) Signal(sig syscall.Signal) error {
	select {
	case <-c.done:
		return os.ErrProcessDone
	default:
	}
	return c.link.send(frame{Op: "signal", ID: c.id, Sig: int(sig)}, nil)
}
