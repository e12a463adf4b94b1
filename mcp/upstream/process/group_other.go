//go:build unix && !linux

package process

import "nize/store"

// GroupMemory is not known here, so memory_limit holds on Linux alone.
func GroupMemory[T any](map[int]T) map[int]store.Size { return nil }

// CountGroups is not known here.
func CountGroups() map[int]int { return nil }
