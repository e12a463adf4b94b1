// Package wire carries messages to and from MCP servers over HTTP, the older SSE and the
// pipes of child processes.
//
// The SDK's session handles the handshake, the standing event stream, the version
// negotiation and every request but tools/call. It would decode results into float64 and
// drop unknown fields, so the answers are tapped below it, and returned exactly as received
// (tap.go). A tools/call is sent beside the session: its arguments are embedded verbatim in
// an envelope. By the session it would take three times the processor time, 0.08 ms more
// over HTTP and 0.03 ms over pipes, and fifteen times the memory (BenchmarkToolsCall). Over
// Streamable HTTP it is a POST of its own ([HTTPConn]); over stdio and SSE one stream
// carries the messages of both, distinguished by id ([Peer]).
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

// Conn carries our requests to one server. *HTTPConn and *PeerSession implement it.
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
