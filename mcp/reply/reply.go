// Package reply writes the gateway's own JSON-RPC responses over Streamable HTTP and adapts
// the SDK's to clients.
//
// It writes the responses that bypass the SDK. It converts the SDK's responses to the form
// that a client accepts ([Negotiate]) and restores the ids that it sent ([Hold],
// [Restore]). All errors are JSON-RPC errors, whichever code writes them.
package reply

import (
	"encoding/json"
	"net/http"
)

// Reply writes one JSON-RPC response, as a document or as an event.
type Reply struct {
	W  http.ResponseWriter
	ID json.RawMessage // of the request

	streaming bool
}

// Head returns the beginning of the response, up to its result or error.
func (o *Reply) Head() []byte {
	b := append(make([]byte, 0, 2048), `{"jsonrpc":"2.0","id":`...)
	return append(append(b, o.ID...), ',')
}

// StartStream begins an event stream, because the response will take a while.
func (o *Reply) StartStream() {
	o.streaming = true
	o.W.Header().Set("Content-Type", "text/event-stream")
	o.W.Header().Set("Cache-Control", "no-cache, no-transform")
	o.W.WriteHeader(http.StatusOK)
	o.flush()
}

// SendError responds with an internal error.
func (o *Reply) SendError(message string) {
	text, _ := json.Marshal(message)                                       // a string always encodes
	e := append(append([]byte(`{"code":-32603,"message":`), text...), '}') // JSON-RPC 2.0: internal error
	o.SendDocument(append(append(append(o.Head(), `"error":`...), e...), '}'))
}

// SendProblem responds with an error, which must encode to a JSON-RPC error.
func (o *Reply) SendProblem(problem any) {
	e, err := json.Marshal(problem)
	if err != nil {
		o.SendError("internal error")
		return
	}
	o.SendDocument(append(append(append(o.Head(), `"error":`...), e...), '}'))
}

// SendDocument sends the whole response.
func (o *Reply) SendDocument(doc []byte) {
	if o.streaming {
		doc = eventOf(doc)
	} else {
		o.W.Header().Set("Content-Type", "application/json")
	}
	_, _ = o.W.Write(doc) // the client has disconnected
	o.flush()
}

func (o *Reply) flush() {
	if !o.streaming {
		return
	}
	if f, ok := o.W.(http.Flusher); ok {
		f.Flush()
	}
}

// StatusWriter is a ResponseWriter that reports the status once it is known.
type StatusWriter struct {
	http.ResponseWriter
	OnStatus func(status int)
	reported bool
}

func (s *StatusWriter) WriteHeader(status int) {
	s.reportStatus(status)
	s.ResponseWriter.WriteHeader(status)
}

func (s *StatusWriter) Write(b []byte) (int, error) {
	s.reportStatus(http.StatusOK)
	return s.ResponseWriter.Write(b)
}

func (s *StatusWriter) reportStatus(status int) {
	if !s.reported {
		s.reported = true
		s.OnStatus(status)
	}
}

// Flush and Unwrap let event streams be flushed.
func (s *StatusWriter) Flush() {
	s.reportStatus(http.StatusOK)
	if f, ok := s.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

func (s *StatusWriter) Unwrap() http.ResponseWriter { return s.ResponseWriter }
