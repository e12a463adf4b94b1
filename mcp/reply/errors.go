package reply

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// Codes of JSON-RPC, and the one that the SDKs have for a session that ended.
const (
	codeParse           = -32700
	codeInvalidRequest  = -32600
	codeMethodNotFound  = -32601
	codeInvalidParams   = -32602
	codeSessionNotFound = -32001
)

// errorForm turns errors that a handler writes as plain text into JSON-RPC errors.
// The SDK answers text if it refuses a message before a session sees it, and clients
// that parse the body of an error fail on that instead of showing it.
//
// A method that is not known is no failure of HTTP in the revisions that have
// sessions: 404 would end the client's session, and 400 fails its connection. Its
// error is answered with 200. Later revisions want 404, which the SDK sends itself.
// A notification that is not known is accepted, since nothing may answer it.
type errorForm struct {
	http.ResponseWriter
	body []byte // of the request; nil if it was not read

	status int // of an error that is held; 0 for none
	began  bool
	text   bytes.Buffer
}

func (e *errorForm) Unwrap() http.ResponseWriter { return e.ResponseWriter }

func (e *errorForm) WriteHeader(status int) {
	if e.began {
		return
	}
	e.began = true
	if status >= 400 && strings.HasPrefix(e.Header().Get("Content-Type"), "text/plain") {
		e.status = status
		return
	}
	e.ResponseWriter.WriteHeader(status)
}

func (e *errorForm) Write(b []byte) (int, error) {
	e.WriteHeader(http.StatusOK)
	if e.status != 0 {
		return e.text.Write(b)
	}
	return e.ResponseWriter.Write(b)
}

func (e *errorForm) Flush() {
	e.WriteHeader(http.StatusOK)
	if f, ok := e.ResponseWriter.(http.Flusher); ok && e.status == 0 {
		f.Flush()
	}
}

// finish writes the error that was held.
func (e *errorForm) finish() {
	if e.status == 0 {
		return
	}
	text := strings.TrimSpace(e.text.String())
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	valid := json.Unmarshal(e.body, &m) == nil
	if !valid {
		m.ID = nil
	}
	code := codeInvalidRequest
	switch {
	case valid && strings.HasSuffix(text, strconv.Quote(m.Method)+" unsupported"):
		if len(m.ID) == 0 {
			e.Header().Del("Content-Type")
			e.Header().Del("X-Content-Type-Options")
			e.ResponseWriter.WriteHeader(http.StatusAccepted)
			return
		}
		code, e.status, text = codeMethodNotFound, http.StatusOK, "method not found: "+strconv.Quote(m.Method)
	case e.status == http.StatusNotFound:
		code = codeSessionNotFound
	case len(bytes.TrimSpace(e.body)) > 0 && !json.Valid(e.body):
		code, text = codeParse, "the body is not JSON"
	case strings.HasSuffix(text, `missing required "params"`):
		code = codeInvalidParams
	}
	if !isID(m.ID) {
		m.ID = json.RawMessage("null")
	}
	message, _ := json.Marshal(text) // a string always has a form
	doc := []byte(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"error":{"code":` + strconv.Itoa(code) + `,"message":` + string(message) + `}}`)
	e.Header().Set("Content-Type", mediaJSON)
	e.Header().Set("Content-Length", strconv.Itoa(len(doc)))
	e.ResponseWriter.WriteHeader(e.status)
	_, _ = e.ResponseWriter.Write(doc) // the client has left: nothing to do
}

// isID reports whether a JSON value can be the id of a request.
func isID(raw json.RawMessage) bool {
	return len(raw) > 0 && (raw[0] == '"' || raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9')
}
