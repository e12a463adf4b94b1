package wire

import (
	"errors"
	"net"
	"net/http"

	"nize/store"
)

// Reach is how far a request that failed can have come.
type Reach int

const (
	Maybe    Reach = iota // it may have run: nobody can tell
	Never                 // it cannot have reached the tool
	Answered              // the server answered it
)

// Fault is why a request failed, and what that says about the tool and about
// the session.
type Fault struct {
	Reach Reach
	Drop  bool       // the session is of no more use: make a new one
	Code  store.Code // for the caller; "" follows from reach
	Said  string     // what a command wrote to standard output in place of an answer, quoted
	Err   error
}

func (f *Fault) Error() string { return f.Err.Error() }
func (f *Fault) Unwrap() error { return f.Err }

// AsFault finds the fault in err; an error without one tells nothing.
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

// credentialError is an answer that wants another credential.
type credentialError struct {
	status int
	text   string
}

func (e *credentialError) Error() string { return e.text }

// LoginLost says whether a session failed because the server refused the
// credential (401 or 403).
func LoginLost(err error) bool {
	var refused *credentialError
	var status *StatusError
	return errors.As(err, &refused) ||
		errors.As(err, &status) && (status.Status == http.StatusUnauthorized || status.Status == http.StatusForbidden)
}

// netFault judges an error of an HTTP round trip: a dial that failed has sent
// nothing; net/http itself repeats what an idle connection lost unsent.
func netFault(err error) *Fault {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return &Fault{Reach: Never, Drop: true, Err: store.NetworkError(err)}
	}
	return &Fault{Reach: Maybe, Drop: true, Err: store.NetworkError(err)}
}
