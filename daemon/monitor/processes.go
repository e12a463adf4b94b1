package monitor

import (
	"bytes"
	"cmp"
	"os"
	"slices"
	"strconv"
	"syscall"

	"nize/daemon/api"
)

// process is a process of the system, from /proc.
type process struct {
	pid, parent int
	name        string
	resident    uint64 // bytes
}

// processes returns all processes; nil if there is no /proc.
func processes() map[int]process {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	all := map[int]process{}
	var buf [1024]byte // a line has at most 52 numbers
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := readAtOnce("/proc/"+e.Name()+"/stat", buf[:])
		if err != nil {
			continue // it has ended
		}
		if p, ok := readStat(stat); ok {
			p.pid = pid
			all[pid] = p
		}
	}
	return all
}

// readAtOnce reads a small file of /proc, which takes a single read. There may be a
// thousand: an [os.File] for each would cost three times as much.
func readAtOnce(path string, buf []byte) ([]byte, error) {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer syscall.Close(fd) //nolint:errcheck // it was only read
	n, err := syscall.Read(fd, buf)
	return buf[:max(n, 0)], err
}

// readStat parses a line of proc(5): pid (comm) state ppid … rss as the 24th field, in
// pages. comm may contain anything, so parsing starts after its end.
func readStat(stat []byte) (p process, ok bool) {
	open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if open < 0 || end < open {
		return p, false
	}
	p.name = string(stat[open+1 : end])
	fields := bytes.Fields(stat[end+1:])
	if len(fields) < 22 {
		return p, false
	}
	var err error
	p.parent, err = strconv.Atoi(string(fields[1]))
	pages, err2 := strconv.ParseUint(string(fields[21]), 10, 64)
	p.resident = pages * uint64(os.Getpagesize())
	return p, cmp.Or(err, err2) == nil
}

// below returns the descendants of a process.
func below(all map[int]process, pid int) []process {
	var list []process
	for _, p := range all {
		for at, hops := p.parent, 0; at > 1 && hops < 64; at, hops = all[at].parent, hops+1 {
			if at == pid {
				list = append(list, p)
				break
			}
		}
	}
	slices.SortFunc(list, func(a, b process) int { return cmp.Compare(a.pid, b.pid) })
	return list
}

// children returns the daemon's child processes with the servers they belong to.
func children(list []process, servers map[int]string) []api.ChildProcess {
	out := make([]api.ChildProcess, len(list))
	for i, p := range list {
		out[i] = api.ChildProcess{PID: p.pid, Name: p.name, Server: servers[p.pid], ResidentBytes: p.resident}
	}
	return out
}

// openFiles returns the number of open files; 0 if there is no /proc.
func openFiles() int {
	dir, err := os.Open("/proc/self/fd")
	if err != nil {
		return 0
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	return len(names)
}
