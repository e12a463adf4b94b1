package reply

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// JSON-RPC error codes, and the SDKs' code for a session that has ended.
const (
	codeParse           = -32700
	codeInvalidRequest  = -32600
	codeMethodNotFound  = -32601
	codeInvalidParams   = -32602
	codeSessionNotFound = -32001
)

// errorForm converts errors that a handler writes as plain text to JSON-RPC errors. The SDK
// responds with plain text if it refuses a message before a session sees it, and clients
// that parse the body of an error fail on that instead of showing it.
//
// In the protocol versions with sessions, an unknown method is not an HTTP error: 404 would
// end the client's session, and 400 fails its connection. Its error is sent with status
// 200. Later versions require 404, which the SDK sends itself. An unknown notification is
// accepted, because notifications have no response.
type errorForm struct {
	http.ResponseWriter
	body []byte // of the request; nil if it was not read

	status int // of a held error; 0 if none
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

// finish writes the held error.
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
	message, _ := json.Marshal(text) // a string always encodes
	doc := []byte(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"error":{"code":` + strconv.Itoa(code) + `,"message":` + string(message) + `}}`)
	e.Header().Set("Content-Type", mediaJSON)
	e.Header().Set("Content-Length", strconv.Itoa(len(doc)))
	e.ResponseWriter.WriteHeader(e.status)
	_, _ = e.ResponseWriter.Write(doc) // the client has disconnected
}

// isID reports whether a JSON value is a valid request id.
func isID(raw json.RawMessage) bool {
	return len(raw) > 0 && (raw[0] == '"' || raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9')
}
