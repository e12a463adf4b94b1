// Package wire carries messages to and from MCP servers over HTTP, the older SSE and the
// pipes of child processes.
//
// The SDK handles the handshake, the standing event stream and the version negotiation. Our
// own requests bypass it, because it decodes results into float64 and drops unknown fields.
// Arguments are embedded verbatim in an envelope, and the bytes of "result" are returned
// exactly as received. Over Streamable HTTP such a request is a POST beside the SDK's
// session ([HTTPConn]); over stdio and SSE one stream carries both the SDK's messages and
// ours, distinguished by id ([Peer]).
//
// The SDK is strict, and many servers are not. Malformed JSON is repaired if it is
// unambiguous (mend.go), messages are extracted from the other output of a command
// (stdout.go), and unusual answers to the SDK's handshake are translated for it
// (handshake.go).
//
// A failed request's [Fault] says how far it may have got, from which the pool decides
// whether it may be sent again.
package wire

import (
	"context"
	"encoding/json"

	"nize/mcp/upstream/process"
)

// Conn carries our requests to one server. *HTTPConn and *Peer implement it.
type Conn interface {
	// Call sends a request and returns the bytes of its result. It returns errors as
	// *Fault.
	Call(ctx context.Context, r *Request) (json.RawMessage, error)
	// Done is closed when the connection has ended; Cause then returns the reason.
	Done() <-chan struct{}
	Cause() error
	// Terminate ends the connection and waits; kill skips the graceful part.
	Terminate(kill bool)
	// Child returns the process at the other end, or nil over HTTP.
	Child() process.Child
}
