// Package process starts the child processes of the pool and sees to it that
// none outlives the daemon.
//
// Where the system has subreapers (Linux) a second process of the same program,
// the guard, is the parent of them all: see [Guard]. Elsewhere they are children
// of the daemon itself. Each leads a process group of its own, which is killed
// with its leader; under the guard so is everything else that descends from it.
package process

import (
	"fmt"
	"os"
	"syscall"

	"nize/store"
)

// Command is what is spawned: argv, never a shell.
type Command struct {
	Path  string   // absolute
	Args  []string // without the program itself
	Env   []string
	Dir   string
	Files [3]*os.File // standard input, output, error of the child; the caller closes them

	// Memory and Processes bound the child and all that descends from it, if the
	// kernel can (see Child.Limit); 0 is no bound.
	Memory    store.Size
	Processes int
}

// Child is a running command, the leader of its own process group. The guard's
// and the direct one are the implementations.
type Child interface {
	PID() int
	// Signal sends sig to the whole group.
	Signal(sig syscall.Signal) error
	// Done is closed when the leader has ended. What is left of its group is
	// killed then; under the guard all its descendants have been.
	Done() <-chan struct{}
	// Err says how it ended; nil before, and after exit status 0. It is a
	// *[MemoryError] if the kernel ended it for its memory.
	Err() error
	// Limit sets the memory that the child and its descendants may hold, if it has
	// changed, and reports whether the kernel holds them to it. If not, the caller
	// measures them.
	Limit(memory store.Size) (kernel bool)
}

// MemoryError is the end of a child that held more memory than its limit.
type MemoryError struct{ Limit store.Size }

func (e *MemoryError) Error() string {
	return fmt.Sprintf("signal: killed, since it held more memory than its limit of %s", e.Limit)
}
