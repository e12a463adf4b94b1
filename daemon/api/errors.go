package api

import (
	"cmp"
	"context"
	"errors"

	"nize/store"
)

// Errors that exist only on the wire.
var (
	// ErrNoDaemon is returned if nothing listens on the socket.
	ErrNoDaemon = errors.New("nized is not running")
	// ErrUnavailable is returned if something that nized depends on (a server, a provider)
	// can't be reached.
	ErrUnavailable = errors.New("unavailable")
	// ErrTimeout is returned if something that nized depends on took too long.
	ErrTimeout = errors.New("timed out")
	// ErrRateLimited is returned if there are too many requests.
	ErrRateLimited = errors.New("too many requests")
	// ErrNoRoute is returned if this daemon doesn't implement the request because it is
	// older or newer than the client.
	ErrNoRoute = errors.New("unknown request")
	// ErrCancelled is returned if a call was withdrawn before it ran.
	ErrCancelled = errors.New("cancelled")
	// ErrInternal is returned for an error that is not in the table; the daemon logs its
	// cause.
	ErrInternal = errors.New("internal error")
)

// Exit codes of nizectl.
const (
	ExitDone     = 0
	ExitFailed   = 1
	ExitUsage    = 2
	ExitNoDaemon = 3
	ExitNotFound = 4
	ExitConflict = 5
	ExitRefused  = 6
)

// Row is the wire code, HTTP status, exit code and sentinel of one kind of error.
type Row struct {
	Code   string // on the wire
	Status int    // of HTTP; 0 if it is never sent
	Exit   int    // of nizectl; 0 if it never gets the code
	Err    error  // the sentinel; nil if there is only the code
	Type   string // in the form for programs
	// Challenge is true if the response asks for a bearer token.
	Challenge bool
}

// Table is the table of errors of all surfaces. When an error is sent, the first row whose
// sentinel it wraps applies (a [store.CallError] uses its own code). When one is received,
// the row of its code applies. Package failure writes errors over HTTP.
var Table = []Row{
	{Code: "disk_full", Status: 507, Exit: ExitFailed, Err: store.ErrDiskFull, Type: "internal"},
	{Code: "no_database", Status: 503, Exit: ExitFailed, Err: store.ErrNoDatabase, Type: "internal"},
	{Code: "closed", Status: 503, Exit: ExitFailed, Err: store.ErrNotOpen, Type: "internal"},
	{Code: "newer_schema", Status: 503, Exit: ExitFailed, Err: store.ErrOldSchema, Type: "internal"},
	{Code: "not_found", Status: 404, Exit: ExitNotFound, Err: store.ErrNotFound, Type: "not_found"},
	{Code: "exists", Status: 409, Exit: ExitConflict, Err: store.ErrExists, Type: "conflict"},
	{Code: "conflict", Status: 409, Exit: ExitConflict, Err: store.ErrConflict, Type: "conflict"},
	{Code: "decided", Status: 409, Exit: ExitConflict, Err: store.ErrDecided, Type: "conflict"},
	{Code: "expired", Status: 410, Exit: ExitConflict, Err: store.ErrExpired, Type: "conflict"},
	{Code: "refused", Status: 403, Exit: ExitRefused, Err: store.ErrRefused, Type: "invalid_request"},
	{Code: "invalid", Status: 400, Exit: ExitUsage, Err: store.ErrInvalid, Type: "invalid_request"},
	{Code: "invalid_arguments", Status: 400, Exit: ExitUsage, Err: store.ErrInvalid, Type: "invalid_request"},
	{Code: "cancelled", Status: 409, Exit: ExitRefused, Err: ErrCancelled, Type: "conflict"},
	{Code: "rate_limited", Status: 429, Exit: ExitFailed, Err: ErrRateLimited, Type: "rate_limited"},
	{Code: "unavailable", Status: 502, Exit: ExitFailed, Err: ErrUnavailable, Type: "upstream"},
	{Code: "timeout", Status: 504, Exit: ExitFailed, Err: ErrTimeout, Type: "upstream"},
	{Code: "timeout", Status: 504, Exit: ExitFailed, Err: context.DeadlineExceeded, Type: "upstream"},
	{Code: "outcome_unknown", Status: 502, Exit: ExitFailed, Type: "upstream"},
	{Code: "tool_error", Status: 502, Exit: ExitFailed, Type: "upstream"},
	{Code: "unknown_route", Status: 404, Exit: ExitFailed, Err: ErrNoRoute, Type: "not_found"},
	{Code: "internal", Status: 500, Exit: ExitFailed, Err: ErrInternal, Type: "internal"},
	{Code: "no_daemon", Exit: ExitNoDaemon, Err: ErrNoDaemon, Type: "internal"},

	// Of the HTTP listener only.
	{Code: "authentication", Status: 401, Type: "authentication", Challenge: true},
	{Code: "invalid_token", Status: 401, Type: "authentication", Challenge: true},
	{Code: "signed_out", Status: 401, Type: "authentication"},
	{Code: "token_in_url", Status: 401, Type: "authentication"},
	{Code: "cross_origin", Status: 403, Type: "invalid_request"},
	{Code: "not_json", Status: 415, Type: "invalid_request"},
	{Code: "method_not_allowed", Status: 405, Type: "invalid_request"},
	{Code: "fetch_failed", Status: 400, Type: "upstream"}, // of the tools of a server that the request brings
	{Code: "budget", Status: 429, Type: "budget"},
	{Code: "not_ready", Status: 503, Type: "internal"},

	// Of OAuth, RFC 6749 and RFC 7591.
	{Code: "invalid_request", Status: 400, Type: "invalid_request"},
	{Code: "invalid_client", Status: 400, Type: "invalid_request"},
	{Code: "invalid_grant", Status: 400, Type: "invalid_request"},
	{Code: "invalid_scope", Status: 400, Type: "invalid_request"},
	{Code: "invalid_target", Status: 400, Type: "invalid_request"},
	{Code: "invalid_redirect_uri", Status: 400, Type: "invalid_request"},
	{Code: "invalid_client_metadata", Status: 400, Type: "invalid_request"},
	{Code: "unauthorized_client", Status: 400, Type: "invalid_request"},
	{Code: "unsupported_grant_type", Status: 400, Type: "invalid_request"},
	{Code: "unsupported_response_type", Status: 400, Type: "invalid_request"},
	{Code: "access_denied", Status: 403, Type: "invalid_request"},
	{Code: "temporarily_unavailable", Status: 429, Type: "rate_limited"},
	{Code: "server_error", Status: 500, Type: "internal"},
}

