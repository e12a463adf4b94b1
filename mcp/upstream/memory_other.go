//go:build unix && !linux

package upstream

import "nize/store"

// groupMemory is not known here, so memory_limit holds on Linux alone.
func groupMemory(map[int]*server) map[int]store.Size { return nil }
