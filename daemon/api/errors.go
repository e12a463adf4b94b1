package api

import (
	"context"
	"errors"

	"nize/store"
)

// Errors that only the wire knows.
var (
	// ErrNoDaemon means that nobody listens on the socket.
	ErrNoDaemon = errors.New("nized is not running")
	// ErrUnavailable means that something behind nized (a server, a provider)
	// can't be reached.
	ErrUnavailable = errors.New("unavailable")
	// ErrTimeout means that something behind nized took too long.
	ErrTimeout = errors.New("timed out")
	// ErrRateLimited means that it was too much at once.
	ErrRateLimited = errors.New("too many requests")
	// ErrNoRoute means that this daemon doesn't know the request: it is older
	// or newer than the client.
	ErrNoRoute = errors.New("unknown request")
	// ErrCancelled means that a call was withdrawn before it ran.
	ErrCancelled = errors.New("cancelled")
	// ErrInternal is all that a caller learns of an error that is not in the
	// table; the daemon logs its cause.
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

// Row ties one kind of error together.
type Row struct {
	Code   string // on the wire
	Status int    // of HTTP; 0 never travels
	Exit   int    // of nizectl
	Err    error  // the sentinel; nil where the code alone says it
}

// Table is the one table of errors. Going out, the first row whose sentinel the
// error wraps counts (a [store.CallError] goes by its own code); coming in, the
// row of the code.
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

// Error is an error as the wire carries it, inside {"error":…}. It unwraps to
// its row's sentinel.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	// Fields are what Message says of a call's arguments, each at its place.
	Fields []FieldError `json:"fields,omitempty"`
	// Replicas are what one that stands by knows of the state that was asked for.
	Replicas []Replica `json:"replicas,omitempty"`
}

// FieldError is what is wrong at one place of arguments: names of properties and
// places of items, none for the arguments themselves.
type FieldError struct {
	At      []string `json:"at"`
	Message string   `json:"message"`
}

// FieldErrors are what an error says of a call's arguments, place by place, as say
// prints it.
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

// Text is the message in the language that was asked for.
func (e *Error) Text() store.Text { return store.Plain(e.Message) }

// Unwrap gives the sentinel of the code, or nil for a code of another version.
func (e *Error) Unwrap() error {
	row, _ := rowOf(e.Code)
	return row.Err
}

// Status is the HTTP status of the error.
func (e *Error) Status() int {
	if row, ok := rowOf(e.Code); ok && row.Status != 0 {
		return row.Status
	}
	return 500
}

// Failure is the body of an error answer, and the last line of a stream that
// broke.
type Failure struct {
	Error *Error `json:"error,omitempty"`
}

// FromError turns any error into what the wire carries. known is false if the
// caller learns nothing but "internal error": the daemon then logs err, once.
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

// reason is the first error of a chain that was made to be read by people: what
// was being done is left out, since who reads it did it.
func reason(err error) string {
	var of interface{ Text() store.Text }
	if errors.As(err, &of) {
		return of.Text().String()
	}
	return err.Error()
}

// ExitCode is the exit code for an error, ExitDone for nil.
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
