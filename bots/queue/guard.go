package queue

import (
	"fmt"
	"runtime/debug"
)

// PanicError is a panic of what a worker called, as an error: the worker goes
// on with its other work, and trying the same again can't help.
type PanicError struct {
	value any
	stack []byte
}

// Error tells the panic and where it was: for the log, not for people.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v\n%s", e.value, e.stack) }

// Guard runs f and turns a panic of it into a [*PanicError].
func Guard(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &PanicError{r, debug.Stack()}
		}
	}()
	return f()
}
