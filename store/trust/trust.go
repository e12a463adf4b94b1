// Package trust has the words of code that runs as nized because somebody
// accepted just that code: extensions.
package trust

import (
	"context"
	"time"

	"nize/store"
)

// Extension is what was accepted of one extension.
type Extension struct {
	Name  string            `json:"name"`
	Pin   string            `json:"pin"`   // of its tool: definition and files
	Files map[string]string `json:"files"` // the hash of each, by its path
	At    time.Time         `json:"at"`
}

// Store keeps what was accepted, also of what is gone: it is not accepted again by
// being placed again. store/record implements it.
type Store interface {
	// GetAccepted is ErrNotFound for an extension that was never accepted.
	GetAccepted(ctx context.Context, name string) (Extension, error)
	// PutAccepted accepts just that pin and leaves an event.
	PutAccepted(ctx context.Context, by store.Caller, e Extension) error
}
