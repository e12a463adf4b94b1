package upstream

import (
	"os"
	"strconv"
	"strings"

	"nize/store"
)

// groupMemory is the resident memory of each of these process groups. What two
// processes of a group share counts twice, and one that left the group (setsid)
// does not count.
func groupMemory(leaders map[int]*server) map[int]store.Size {
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
		if !ok || leaders[st.pgrp] == nil {
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
