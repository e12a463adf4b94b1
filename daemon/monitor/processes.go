package monitor

import (
	"bytes"
	"cmp"
	"os"
	"slices"
	"strconv"

	"nize/daemon/api"
	"nize/mcp/upstream"
)

// process is one of the system's, by /proc.
type process struct {
	pid, parent, group int
	name               string
	resident           uint64 // bytes
}

// processes lists all; nil where there is no /proc.
func processes() map[int]process {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	all := map[int]process{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
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

// readStat reads a line of proc(5): pid (comm) state ppid pgrp … rss as the
// 24th field, in pages. comm may hold anything, so what counts starts at its
// end.
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
	var err, err2 error
	p.parent, err = strconv.Atoi(string(fields[1]))
	p.group, err2 = strconv.Atoi(string(fields[2]))
	pages, err3 := strconv.ParseUint(string(fields[21]), 10, 64)
	p.resident = pages * uint64(os.Getpagesize())
	return p, cmp.Or(err, err2, err3) == nil
}

// below are the processes that descend from pid, by their own.
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

// children are the daemon's child processes with the servers that they are of.
func children(list []process, servers []upstream.ServerStatus) []api.ChildProcess {
	ofGroup := map[int]string{}
	for _, s := range servers {
		if s.PID != 0 {
			ofGroup[s.PID] = s.Name
		}
	}
	out := make([]api.ChildProcess, len(list))
	for i, p := range list {
		out[i] = api.ChildProcess{PID: p.pid, Name: p.name, Server: ofGroup[p.group], ResidentBytes: p.resident}
	}
	return out
}

// openFiles counts them; 0 where there is no /proc.
func openFiles() int {
	fds, _ := os.ReadDir("/proc/self/fd")
	return len(fds)
}
