package process

import "nize/store"

// Usage is what a child and everything that descends from it use, processes in
// sessions and groups of their own included.
type Usage struct {
	PIDs   []int      // of processes that have not ended
	Memory store.Size // resident; pages that two processes share count twice
}
