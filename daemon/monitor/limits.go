package monitor

import (
	"math"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"
)

// MaxFiles returns how many files the process may have open, 0 if that is unknown.
func MaxFiles() int {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r); err != nil {
		return 0
	}
	return int(min(r.Cur, math.MaxInt32))
}

// groupLimit returns the memory limit of the process's control group in bytes: the lowest
// of its own and its ancestors' (cgroups(7), version 2); 0 if there is none.
func groupLimit() uint64 {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if group, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return limitAt("/sys/fs/cgroup", group)
		}
	}
	return 0
}

func limitAt(root, group string) uint64 {
	least := uint64(0)
	for at := path.Clean("/" + group); ; at = path.Dir(at) {
		if text, err := os.ReadFile(path.Join(root, at, "memory.max")); err == nil {
			if n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil && (least == 0 || n < least) {
				least = n // "max" is not a number
			}
		}
		if at == "/" {
			return least
		}
	}
}
