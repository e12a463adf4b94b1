// Package module defines the parts of a capability that the composition root connects.
//
// A capability is one package: its types, its records, its rules, its operations and its tools.
// It returns a [Module] from its method Module, and the composition root lists all modules
// (daemon/modules.go). On a nil pointer, Module returns what is declared before the database is
// open, such as buckets; functions of that value must not be called, except Operations.
package module

import (
	"context"

	"nize/bots"
	"nize/daemon/mux"
	"nize/mcp/native"
	"nize/store"
	"nize/store/kv"
)

// Module is one capability of nized. Every field but Name is optional.
type Module struct {
	Name    string
	Buckets []kv.Bucket
	// Settings are declared by the module that reads them.
	Settings []store.Key
	// Operations registers the operations of the control API.
	Operations func(*mux.Mux)
	Tools      []native.Tool
	Commands   []bots.Command // chat commands, on the same operations
	// Run works until ctx ends. The order of start is written in daemon.Run.
	Run func(ctx context.Context) error
	// Erase erases the records of a person, by all ids of theirs, and counts them in f. It is
	// repeated after an interruption.
	Erase func(ctx context.Context, users []string, f *store.Forgotten) error
	// Export passes the records of a person to put, by all ids of theirs.
	Export func(ctx context.Context, users []string, put func(kind string, record any) error) error
}
