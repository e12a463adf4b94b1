// Package process starts the child processes of the pool and ensures that none outlives the
// daemon.
//
// On systems with subreapers (Linux) a second process of the same program, the guard, is
// the parent of them all: see [Guard]. Elsewhere they are children of the daemon itself.
// Each leads its own process group, which is killed when its leader exits; under the guard
// so are all other descendants.
package process

import (
	"fmt"
	"os"
	"syscall"

	"nize/store"
)

// Command describes a process to spawn: an argv, never a shell command.
type Command struct {
	Path  string   // absolute
	Args  []string // without the program itself
	Env   []string
	Dir   string
	Files [3]*os.File // standard input, output, error of the child; the caller closes them

	// Memory and Processes limit the child and its descendants, if the kernel supports it
	// (see Child.Limit); 0 means unlimited.
	Memory    store.Size
	Processes int
}

// Child is a running command, the leader of its own process group. The guard and the direct
// spawner implement it.
type Child interface {
	PID() int
	// Signal sends sig to the whole group.
	Signal(sig syscall.Signal) error
	// Done is closed when the leader has exited. The rest of its group is killed then;
	// under the guard all its descendants have already been killed.
	Done() <-chan struct{}
	// Err returns how the process exited; nil before, and after exit status 0. It is a
	// *[MemoryError] if the kernel killed the process for its memory.
	Err() error
	// Limit sets the memory limit of the child and its descendants, if it has changed, and
	// reports whether the kernel enforces it. If not, the caller must measure them.
	Limit(memory store.Size) (kernel bool)
}

// MemoryError means that a child exceeded its memory limit.
type MemoryError struct{ Limit store.Size }

func (e *MemoryError) Error() string {
	return fmt.Sprintf("signal: killed, since it held more memory than its limit of %s", e.Limit)
}
