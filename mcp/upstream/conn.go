package upstream

import (
	"context"
	"encoding/json"
)

// conn carries requests of ours to one server: *httpWire and *peer.
type conn interface {
	// call sends a request and returns the bytes of its result; the error is
	// a *fault.
	call(ctx context.Context, r *request) (json.RawMessage, error)
	// done is closed when the wire is gone; cause then says why.
	done() <-chan struct{}
	cause() error
	// terminate ends it and waits; kill skips the polite part.
	terminate(kill bool)
	pid() int
}
