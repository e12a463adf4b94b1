package daemon

import (
	"bytes"
	"os"
	"strconv"
)

// descendants counts the processes below pid, by /proc; 0 where there is none.
func descendants(pid int) int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	parent := map[int]int{}
	for _, e := range entries {
		child, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue // it has ended
		}
		// pid (comm) state ppid …: comm may hold anything, so start at its end.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 2 {
			continue
		}
		if parent[child], err = strconv.Atoi(string(fields[1])); err != nil {
			delete(parent, child)
		}
	}
	n := 0
	for child := range parent {
		for p, hops := parent[child], 0; p > 1 && hops < 64; p, hops = parent[p], hops+1 {
			if p == pid {
				n++
				break
			}
		}
	}
	return n
}
