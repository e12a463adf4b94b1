package process

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"nize/store"
)

// GuardMain runs the guard and never returns if this process was started as the guard;
// otherwise it returns immediately. Call it first in main, and in TestMain of every package
// that starts a guard.
func GuardMain() {
	v, ok := os.LookupEnv(guardEnv)
	if !ok {
		return
	}
	fd, err := strconv.Atoi(v)
	if err != nil {
		fmt.Fprintf(os.Stderr, "nized-guard: %s=%q is not a descriptor\n", guardEnv, v)
		os.Exit(2)
	}
	// Pdeathsig of a child fires when the thread that created it exits: this thread creates
	// all of them, and lives as long as the guard.
	runtime.LockOSThread()
	if err := guardWork(fd); err != nil && !errors.Is(err, io.EOF) {
		fmt.Fprintf(os.Stderr, "nized-guard: %v\n", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// warden is the state of the guard process.
type warden struct {
	conn   *net.UnixConn
	cgroup string // the directory of the delegated control group; "" if none

	mu       sync.Mutex    // held while forking, so that an exit is not handled before its start
	children map[int]*ward // by pid
	ending   []*ward       // exited children with running descendants
	looked   time.Time     // last run of bringBackLocked
	write    sync.Mutex
}

// ward is a child that the guard started for the daemon.
type ward struct {
	id     uint64 // the daemon's id
	pid    int
	mark   mark
	cgroup string     // its control group's directory; "" if none
	memory store.Size // its limit
	end    frame      // sent to the daemon when the child and its descendants have exited
	wait   time.Time  // deadline for waiting for the descendants
}

const (
	// lookEvery is the interval of checks for processes without a child, because no signal
	// reports an orphan.
	lookEvery = time.Second
	// sweepEvery is the initial interval after an exit that left descendants.
	sweepEvery = 2 * time.Millisecond
	// sweepTime is how long the report of a child's exit waits for its descendants. A
	// process that is blocked in the kernel can't be killed until it returns from it.
	sweepTime = 2 * time.Second
)

func guardWork(fd int) error {
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGPIPE)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("becoming a subreaper: %w", err)
	}
	unix.CloseOnExec(fd)
	file := os.NewFile(uintptr(fd), "daemon")
	conn, err := net.FileConn(file)
	file.Close()
	if err != nil {
		return fmt.Errorf("the socket to the daemon: %w", err)
	}
	uc, ok := conn.(*net.UnixConn)
	if !ok {
		return errors.New("the descriptor is not a unix socket")
	}
	w := &warden{conn: uc, children: map[int]*ward{}}
	ready := frame{Op: "ready"}
	if w.cgroup, err = delegatedCgroup(); err != nil {
		ready.Err = err.Error()
	} else {
		ready.Path, ready.Kernel = w.cgroup, true
	}
	w.sendFrame(ready)
	ended := make(chan os.Signal, 1) // capacity 1: one signal may stand for many exits, and reap checks for all
	signal.Notify(ended, syscall.SIGCHLD)
	go func() {
		next := lookEvery
		for {
			if w.reap() {
				next = min(2*next, lookEvery)
			} else {
				next = lookEvery
			}
			select {
			case <-ended:
				next = sweepEvery / 2
			case <-time.After(next):
			}
		}
	}()
	err = w.serve()
	w.killAll()
	return err
}

// serve handles the daemon's requests until the daemon exits.
func (w *warden) serve() error {
	for {
		f, files, err := w.receive()
		if err != nil {
			return err
		}
		switch f.Op {
		case "spawn":
			w.spawn(f, files)
		case "signal":
			w.signal(f)
		case "limit":
			w.limit(f)
		}
		for _, fd := range files {
			unix.Close(fd)
		}
	}
}

// receive reads one frame and its descriptors.
func (w *warden) receive() (frame, []int, error) {
	var head [4]byte
	var files []int
	for got := 0; got < len(head); {
		oob := make([]byte, unix.CmsgSpace(3*4))
		n, oobn, _, _, err := w.conn.ReadMsgUnix(head[got:], oob)
		if err != nil {
			return frame{}, nil, err
		}
		if n == 0 {
			return frame{}, nil, io.EOF
		}
		got += n
		msgs, err := unix.ParseSocketControlMessage(oob[:oobn])
		if err != nil {
			return frame{}, nil, fmt.Errorf("reading descriptors: %w", err)
		}
		for _, m := range msgs {
			fds, err := unix.ParseUnixRights(&m)
			if err != nil {
				return frame{}, nil, fmt.Errorf("reading descriptors: %w", err)
			}
			files = append(files, fds...)
		}
	}
	f, err := readFrame(w.conn, head)
	return f, files, err
}

// spawn starts one child in its own process group and responds.
func (w *warden) spawn(f frame, files []int) {
	answer := frame{Op: "started", ID: f.ID}
	if len(files) != 3 {
		answer.Err = "no pipes came with the command"
		w.sendFrame(answer)
		return
	}
	attr := &syscall.ProcAttr{Dir: f.Dir, Env: f.Env, Files: []uintptr{uintptr(files[0]), uintptr(files[1]), uintptr(files[2])},
		Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}}
	w.mu.Lock()
	defer w.mu.Unlock() // the response is sent before the report of an exit
	is := newMark()
	if is.inherit() != nil {
		is = 0 // some sandboxes don't allow it; then processes that leave their child's tree can't be attributed
	}
	c := &ward{id: f.ID, mark: is, memory: f.Memory}
	if err := w.fork(c, f, attr); err != nil {
		answer.Err = err.Error()
	} else {
		answer.PID, answer.Mark, answer.Kernel = c.pid, is, c.cgroup != ""
		w.children[c.pid] = c
	}
	w.sendFrame(answer)
}

