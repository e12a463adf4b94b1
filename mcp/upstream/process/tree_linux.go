package process

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"nize/store"
)

// To which child a process belongs. While its ancestors live, they determine it. A process
// whose parent has exited is reparented to the guard, its subreaper, and can then only be
// attributed by an inherited property: the guard starts each child with a unique mark in a
// resource limit that Linux keeps but has not used since 2.4, and every fork and exec
// inherits it, whatever happens to session, group and environment. A process may change its
// own mark. Then it belongs to no child, and the guard kills it.
const markLimit = 10 // RLIMIT_LOCKS

// newMark returns a unique mark.
func newMark() mark { return mark(1<<61 | rand.Uint64N(1<<61)) }

// inherit sets the mark for all processes that this one starts from now on.
func (m mark) inherit() error {
	var is unix.Rlimit
	if err := unix.Prlimit(0, markLimit, nil, &is); err != nil {
		return fmt.Errorf("reading the mark of processes: %w", err)
	}
	is.Cur = uint64(m)
	if err := unix.Prlimit(0, markLimit, &is, nil); err != nil {
		return fmt.Errorf("marking processes: %w", err)
	}
	return nil
}

// markOf returns the mark of a process, or 0 if it has none or can't be read.
func markOf(pid int) mark {
	var is unix.Rlimit
	if unix.Prlimit(pid, markLimit, nil, &is) != nil || is.Cur >= math.MaxInt64 {
		return 0
	}
	return mark(is.Cur)
}

// entry holds the fields that are read from /proc/PID/stat.
type entry struct {
	parent, group int
	zombie        bool
	resident      store.Size
}

// tree holds the processes of this system at approximately one moment: a process that
// starts while it is read may be missing.
type tree map[int]entry

// readTree returns the tree, or nil if there is no /proc.
func readTree() tree {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil
	}
	all := tree{}
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			if e, ok := readEntry(pid); ok {
				all[pid] = e
			}
		}
	}
	return all
}

func readEntry(pid int) (e entry, ok bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return e, false
	}
	return parseEntry(b)
}

// parseEntry parses a line of proc(5): pid (comm) state ppid pgrp … rss as the 24th field.
// comm may contain any characters, so the fields are counted from its end.
func parseEntry(stat []byte) (e entry, ok bool) {
	end := bytes.LastIndexByte(stat, ')')
	fields := bytes.Fields(stat[end+1:])
	if end < 0 || len(fields) < 22 {
		return e, false
	}
	parent, err1 := strconv.Atoi(string(fields[1]))
	group, err2 := strconv.Atoi(string(fields[2]))
	pages, err3 := strconv.ParseInt(string(fields[21]), 10, 64)
	state := fields[0][0]
	e = entry{parent: parent, group: group, zombie: state == 'Z' || state == 'X', resident: store.Size(pages) * store.Size(os.Getpagesize())}
	return e, errors.Join(err1, err2, err3) == nil
}

// below returns the descendants of pid, zombies included.
func (t tree) below(pid int) []int {
	children := map[int][]int{}
	for child, e := range t {
		children[e.parent] = append(children[e.parent], child)
	}
	var all []int
	for next := []int{pid}; len(next) > 0; next = next[1:] {
		all = append(all, children[next[0]]...)
		next = append(next, children[next[0]]...)
	}
	return slices.DeleteFunc(all, func(p int) bool { return p == pid })
}

// orphans returns the children of this process that it did not start: their parents have
// exited.
func orphans(started map[int]*ward) []int {
	children, ok := ownChildren()
	if !ok {
		self := os.Getpid()
		for pid, e := range readTree() {
			if e.parent == self {
				children = append(children, pid)
			}
		}
	}
	return slices.DeleteFunc(children, func(pid int) bool { return started[pid] != nil })
}

// ownChildren returns the children of this process's threads, which costs far less than
// reading all of /proc. It returns ok false if the kernel doesn't list them.
func ownChildren() (pids []int, ok bool) {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return nil, false
	}
	for _, thread := range threads {
		b, err := os.ReadFile("/proc/self/task/" + thread.Name() + "/children")
		if err != nil && !errors.Is(err, unix.ESRCH) {
			if _, gone := os.Stat("/proc/self/task/" + thread.Name()); gone != nil {
				continue // the thread has exited, and its children were given to another thread
			}
			return nil, false
		}
		for _, text := range strings.Fields(string(b)) {
			if pid, err := strconv.Atoi(text); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids, true
}

// Measure returns the resource usage of each child with one pass over the system. It
// returns ok false if the system doesn't support it.
func Measure(children ...Child) (used []Usage, ok bool) {
	all := readTree()
	if all == nil {
		return nil, false
	}
	of := family{all: all, leaders: map[int]int{}, marks: map[mark]int{}, guards: map[int]bool{}, known: map[int]int{}}
	for i, c := range children {
		of.leaders[c.PID()] = i
		if g, ok := c.(*guarded); ok {
			if g.mark != 0 {
				of.marks[g.mark] = i
			}
			of.guards[g.link.cmd.Process.Pid] = true
		}
	}
	used = make([]Usage, len(children))
	for pid, e := range all {
		if i := of.child(pid); i >= 0 && !e.zombie {
			used[i].PIDs = append(used[i].PIDs, pid)
			used[i].Memory += e.resident
		}
	}
	for i := range used {
		slices.Sort(used[i].PIDs)
	}
	return used, true
}

// family determines to which of some children each process belongs.
type family struct {
	all     tree
	leaders map[int]int  // index of the child by its PID
	marks   map[mark]int // index of the child by its mark
	guards  map[int]bool // PIDs of guards
	known   map[int]int  // cached results of child
}

// child returns the index of the child that a process belongs to, or -1.
func (f *family) child(pid int) int {
	if i, ok := f.known[pid]; ok {
		return i
	}
	f.known[pid] = -1 // also ends a cycle, which a reused PID can create
	e, ok := f.all[pid]
	if !ok {
		return -1
	}
	i, ok := f.leaders[pid]
	if !ok && f.guards[e.parent] {
		i, ok = f.marks[markOf(pid)]
	}
	if !ok {
		i, ok = f.leaders[e.group]
	}
	if !ok {
		i = f.child(e.parent)
	}
	f.known[pid] = i
	return i
}
