// Package eventstream writes and reads server-sent events (HTML standard, 9.2).
//
// Every stream of this module is written here: those of programs, the chat page, chat
// clients and MCP clients, and those that are passed on to an SDK in strict form.
package eventstream

import (
	"bytes"
	"net/http"
	"strconv"
	"time"
)

// Type is the media type of a stream.
const Type = "text/event-stream"

// SetHeader sets the headers of a response that is a stream. A proxy must not buffer it.
func SetHeader(h http.Header) {
	h.Set("Content-Type", Type)
	h.Set("X-Accel-Buffering", "no")
}

// Event is one event. ID, Retry and Name are optional and must not contain a line break.
type Event struct {
	ID    string
	Retry time.Duration // how long a client waits before it reconnects, in milliseconds on the wire
	Name  string
	Data  []byte // each line of it becomes a data line
}

// Append appends the event as it is sent.
func (e Event) Append(b []byte) []byte {
	if e.ID != "" {
		b = appendField(b, "id", e.ID)
	}
	if e.Retry > 0 {
		b = appendField(b, "retry", strconv.FormatInt(e.Retry.Milliseconds(), 10))
	}
	if e.Name != "" {
		b = appendField(b, "event", e.Name)
	}
	for line := range bytes.SplitSeq(e.Data, []byte("\n")) {
		b = appendField(b, "data", string(line))
	}
	return append(b, '\n')
}

func appendField(b []byte, name, value string) []byte {
	return append(append(append(append(b, name...), ": "...), value...), '\n')
}