// fork starts a child, in its own control group if it has limits and the kernel can enforce
// them.
func (w *warden) fork(c *ward, f frame, attr *syscall.ProcAttr) (err error) {
	argv := append([]string{f.Path}, f.Args...)
	if w.cgroup != "" && (f.Memory > 0 || f.Processes > 0) {
		dir := filepath.Join(w.cgroup, fmt.Sprint(childCgroup, os.Getpid(), "-", f.ID))
		if err := newCgroup(dir, f.Memory, f.Processes); err == nil {
			if fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err == nil {
				within := *attr.Sys
				within.UseCgroupFD, within.CgroupFD = true, fd
				c.pid, err = syscall.ForkExec(f.Path, argv, &syscall.ProcAttr{Dir: attr.Dir, Env: attr.Env, Files: attr.Files, Sys: &within})
				unix.Close(fd)
				if err == nil {
					c.cgroup = dir
					return nil
				}
			}
			removeCgroup(dir)
		}
		// Some sandboxes don't let a process start in a control group. Without one the
		// daemon measures the use.
	}
	c.pid, err = syscall.ForkExec(f.Path, argv, attr)
	return err
}

// limit changes the memory limit of a child and its descendants.
func (w *warden) limit(f frame) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.children {
		if c.id != f.ID || c.cgroup == "" {
			continue
		}
		if err := setMemory(c.cgroup, f.Memory); err != nil {
			fmt.Fprintf(os.Stderr, "nized-guard: %v\n", err)
			continue
		}
		c.memory = f.Memory
	}
}

// signal signals a child's process group. A kill also goes to all of the child's
// descendants, in whatever group. Descendants whose parents have exited are killed when the
// child has exited.
func (w *warden) signal(f frame) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for pid, c := range w.children {
		if c.id != f.ID {
			continue
		}
		if syscall.Signal(f.Sig) == syscall.SIGKILL {
			for _, d := range readTree().below(pid) {
				unix.Kill(d, unix.SIGKILL) //nolint:errcheck // it may have just exited
			}
		}
		unix.Kill(-pid, syscall.Signal(f.Sig)) //nolint:errcheck // the group may have just exited
	}
}