// Error is an error on the wire, inside {"error":…}. It unwraps to its row's sentinel.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	// Fields are the errors in a call's arguments, each with its path.
	Fields []FieldError `json:"fields,omitempty"`
	// Replicas are the replicas that a standby node knows; it can't return the state that
	// was requested.
	Replicas []Replica `json:"replicas,omitempty"`
	// Param is the field of a program's request that is in question.
	Param string `json:"-"`
	// Retry is the number of seconds after which the client may send the request again; 0 if
	// that is unknown.
	Retry int `json:"-"`
}

// FieldError is an error at one path in the arguments: property names and item indexes,
// empty for the arguments themselves.
type FieldError struct {
	At      []string `json:"at"`
	Message string   `json:"message"`
}

// FieldErrors returns the errors in a call's arguments, path by path, with texts printed by
// say.
func FieldErrors(err error, say func(store.Text) string) (list []FieldError) {
	var call *store.CallError
	if !errors.As(err, &call) {
		return nil
	}
	for _, m := range call.Misfits {
		list = append(list, FieldError{At: append([]string{}, m.At...), Message: say(m.Text)})
	}
	return list
}

func (e *Error) Error() string { return e.Message }

// Text returns the message in the language that was requested.
func (e *Error) Text() store.Text { return store.Plain(e.Message) }

// Unwrap returns the sentinel of the code, or nil if the code is unknown to this version.
func (e *Error) Unwrap() error {
	row, _ := rowOf(e.Code)
	return row.Err
}

// Row returns the row of the code, and that of an internal error if it has none or is never
// sent.
func (e *Error) Row() Row {
	row, ok := rowOf(e.Code)
	if !ok || row.Status == 0 {
		row, _ = rowOf("internal")
	}
	return row
}

// Status returns the HTTP status of the error.
func (e *Error) Status() int { return e.Row().Status }

// Failure is the body of an error response, and the last line of a stream that failed.
type Failure struct {
	Error *Error `json:"error,omitempty"`
}

// FromError converts any error to its wire form. known is false if the caller gets only
// "internal error"; the daemon must then log err, once.
func FromError(err error) (e *Error, known bool) {
	var wire *Error
	if errors.As(err, &wire) {
		return wire, true
	}
	var call *store.CallError
	if errors.As(err, &call) && call.Code != store.CodeInternal {
		return &Error{Code: string(call.Code), Message: reason(err), Fields: FieldErrors(err, store.Text.String)}, true
	}
	for _, row := range Table {
		if row.Err != nil && row.Err != ErrInternal && errors.Is(err, row.Err) {
			return &Error{Code: row.Code, Message: reason(err)}, true
		}
	}
	return &Error{Code: "internal", Message: "internal error; the daemon's log says more"}, false
}

// reason returns the message of the first error in a chain that was written for people. It
// omits the wrapping that names the operation, since the caller knows that.
func reason(err error) string {
	var of interface{ Text() store.Text }
	if errors.As(err, &of) {
		return of.Text().String()
	}
	return err.Error()
}

// ExitCode returns the exit code for an error, ExitDone for nil.
func ExitCode(err error) int {
	if err == nil {
		return ExitDone
	}
	var wire *Error
	if errors.As(err, &wire) {
		row, _ := rowOf(wire.Code)
		return cmp.Or(row.Exit, ExitFailed) // also for a code that only other clients get
	}
	for _, row := range Table {
		if row.Err != nil && errors.Is(err, row.Err) {
			return row.Exit
		}
	}
	return ExitFailed
}

func rowOf(code string) (Row, bool) {
	for _, row := range Table {
		if row.Code == code {
			return row, true
		}
	}
	return Row{}, false
}
