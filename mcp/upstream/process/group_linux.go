package process

import (
	"os"
	"strconv"
	"strings"

	"nize/store"
)

// GroupMemory is the resident memory of the process groups with these leaders. What two
// processes of a group share counts twice, and one that left the group (setsid)
// does not count.
func GroupMemory[T any](leaders map[int]T) map[int]store.Size {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	sizes := map[int]store.Size{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		st, ok := readStat(pid)
		if _, asked := leaders[st.pgrp]; !ok || !asked {
			continue
		}
		b, err := os.ReadFile("/proc/" + e.Name() + "/statm")
		if err != nil {
			continue // it has ended
		}
		fields := strings.Fields(string(b))
		if len(fields) < 2 {
			continue
		}
		if pages, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
			sizes[st.pgrp] += store.Size(pages) * store.Size(os.Getpagesize())
		}
	}
	return sizes
}

// procStat is what is read of /proc/PID/stat.
type procStat struct{ ppid, pgrp int }

func readStat(pid int) (procStat, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return procStat{}, false
	}
	// The name in brackets may hold anything; what counts comes after it.
	i := strings.LastIndexByte(string(b), ')')
	if i < 0 {
		return procStat{}, false
	}
	fields := strings.Fields(string(b[i+1:]))
	if len(fields) < 3 {
		return procStat{}, false
	}
	ppid, err1 := strconv.Atoi(fields[1])
	pgrp, err2 := strconv.Atoi(fields[2])
	return procStat{ppid, pgrp}, err1 == nil && err2 == nil
}

// CountGroups counts the processes of each group.
func CountGroups() map[int]int {
	groups := map[int]int{}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return groups
	}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if st, ok := readStat(pid); ok {
				groups[st.pgrp]++
			}
		}
	}
	return groups
}
