package wire

import (
	"errors"
	"net"
	"net/http"

	"nize/store"
)

// Reach is how far a failed request may have got.
type Reach int

const (
	Maybe    Reach = iota // it may have run; unknown
	Never                 // it cannot have reached the tool
	Answered              // the server answered it
)

// Fault is the error of a request, with its consequences for the tool and the session.
type Fault struct {
	Reach Reach
	Drop  bool       // the session is unusable; open a new one
	Code  store.Code // for the caller; if "", it follows from Reach
	Said  string     // the command's output on standard output instead of an answer, quoted
	Err   error
}

func (f *Fault) Error() string { return f.Err.Error() }
func (f *Fault) Unwrap() error { return f.Err }

// AsFault returns the fault in err. For an error without one it returns a fault with reach
// Maybe that drops the session.
func AsFault(err error) *Fault {
	if err == nil {
		return nil
	}
	var f *Fault
	if errors.As(err, &f) {
		return f
	}
	return &Fault{Reach: Maybe, Drop: true, Err: err}
}

// credentialError is a response that rejects the credential.
type credentialError struct {
	status int
	text   string
}

func (e *credentialError) Error() string { return e.text }

// LoginLost reports whether a session failed because the server rejected the credential
// (401 or 403).
func LoginLost(err error) bool {
	var refused *credentialError
	var status *StatusError
	return errors.As(err, &refused) ||
		errors.As(err, &status) && (status.Status == http.StatusUnauthorized || status.Status == http.StatusForbidden)
}

// netFault classifies an error of an HTTP round trip. A failed dial has sent nothing;
// net/http itself repeats requests that an idle connection lost before they were sent.
func netFault(err error) *Fault {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return &Fault{Reach: Never, Drop: true, Err: store.NetworkError(err)}
	}
	return &Fault{Reach: Maybe, Drop: true, Err: store.NetworkError(err)}
}
