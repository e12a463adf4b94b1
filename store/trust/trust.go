// Package trust records which extensions, that is, code that runs as nized, an admin
// accepted.
//
// An acceptance applies to exactly the accepted code.
package trust

import (
	"context"
	"time"

	"nize/store"
)

// Extension is the accepted state of one extension.
type Extension struct {
	Name  string            `json:"name"`
	Pin   string            `json:"pin"`   // of its tool: definition and files
	Files map[string]string `json:"files"` // the hash of each file, by path
	At    time.Time         `json:"at"`
}

// Store stores acceptances, also of removed extensions, which are not accepted again
// automatically when they are reinstalled. store/record implements it.
type Store interface {
	// GetAccepted returns ErrNotFound for an extension that was never accepted.
	GetAccepted(ctx context.Context, name string) (Extension, error)
	// PutAccepted accepts exactly that pin and appends an event.
	PutAccepted(ctx context.Context, by store.Caller, e Extension) error
}
