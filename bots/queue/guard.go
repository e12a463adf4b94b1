package queue

import (
	"fmt"
	"runtime/debug"
)

// PanicError is the panic of a function that a worker called, as an error. The worker
// continues with other work, and retrying can't help.
type PanicError struct {
	value any
	stack []byte
}

// Error returns the panic with its stack: for the log, not for people.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v\n%s", e.value, e.stack) }

// Guard runs f and turns a panic into a [*PanicError].
func Guard(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &PanicError{r, debug.Stack()}
		}
	}()
	return f()
}
