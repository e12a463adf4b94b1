package api

import (
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
	Exit   int    // of nizectl
	Err    error  // the sentinel; nil if there is only the code
}

// Table is the table of errors. When an error is sent, the first row whose sentinel it
// wraps applies (a [store.CallError] uses its own code). When one is received, the row of
// its code applies.
var Table = []Row{
	{"disk_full", 507, ExitFailed, store.ErrDiskFull},
	{"no_database", 503, ExitFailed, store.ErrNoDatabase},
	{"closed", 503, ExitFailed, store.ErrNotOpen},
	{"newer_schema", 503, ExitFailed, store.ErrOldSchema},
	{"not_found", 404, ExitNotFound, store.ErrNotFound},
	{"exists", 409, ExitConflict, store.ErrExists},
	{"conflict", 409, ExitConflict, store.ErrConflict},
	{"decided", 409, ExitConflict, store.ErrDecided},
	{"expired", 410, ExitConflict, store.ErrExpired},
	{"refused", 403, ExitRefused, store.ErrRefused},
	{"invalid", 400, ExitUsage, store.ErrInvalid},
	{"invalid_arguments", 400, ExitUsage, store.ErrInvalid},
	{"cancelled", 409, ExitRefused, ErrCancelled},
	{"rate_limited", 429, ExitFailed, ErrRateLimited},
	{"unavailable", 502, ExitFailed, ErrUnavailable},
	{"timeout", 504, ExitFailed, ErrTimeout},
	{"timeout", 504, ExitFailed, context.DeadlineExceeded},
	{"outcome_unknown", 502, ExitFailed, nil},
	{"tool_error", 502, ExitFailed, nil},
	{"unknown_route", 404, ExitFailed, ErrNoRoute},
	{"internal", 500, ExitFailed, ErrInternal},
	{"no_daemon", 0, ExitNoDaemon, ErrNoDaemon},
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

// Status returns the HTTP status of the error.
func (e *Error) Status() int {
	if row, ok := rowOf(e.Code); ok && row.Status != 0 {
		return row.Status
	}
	return 500
}

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
		if row, ok := rowOf(wire.Code); ok {
			return row.Exit
		}
		return ExitFailed
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
