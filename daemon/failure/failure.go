// Package failure writes error responses over HTTP.
//
// Every error is an [api.Error]. Its code has a row in [api.Table], which has the status and
// whether the response asks for credentials. Each kind of client reads another body: a
// [Form]. Packages with a form of their own, such as SCIM's, declare it; [Form.Write] is the
// only function that writes an error.
package failure

import (
	"encoding/json"
	"net/http"
	"strconv"

	"nize/daemon/api"
)

// JSON is the media type of most forms.
const JSON = "application/json"

// Form is how one kind of client reads errors.
type Form struct {
	Type string // media type
	// Body returns the body: a string, which is sent as a line of text, or a value, which is
	// encoded as JSON and must be encodable.
	Body func(*api.Error) any
}

var (
	// Control is the form of the control socket, which nizectl reads.
	Control = Form{JSON, func(e *api.Error) any { return api.Failure{Error: e} }}
	// HTTP is the form of operations for browsers and scripts.
	HTTP = Form{JSON, func(e *api.Error) any { return typed{typedError{e.Code, e.Message}} }}
	// Text is the form for clients whose protocol has none.
	Text = Form{"text/plain; charset=utf-8", func(e *api.Error) any { return e.Message }}
	// OAuth is the form of RFC 6749 and RFC 7591. They have no code for a conflict.
	OAuth = Form{JSON, func(e *api.Error) any {
		if e.Code == "conflict" {
			return oauth{"access_denied", e.Message}
		}
		return oauth{e.Code, e.Message}
	}}
)

type typed struct {
	Error typedError `json:"error"`
}

type typedError struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

type oauth struct {
	Code string `json:"error"`
	Text string `json:"error_description"`
}

// Write writes an error response.
func (f Form) Write(w http.ResponseWriter, e *api.Error) {
	row := e.Row()
	body := f.Body(e)
	text, ok := body.(string)
	if !ok {
		encoded, _ := json.Marshal(body) // encodable, by the contract of Body
		text = string(encoded)
	}
	h := w.Header()
	h.Set("Content-Type", f.Type)
	if row.Challenge {
		h.Set("WWW-Authenticate", "Bearer")
	}
	if e.Retry > 0 {
		h.Set("Retry-After", strconv.Itoa(e.Retry))
	}
	w.WriteHeader(row.Status)
	_, _ = w.Write([]byte(text + "\n")) // the client has disconnected
}

// Internal writes an internal error as text.
func Internal(w http.ResponseWriter) {
	Text.Write(w, &api.Error{Code: "internal", Message: "internal error"})
}
