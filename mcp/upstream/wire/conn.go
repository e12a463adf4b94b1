// Package wire carries messages to MCP servers and back, over HTTP, the older SSE
// and the pipes of a child process.
//
// The SDK does the handshake, the standing event stream and the version
// negotiation; a request of ours does not go through it, since it decodes results
// into float64 and drops what it does not know. Arguments are put verbatim into an
// envelope, and the bytes of "result" come back as they stood on the wire. Over
// Streamable HTTP that is a POST beside the SDK's session ([HTTPConn]); over stdio
// and SSE one stream carries both the SDK's messages and ours, told apart by the
// id ([Peer]).
//
// The SDK reads to the letter, and servers don't write so. What is almost JSON is
// mended (mend.go), messages are found among what else a command writes (stdout.go),
// and the SDK's handshake gets answers that it understands (handshake.go).
//
// A request that failed says how far it can have come ([Fault]): the pool decides
// by it what may be sent again.
package wire

import (
	"context"
	"encoding/json"

	"nize/mcp/upstream/process"
)

// Conn carries requests of ours to one server: *HTTPConn and *Peer.
type Conn interface {
	// Call sends a request and returns the bytes of its result; the error is
	// a *Fault.
	Call(ctx context.Context, r *Request) (json.RawMessage, error)
	// Done is closed when the wire is gone; Cause then says why.
	Done() <-chan struct{}
	Cause() error
	// Terminate ends it and waits; kill skips the polite part.
	Terminate(kill bool)
	// Child is the process that it ends in; nil over HTTP.
	Child() process.Child
}
