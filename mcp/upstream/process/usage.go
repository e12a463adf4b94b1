package process

import "nize/store"

// Usage is the resource usage of a child and all its descendants, including those in other
// sessions and groups.
type Usage struct {
	PIDs   []int      // of running processes
	Memory store.Size // resident memory; shared pages count once per process
}