// reap waits for all exited processes, including orphans, kills the rest of exited
// children, and reports those without remaining processes. It returns more if others
// remain.
func (w *warden) reap() (more bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			break
		}
		c := w.children[pid]
		if c == nil {
			continue
		}
		// The number can't belong to another group: it stays in use while a member lives,
		// and if none does, the signal has no effect.
		unix.Kill(-pid, unix.SIGKILL) //nolint:errcheck // usually no process is left
		delete(w.children, pid)
		c.end = frame{Op: "ended", ID: c.id, PID: pid, Err: exitReason(status)}
		if c.cgroup != "" {
			killCgroup(c.cgroup)
			c.end.Over, c.end.Memory = hadTooMuch(c.cgroup), c.memory
		}
		c.wait = time.Now().Add(sweepTime)
		w.ending = append(w.ending, c)
	}
	left := w.sweepLocked()
	w.ending = slices.DeleteFunc(w.ending, func(c *ward) bool {
		if (left[c.mark] || left[0] || c.cgroup != "" && isPopulated(c.cgroup)) && time.Now().Before(c.wait) {
			return false
		}
		if c.cgroup != "" {
			removeCgroup(c.cgroup)
		}
		w.sendFrame(c.end)
		return true
	})
	w.bringBackLocked()
	return len(left) > 0 || len(w.ending) > 0
}

// bringBackLocked moves processes that have left the control group of their child back into
// it; they can leave because they run as the same user. It runs at most every lookEvery.
// w.mu must be held.
func (w *warden) bringBackLocked() {
	if w.cgroup == "" || time.Since(w.looked) < lookEvery {
		return
	}
	w.looked = time.Now()
	f := family{all: readTree(), leaders: map[int]int{}, marks: map[mark]int{}, guards: map[int]bool{os.Getpid(): true}, known: map[int]int{}}
	var list []*ward
	for pid, c := range w.children {
		if c.cgroup != "" {
			f.leaders[pid], f.marks[c.mark] = len(list), len(list)
			list = append(list, c)
		}
	}
	if len(list) == 0 {
		return
	}
	delete(f.marks, 0)
	for pid := range f.all {
		i := f.child(pid)
		if i < 0 {
			continue
		}
		path, err := cgroupOf(pid)
		if err == nil && !strings.Contains(path+"/", "/"+filepath.Base(list[i].cgroup)+"/") {
			_ = writeCgroup(list[i].cgroup, "cgroup.procs", strconv.Itoa(pid)) // the process may have just exited
		}
	}
}

// sweepLocked kills the descendants of the guard that belong to no running child: each is
// an orphan or has one as its ancestor. It returns the marks of those orphans, which may
// have exited by now; a mark that belongs to no child, so that its process may belong to
// any child, counts as 0. w.mu must be held.
func (w *warden) sweepLocked() (left map[mark]bool) {
	alive, ending := map[mark]bool{}, map[mark]bool{}
	for _, c := range w.children {
		alive[c.mark] = c.mark != 0
	}
	for _, c := range w.ending {
		ending[c.mark] = true
	}
	var all tree // read on first use, once
	for _, pid := range orphans(w.children) {
		is := markOf(pid)
		if alive[is] {
			continue
		}
		if group, err := unix.Getpgid(pid); err == nil && w.children[group] != nil {
			continue // equivalent to a mark: its group is a child's
		}
		if all == nil {
			all = readTree()
		}
		for _, d := range append(all.below(pid), pid) {
			unix.Kill(d, unix.SIGKILL) //nolint:errcheck // it may have just exited
		}
		if left == nil {
			left = map[mark]bool{}
		}
		if !ending[is] {
			is = 0
		}
		left[is] = true
	}
	return left
}

// exitReason describes how a process exited, "" for exit status 0.
func exitReason(s syscall.WaitStatus) string {
	switch {
	case s.Signaled():
		return "signal: " + s.Signal().String()
	case s.ExitStatus() != 0:
		return fmt.Sprintf("exit status %d", s.ExitStatus())
	}
	return ""
}

// sendFrame sends a frame to the daemon. If the daemon has exited, serve detects it.
func (w *warden) sendFrame(f frame) {
	b, err := encodeFrame(f)
	if err != nil {
		return // unreachable: the guard's frames are small
	}
	w.write.Lock()
	defer w.write.Unlock()
	w.conn.SetWriteDeadline(time.Now().Add(spawnWait)) //nolint:errcheck // the write fails as well
	w.conn.Write(b)                                    //nolint:errcheck // see above
}

// killAll kills all descendants until none is left: a process that forks while it is being
// killed is found in the next round.
func (w *warden) killAll() {
	self := os.Getpid()
	for {
		all := readTree().below(self)
		if len(all) == 0 {
			return
		}
		for _, pid := range all {
			unix.Kill(pid, unix.SIGKILL) //nolint:errcheck // it may have just exited
		}
		w.reap()
		time.Sleep(time.Millisecond)
	}
}
